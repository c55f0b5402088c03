/* SPDX-License-Identifier: Apache-2.0 */
/*
 * replica.h - copies of a program on several IPUs: the door of this room.
 */
#ifndef IPU_REPLICA_REPLICA_H
#define IPU_REPLICA_REPLICA_H

#include "graph/graph.h"

/* The system that was asked for; NULL: an M2000, or as large a Pod as it takes
 * for so many IPUs. */
int ipu__find_system(const ipu_system *asked, int32_t ipus, ipu_system *system);

/* A tensor of so many bytes that is spread over all tiles, from chip to chip:
 * each tile sends its part. */
int ipu__send_cycles(const ipu_system *system, int32_t from, int32_t to,
                     int64_t bytes, ipu_cycles *cycles);

/*
 * Cycles of a sum over replicas, each of which is apart from the next by so
 * many IPUs: a ring, in which pieces go around twice. Adds to sent what each
 * sends.
 */
int ipu__ring_cycles(const ipu_system *system, int32_t replicas, int32_t apart,
                     int64_t bytes, int64_t *sent, int64_t *cycles);

/* The program of replicas, and the engine of one. */
const ipu_executable *ipu__replicas_program(const ipu_replicas *replicas);
ipu_engine *ipu__replicas_engine(const ipu_replicas *replicas, int32_t replica);

/*
 * Each of n tensors of count elements becomes their sum, times scale, added in
 * float32 in the order of the replicas. dtype: float32, float16, bfloat16; or
 * int32, with scale 1.
 */
void ipu__sum_replicas(ipu_dtype dtype, int32_t n, void *const *tensors,
                       int64_t count, float scale);

/* What count replicas of so many shards each send in a run, and what that
 * takes; limit: bytes that are sent together. */
int ipu__replicas_account(const ipu_executable *executable,
                          const ipu_system *system, int32_t count,
                          int32_t shards, int64_t limit,
                          ipu_replicas_info *info);

#endif
