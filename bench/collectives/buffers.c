/* SPDX-License-Identifier: Apache-2.0 */
/*
 * buffers.c - the two buffers of a measurement, and the sweep of the caches.
 *
 * With --cold, a buffer is twice the last level of cache, if so much is of use,
 * and divided into slots of the present size. measure.c divides and fills the
 * slots; blocks.c takes the next one for each operation and sweeps before each
 * block.
 */
#include "collectives/buffers.h"

#include "collectives/machine.h"

#include <stdlib.h>
#include <string.h>

enum { LINE = 64, PAGE = 4096, MOST_SLOTS = 64 };

static size_t larger(size_t a, size_t b)
{
    return a > b ? a : b;
}

/* Slots must not be a power of two apart, or they would share the same sets of
 * the caches. */
static size_t stride_of(size_t bytes)
{
    return (bytes + LINE - 1) / LINE * LINE + PAGE + LINE;
}

/* No more than what the most slots of the largest size take, because hvd_malloc
 * has the system provide all of it. */
static size_t slots_bytes(const struct bench_options *o)
{
    size_t most = (size_t)o->max_bytes;
    size_t twice = 2 * larger(stride_of(most), machine_cache());

    if (!o->cold)
        return most;
    return twice / MOST_SLOTS < stride_of(most) ? twice
                                                : MOST_SLOTS * stride_of(most);
}

/* All ranks of a host sweep at once; each also sweeps its own near cache. */
static size_t sweep_bytes(const struct bench_options *o, int local_size)
{
    size_t share = 2 * machine_cache() / (size_t)local_size;

    return o->cold ? larger(share, 4u << 20) : 0;
}

int64_t buffers_need(const struct bench_options *options, int local_size)
{
    return (int64_t)(2 * slots_bytes(options) +
                     sweep_bytes(options, local_size));
}

static char *allocate_slots(const struct buffers *b)
{
    /* This memory is as aligned as that of hvd_malloc. */
    size_t rounded = (b->bytes + LINE - 1) / LINE * LINE;

    return b->plain ? aligned_alloc(LINE, rounded) : hvd_malloc(b->bytes);
}

static void free_slots(const struct buffers *b, char *memory)
{
    if (b->plain)
        free(memory);
    else
        hvd_free(memory);
}

int buffers_init(struct buffers *b, const struct bench_options *o,
                 int local_size)
{
    *b = (struct buffers){.plain = o->plain_memory,
                          .cold = o->cold,
                          .bytes = slots_bytes(o),
                          .most = (size_t)o->max_bytes,
                          .sweep_bytes = sweep_bytes(o, local_size)};
    b->in = allocate_slots(b);
    b->out = allocate_slots(b);
    if (b->cold)
        b->sweep = malloc(b->sweep_bytes);
    if (!b->in || !b->out || (b->cold && !b->sweep))
        return -1;
    if (b->cold)
        memset(b->sweep, 1, b->sweep_bytes);
    buffers_divide(b, b->most);
    return 0;
}

void buffers_fini(struct buffers *b)
{
    free_slots(b, b->in);
    free_slots(b, b->out);
    free(b->sweep);
    *b = (struct buffers){0};
}

void buffers_divide(struct buffers *b, size_t bytes)
{
    b->turn = 0;
    b->stride = stride_of(bytes);
    b->slots = b->cold ? b->bytes / b->stride : 1;
    /* More slots are of no use: a block has fewer operations, or is swept
     * before. */
    if (b->slots > MOST_SLOTS)
        b->slots = MOST_SLOTS;
}

void buffers_spread(struct buffers *b, size_t bytes)
{
    for (size_t slot = 1; slot < b->slots; slot++) {
        memcpy(b->in + slot * b->stride, b->in, bytes);
        memcpy(b->out + slot * b->stride, b->out, bytes);
    }
}

size_t buffers_next(struct buffers *b)
{
    size_t offset = b->turn * b->stride;

    b->turn = (b->turn + 1) % b->slots;
    return offset;
}

void buffers_sweep(struct buffers *b)
{
    if (!b->cold)
        return;
    for (size_t i = 0; i < b->sweep_bytes; i += LINE)
        b->sweep[i]++;
    /* The compiler must not drop stores that no code reads. */
    __asm__ volatile("" ::"r"(b->sweep) : "memory");
}
