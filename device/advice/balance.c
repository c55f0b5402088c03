/* SPDX-License-Identifier: Apache-2.0 */
/*
 * balance.c - spreads a program over chips by time (ipu_shard_by_time).
 *
 * Forward nodes are a chain of units: a node, and the ops by element that are
 * one step with it. Derivatives belong to the unit of their tensors. The
 * program is compiled once with each unit on a chip of its own, which tells the
 * time of each. Then the chain is cut so that no part takes longer than the
 * longest must: a limit of time can be kept if the parts, each as long as the
 * limit allows, are enough, so the least one is found by bisection, exactly. Of
 * the cuts that keep it, those are taken whose largest part has the fewest
 * bytes.
 *
 * What a part holds on its fullest tile is only known after compilation. If one
 * does not fit, a second limit, of bytes of a part, is lowered by bisection
 * until all fit: between the bytes that the shortest time takes, and the fewest
 * that are possible.
 */
#include <stdlib.h>
#include <string.h>

#include "advice/remedy.h"
#include "base/error.h"

enum { MOST_TRIALS = 8 };

struct unit {
    int64_t cycles, bytes;
};

struct balance {
    ipu_graph *graph;
    ipu_compile_options options;
    int32_t count, nunits;
    struct unit *units;   /* owned, [units] */
    int32_t *unit_of;     /* owned, [tensors] */
    int32_t *chip, *kept; /* owned, [units]: of the last cut, of the best */
};

/* -------------------------------------------------------------------- units */

static void weigh(struct balance *b, const struct ipu_executable *e)
{
    const ipu_graph *g = b->graph;

    for (int32_t i = 0; i < e->nsteps; i++) {
        const ipu_cycles *c = &e->steps[i].cycles;

        b->units[e->values[e->steps[i].output].shard].cycles +=
            c->compute + c->exchange + c->sync;
    }
    for (int32_t t = 0; t < g->ntensors; t++)
        b->units[b->unit_of[t]].bytes +=
            (int64_t)ipu__shape_bytes(&g->tensors[t].shape);
}

static int make_units(struct balance *b)
{
    ipu_compile_options options = b->options;
    ipu_graph *g = b->graph;
    ipu_executable *executable = NULL;

    IPU_TRY(ipu__shard_units(g, &b->nunits));
    IPU_TRY(ipu__new_array(&b->units, (size_t)b->nunits + 1, sizeof *b->units));
    IPU_TRY(ipu__new_array(&b->chip, (size_t)b->nunits + 1, sizeof *b->chip));
    IPU_TRY(ipu__new_array(&b->kept, (size_t)b->nunits + 1, sizeof *b->kept));
    IPU_TRY(ipu__new_array(&b->unit_of, (size_t)g->ntensors + 1,
                           sizeof *b->unit_of));
    for (int32_t t = 0; t < g->ntensors; t++)
        b->unit_of[t] = g->tensors[t].shard < 0 ? 0 : g->tensors[t].shard;
    /* The order of the steps changes no time, and to choose it takes memory for
     * each chip and step. */
    options.without |= IPU_PASS_ORDER;
    IPU_TRY(ipu_compile_with(g, &options, &executable));
    weigh(b, executable);
    ipu_executable_free(executable);
    return IPU_OK;
}

/* --------------------------------------------------------------------- cuts */

/* Cuts the chain so that no part has more cycles or bytes. Returns whether the
 * chips are enough; each has a unit, if there are so many. */
static bool cut(struct balance *b, int64_t cycles, int64_t bytes)
{
    struct unit part = {0, 0};
    int32_t chip = 0, begun = 0;

    for (int32_t u = 0; u < b->nunits; u++) {
        const struct unit *unit = &b->units[u];

        if (u > begun && (part.cycles + unit->cycles > cycles ||
                          part.bytes + unit->bytes > bytes ||
                          b->nunits - u <= b->count - 1 - chip)) {
            part = (struct unit){0, 0};
            begun = u;
            chip++;
        }
        part.cycles += unit->cycles;
        part.bytes += unit->bytes;
        if (chip >= b->count || part.cycles > cycles || part.bytes > bytes)
            return false;
        b->chip[u] = chip;
    }
    return true;
}

