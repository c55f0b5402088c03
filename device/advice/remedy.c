/* SPDX-License-Identifier: Apache-2.0 */
/*
 * remedy.c - measures a program after a change that its author could make to
 * save memory: it changes a copy of the graph in that way and compiles it, so
 * that bytes and time are those of a real program, not a rule of thumb.
 *
 * If a remedy has a number of parts, the smallest number that fits is searched
 * for. Bytes of a tile are about a + b / parts: the unchanged program and the
 * same in two parts give a and b, and these give the number of parts. So two or
 * three compilations replace one for each power of two.
 *
 * State that a program leaves to the compiler (IPU_OFFLOAD_AUTO) is on the chip
 * at first. A remedy that does not fit in any number of parts is tried with the
 * state in streaming memory, and reported in that form if it fits then.
 *
 * Unless the caller asks for one particular remedy, a hopeless one is given up:
 * if code and variables alone are more than a tile has, no order of steps
 * helps, nor do smaller parts of a batch.
 *
 * fit.c and ipu_remedy_try call it.
 */
#include "advice/remedy.h"

#include <stdio.h>

#include "base/error.h"
#include "target/plans.h"
#include "target/target.h"
#include "training/recompute.h"

/* ------------------------------------------------------ compiled programs */

/* Measures a program on several chips: the fullest, and what passes between
 * them. */
static int measure_shards(const struct ipu_executable *e, ipu_remedy *remedy)
{
    int32_t shards = ipu_executable_shards(e);
    ipu_sharding_info sharding = {.size = sizeof sharding};

    IPU_TRY(shards);
    remedy->tile_bytes = 0;
    for (int32_t s = 0; s < shards; s++) {
        ipu_shard_info info = {.size = sizeof info};

        IPU_TRY(ipu_executable_shard(e, s, &info));
        if (remedy->tile_bytes < info.tile_bytes)
            remedy->tile_bytes = info.tile_bytes;
    }
    IPU_TRY(ipu_executable_sharding(e, NULL, &sharding));
    remedy->cycles += remedy->runs * sharding.exchange_cycles;
    return IPU_OK;
}

/* Returns the streaming cycles of that many runs, one of which has an update.
 * cycles: of a run with an update. */
static int64_t streaming_of(const struct ipu_executable *e, int64_t cycles,
                            int runs)
{
    int64_t seldom = 0;

    for (int32_t i = 0; i < e->nsteps; i++) {
        const struct ipu__step *s = &e->steps[i];

        if (s->count > 1 &&
            (s->op == &ipu__remote_load || s->op == &ipu__remote_store))
            seldom += s->cycles.exchange;
    }
    return runs * cycles - (runs - 1) * seldom;
}

int ipu__remedy_of(const struct ipu_executable *e, const ipu_graph *graph,
                   ipu_remedy *remedy)
{
    ipu_program_cycles cycles = {.size = sizeof cycles};
    int runs = ipu_update_count(graph);

    IPU_TRY(runs);
    IPU_TRY(ipu_executable_cycles(e, &cycles));
    remedy->runs = runs;
    remedy->tile_bytes = e->info.fullest_tile_bytes;
    remedy->bytes_per_tile = e->target.bytes_per_tile;
    remedy->remote_bytes = e->info.remote_bytes;
    remedy->cycles = cycles.mean_total * runs;
    remedy->streaming_cycles = streaming_of(e, cycles.streaming, runs);
    if (ipu_executable_shards(e) > 1)
        IPU_TRY(measure_shards(e, remedy));
    remedy->fits = remedy->tile_bytes <= remedy->bytes_per_tile;
    remedy->seconds = ipu_model_seconds(&e->target, remedy->cycles);
    return IPU_OK;
}

ipu_target ipu__trial_target(const struct ipu__trial *t)
{
    ipu_target target;

    ipu_target_init(&target, sizeof target);
    return t->options->target ? *t->options->target : target;
}

