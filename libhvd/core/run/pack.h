/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pack.h - packs the tensors of a batch for the collective that moves them, and
 * unpacks its result.
 */
#ifndef HVD_CORE_PACK_H
#define HVD_CORE_PACK_H

#include "core/run/execute.h"

/*
 * Fills motion, buffers and counts of the lane's collective for the batch; the
 * caller fills the rest. Packs tensors that cannot be used in place, and
 * allocates outputs whose size is known only now. Fails with HVD_ERR_MEMORY.
 */
int hvd__pack(const struct hvd__set *set, struct hvd__lane *lane);

/* Copies the results of a finished collective to the outputs. A request whose
 * output is too small gets its status and message here. */
void hvd__unpack(const struct hvd__set *set, struct hvd__lane *lane);

/* Prepares the exchange of an alltoall's row counts, one number for each pair
 * of ranks. Fails with HVD_ERR_MEMORY. */
int hvd__pack_counts(const struct hvd__set *set, struct hvd__lane *lane);

/* hvd__pack_gather and hvd__unpack_gather do the same for gathers and exchanges
 * (pack_gather.c). */
int hvd__pack_gather(const struct hvd__set *set, struct hvd__lane *lane);
void hvd__unpack_gather(const struct hvd__set *set, struct hvd__lane *lane);

/* Returns the number by which an average of the lane's batch is divided. */
int hvd__lane_divisor(const struct hvd__set *set, const struct hvd__lane *lane);
/* Sets lane->buffer to a buffer of bytes or more: the fusion buffer if it is
 * large enough, else a temporary one. */
int hvd__lane_room(struct hvd__lane *lane, size_t bytes);

#endif
