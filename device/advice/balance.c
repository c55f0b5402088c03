/* SPDX-License-Identifier: Apache-2.0 */
/*
 * balance.c - spreads a program over chips by time: ipu_shard_by_time, and the
 * remedies "shard" and "pipeline" (spread.c).
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
 * What a part holds on its fullest tile is only known after compilation, which
 * is up to the caller (struct ipu__balance). If one does not fit, a second
 * limit, of bytes of a part, is lowered by bisection until all fit: between the
 * bytes that the shortest time takes, and the fewest that are possible.
 */
#include <stdlib.h>
#include <string.h>

#include "advice/remedy.h"
#include "base/error.h"
#include "target/plans.h"

enum { MOST_TRIALS = 8 };

struct unit {
    int64_t cycles, bytes;
};

struct balance {
    const struct ipu__balance *how;
    ipu_graph *graph;
    int32_t count, nunits;
    struct unit *units; /* owned, [units] */
    bool *tied; /* owned, [units]: it is in the part of the unit before it */
    int32_t *unit_of;     /* owned, [tensors] */
    int32_t *chip, *kept; /* owned, [units]: of the last cut, of the best */
};

/* Returns true if a status says that the graph cannot be divided in the way
 * that was tried, which does not end the search. */
static bool is_refused(int status)
{
    return status == IPU_ERR_STATE;
}

/* -------------------------------------------------------------------- units */

/* Returns how often the forward and backward pass of a part are on the way of
 * an update: in each slot of a pipeline of S stages and N mini-batches, which
 * are N + 2 S - 1. */
static int64_t runs_of(const struct balance *b)
{
    return b->how->stages ? (IPU__BATCHES_PER_STAGE + 2) * b->count - 1 : 1;
}

/* Steps of updates are on chips above those of the units. */
static void weigh(struct balance *b, const struct ipu_executable *e)
{
    const ipu_graph *g = b->graph;

    for (int32_t i = 0; i < e->nsteps; i++) {
        const ipu_cycles *c = &e->steps[i].cycles;
        int32_t chip = e->values[e->steps[i].output].shard;
        int64_t runs = chip < b->nunits ? runs_of(b) : 1;

        b->units[chip % b->nunits].cycles +=
            runs * (c->compute + c->exchange + c->sync);
    }
    for (int32_t t = 0; t < g->ntensors; t++)
        b->units[b->unit_of[t]].bytes +=
            (int64_t)ipu__shape_bytes(&g->tensors[t].shape);
}

/* Returns the first node that is a derivative; nnodes if there is none. */
static int32_t forward_nodes(const ipu_graph *g)
{
    int32_t n = 0;

    while (n < g->nnodes && g->nodes[n].derived < 0)
        n++;
    return n;
}

/* Ties the units from the first that uses a variable to that of a node.
 * first: [tensors]: the first, counted from 1; 0: none, -1: copies may be. */
static void tie_inputs(struct balance *b, const struct ipu__node *node,
                       int32_t *first)
{
    int32_t unit = b->unit_of[node->output];

    for (int i = 0; i < node->op->ninputs; i++) {
        int32_t t = node->inputs[i];

        if (b->graph->tensors[t].kind != IPU__VARIABLE || first[t] < 0)
            continue;
        if (first[t] == 0)
            first[t] = unit + 1;
        for (int32_t u = first[t]; u <= unit; u++)
            b->tied[u] = true;
    }
}

/* Ties units that use the same variable, if places enough to cut are left. A
 * variable that the forward pass assigns, as a counter of steps, may have
 * copies. */
static int tie_units(struct balance *b)
{
    const ipu_graph *g = b->graph;
    int32_t *first, nodes = forward_nodes(g), borders = 0;

    IPU_TRY(ipu__new_array(&first, (size_t)g->ntensors + 1, sizeof *first));
    for (int32_t i = 0; i < g->nassigns; i++)
        if (g->tensors[g->assigns[i].value].node < nodes)
            first[g->assigns[i].variable] = -1;
    for (int32_t n = 0; n < nodes; n++)
        tie_inputs(b, &g->nodes[n], first);
    free(first);
    for (int32_t u = 1; u < b->nunits; u++)
        borders += !b->tied[u];
    if (borders < b->count - 1)
        memset(b->tied, 0, (size_t)b->nunits * sizeof *b->tied);
    return IPU_OK;
}

/* Moves what only an update computes to the chips above those of the units, so
 * that it is weighed apart. */
static void part_updates(struct balance *b)
{
    const ipu_graph *g = b->graph;

    for (int32_t n = forward_nodes(g); n < g->nnodes; n++)
        if (g->nodes[n].derived < 0 && !g->nodes[n].again)
            g->tensors[g->nodes[n].output].shard += b->nunits;
}