int ipu__compile_trial(const struct ipu__trial *t, const ipu_graph *g,
                       uint32_t without, ipu_executable **e)
{
    const struct ipu__setting setting = {.plans = t->plans,
                                         .automatic = t->automatic};
    ipu_compile_options o = *t->options;

    o.allow_out_of_memory = 1;
    o.without |= without;
    return ipu__compile(g, &o, &setting, e);
}

/* Returns what a program takes at least: variables, on the tile that has most
 * of them, and code, which is not shared if that does not help (outline.c). */
static int64_t least_bytes(const struct ipu_executable *e)
{
    int64_t most = 0, excess = 0;

    for (int32_t t = 0; t < e->target.tiles; t++)
        if (most < e->tiles[t].always_bytes)
            most = e->tiles[t].always_bytes;
    if (ipu__excess(e, &excess) >= 0 && excess <= e->code_bytes)
        most += e->code_bytes;
    return most;
}

/* Compiles without ordering first: if no order of steps can help, ordering,
 * which takes longer than all else, is left out. */
static int check_hope(const struct ipu__trial *t, const ipu_graph *g,
                      ipu_remedy *remedy)
{
    ipu_executable *e = NULL;
    int status;

    *t->hopeless = false;
    IPU_TRY(ipu__compile_trial(t, g, IPU_PASS_ORDER, &e));
    if (least_bytes(e) > e->target.bytes_per_tile) {
        *t->hopeless = true;
        status = ipu__remedy_of(e, g, remedy);
        remedy->tile_bytes = least_bytes(e);
    } else {
        status = IPU_OK;
    }
    ipu_executable_free(e);
    return status;
}

static int measure_graph(const struct ipu__trial *t, const ipu_graph *g,
                         ipu_remedy *remedy)
{
    ipu_executable *e = NULL;
    int status;

    if (t->hopeless) {
        IPU_TRY(check_hope(t, g, remedy));
        if (*t->hopeless)
            return IPU_OK;
    }
    IPU_TRY(ipu__compile_trial(t, g, 0, &e));
    status = ipu__remedy_of(e, g, remedy);
    ipu_executable_free(e);
    return status;
}

/* ----------------------------------------------------- changes of a graph */

/* A change to a copy of the graph. */
typedef int (*change_fn)(ipu_graph *g, int32_t parts);

bool ipu__has_gradients(const ipu_graph *g)
{
    for (int32_t n = 0; n < g->nnodes; n++)
        if (g->nodes[n].derived >= 0)
            return true;
    for (int32_t i = 0; i < g->nloops; i++)
        if (ipu__has_gradients(g->loops[i].body.graph))
            return true;
    return false;
}

/* Returns the graph that has gradients, of a graph and the loops in it; NULL if
 * none has. */
static ipu_graph *trained_graph(ipu_graph *g)
{
    for (int32_t i = 0; i < g->nloops; i++)
        if (ipu__has_gradients(g->loops[i].body.graph))
            return trained_graph(g->loops[i].body.graph);
    return ipu__has_gradients(g) ? g : NULL;
}

/* Finds the graph that has gradients; IPU_ERR_STATE if none has. */
static int find_trained(ipu_graph *g, ipu_graph **found)
{
    *found = trained_graph(g);
    return *found ? IPU_OK
                  : ipu__fail(IPU_ERR_STATE, "the program has no gradients");
}

/* Changes a graph and the graphs of its loops. Returns the sum of what the
 * changes return, or the first failure. */
static int change_each(ipu_graph *g, int (*fn)(ipu_graph *g))
{
    int sum = fn(g);

    for (int32_t i = 0; i < g->nloops && sum >= 0; i++) {
        ipu_graph *parts[] = {g->loops[i].body.graph,
                              g->loops[i].condition.graph};

        for (int k = 0; k < 2 && sum >= 0; k++)
            if (parts[k]) {
                int changed = change_each(parts[k], fn);

                sum = changed < 0 ? changed : sum + changed;
            }
    }
    return sum;
}

