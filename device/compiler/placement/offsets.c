/* SPDX-License-Identifier: Apache-2.0 */
/*
 * offsets.c - the pass that gives each block an offset in the engine's memory.
 *
 * Variables come first, one after the other. The other blocks follow, largest
 * first, each at the lowest offset where it does not overlap a block that is
 * needed at the same time ("greedy by size"; Pisarchyk and Lee, Efficient
 * Memory Management for Deep Neural Net Inference, 2020). The least memory
 * possible is NP-hard to find; for networks this comes close.
 */
#include <stdlib.h>

#include "base/error.h"
#include "compiler/passes.h"

/* The place of a block. Places are in an array of their own because the search
 * reads all of them for each new block. */
struct placed {
    size_t offset, end;
    int32_t birth, death;
};

/* Sorts the largest first; equal ones in their order, so that the plan is
 * always the same. */
static int by_size(const void *first, const void *second)
{
    const struct ipu__block *a = *(struct ipu__block *const *)first;
    const struct ipu__block *b = *(struct ipu__block *const *)second;

    if (a->bytes != b->bytes)
        return a->bytes < b->bytes ? 1 : -1;
    return a < b ? -1 : a > b;
}

/* Inserts a block in the list, which is sorted by offset. */
static void insert_placed(struct placed *placed, int32_t n,
                          const struct ipu__block *block)
{
    int32_t i = n;

    for (; i > 0 && placed[i - 1].offset > block->offset; i--)
        placed[i] = placed[i - 1];
    placed[i] =
        (struct placed){.offset = block->offset,
                        .end = block->offset + ipu__aligned(block->bytes),
                        .birth = block->birth,
                        .death = block->death};
}

/* Returns the lowest offset, from base on, that is free during the block's
 * life. */
static size_t lowest_free(const struct placed *placed, int32_t n,
                          const struct ipu__block *block, size_t base)
{
    size_t offset = base, bytes = ipu__aligned(block->bytes);

    for (int32_t i = 0; i < n; i++) {
        const struct placed *other = &placed[i];

        if (block->birth > other->death || other->birth > block->death)
            continue;
        if (other->offset >= offset + bytes)
            break; /* the gap before it is large enough */
        if (other->end > offset)
            offset = other->end;
    }
    return offset;
}

int ipu__plan_memory(struct ipu_executable *e)
{
    size_t n = (size_t)e->nblocks + 1;
    struct ipu__block **order = calloc(n, sizeof *order);
    struct placed *placed = calloc(n, sizeof *placed);
    int32_t ntransient = 0;
    size_t base = 0;
    int status = IPU_OK;

    if (!order || !placed) {
        free(order);
        free(placed);
        return ipu__fail_memory(n * sizeof *order);
    }
    for (int32_t i = 0; i < e->nblocks; i++) {
        struct ipu__block *block = &e->blocks[i];

        if (block->always) {
            block->offset = base;
            base += ipu__aligned(block->bytes);
        } else {
            order[ntransient++] = block;
        }
    }
    qsort(order, (size_t)ntransient, sizeof *order, by_size);
    e->memory_bytes = base;
    for (int32_t i = 0; i < ntransient && status == IPU_OK; i++) {
        struct ipu__block *block = order[i];

        block->offset = lowest_free(placed, i, block, base);
        insert_placed(placed, i, block);
        if (block->offset + ipu__aligned(block->bytes) > e->memory_bytes)
            e->memory_bytes = block->offset + ipu__aligned(block->bytes);
        status = ipu__progress(e->progress, "memory",
                               e->nblocks - ntransient + i + 1, e->nblocks);
    }
    free(order);
    free(placed);
    return status;
}
