/* SPDX-License-Identifier: Apache-2.0 */
/*
 * replica.h - copies of a program on several IPUs, which add up tensors at
 * collective ops. The door of this room.
 *
 * All sums are made in the order of the replicas, so that threads change no
 * bit. Pipelines use ipu__sum_replicas; the rest serves ipu_replicas_*.
 */
#ifndef IPU_REPLICA_REPLICA_H
#define IPU_REPLICA_REPLICA_H

#include "graph/graph.h"

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

/* Returns IPU_ERR_ARGUMENT unless the options are valid, whatever the program.
 */
int ipu__check_replicas_options(const ipu_replicas_options *options);

/* Counts what count replicas with these options send in a run on a system, and
 * what that takes. */
int ipu__replicas_account(const ipu_executable *executable,
                          const ipu_system *system, int32_t count,
                          const ipu_replicas_options *options,
                          ipu_replicas_info *info);

#endif
