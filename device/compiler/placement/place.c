/* SPDX-License-Identifier: Apache-2.0 */
/*
 * place.c - the pass that puts blocks on tiles, and finds how full each tile
 * gets.
 *
 * A block is spread over tiles in runs of whole grains, as evenly as can be:
 * small blocks on a few tiles, large ones on all. Blocks that steps by element
 * use together begin on the same tile, so that no data have to be moved for
 * these steps (align.c). Otherwise each begins where the last one ended, around
 * the chip, so that the first tiles do not get all of the small ones. A block
 * that the program has mapped goes to those tiles.
 *
 * In addition to tensors, a tile holds code (code.c) and, during a step, the
 * data that the step fetches and sums. All tiles are assumed to have the same
 * amount of these, except of data that is fetched because operands are not
 * where the step runs (exchange.c). Both are known only when the steps' costs
 * are, which in turn depend on how much room tensors leave: so compile.c runs
 * this pass twice, without costs and with them, and outline.c once more after
 * each change.
 */
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "compiler/passes.h"
#include "compiler/placement/spread.h"
#include "target/cost.h"

/* Adds (sign 1) or takes away (-1) the bytes of a block on each tile. */
static void spread_block(const struct ipu_executable *e,
                         const struct ipu__block *block, int sign,
                         int64_t *tiles)
{
    int32_t used = ipu__block_width(e, block), tile = block->first_tile;
    int64_t grains = ipu__grains(block->bytes);
    int64_t each = used ? sign * (grains / used) * IPU__GRAIN_BYTES : 0;
    int64_t more = used ? grains % used : 0;

    for (int32_t i = 0; i < used; i++) {
        tiles[tile] += each + (i < more ? sign * IPU__GRAIN_BYTES : 0);
        tile = tile + 1 < e->target.tiles ? tile + 1 : 0;
    }
}

static void note_most(int64_t *most, int64_t value)
{
    if (*most < value)
        *most = value;
}

/* ------------------------------------------------------------------ tensors */

/* Blocks, sorted by the steps at which they are born or die. */
struct by_step {
    int32_t *first;  /* owned, [steps + 3]: those of step i begin at i + 1 */
    int32_t *blocks; /* owned, [blocks] */
};

/* Counts while simulate_run goes through the program. */
struct tally {
    int64_t *tiles;    /* [tiles]: bytes of tensors */
    int64_t *received; /* [tiles]: bytes for the step; zeros between steps */
    int64_t *peaks;    /* [tiles]: the most so far; -1: nothing yet */
    int32_t *roots;    /* [blocks]: the block that it is spread alike with */
    int32_t *firsts; /* [blocks]: tiles where those begin; -1: not known yet */
    struct by_step born, died;
    int32_t next; /* tile where the next that is spread by itself begins */
    int64_t live; /* bytes */
};

static void note_peak(struct ipu_executable *e, int32_t i, int32_t t,
                      int64_t bytes, int64_t received)
{
    const ipu_cycles *c = i >= 0 ? &e->steps[i].cycles : NULL;
    struct ipu__tile *tile = &e->tiles[t];

    tile->peak_bytes = bytes;
    tile->peak_step = i < 0 ? 0 : i;
    tile->fetch_bytes = received;
    tile->partial_bytes = c ? c->partial_bytes : 0;
    tile->temporary_bytes =
        c ? c->temporary_bytes - e->steps[i].fetch_bytes + received : 0;
}

static void note_peaks(struct ipu_executable *e, int32_t i, int64_t own,
                       struct tally *y)
{
    for (int32_t t = 0; t < e->target.tiles; t++) {
        int64_t bytes = y->tiles[t] + own + y->received[t];

        if (bytes <= y->peaks[t])
            continue;
        y->peaks[t] = bytes;
        note_peak(e, i, t, bytes, y->received[t]);
    }
}

/* Looks at all tiles during step i; -1: before the first. Most steps are no
 * peak of any tile, so the loop over tiles does no more than it must. */
