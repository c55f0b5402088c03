/* SPDX-License-Identifier: Apache-2.0 */
/*
 * place.c - which tiles hold what, and how full they get.
 *
 * A block is spread over tiles in runs of whole grains, as evenly as can be:
 * small ones on a few tiles, large ones on all. What steps by element use
 * together begins on the same tile, so that nothing has to be moved for them
 * (align.c). Otherwise each begins where the last one ended, around the chip,
 * so that the first tiles do not get all of the small ones. What the program
 * has mapped lies where it says.
 *
 * Beside tensors a tile holds code: that of the vertices, once for each kind
 * of op, that of the exchanges, which every step has of its own, and the state
 * of vertices; and, during a step, what that fetches and adds up. All tiles
 * are taken to have the same of these, but of what is fetched since tensors lie
 * as they do (exchange.c). They are known only when the steps'
 * costs are, which in turn depend on how much room tensors leave: so this is
 * gone through twice, without them and with them.
 */
#include <stdlib.h>
#include <string.h>

#include "compiler/program.h"
#include "graph/error.h"

enum {
    STATE_BYTES = 16,  /* of a vertex, of which a step has one a context */
    CONTROL_BYTES = 24 /* of the program around a step */
};

int64_t ipu__grains(size_t bytes)
{
    return (int64_t)((bytes + IPU__GRAIN_BYTES - 1) / IPU__GRAIN_BYTES);
}

int32_t ipu__block_width(const struct ipu_executable *e,
                         const struct ipu__block *block)
{
    int64_t grains = ipu__grains(block->bytes);
    int32_t tiles = block->tiles ? block->tiles : e->target.tiles;

    return grains < tiles ? (int32_t)grains : tiles;
}

int64_t ipu__bytes_on_tile(const struct ipu_executable *e,
                           const struct ipu__block *block, int32_t tile)
{
    int64_t grains = ipu__grains(block->bytes);
    int64_t used = ipu__block_width(e, block);
    int64_t i = (tile - block->first_tile + e->target.tiles) % e->target.tiles;

    if (block->remote || i >= used)
        return 0;
    return (grains / used + (i < grains % used)) * IPU__GRAIN_BYTES;
}