static int make_recompute(ipu_graph *root, int32_t parts)
{
    ipu_graph *g;
    int32_t nnodes;

    (void)parts;
    IPU_TRY(find_trained(root, &g));
    nnodes = g->nnodes;
    for (int32_t n = 0; n < nnodes; n++)
        if (g->nodes[n].again)
            return ipu__fail(IPU_ERR_STATE, "it does so already");
    IPU_TRY(ipu__recompute(g, 0));
    return g->nnodes > nnodes
               ? IPU_OK
               : ipu__fail(IPU_ERR_STATE,
                           "the backward pass reads nothing of which less "
                           "could be kept");
}

static int make_half(ipu_graph *g, int32_t parts)
{
    int changed = change_each(g, ipu__halve);

    (void)parts;
    return changed ? changed
                   : ipu__fail(IPU_ERR_STATE, "no tensor of it is of float32");
}

/* Has nodes read gradients themselves: a region of one run has accumulated
 * nothing else. */
static void read_gradients(ipu_graph *g)
{
    for (int32_t n = 0; n < g->nnodes; n++)
        for (int i = 0; i < g->nodes[n].op->ninputs; i++) {
            int32_t *input = &g->nodes[n].inputs[i];
            int32_t maker = g->tensors[*input].node;

            if (maker >= 0 && g->nodes[maker].op == &ipu__accumulated)
                *input = g->nodes[maker].inputs[0];
        }
}

/* Drops a region that runs each time, in favour of one that accumulates: it
 * only says where the update is. */
static int drop_region(ipu_graph *g, ipu_offload *offload, int64_t *least)
{
    if (g->nregions > 1 || g->regions[0].conditional)
        return ipu__fail(IPU_ERR_STATE,
                         "it has an update region with a condition, or several "
                         "of them");
    *offload = g->regions[0].offload;
    *least = g->regions[0].minimum_bytes;
    for (int32_t n = 0; n < g->nnodes; n++)
        g->nodes[n].region = IPU__NONE;
    read_gradients(g);
    g->nregions = 0;
    return IPU_OK;
}

/* Multiplies the iterations of the loop around a graph by parts, as runs are
 * multiplied for what is in no loop. */
static bool more_iterations(ipu_graph *g, const ipu_graph *of, int32_t parts)
{
    for (int32_t i = 0; i < g->nloops; i++) {
        ipu_graph *body = g->loops[i].body.graph;

        if (body != of && !more_iterations(body, of, 1))
            continue;
        g->loops[i].count *= parts;
        return true;
    }
    return false;
}

/* Makes parts of the batch, and as many more runs to an update. */
static int make_accumulate(ipu_graph *root, int32_t parts)
{
    ipu_offload offload = IPU_OFFLOAD_OFF; /* offloading is a separate remedy */
    ipu_graph *g = trained_graph(root);
    int64_t least = 0;

    if (!g && root->nloops > 0)
        return ipu__fail(IPU_ERR_STATE, "it has loops, and no gradients");
    IPU_TRY(ipu__divide_batch(root, parts));
    if (!g)
        return IPU_OK;
    more_iterations(root, g, parts);
    if (g->nregions == 1 && g->regions[0].count > 1) {
        g->regions[0].count *= parts; /* the program is not run */
        return IPU_OK;
    }
    if (g->nregions > 0)
        IPU_TRY(drop_region(g, &offload, &least));
    IPU_TRY(ipu__split_update(g, parts));
    g->regions[0].offload = offload;
    g->regions[0].minimum_bytes = least;
    return IPU_OK;
}

static int make_offload(ipu_graph *root, int32_t parts)
{
    ipu_graph *g;

    (void)parts;
    IPU_TRY(find_trained(root, &g));
    if (g->nregions == 0)
        IPU_TRY(ipu__split_update(g, 1));
    for (int32_t r = 0; r < g->nregions; r++)
        g->regions[r].offload = IPU_OFFLOAD_ON;
    return IPU_OK;
}

static int make_offload_all(ipu_graph *root, int32_t parts)
{
    ipu_graph *g = trained_graph(root);

    (void)parts;
    if (g && g->nregions == 0)
        IPU_TRY(ipu__split_update(g, 1));
    for (int32_t t = 0; t < root->ntensors; t++)
        if (root->tensors[t].kind == IPU__VARIABLE)
            root->tensors[t].offload = IPU_OFFLOAD_ON;
    return IPU_OK;
}