/* Returns the least limit of time, or of bytes, that can be kept beside the
 * other one; at most the given one, which can be. */
static int64_t least(struct balance *b, bool of_time, int64_t cycles,
                     int64_t bytes)
{
    int64_t low = 0, most = of_time ? cycles : bytes;

    while (low < most) {
        int64_t middle = low + (most - low) / 2;

        if (cut(b, of_time ? middle : cycles, of_time ? bytes : middle))
            most = middle;
        else
            low = middle + 1;
    }
    return most;
}

static void place(struct balance *b, const int32_t *chip)
{
    for (int32_t t = 0; t < b->graph->ntensors; t++)
        b->graph->tensors[t].shard = chip[b->unit_of[t]];
}

/* Makes the shortest cut whose parts have so many bytes at most. Returns
 * whether each chip has room for its part. *bytes: that the largest has. */
static int try_cut(struct balance *b, int64_t *bytes)
{
    ipu_executable *executable = NULL;
    int64_t cycles = least(b, true, INT64_MAX, *bytes);
    int status, fits = 1;

    *bytes = least(b, false, cycles, *bytes);
    cut(b, cycles, *bytes);
    place(b, b->chip);
    IPU_TRY(ipu_compile_with(b->graph, &b->options, &executable));
    status = ipu_executable_shards(executable);
    for (int32_t i = 0, n = status; i < n && status >= 0; i++) {
        ipu_shard_info info = {.size = sizeof info};

        status = ipu_executable_shard(executable, i, &info);
        fits = fits && info.tile_bytes <= info.bytes_per_tile;
    }
    ipu_executable_free(executable);
    return status < 0 ? status : fits;
}

static void keep(struct balance *b)
{
    memcpy(b->kept, b->chip, (size_t)b->nunits * sizeof *b->kept);
}

static int choose(struct balance *b)
{
    int64_t low = least(b, false, INT64_MAX, INT64_MAX), most = INT64_MAX,
            limit;
    int fits = try_cut(b, &most);

    if (fits != 0)
        return fits;
    limit = low;
    fits = try_cut(b, &limit);
    if (fits != 1)
        return fits; /* the most even cut is left, if it does not fit either */
    keep(b);
    for (int i = 0; i < MOST_TRIALS && low + 1 < most; i++) {
        int64_t middle = limit = low + (most - low) / 2;

        fits = try_cut(b, &limit);
        IPU_TRY(fits);
        if (fits)
            keep(b);
        *(fits ? &low : &most) = middle;
    }
    place(b, b->kept);
    return IPU_OK;
}

/* --------------------------------------------------------------------- door */

int ipu_shard_by_time(ipu_graph *graph, const ipu_compile_options *options,
                      int32_t count)
{
    struct balance b = {.graph = graph, .count = count};
    int status;

    if (!graph)
        return ipu__fail(IPU_ERR_ARGUMENT, "shard: the graph is NULL");
    if (graph->status < 0)
        return ipu__graph_status(graph);
    if (count < 1 || count > IPU_MAX_IPUS)
        return ipu__fail(IPU_ERR_ARGUMENT, "shard: %d shards: 1 to %d",
                         (int)count, IPU_MAX_IPUS);
    b.options = (ipu_compile_options){.size = sizeof b.options};
    if (options) {
        IPU_TRY(ipu__check_size("ipu_compile_options", options->size,
                                sizeof *options));
        b.options = *options;
    }
    b.options.allow_out_of_memory = b.options.brief = 1;
    status = make_units(&b);
    if (status >= 0)
        status = choose(&b);
    free(b.units);
    free(b.unit_of);
    free(b.chip);
    free(b.kept);
    return status;
}
