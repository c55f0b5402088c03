/* SPDX-License-Identifier: Apache-2.0 */
/*
 * place.c - which tiles hold what, and how full they get.
 *
 * A block is spread over tiles in runs of whole grains, as evenly as can be:
 * small ones on a few tiles, large ones on all. Each begins where the last
 * one ended, around the chip, so that the first tiles do not get all of the
 * small ones.
 *
 * This says what would have to fit where; nothing is refused for being too
 * large yet. Code, exchange buffers and vertex state are not counted.
 */
#include <stdlib.h>

#include "compiler/program.h"
#include "graph/error.h"

/* Eight bytes: what a tile loads or stores in one go. */
enum { GRAIN_BYTES = 8 };

/* Add (sign 1) or take away (-1) a block; returns the fullest tile that it
 * touched. */
static int64_t spread(int64_t *tiles, int32_t ntiles, int32_t first,
                      const struct ipu__block *block, int sign, int32_t *after)
{
    int64_t grains = (int64_t)((block->bytes + GRAIN_BYTES - 1) / GRAIN_BYTES);
    int32_t used = grains < ntiles ? (int32_t)grains : ntiles;
    int64_t fullest = 0;

    for (int32_t i = 0; i < used; i++) {
        int32_t tile = (first + i) % ntiles;
        int64_t mine = grains / used + (i < grains % used);

        tiles[tile] += sign * mine * GRAIN_BYTES;
        if (tiles[tile] > fullest)
            fullest = tiles[tile];
    }
    *after = (first + used) % ntiles;
    return fullest;
}

static void note_most(int64_t *most, int64_t value)
{
    if (*most < value)
        *most = value;
}

/* Go through the program as it runs: what is born is added, what is dead is
 * taken away. */
static void simulate(struct ipu_executable *e, int64_t *tiles, int32_t *first)
{
    ipu_memory_info *info = &e->info;
    int32_t ntiles = e->target.tiles, next = 0;
    int64_t live = 0;

    for (int32_t i = -1; i < e->nsteps; i++) {
        for (int32_t b = 0; b < e->nblocks; b++) {
            struct ipu__block *block = &e->blocks[b];

            if (block->birth != i)
                continue;
            first[b] = next;
            note_most(&info->bytes_on_fullest_tile,
                      spread(tiles, ntiles, first[b], block, 1, &next));
            live += (int64_t)block->bytes;
        }
        note_most(&info->peak_bytes, live);
        for (int32_t b = 0; b < e->nblocks; b++) {
            struct ipu__block *block = &e->blocks[b];
            int32_t ignored;

            if (block->death != i)
                continue;
            spread(tiles, ntiles, first[b], block, -1, &ignored);
            live -= (int64_t)block->bytes;
        }
    }
}

int ipu__place(struct ipu_executable *e)
{
    int64_t *tiles = calloc((size_t)e->target.tiles, sizeof *tiles);
    int32_t *first = calloc((size_t)e->nblocks + 1, sizeof *first);

    if (!tiles || !first) {
        free(tiles);
        free(first);
        return ipu__fail_memory((size_t)e->target.tiles * sizeof *tiles);
    }
    e->info.steps = e->nsteps;
    e->info.planned_bytes = (int64_t)e->memory_bytes;
    for (int32_t v = 0; v < e->nvalues; v++) {
        e->info.unshared_bytes += (int64_t)e->values[v].bytes;
        if (e->values[v].kind == IPU__VARIABLE ||
            e->values[v].kind == IPU__CONSTANT)
            e->info.always_live_bytes += (int64_t)e->values[v].bytes;
    }
    simulate(e, tiles, first);
    free(tiles);
    free(first);
    return IPU_OK;
}