static int make_shards(ipu_graph *g, int32_t parts)
{
    if (g->nloops > 0)
        return ipu__fail(IPU_ERR_STATE,
                         "it has loops, each of which is on one chip");
    return parts > g->nnodes
               ? ipu__fail(IPU_ERR_STATE, "it has not so many layers")
               : IPU_OK;
}

static bool has_rows(const ipu_graph *g)
{
    for (int32_t t = 0; t < g->ntensors; t++)
        if (g->tensors[t].remote)
            return true;
    return false;
}

static int make_stages(ipu_graph *g, int32_t parts)
{
    ipu_graph *whole;

    IPU_TRY(find_trained(g, &whole));
    if (g->nloops > 0 || has_rows(g))
        return ipu__fail(IPU_ERR_STATE,
                         "stages have no loops, nor remote buffers");
    if (ipu_update_count(g) > 1)
        return ipu__fail(IPU_ERR_STATE,
                         "it accumulates gradients itself, as a pipeline does");
    return ipu__divide_batch(g, IPU__BATCHES_PER_STAGE * parts);
}

static int place_one(ipu_graph *g)
{
    int changed = 0;

    for (int32_t t = 0; t < g->ntensors; t++) {
        changed |= g->tensors[t].map.tiles > 0;
        g->tensors[t].map.tiles = 0;
    }
    return changed;
}

static int make_placement(ipu_graph *g, int32_t parts)
{
    int changed = change_each(g, place_one);

    (void)parts;
    return changed ? changed
                   : ipu__fail(IPU_ERR_STATE,
                               "the compiler has placed all of it, evenly");
}

/* ------------------------------------------------------------- the remedies */

static const struct remedy {
    const char *name;
    change_fn change;
    int32_t most; /* the most parts; 1: it has none */
} remedies[IPU_NUM_REMEDIES] = {
    [IPU_REMEDY_HALF] = {"float16", make_half, 1},
    [IPU_REMEDY_ACCUMULATE] = {"accumulate", make_accumulate, 1 << 20},
    [IPU_REMEDY_RECOMPUTE] = {"recompute", make_recompute, 1},
    [IPU_REMEDY_OFFLOAD] = {"offload", make_offload, 1},
    [IPU_REMEDY_OFFLOAD_ALL] = {"offload all", make_offload_all, 1},
    [IPU_REMEDY_SHARD] = {"shard", make_shards, 64},
    [IPU_REMEDY_PIPELINE] = {"pipeline", make_stages, IPU_MAX_STAGES},
    [IPU_REMEDY_PLACEMENT] = {"placement", make_placement, 1},
};

const char *ipu_remedy_name(ipu_remedy_kind kind)
{
    return kind >= 0 && kind < IPU_NUM_REMEDIES ? remedies[kind].name : NULL;
}

/* Refuses a remedy that has changed nothing. */
static int check_done(const ipu_remedy *r)
{
    if (r->kind == IPU_REMEDY_OFFLOAD && r->remote_bytes == 0)
        return ipu__fail(IPU_ERR_STATE,
                         "there is nothing that only the update uses");
    if (r->kind == IPU_REMEDY_OFFLOAD_ALL && r->remote_bytes == 0)
        return ipu__fail(IPU_ERR_STATE, "it has no variables of any size");
    return IPU_OK;
}

static int change_graph(const struct ipu__trial *t, ipu_remedy_kind kind,
                        int32_t parts, ipu_graph **g)
{
    int status;

    IPU_TRY(ipu__graph_copy(t->graph, g));
    status = remedies[kind].change(*g, parts);
    if (status >= 0)
        return IPU_OK;
    ipu_graph_free(*g);
    *g = NULL;
    return status == IPU_ERR_MEMORY
               ? status
               : ipu__fail(IPU_ERR_STATE, "%s", ipu_last_error());
}

static bool is_spread(ipu_remedy_kind kind)
{
    return kind == IPU_REMEDY_SHARD || kind == IPU_REMEDY_PIPELINE;
}