static void look_at_step(struct ipu_executable *e, int32_t i, struct tally *y)
{
    struct ipu__step *step = i >= 0 ? &e->steps[i] : NULL;
    int64_t own = step ? step->cycles.temporary_bytes - step->fetch_bytes : 0;
    struct ipu__received r = {.bytes = y->received};
    bool fetches = step && step->fetch_bytes > 0, higher = false;
    int64_t most = 0, full = -1;
    int32_t fullest = 0;

    if (fetches)
        ipu__receive(e, step, &r);
    for (int32_t t = 0; t < e->target.tiles; t++) {
        int64_t tensors = y->tiles[t], bytes = tensors + y->received[t];

        most = tensors > most ? tensors : most;
        full = bytes > full ? bytes : full;
        higher |= bytes + own > y->peaks[t];
    }
    if (higher)
        note_peaks(e, i, own, y);
    note_most(&e->info.bytes_on_fullest_tile, most);
    if (step) {
        while (y->tiles[fullest] + y->received[fullest] != full)
            fullest++;
        step->fullest_tile = fullest;
        step->tile_bytes = most;
        step->full_bytes = full + own;
    }
    if (fetches)
        memset(y->received, 0, (size_t)e->target.tiles * sizeof *y->received);
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

static void begin_block(struct ipu_executable *e, int32_t b, struct tally *y)
{
    struct ipu__block *block = &e->blocks[b];

    if (block->remote)
        return;
    block->first_tile = first_tile_of(e, b, y);
    spread_block(e, block, 1, y->tiles);
    y->live += (int64_t)block->bytes;
}

static void end_block(struct ipu_executable *e, int32_t b, struct tally *y)
{
    if (e->blocks[b].remote)
        return;
    spread_block(e, &e->blocks[b], -1, y->tiles);
    y->live -= (int64_t)e->blocks[b].bytes;
}

/* Sorts blocks by birth, or by death, by counting: those of a step begin where
 * those of the step before end. */
static bool sort_blocks(const struct ipu_executable *e, bool by_birth,
                        struct by_step *to)
{
    int32_t *first = calloc((size_t)e->nsteps + 4, sizeof *first);

    to->first = first;
    to->blocks = calloc((size_t)e->nblocks + 1, sizeof *to->blocks);
    if (!to->first || !to->blocks)
        return false;
    for (int32_t b = 0; b < e->nblocks; b++)
        first[3 + (by_birth ? e->blocks[b].birth : e->blocks[b].death)]++;
    for (int32_t i = 1; i < e->nsteps + 4; i++)
        first[i] += first[i - 1];
    for (int32_t b = 0; b < e->nblocks; b++) {
        int32_t i = by_birth ? e->blocks[b].birth : e->blocks[b].death;

        to->blocks[first[i + 2]++] = b;
    }
    return true;
}

/* Simulates a run: adds the blocks that each step makes to the tiles, and takes
 * away those that no later step needs. */
static int simulate_run(struct ipu_executable *e, const char *phase,
                        struct tally *y)
{
    for (int32_t i = -1; i < e->nsteps; i++) {
        const int32_t *born = y->born.first + i + 1;
        const int32_t *died = y->died.first + i + 1;

        IPU_TRY(ipu__progress(e->progress, phase, i + 1, e->nsteps));
        for (int32_t k = born[0]; k < born[1]; k++)
            begin_block(e, y->born.blocks[k], y);
        note_most(&e->info.peak_bytes, y->live);
        look_at_step(e, i, y);
        for (int32_t k = died[0]; k < died[1]; k++)
            end_block(e, y->died.blocks[k], y);
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

static int place_blocks(struct ipu_executable *e, const char *phase,
                        struct tally *y)
{
    for (int32_t t = 0; t < e->target.tiles; t++)
        y->peaks[t] = -1;
    for (int32_t b = 0; b < e->nblocks; b++)
        y->firsts[b] = -1;
    e->info.bytes_on_fullest_tile = e->info.peak_bytes = 0;
    ipu__align(e, y->roots);
    IPU_TRY(simulate_run(e, phase, y));
    find_always_live(e);
    fill_info(e);
    return IPU_OK;
}

static void tally_fini(struct tally *y)
{
    free(y->tiles);
    free(y->received);
    free(y->peaks);
    free(y->roots);
    free(y->firsts);
    free(y->born.first);
    free(y->born.blocks);
    free(y->died.first);
    free(y->died.blocks);
}

int ipu__place(struct ipu_executable *e, bool with_costs)
{
    size_t ntiles = (size_t)e->target.tiles;
    size_t nblocks = (size_t)e->nblocks + 1;
    struct tally y = {.tiles = calloc(ntiles, sizeof *y.tiles),
                      .received = calloc(ntiles, sizeof *y.received),
                      .peaks = calloc(ntiles, sizeof *y.peaks),
                      .roots = calloc(nblocks, sizeof *y.roots),
                      .firsts = calloc(nblocks, sizeof *y.firsts)};
    static const char *const phases[2][2] = {
        {"place", "place with costs"},
        {"place to share code", "place shared code"}};
    bool sorted = sort_blocks(e, true, &y.born);
    int status = with_costs ? ipu__count_code(e) : IPU_OK;

    sorted = sort_blocks(e, false, &y.died) && sorted;
    free(e->tiles);
    e->tiles = calloc(ntiles, sizeof *e->tiles);
    if (status >= 0)
        status =
            y.tiles && y.received && y.peaks && y.roots && y.firsts &&
                    e->tiles && sorted
                ? place_blocks(e, phases[e->congruent != NULL][with_costs], &y)
                : ipu__fail_memory(ntiles * sizeof *e->tiles);
    tally_fini(&y);
    return status;
}
