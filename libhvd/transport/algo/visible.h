/* SPDX-License-Identifier: Apache-2.0 */
/*
 * visible.h - collectives on data that this rank can read where it lies: in the
 * heaps of the ranks of its host, or in the slots of their logs. Nothing is
 * sent and nothing waits; the callers, shared_reduce.c and core/agree, agree
 * first that all data is there and announce afterwards that it was read.
 */
#ifndef HVD_TRANSPORT_ALGO_VISIBLE_H
#define HVD_TRANSPORT_ALGO_VISIBLE_H

#include "kernels/kernels.h"
#include "transport/shm/shm.h"

/* The number of bytes that are processed between two checks for other work. */
enum { HVD__CHUNK_BYTES = 4 << 20 };

/* A reduction in place: one rank reduces its share of all contributions and
 * writes the result to all ranks that want it. */
struct hvd__visible {
    struct hvd__reduction reduction;
    const void **sources; /* borrowed, room for one a rank */
    void **targets;       /* borrowed, room for one a rank */
    int nsources, ntargets;
    int64_t left; /* elements of the share */
};

/* Adds a rank, whose data lies at these places in its heap, bytes at each.
 * Returns false if they are out of reach. wanted is true if the rank wants the
 * result. */
bool hvd__visible_add(struct hvd__visible *visible, const struct hvd__shm *shm,
                      int rank, uint64_t input, uint64_t output, bool wanted,
                      size_t bytes);
/* Chooses the share, once all ranks are added. */
void hvd__visible_begin(struct hvd__visible *visible, int64_t start,
                        int64_t count);
/* Reduces the next chunk of the share, and adds the time to *computing_ns.
 * Returns whether the share is done. */
bool hvd__visible_step(struct hvd__visible *visible, int64_t *computing_ns);

/* Writes bytes of each of n sources to output, one after the other. */
void hvd__visible_gather(void *output, const void *const *sources, int n,
                         size_t bytes);

#endif
