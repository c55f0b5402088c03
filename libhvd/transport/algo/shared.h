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

/* Larger tensors are reduced on each host first. */
enum { HVD__HOSTS_BYTES = 64 << 10 };

/* Returns whether the team has a shared segment. */
bool hvd__shared_applies(const struct hvd__collective *c);

/* Starts a round, as one segment with everything. */
int hvd__shared_start(struct hvd__collective *c, struct hvd__segment *segment);

/* Returns whether all ranks are done with the round before, so that our area
 * may be written to. */
bool hvd__shared_may_begin(const struct hvd__collective *c);
/* Begins the round: publishes this rank's area and, if others can reach them,
 * the addresses of its input and output, of bytes each. */
void hvd__shared_begin(struct hvd__collective *c, const void *input,
                       const void *output, size_t bytes);
/* Returns whether all ranks have begun. */
bool hvd__shared_all_began(const struct hvd__collective *c);

/* Returns the address here of a rank's output; NULL: out of reach. */
void *hvd__shared_output(const struct hvd__collective *c, int rank,
                         size_t bytes);

/* Finishes the round: this rank will not read other areas any more. */
void hvd__shared_finish(struct hvd__collective *c);

/* Returns the smallest value that the other ranks have in one of their counts.
 */
#define HVD__SHARED_LEAST(c, count)                                            \
    hvd__shared_least((c), offsetof(struct hvd__area, count))
int64_t hvd__shared_least(const struct hvd__collective *c, size_t count);

/* Returns the bytes of a chunk; a buffer has one for each rank. */
size_t hvd__shared_chunk_bytes(const struct hvd__collective *c);

#endif
