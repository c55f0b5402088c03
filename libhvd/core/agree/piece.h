/* SPDX-License-Identifier: Apache-2.0 */
/*
 * piece.h - requests that were agreed on in one round and need a batch, for a
 * process set on several hosts.
 *
 * All ranks agree on the same requests in the same order, but not at the same
 * time. Which of them are fused into one collective must not depend on how far
 * a rank has come. All ranks know which slots a round has decided: they fuse
 * the requests of that piece, and none of different pieces, all in the same
 * way.
 */
#ifndef HVD_CORE_PIECE_H
#define HVD_CORE_PIECE_H

#include "core/request/request.h"
#include "transport/shm/shm.h"

struct hvd__set;

/* Only the driver uses it. */
struct hvd__piece {
    struct hvd__request *requests; /* list, in order */
    struct hvd__request **tail;
    int n;
};

void hvd__piece_init(struct hvd__piece *piece);
void hvd__piece_add(struct hvd__piece *piece, struct hvd__request *request);
/* Passes a piece to the lanes, in batches, and empties it. */
int hvd__piece_run(struct hvd__set *set, struct hvd__piece *piece,
                   const struct hvd__piece_values *values);

#endif