static int make_units(struct balance *b)
{
    ipu_graph *g = b->graph;
    ipu_executable *executable = NULL;

    IPU_TRY(ipu__shard_units(g, &b->nunits));
    IPU_TRY(ipu__new_array(&b->units, (size_t)b->nunits + 1, sizeof *b->units));
    IPU_TRY(ipu__new_array(&b->tied, (size_t)b->nunits + 1, sizeof *b->tied));
    IPU_TRY(ipu__new_array(&b->chip, (size_t)b->nunits + 1, sizeof *b->chip));
    IPU_TRY(ipu__new_array(&b->kept, (size_t)b->nunits + 1, sizeof *b->kept));
    IPU_TRY(ipu__new_array(&b->unit_of, (size_t)g->ntensors + 1,
                           sizeof *b->unit_of));
    for (int32_t t = 0; t < g->ntensors; t++)
        b->unit_of[t] = g->tensors[t].shard < 0 ? 0 : g->tensors[t].shard;
    if (b->how->stages) {
        IPU_TRY(tie_units(b));
        part_updates(b);
    }
    /* The order of the steps changes no time, and to choose it takes memory for
     * each chip and step. */
    IPU_TRY(ipu__compile_trial(b->how->trial, g, IPU_PASS_ORDER, &executable));
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

        if (u > begun && !b->tied[u] &&
            (part.cycles + unit->cycles > cycles ||
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

/* Makes the shortest cut whose parts have so many bytes at most. Returns what
 * the caller judges of it. *bytes: that the largest has. */
static int try_cut(struct balance *b, int64_t *bytes)
{
    int64_t cycles = least(b, true, INT64_MAX, *bytes);

    *bytes = least(b, false, cycles, *bytes);
    cut(b, cycles, *bytes);
    place(b, b->chip);
    return b->how->judge(b->how->context, b->graph);
}

static void keep(struct balance *b)
{
    memcpy(b->kept, b->chip, (size_t)b->nunits * sizeof *b->kept);
}

static int choose(struct balance *b)
{
    int64_t low = least(b, false, INT64_MAX, INT64_MAX), most = INT64_MAX,
            limit;
    int fastest = try_cut(b, &most), fits;

    if (fastest != 0 && !is_refused(fastest))
        return fastest;
    limit = low;
    fits = try_cut(b, &limit);
    if (is_refused(fits) && fastest == 0)
        fits = 0;
    if (fits != 1)
        return fits; /* the most even cut is left, if it does not fit either */
    keep(b);
    for (int i = 0; i < MOST_TRIALS && low + 1 < most; i++) {
        int64_t middle = limit = low + (most - low) / 2;

        fits = try_cut(b, &limit);
        if (fits < 0 && !is_refused(fits))
            return fits;
        if (fits == 1)
            keep(b);
        *(fits == 1 ? &low : &most) = middle;
    }
    place(b, b->kept);
    return 1;
}

/* --------------------------------------------------------------------- door */

int ipu__balance(const struct ipu__balance *how, ipu_graph *graph,
                 int32_t count)
{
    struct balance b = {.how = how, .graph = graph, .count = count};
    int status = make_units(&b);

    if (status >= 0)
        status = choose(&b);
    free(b.units);
    free(b.tied);
    free(b.unit_of);
    free(b.chip);
    free(b.kept);
    return status;
}

/* Compiles the program and asks each chip. context: the trial. */
static int judge_chips(void *context, const ipu_graph *g)
{
    ipu_executable *executable = NULL;
    ipu_remedy remedy;
    int status = ipu__compile_trial(context, g, 0, &executable);

    if (status >= 0)
        status = ipu__remedy_of(executable, g, &remedy);
    ipu_executable_free(executable);
    return status < 0 ? status : remedy.fits;
}

int ipu_shard_by_time(ipu_graph *graph, const ipu_compile_options *options,
                      int32_t count)
{
    const ipu_compile_options plain = {.size = sizeof plain};
    struct ipu__trial trial = {.graph = graph,
                               .options = options ? options : &plain};
    const struct ipu__balance how = {
        .trial = &trial, .judge = judge_chips, .context = &trial};
    int status;

    if (!graph)
        return ipu__fail(IPU_ERR_ARGUMENT, "shard: the graph is NULL");
    if (graph->status < 0)
        return ipu__graph_status(graph);
    if (count < 1 || count > IPU_MAX_IPUS)
        return ipu__fail(IPU_ERR_ARGUMENT, "shard: %d shards: 1 to %d",
                         (int)count, IPU_MAX_IPUS);
    IPU_TRY(ipu__check_compile_options(trial.options));
    if (trial.options->target)
        IPU_TRY(ipu_target_check(trial.options->target));
    trial.plans = ipu__plans_new();
    if (!trial.plans)
        return ipu__fail_memory(1);
    status = ipu__balance(&how, graph, count);
    ipu__plans_free(trial.plans);
    return status < 0 ? status : IPU_OK;
}

int ipu_compile_shards(const ipu_graph *graph,
                       const ipu_compile_options *options, int32_t count,
                       ipu_executable **executable)
{
    ipu_graph *spread = NULL;
    int status;

    if (!graph)
        return ipu__fail(IPU_ERR_ARGUMENT, "compile: the graph is NULL");
    IPU_TRY(ipu__graph_status(graph));
    IPU_TRY(ipu__graph_copy(graph, &spread));
    status = ipu_shard_by_time(spread, options, count);
    if (status >= 0)
        status = ipu_compile_with(spread, options, executable);
    ipu_graph_free(spread);
    return status;
}
