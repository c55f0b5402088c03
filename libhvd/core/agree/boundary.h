/* SPDX-License-Identifier: Apache-2.0 */
/*
 * boundary.h - batches of what is agreed on by order among ranks that share no
 * memory.
 *
 * All ranks agree on the same requests in the same order, but not at the same
 * time: which of them go together, as one collective, must not depend on how
 * far a rank has come. So the first rank sets boundaries in the order: all up
 * to a slot, in batches of at most so many bytes. It does so while it has lanes
 * to spare, and sends the boundary with its slots; what is agreed on while all
 * lanes are busy waits, and goes as one piece. Every rank fuses a piece in the
 * same way once it knows all of it.
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

/* A request was posted that needs a batch when it is agreed on. */
void hvd__boundaries_expect(struct hvd__boundaries *boundaries,
                            const struct hvd__signature *signature);
/* It is agreed on, in this slot; it waits for a boundary. */
void hvd__boundaries_agree(struct hvd__boundaries *boundaries,
                           struct hvd__request *request, uint64_t sequence);
/* The first rank's: whether it is time to set a boundary behind what is posted,
 * or, when the epoch is over, what is agreed on: *boundary is what all must
 * know. */
bool hvd__boundaries_make(struct hvd__set *set, struct hvd__boundary *boundary);
/* What the first rank has told. HVD_ERR_MEMORY. */
int hvd__boundaries_add(struct hvd__boundaries *boundaries,
                        const struct hvd__boundary *boundary);
/* Give the lanes the pieces that are agreed on to their ends. */
int hvd__boundaries_run(struct hvd__set *set);

#endif
