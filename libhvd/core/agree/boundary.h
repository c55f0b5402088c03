/* SPDX-License-Identifier: Apache-2.0 */
/*
 * boundary.h - batch boundaries in the order of requests, for ranks that share
 * no memory.
 *
 * All ranks agree on the same requests in the same order, but not at the same
 * time. Which requests are fused into one collective must not depend on how far
 * a rank has come. So the first rank sets boundaries in the order. A boundary
 * names a slot and a number of bytes: all requests up to the slot go in batches
 * of at most that size. The first rank sets a boundary when it has a free lane
 * and sends it with its slots. Requests that are agreed on while all lanes are
 * busy wait and go as one piece. Every rank fuses a piece in the same way once
 * it knows all of it.
 */
#ifndef HVD_CORE_BOUNDARY_H
#define HVD_CORE_BOUNDARY_H

#include "core/request/request.h"

struct hvd__set;

struct hvd__boundary {
    uint64_t sequence; /* sequence number of the last slot of the piece */
    size_t threshold;  /* most bytes of a batch of several */
    size_t direct_max; /* value that all ranks use from here on */
};

/* Only the driver uses it. */
struct hvd__boundaries {
    struct hvd__request *agreed; /* list, in order: agreed on, not yet run */
    struct hvd__request **tail;
    uint64_t last_agreed;             /* sequence number */
    struct hvd__boundary *boundaries; /* owned, [n]: pieces not yet run */
    int n, capacity;
    uint64_t last_boundary; /* the first rank's: sequence number */
    uint64_t nexpected; /* first rank only: posted requests that need a batch
                           and have no boundary behind them yet */
};

void hvd__boundaries_init(struct hvd__boundaries *boundaries);
void hvd__boundaries_fini(struct hvd__boundaries *boundaries);

/* Counts a posted request that will need a batch when it is agreed on. */
void hvd__boundaries_expect(struct hvd__boundaries *boundaries,
                            const struct hvd__signature *signature);
/* Adds a request that is agreed on in this slot and waits for a boundary. */
void hvd__boundaries_agree(struct hvd__boundaries *boundaries,
                           struct hvd__request *request, uint64_t sequence);
/* Only the first rank calls it. Returns true if it is time to set a boundary
 * behind the posted requests or, when the epoch is over, behind those agreed
 * on. *boundary is then what all ranks must know. */
bool hvd__boundaries_make(struct hvd__set *set, struct hvd__boundary *boundary);
/* Adds a boundary that the first rank has set. HVD_ERR_MEMORY. */
int hvd__boundaries_add(struct hvd__boundaries *boundaries,
                        const struct hvd__boundary *boundary);
/* Passes all pieces that are agreed on completely to the lanes. */
int hvd__boundaries_run(struct hvd__set *set);

#endif