static int try_parts(const struct ipu__trial *t, ipu_remedy_kind kind,
                     int32_t parts, ipu_remedy *remedy)
{
    ipu_remedy tried = {.size = remedy->size, .kind = kind, .parts = parts};
    ipu_graph *g;
    int status;

    IPU_TRY(change_graph(t, kind, parts, &g));
    if (t->hopeless)
        *t->hopeless = false;
    status = is_spread(kind) ? ipu__measure_spread(t, g, &tried)
                             : measure_graph(t, g, &tried);
    ipu_graph_free(g);
    if (status >= 0)
        status = check_done(&tried);
    if (status < 0)
        return status;
    if (kind == IPU_REMEDY_ACCUMULATE && !ipu__has_gradients(t->graph)) {
        tried.runs = parts;
        tried.cycles *= parts;
        tried.seconds *= parts;
    }
    *remedy = tried;
    return IPU_OK;
}

/* ----------------------------------------------------------- how many parts */

/* Finds the most parts, of 2, 4, 8, ..., that the graph can be changed to. */
static int find_most(const struct ipu__trial *t, ipu_remedy_kind kind,
                     int32_t *most)
{
    for (int32_t n = 2; n <= remedies[kind].most && n > 0; n *= 2) {
        ipu_graph *g;
        int status = change_graph(t, kind, n, &g);

        if (status < 0)
            return n > 2 && status == IPU_ERR_STATE ? IPU_OK : status;
        ipu_graph_free(g);
        *most = n;
    }
    return IPU_OK;
}

/* Returns the parts that should fit, going by two parts; most if none should.
 */
static int32_t expect_parts(const struct ipu__trial *t, const ipu_remedy *two,
                            int32_t most)
{
    double b = 2.0 * (double)(t->plain_bytes - two->tile_bytes);
    double a = (double)t->plain_bytes - b;

    for (int32_t n = 4; n < most; n *= 2)
        if (a + b / n <= (double)two->bytes_per_tile)
            return n;
    return most;
}

static int find_fewest(const struct ipu__trial *t, ipu_remedy_kind kind,
                       ipu_remedy *remedy)
{
    int32_t most = 0, failed = 2, n;
    ipu_remedy best = {.size = remedy->size}, tried = best;

    IPU_TRY(find_most(t, kind, &most));
    IPU_TRY(try_parts(t, kind, 2, &best));
    n = best.fits || most == 2 ? 0 : expect_parts(t, &best, most);
    if (t->hopeless && *t->hopeless)
        n = 0; /* more parts have as much code */
    while (n > failed) {
        int status = try_parts(t, kind, n, &tried);

        if (status == IPU_ERR_STATE) { /* there are not so many layers */
            most = n / 2;
            n = best.fits ? 0 : most;
            continue;
        }
        IPU_TRY(status);
        if (!tried.fits) {
            failed = n;
            /* More parts must be worth it. */
            if (!best.fits && 20 * tried.tile_bytes < 19 * best.tile_bytes)
                best = tried;
            n = best.fits ? 0 : n < most ? n * 2 : 0;
            continue;
        }
        best = tried;
        n /= 2;
    }
    *remedy = best;
    return IPU_OK;
}

static int try_with(const struct ipu__trial *t, ipu_remedy_kind kind,
                    int32_t parts, ipu_offload automatic, ipu_remedy *remedy)
{
    struct ipu__trial trial = *t;

    trial.automatic = automatic;
    if (remedies[kind].most == 1)
        return try_parts(&trial, kind, 1, remedy);
    return parts ? try_parts(&trial, kind, parts, remedy)
                 : find_fewest(&trial, kind, remedy);
}

/* Tries a remedy with the optimiser's state in streaming memory, after it did
 * not fit with the state on the chip. */
