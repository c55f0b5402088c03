/* SPDX-License-Identifier: Apache-2.0 */
/*
 * boundary.h - batch boundaries in the order of requests, among ranks that
 * share no memory.
 *
 * All ranks agree on the same requests in the same order, but not at the same
 * time. Which requests go together, as one collective, must not depend on how
 * far a rank has come. So the first rank sets boundaries in the order:
 * everything up to a slot goes in batches of at most so many bytes. It sets one
 * while it has a free lane, and sends it with its slots. Requests that are
 * agreed on while all lanes are busy wait and go as one piece. Every rank fuses
 * a piece in the same way once it knows all of it.
 */
#ifndef HVD_CORE_BOUNDARY_H
#define HVD_CORE_BOUNDARY_H

#include "core/request/request.h"

struct hvd__set;

struct hvd__boundary {
    uint64_t sequence; /* of the last slot that belongs to the piece */
    size_t threshold;  /* most bytes of a batch of several */
    size_t direct_max; /* as all ranks know it at this point */
};

/* All the driver's. */
struct hvd__boundaries {
    struct hvd__request *agreed; /* list, in order: not run yet */
    struct hvd__request **tail;
    uint64_t last_agreed; /* sequence number */
    struct hvd__boundary
        *boundaries; /* owned: [n] of pieces that are not run yet */
    int n, capacity;
    uint64_t last_boundary; /* the first rank's: sequence number */
    uint64_t nexpected; /* the first rank's: posted, and not behind a boundary
                           yet, that will be run in a batch */
};

void hvd__boundaries_init(struct hvd__boundaries *boundaries);
void hvd__boundaries_fini(struct hvd__boundaries *boundaries);

/* A request was posted that will need a batch when it is agreed on. */
void hvd__boundaries_expect(struct hvd__boundaries *boundaries,
                            const struct hvd__signature *signature);
/* A request is agreed on, in this slot, and waits for a boundary. */
void hvd__boundaries_agree(struct hvd__boundaries *boundaries,
                           struct hvd__request *request, uint64_t sequence);
/* The first rank's. Returns true if it is time to set a boundary behind what is
 * posted, or, when the epoch is over, behind what is agreed on. *boundary is
 * what all must know. */
bool hvd__boundaries_make(struct hvd__set *set, struct hvd__boundary *boundary);
/* Adds a boundary that the first rank has set. HVD_ERR_MEMORY. */
int hvd__boundaries_add(struct hvd__boundaries *boundaries,
                        const struct hvd__boundary *boundary);
/* Gives the lanes all pieces that are agreed on to their ends. */
int hvd__boundaries_run(struct hvd__set *set);

#endif
