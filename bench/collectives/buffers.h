/* SPDX-License-Identifier: Apache-2.0 */
/*
 * buffers.h - the memory that is measured.
 *
 * Each of the two buffers is one slot; with --cold many, one after the other:
 * each operation takes the next, and there are so many that the last level
 * of cache has long forgotten a slot when its turn comes again. Where they are
 * fewer, because they are small, the caches are swept before.
 */
#ifndef BENCH_BUFFERS_H
#define BENCH_BUFFERS_H

#include "collectives/options.h"

/* Owned; in and out are slot 0. */
struct buffers {
    bool plain;
    bool cold;
    size_t bytes; /* of all slots of one buffer */
    size_t most;  /* of the largest message */
    char *in;
    char *out;
    char *sweep;
    size_t sweep_bytes;
    size_t stride; /* between slots of the present size */
    size_t slots;
    size_t turn;
};

/* Bytes of all that buffers_init would allocate on one rank. */
int64_t buffers_need(const struct bench_options *options, int local_size);

/* 0, or -1 without memory. */
int buffers_init(struct buffers *buffers, const struct bench_options *options,
                 int local_size);
void buffers_fini(struct buffers *buffers);

/* From now on messages have this size. */
void buffers_divide(struct buffers *buffers, size_t bytes);

/* Copy the contents of slot 0 of both to the other slots, bytes of them. */
void buffers_spread(struct buffers *buffers, size_t bytes);

/* How far the next slot is from slot 0. */
size_t buffers_next(struct buffers *buffers);

/* Before a block of operations: with --cold, nothing of ours stays cached. */
void buffers_sweep(struct buffers *buffers);

#endif