static int try_off_chip(const struct ipu__trial *t, ipu_remedy_kind kind,
                        int32_t parts, ipu_remedy *remedy)
{
    /* A pipeline uses streaming memory only on the chips that need it. */
    ipu_offload automatic =
        kind == IPU_REMEDY_PIPELINE ? IPU_OFFLOAD_AUTO : IPU_OFFLOAD_ON;
    bool hopeless = t->hopeless && *t->hopeless;
    ipu_remedy tried = {.size = remedy->size};

    IPU_TRY(try_with(t, kind, parts, automatic, &tried));
    if (tried.fits)
        *remedy = tried;
    else if (t->hopeless)
        *t->hopeless = hopeless;
    return IPU_OK;
}

/* Returns whether IPU_OFFLOAD_AUTO may make a difference to the changed
 * program. */
static bool leaves_offload(const struct ipu__trial *t, ipu_remedy_kind kind)
{
    if (!(ipu__trial_target(t).streaming_bytes_per_second > 0) ||
        kind == IPU_REMEDY_OFFLOAD || kind == IPU_REMEDY_OFFLOAD_ALL)
        return false;
    return kind == IPU_REMEDY_PIPELINE || ipu__leaves_offload(t->graph);
}

int ipu__try_remedy(const struct ipu__trial *t, ipu_remedy_kind kind,
                    int32_t parts, ipu_remedy *remedy)
{
    ipu_target target = ipu__trial_target(t);

    if ((kind == IPU_REMEDY_OFFLOAD || kind == IPU_REMEDY_OFFLOAD_ALL) &&
        !(target.streaming_bytes_per_second > 0))
        return ipu__fail(IPU_ERR_STATE, "'%s' has no memory beside the chip",
                         target.name);
    IPU_TRY(try_with(t, kind, parts, IPU_OFFLOAD_OFF, remedy));
    if (remedy->fits || !leaves_offload(t, kind))
        return IPU_OK;
    return try_off_chip(t, kind, parts, remedy);
}

/* --------------------------------------------------------------- the caller */

static int check_arguments(const ipu_graph *graph,
                           const ipu_compile_options *options,
                           ipu_remedy_kind kind, int32_t parts,
                           const ipu_remedy *remedy)
{
    if (!graph || !options || !remedy)
        return ipu__fail(IPU_ERR_ARGUMENT, "remedy: %s is NULL",
                         !graph     ? "the graph"
                         : !options ? "options"
                                    : "the place for it");
    IPU_TRY(ipu__check_compile_options(options));
    IPU_TRY(ipu__check_size("remedy", remedy->size, sizeof *remedy));
    if (!ipu_remedy_name(kind))
        return ipu__fail(IPU_ERR_ARGUMENT, "remedy: there is none number %d",
                         (int)kind);
    if (parts < 0 || parts > remedies[kind].most)
        return ipu__fail(IPU_ERR_ARGUMENT, "remedy: %s in %d parts: 0 to %d",
                         ipu_remedy_name(kind), (int)parts,
                         (int)remedies[kind].most);
    IPU_TRY(ipu__graph_status(graph));
    return options->target ? ipu_target_check(options->target) : IPU_OK;
}

int ipu_remedy_try(const ipu_graph *graph, const ipu_compile_options *options,
                   ipu_remedy_kind kind, int32_t parts, ipu_remedy *remedy)
{
    struct ipu__trial t = {
        .graph = graph, .options = options, .automatic = IPU_OFFLOAD_OFF};
    ipu_remedy plain = {.size = sizeof plain};
    char why[IPU__MESSAGE_MAX / 2];
    int status = IPU_OK;

    IPU_TRY(check_arguments(graph, options, kind, parts, remedy));
    t.plans = ipu__plans_new();
    if (!t.plans)
        return ipu__fail_memory(1);
    if (parts == 0 && remedies[kind].most > 1) {
        status = measure_graph(&t, graph, &plain);
        t.plain_bytes = plain.tile_bytes;
    }
    if (status >= 0)
        status = ipu__try_remedy(&t, kind, parts, remedy);
    ipu__plans_free(t.plans);
    if (status != IPU_ERR_STATE)
        return status;
    snprintf(why, sizeof why, "%s", ipu_last_error());
    return ipu__fail(status, "remedy: %s: %s", ipu_remedy_name(kind), why);
}
