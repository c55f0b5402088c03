/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pack.h - packs the tensors of a batch, wherever they lie, for the one
 * collective that moves them, and unpacks its result.
 */
#ifndef HVD_CORE_PACK_H
#define HVD_CORE_PACK_H

#include "core/run/execute.h"

/*
 * Fill the lane's collective (motion, buffers, counts; the rest is the
 * caller's) for the batch, packing what has to be. Outputs that only now have
 * a size are allocated. HVD_ERR_MEMORY.
 */
int hvd__pack(const struct hvd__set *set, struct hvd__lane *lane);

/* The collective is done: put the results where they belong. A request whose
 * output is too small gets its status and message here. */
void hvd__unpack(const struct hvd__set *set, struct hvd__lane *lane);

/* Exchanges, for an alltoall, the rows that each rank sends to each, one number
 * a pair. */
void hvd__pack_counts(const struct hvd__set *set, struct hvd__lane *lane);

/* pack_gather.c's part of both. */
int hvd__pack_gather(const struct hvd__set *set, struct hvd__lane *lane);
void hvd__unpack_gather(const struct hvd__set *set, struct hvd__lane *lane);

/* The number in the set of member i of the lane's team. */
int hvd__lane_member(const struct hvd__lane *lane, int i);
/* Room for bytes: the fusion buffer, or a temporary one. */
int hvd__lane_room(struct hvd__lane *lane, size_t bytes);

#endif
