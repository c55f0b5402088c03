/* SPDX-License-Identifier: Apache-2.0 */
/*
 * shared.h - what the collectives in shared memory have in common.
 *
 * A shared segment has one round at a time: one collective that all its ranks
 * work on. Its ranks begin the same rounds in the same order
 * (core/run/execute.c sees to that), and none begins one before all have
 * finished the one before, so that everything in the shared segment is then
 * free. Beginning, a rank says where its data lies; when all have, all know the
 * same and choose alike: direct, if what others must see lies in heaps, or in
 * chunks that are copied through the shared segment. Those are small enough to
 * stay in the cache on their way.
 */
#ifndef HVD_TRANSPORT_ALGO_SHARED_H
#define HVD_TRANSPORT_ALGO_SHARED_H

#include "transport/algo/algo.h"

/* Tensors of more bytes are reduced on each host first. */
enum { HVD__HOSTS_BYTES = 64 << 10 };

/* Whether the team has a shared segment to share. */
bool hvd__shared_applies(const struct hvd__collective *c);

/* The algorithms' start: one segment with everything. */
int hvd__shared_start(struct hvd__collective *c, struct hvd__segment *segment);

/* All ranks are done with the round before: our area may be written to. */
bool hvd__shared_may_begin(const struct hvd__collective *c);
/* What is in our area is there to be seen, and that our data lies at these
 * addresses, of bytes each, if others can reach it. */
void hvd__shared_begin(struct hvd__collective *c, const void *input,
                       const void *output, size_t bytes);
/* All ranks have begun. */
bool hvd__shared_all_began(const struct hvd__collective *c);

/* Where rank's data lies, as an address of ours; NULL: out of reach. */
void *hvd__shared_output(const struct hvd__collective *c, int rank,
                         size_t bytes);

/* This rank is done with the round, and will not look at others' areas. */
void hvd__shared_finish(struct hvd__collective *c);

/* The least that the other ranks have in one of their counts. */
#define HVD__SHARED_LEAST(c, count)                                            \
    hvd__shared_least((c), offsetof(struct hvd__area, count))
int64_t hvd__shared_least(const struct hvd__collective *c, size_t count);

/* Bytes of a chunk of a buffer, of which each buffer has one a rank. */
size_t hvd__shared_chunk_bytes(const struct hvd__collective *c);

#endif
