/* SPDX-License-Identifier: Apache-2.0 */
/*
 * place.c - which tiles hold what, and how full they get.
 *
 * A block is spread over tiles in runs of whole grains, as evenly as can be:
 * small ones on a few tiles, large ones on all. Each begins where the last
 * one ended, around the chip, so that the first tiles do not get all of the
 * small ones.
 *
 * Beside tensors a tile holds code: that of the vertices, once for each kind
 * of op, that of the exchanges, which every step has of its own, and the state
 * of vertices; and, during a step, what that fetches and adds up. All tiles
 * are taken to have the same of these. They are known only when the steps'
 * costs are, which in turn depend on how much room tensors leave: so this is
 * gone through twice, without them and with them.
 */
#include <stdlib.h>
#include <string.h>

#include "compiler/program.h"
#include "graph/error.h"

enum {
    GRAIN_BYTES = 8,   /* what a tile loads or stores in one go */
    STATE_BYTES = 16,  /* of a vertex, of which a step has one a context */
    CONTROL_BYTES = 24 /* of the program around a step */
};

int64_t ipu__bytes_on_tile(const struct ipu_executable *e,
                           const struct ipu__block *block, int32_t tile)
{
    int64_t grains = (int64_t)((block->bytes + GRAIN_BYTES - 1) / GRAIN_BYTES);
    int64_t used = grains < e->target.tiles ? grains : e->target.tiles;
    int64_t i = (tile - block->first_tile + e->target.tiles) % e->target.tiles;

    if (i >= used || block->remote)
        return 0;
    return (grains / used + (i < grains % used)) * GRAIN_BYTES;
}

/* Tiles that have some of a block. */
static int32_t width(const struct ipu_executable *e,
                     const struct ipu__block *block)
{
    int64_t grains = (int64_t)((block->bytes + GRAIN_BYTES - 1) / GRAIN_BYTES);

    return grains < e->target.tiles ? (int32_t)grains : e->target.tiles;
}

/* Add (sign 1) or take away (-1). */
static void spread(const struct ipu_executable *e,
                   const struct ipu__block *block, int sign, int64_t *tiles)
{
    int32_t used = width(e, block);

    for (int32_t i = 0; i < used; i++) {
        int32_t tile = (block->first_tile + i) % e->target.tiles;

        tiles[tile] += sign * ipu__bytes_on_tile(e, block, tile);
    }
}

static void note_most(int64_t *most, int64_t value)
{
    if (*most < value)
        *most = value;
}

/* ---------------------------------------------------------------------- code
 */

/* Whether two steps run the same code. */
static bool same_code(const struct ipu_executable *e, const struct ipu__step *a,
                      const struct ipu__step *b)
{
    struct ipu__step_op first, second;

    if (a->op != b->op || ipu__nparts(a) != ipu__nparts(b))
        return false;
    for (int32_t k = 0; k < ipu__nparts(a); k++)
        if (ipu__part_of(e, a, k, &first)->op !=
            ipu__part_of(e, b, k, &second)->op)
            return false;
    return true;
}

static bool code_seen_before(const struct ipu_executable *e, int32_t step)
{
    for (int32_t i = 0; i < step; i++)
        if (same_code(e, &e->steps[i], &e->steps[step]))
            return true;
    return false;
}

static void count_code(struct ipu_executable *e)
{
    e->code_bytes = e->exchange_code_bytes = e->state_bytes = 0;
    for (int32_t i = 0; i < e->nsteps; i++) {
        const struct ipu__step *step = &e->steps[i];

        e->code_bytes += CONTROL_BYTES;
        e->exchange_code_bytes += step->cycles.exchange_code_bytes;
        e->state_bytes += (int64_t)STATE_BYTES * e->target.workers;
        if (step->kind != IPU__HOST_CALL && !code_seen_before(e, i))
            e->code_bytes += step->cycles.code_bytes;
    }
    e->code_bytes += e->exchange_code_bytes + e->state_bytes;
}

/* ------------------------------------------------------------------- tensors
 */