/* Add (sign 1) or take away (-1). */
static void spread(const struct ipu_executable *e,
                   const struct ipu__block *block, int sign, int64_t *tiles)
{
    int32_t used = ipu__block_width(e, block);

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

/* What goes through the program as it runs. */
struct tally {
    int64_t *tiles;    /* [tiles]: bytes of tensors */
    int64_t *received; /* [tiles]: for the step */
    int32_t *roots;    /* [blocks]: with which they are spread alike */
    int32_t *firsts;   /* [blocks]: where those begin; -1: not known yet */
    int32_t next;      /* where the next that is spread by itself begins */
    int64_t live;      /* bytes */
};

static void note_peak(struct ipu_executable *e, int32_t i, int32_t t,
                      int64_t bytes, int64_t received)
{
    const ipu_cycles *c = i >= 0 ? &e->steps[i].cycles : NULL;
    struct ipu__tile *tile = &e->tiles[t];

    if (bytes <= tile->peak_bytes && tile->peak_step >= 0)
        return;
    tile->peak_bytes = bytes;
    tile->peak_step = i < 0 ? 0 : i;
    tile->fetch_bytes = received;
    tile->partial_bytes = c ? c->partial_bytes : 0;
    tile->temporary_bytes =
        c ? c->temporary_bytes - e->steps[i].fetch_bytes + received : 0;
}

/* All tiles during a step; -1: before the first. */
static void look_at(struct ipu_executable *e, int32_t i, struct tally *y)
{
    struct ipu__step *step = i >= 0 ? &e->steps[i] : NULL;
    int64_t own = step ? step->cycles.temporary_bytes - step->fetch_bytes : 0;
    struct ipu__received r = {.bytes = y->received};
    int64_t most = 0, full = -1;

    memset(y->received, 0, (size_t)e->target.tiles * sizeof *y->received);
    if (step && step->fetch_bytes > 0)
        ipu__receive(e, step, &r);
    for (int32_t t = 0; t < e->target.tiles; t++) {
        int64_t bytes = y->tiles[t] + own + y->received[t];

        note_most(&most, y->tiles[t]);
        note_peak(e, i, t, bytes, y->received[t]);
        if (bytes <= full)
            continue;
        full = bytes;
        if (step)
            step->fullest_tile = t;
    }
    note_most(&e->info.bytes_on_fullest_tile, most);
    if (step) {
        step->tile_bytes = most;
        step->full_bytes = full;
    }
}

static int32_t first_tile_of(const struct ipu_executable *e, int32_t b,
                             struct tally *y)
{
    int32_t *first = &y->firsts[y->roots[b]];

    if (e->blocks[b].tiles)
        return e->blocks[b].first_tile; /* as the program says */
    if (*first < 0) {
        *first = y->next;
        y->next =
            (y->next + ipu__block_width(e, &e->blocks[b])) % e->target.tiles;
    }
    return *first;
}

static void bear(struct ipu_executable *e, int32_t b, struct tally *y)
{
    struct ipu__block *block = &e->blocks[b];

    if (block->remote)
        return;
    block->first_tile = first_tile_of(e, b, y);
    spread(e, block, 1, y->tiles);
    y->live += (int64_t)block->bytes;
}

static void bury(struct ipu_executable *e, int32_t b, struct tally *y)
{
    if (e->blocks[b].remote)
        return;
    spread(e, &e->blocks[b], -1, y->tiles);
    y->live -= (int64_t)e->blocks[b].bytes;
}

/* Go through the program as it runs: what is born is added, what is dead is
 * taken away. */
static int simulate(struct ipu_executable *e, const char *phase,
                    struct tally *y)
{
    for (int32_t i = -1; i < e->nsteps; i++) {
        IPU_TRY(ipu__progress(e->progress, phase, i + 1, e->nsteps));
        for (int32_t b = 0; b < e->nblocks; b++)
            if (e->blocks[b].birth == i)
                bear(e, b, y);
        note_most(&e->info.peak_bytes, y->live);
        look_at(e, i, y);
        for (int32_t b = 0; b < e->nblocks; b++)
            if (e->blocks[b].death == i)
                bury(e, b, y);
    }
    return IPU_OK;
}

static void find_always_live(struct ipu_executable *e)
{
    for (int32_t b = 0; b < e->nblocks; b++)
        if (e->blocks[b].always && !e->blocks[b].remote)
            for (int32_t i = 0; i < ipu__block_width(e, &e->blocks[b]); i++) {
                int32_t t = (e->blocks[b].first_tile + i) % e->target.tiles;

                int64_t bytes = ipu__bytes_on_tile(e, &e->blocks[b], t);

                e->tiles[t].always_bytes += bytes;
                if (e->blocks[b].constant)
                    e->tiles[t].constant_bytes += bytes;
            }
}

static void fill_info(struct ipu_executable *e)
{
    ipu_memory_info *info = &e->info;

    info->steps = e->nsteps;
    info->planned_bytes = (int64_t)e->memory_bytes;
    info->unshared_bytes = info->always_live_bytes = info->remote_bytes = 0;
    for (int32_t v = 0; v < e->nvalues; v++) {
        if (e->values[v].bound)
            continue;
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

static int place(struct ipu_executable *e, const char *phase, struct tally *y)
{
    for (int32_t t = 0; t < e->target.tiles; t++)
        e->tiles[t].peak_step = -1;
    for (int32_t b = 0; b < e->nblocks; b++)
        y->firsts[b] = -1;
    ipu__align(e, y->roots);
    IPU_TRY(simulate(e, phase, y));
    find_always_live(e);
    fill_info(e);
    return IPU_OK;
}

int ipu__place(struct ipu_executable *e, bool with_costs)
{
    size_t ntiles = (size_t)e->target.tiles;
    size_t nblocks = (size_t)e->nblocks + 1;
    struct tally y = {.tiles = calloc(ntiles, sizeof *y.tiles),
                      .received = calloc(ntiles, sizeof *y.received),
                      .roots = calloc(nblocks, sizeof *y.roots),
                      .firsts = calloc(nblocks, sizeof *y.firsts)};
    int status = IPU_OK;

    free(e->tiles);
    e->tiles = calloc(ntiles, sizeof *e->tiles);
    if (with_costs)
        count_code(e);
    if (y.tiles && y.received && y.roots && y.firsts && e->tiles)
        status = place(e, with_costs ? "place with costs" : "place", &y);
    else
        status = ipu__fail_memory(ntiles * sizeof *e->tiles);
    free(y.tiles);
    free(y.received);
    free(y.roots);
    free(y.firsts);
    return status;
}
