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
int hvd__pack(struct hvd__lane *lane);

/* Copies the results of a finished collective to the outputs. A request whose
 * output is too small gets its status and message here. */
void hvd__unpack(struct hvd__lane *lane);

/* Prepares the exchange of an alltoall's row counts, one number for each pair
 * of ranks. Fails with HVD_ERR_MEMORY. */
int hvd__pack_counts(struct hvd__lane *lane);

/* hvd__pack_gather and hvd__unpack_gather do the same for gathers and exchanges
 * (pack_gather.c). */
int hvd__pack_gather(struct hvd__lane *lane);
void hvd__unpack_gather(struct hvd__lane *lane);

/* Copies a rank's part of each tensor of the batch, what it gets of the input
 * or what the output gets from it, to a place or from there. Returns the end of
 * the parts there. */
unsigned char *hvd__copy_parts(const struct hvd__lane *lane, unsigned char *at,
                               int rank, bool sent);
/* Returns the rows that come from a rank of the set, and where they go. */
int64_t hvd__rows_from(const struct hvd__request *request, int rank);
unsigned char *hvd__request_output(const struct hvd__request *request);

/* Returns the number by which an average of the lane's batch is divided. */
int hvd__lane_divisor(const struct hvd__lane *lane);
/* Sets lane->buffer to a buffer of bytes or more: the fusion buffer if it is
 * large enough, else a temporary one. */
int hvd__lane_room(struct hvd__lane *lane, size_t bytes);

#endif