/* All tiles during a step; -1: before the first. */
static void look_at(struct ipu_executable *e, int32_t i, const int64_t *tiles)
{
    int64_t temporary = i >= 0 ? e->steps[i].cycles.temporary_bytes : 0;
    int32_t fullest = 0;

    for (int32_t t = 0; t < e->target.tiles; t++) {
        int64_t bytes = tiles[t] + temporary;

        if (tiles[t] > tiles[fullest])
            fullest = t;
        if (bytes > e->tiles[t].peak_bytes || e->tiles[t].peak_step < 0) {
            e->tiles[t].peak_bytes = bytes;
            e->tiles[t].peak_step = i < 0 ? 0 : i;
        }
    }
    note_most(&e->info.bytes_on_fullest_tile, tiles[fullest]);
    if (i >= 0) {
        e->steps[i].fullest_tile = fullest;
        e->steps[i].tile_bytes = tiles[fullest];
    }
}

/* Go through the program as it runs: what is born is added, what is dead is
 * taken away. */
static int simulate(struct ipu_executable *e, const char *phase, int64_t *tiles)
{
    int32_t next = 0;
    int64_t live = 0;

    for (int32_t i = -1; i < e->nsteps; i++) {
        for (int32_t b = 0; b < e->nblocks; b++) {
            struct ipu__block *block = &e->blocks[b];

            if (block->birth != i || block->remote)
                continue;
            block->first_tile = next;
            next = (next + width(e, block)) % e->target.tiles;
            spread(e, block, 1, tiles);
            live += (int64_t)block->bytes;
        }
        note_most(&e->info.peak_bytes, live);
        look_at(e, i, tiles);
        IPU_TRY(ipu__progress(e->progress, phase, i + 1, e->nsteps));
        for (int32_t b = 0; b < e->nblocks; b++)
            if (e->blocks[b].death == i && !e->blocks[b].remote) {
                spread(e, &e->blocks[b], -1, tiles);
                live -= (int64_t)e->blocks[b].bytes;
            }
    }
    return IPU_OK;
}

static void find_always_live(struct ipu_executable *e)
{
    for (int32_t b = 0; b < e->nblocks; b++)
        if (e->blocks[b].always && !e->blocks[b].remote)
            for (int32_t i = 0; i < width(e, &e->blocks[b]); i++) {
                int32_t t = (e->blocks[b].first_tile + i) % e->target.tiles;

                e->tiles[t].always_bytes +=
                    ipu__bytes_on_tile(e, &e->blocks[b], t);
            }
}

static void fill_info(struct ipu_executable *e)
{
    ipu_memory_info *info = &e->info;

    info->steps = e->nsteps;
    info->planned_bytes = (int64_t)e->memory_bytes;
    info->unshared_bytes = info->always_live_bytes = info->remote_bytes = 0;
    for (int32_t v = 0; v < e->nvalues; v++) {
        if (e->values[v].remote) {
            info->remote_bytes += (int64_t)e->values[v].bytes;
            continue;
        }
        info->unshared_bytes += (int64_t)e->values[v].bytes;
        if (e->values[v].kind == IPU__VARIABLE ||
            e->values[v].kind == IPU__CONSTANT)
            info->always_live_bytes += (int64_t)e->values[v].bytes;
    }
    info->code_bytes_per_tile = e->code_bytes;
    info->bytes_per_tile = e->target.bytes_per_tile;
    for (int32_t t = 0; t < e->target.tiles; t++)
        if (t == 0 ||
            e->tiles[t].peak_bytes + e->code_bytes > info->fullest_tile_bytes) {
            info->fullest_tile_bytes = e->tiles[t].peak_bytes + e->code_bytes;
            info->fullest_tile = t;
            info->fullest_step = e->tiles[t].peak_step;
        }
}

int ipu__place(struct ipu_executable *e, bool with_costs)
{
    size_t ntiles = (size_t)e->target.tiles;
    int64_t *tiles = calloc(ntiles, sizeof *tiles);
    int status;

    free(e->tiles);
    e->tiles = calloc(ntiles, sizeof *e->tiles);
    if (!tiles || !e->tiles) {
        free(tiles);
        return ipu__fail_memory(ntiles * sizeof *e->tiles);
    }
    for (size_t t = 0; t < ntiles; t++)
        e->tiles[t].peak_step = -1;
    if (with_costs)
        count_code(e);
    status = simulate(e, with_costs ? "place with costs" : "place", tiles);
    if (status == IPU_OK) {
        find_always_live(e);
        fill_info(e);
    }
    free(tiles);
    return status;
}
