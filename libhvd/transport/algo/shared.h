/* SPDX-License-Identifier: Apache-2.0 */
/*
 * shared.h - the common parts of the collectives in shared memory.
 *
 * A shared segment has one round at a time: one collective that all its ranks
 * work on. All ranks begin the same rounds in the same order
 * (core/run/execute.c ensures that), and none begins a round before all have
 * finished the one before; then everything in the segment is free. A rank that
 * begins says where its data lies. When all have begun, all know the same and
 * choose alike: direct, if the data lies in heaps, or through bounce buffers in
 * the segment, in chunks that are small enough to stay in the cache on their
 * way.
 */
#ifndef HVD_TRANSPORT_ALGO_SHARED_H
#define HVD_TRANSPORT_ALGO_SHARED_H

#include "transport/algo/algo.h"

/* Returns whether the team has a shared segment. */
bool hvd__shared_applies(const struct hvd__collective *c);

/* Starts a round in a segment of shared memory. It is one segment of the
 * collective, with everything. The data is cut into nslices slices, and each of
 * them into chunks of chunk_bytes. */
void hvd__shared_open(struct hvd__collective *c, struct hvd__segment *segment,
                      struct hvd__shm *shm, int nslices, size_t chunk_bytes);
/* Starts a round in the team's segment, with a slice for each rank. */
int hvd__shared_start(struct hvd__collective *c, struct hvd__segment *segment);

/* The parts of a collective. */
struct hvd__shared_parts {
    /* Writes this rank's area and calls hvd__shared_begin. The area is free. */
    void (*begin)(struct hvd__collective *c);
    /* Returns whether the collective goes direct. All ranks have begun. */
    bool (*is_direct)(struct hvd__collective *c);
    /* Does what can be done next, and counts it in c->shared. Returns whether
     * all is done. */
    bool (*move)(struct hvd__collective *c);
};
/* Begins a round, moves it and finishes it. Returns 1 if it is done. */
int hvd__shared_step(struct hvd__collective *c, struct hvd__segment *segment,
                     const struct hvd__shared_parts *parts);

/* Begins the round: publishes this rank's area and, if others can reach them,
 * the addresses of its input and output, of bytes each. */
void hvd__shared_begin(struct hvd__collective *c, const void *input,
                       const void *output, size_t bytes);

/* Returns the address here of a rank's output; NULL: out of reach. */
void *hvd__shared_output(const struct hvd__collective *c, int rank,
                         size_t bytes);

/* Returns the smallest value that the other ranks have in one of their counts.
 */
#define HVD__SHARED_LEAST(c, count)                                            \
    hvd__shm_least((c)->shared.shm, (c)->shared.round,                         \
                   offsetof(struct hvd__area, count))

/* Returns the elements of a chunk, and the number of chunks of a slice. */
int64_t hvd__shared_chunk_count(const struct hvd__collective *c);
int64_t hvd__shared_nchunks(const struct hvd__collective *c);
/* Returns the elements of chunk k of a slice. */
struct hvd__slice hvd__shared_range(const struct hvd__collective *c, int slice,
                                    int64_t k);
/* Returns the place in a rank's buffers of chunk k of a slice. */
unsigned char *hvd__shared_buffer(const struct hvd__collective *c, int rank,
                                  int64_t k, int slice);

/* Copy chunk k of the slices that belong to other ranks: from the input into
 * this rank's buffer, and from the buffers of those ranks into the output.
 * Slice i belongs to rank i modulo the number of ranks. */
void hvd__shared_copy(const struct hvd__collective *c, int64_t k);
void hvd__shared_fetch(const struct hvd__collective *c, int64_t k);

#endif
