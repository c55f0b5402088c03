/* SPDX-License-Identifier: Apache-2.0 */
/*
 * buffers.h - the memory that is measured.
 *
 * Each of the two buffers is one slot. With --cold it is many slots, and each
 * operation takes the next: there are so many that a slot has left the last
 * level of cache when its turn comes again. If small messages make too few
 * slots for that, the caches are swept before each block.
 */
#ifndef BENCH_BUFFERS_H
#define BENCH_BUFFERS_H

#include "collectives/options.h"

/* Two buffers, owned; in and out point to slot 0. */
struct buffers {
    bool plain;
    bool cold;
    size_t bytes; /* bytes of all slots of one buffer */
    size_t most;  /* bytes of the largest message */
    char *in;
    char *out;
    char *sweep;
    size_t sweep_bytes;
    size_t stride; /* bytes from one slot to the next */
    size_t slots;
    size_t turn;
};

/* Returns the bytes that buffers_init would allocate on one rank. */
int64_t buffers_need(const struct bench_options *options, int local_size);

/* Allocates the buffers. Returns 0, or -1 without memory. */
int buffers_init(struct buffers *buffers, const struct bench_options *options,
                 int local_size);
void buffers_fini(struct buffers *buffers);

/* Divides the buffers into slots for messages of this size. */
void buffers_divide(struct buffers *buffers, size_t bytes);

/* Copies the first bytes of slot 0 to the other slots, in both buffers. */
void buffers_spread(struct buffers *buffers, size_t bytes);

/* Returns the offset of the next slot from slot 0. */
size_t buffers_next(struct buffers *buffers);

/* With --cold, removes the buffers from the caches. The caller does this before
 * each block of operations. */
void buffers_sweep(struct buffers *buffers);

#endif
