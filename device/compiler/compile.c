/* SPDX-License-Identifier: Apache-2.0 */
/*
 * compile.c - a graph in, an executable out: runs the passes one after the
 * other.
 *
 *     pass      what it does                              what it makes
 *     fold      computes values made of constants         nodes of a draft
 *     simplify  drops ops without an effect               nodes
 *     merge     makes one node of equal nodes             nodes
 *     offload   moves variables off the chip              nodes
 *     schedule  decides which nodes run, in which order   steps and values
 *     fuse      joins several steps into one              steps, parts
 *     order     orders steps so that less memory is used  steps
 *     liveness  finds when each value is needed           blocks
 *     memory    finds the place of each block             offsets
 *     place     puts blocks on tiles                      tensors on tiles
 *     cost      counts what each step takes               cycles
 *     place     runs again, with costs                    memory info
 *     outline   shares code if that is too much           shared code
 *
 * If the program lets the compiler decide whether the optimiser's state is in
 * streaming memory (IPU_OFFLOAD_AUTO), all of that is done with the state on
 * the chip first. If the program does not fit, it is compiled again with the
 * state in streaming memory, which is kept if the program then fits: transfers
 * may take longer than all the rest of an update, so they are accepted only
 * where the program would not run otherwise. The choice follows from graph,
 * target and options alone, so that all processes that compile the same program
 * make the same choice.
 */
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "compiler/compiler.h"
#include "compiler/passes.h"
#include "compiler/rewrite/draft.h"
#include "target/cost.h"
#include "target/plans.h"
#include "target/target.h"

/* Runs the passes over the draft, then makes steps of it. */
static int run_on_draft(struct ipu__draft *draft, uint32_t without,
                        struct ipu_executable *e)
{
    if (!(without & IPU_PASS_FOLD))
        IPU_TRY(ipu__fold(draft));
    if (!(without & IPU_PASS_SIMPLIFY))
        IPU_TRY(ipu__simplify(draft));
    if (!(without & IPU_PASS_MERGE))
        IPU_TRY(ipu__merge(draft));
    IPU_TRY(ipu__offload(draft, e));
    return ipu__schedule(&draft->graph, e);
}

static int make_steps(const ipu_graph *graph, uint32_t without,
                      struct ipu_executable *e)
{
    struct ipu__draft draft;
    int status;

    IPU_TRY(ipu__draft_init(&draft, graph));
    status = run_on_draft(&draft, without, e);
    ipu__draft_fini(&draft);
    return status;
}

/* Returns the least that the fullest tile holds: if there were only variables
 * and constants, spread evenly over all chips. */
static int64_t least_bytes(const struct ipu_executable *e)
{
    int64_t bytes = 0, tiles;
    int32_t chips = 1;

    for (int32_t v = 0; v < e->nvalues; v++) {
        const struct ipu__value *value = &e->values[v];

        if (chips <= value->shard)
            chips = value->shard + 1;
        if (value->kind == IPU__VARIABLE && !value->remote)
            bytes += (int64_t)value->bytes;
    }
    tiles = (int64_t)chips * e->target.tiles;
    return (bytes + tiles - 1) / tiles;
}

/* Runs all passes. Each reports progress at its beginning, the long ones on the
 * way. */
static int run_passes(const ipu_graph *graph, uint32_t without,
                      struct ipu_executable *e)
{
    IPU_TRY(ipu__progress(e->progress, "schedule", 0, graph->nnodes));
    IPU_TRY(make_steps(graph, without, e));
    IPU_TRY(ipu__check_maps(e));
    if (e->spared_bytes > 0 && e->hopeless) {
        e->info.fullest_tile_bytes = least_bytes(e);
        if (e->info.fullest_tile_bytes > e->target.bytes_per_tile)
            return IPU_OK;
    }
    e->hopeless = false;
    if (!(without & IPU_PASS_FUSE)) {
        IPU_TRY(ipu__progress(e->progress, "fuse", 0, e->nsteps));
        IPU_TRY(ipu__fuse(e));
    }
    if (!(without & IPU_PASS_ORDER)) {
        IPU_TRY(ipu__progress(e->progress, "order", 0, e->nsteps));
        IPU_TRY(ipu__order(e));
    }
    IPU_TRY(ipu__progress(e->progress, "liveness", 0, e->nsteps));
    IPU_TRY(ipu__liveness(e));
    IPU_TRY(ipu__find_variables(e));
    IPU_TRY(ipu__find_tenants(e));
    IPU_TRY(ipu__progress(e->progress, "memory", 0, e->nblocks));
    IPU_TRY(ipu__buffers(e));
    IPU_TRY(ipu__plan_memory(e));
    ipu__find_scratch(e);
    IPU_TRY(ipu__progress(e->progress, "place", 0, e->nsteps));
    IPU_TRY(ipu__place(e, false));
    IPU_TRY(ipu__progress(e->progress, "cost", 0, e->nsteps));
    IPU_TRY(ipu__cost(e));
    IPU_TRY(ipu__progress(e->progress, "place with costs", 0, e->nsteps));
    IPU_TRY(ipu__place(e, true));
    return without & IPU_PASS_OUTLINE ? IPU_OK : ipu__outline(e);
}

static void take_proportions(const ipu_compile_options *o,
                             struct ipu_executable *e)
{
    e->proportions[IPU__MATMUL] = ipu__proportion_of(
        o->matmul_memory_proportion > 0 ? o->matmul_memory_proportion
                                        : o->available_memory_proportion);
    e->proportions[IPU__CONVOLUTION] = ipu__proportion_of(
        o->convolution_memory_proportion > 0 ? o->convolution_memory_proportion
                                             : o->available_memory_proportion);
}

static int build_program(const ipu_graph *graph,
                         const ipu_compile_options *options,
                         int64_t reserved_bytes, struct ipu_executable *e)
{
    e->info.size = sizeof e->info;
    ipu_target_init(&e->target, sizeof e->target);
    if (options->target) {
        e->target = *options->target;
        e->target.size = sizeof e->target;
    }
    take_proportions(options, e);
    IPU_TRY(ipu__compile_bodies(graph, options, reserved_bytes, e));
    return run_passes(graph, options->without, e);
}

/* The tools of an attempt to compile. The executable borrows them until it
 * ends. */
struct tools {
    struct ipu__progress *progress;
    struct ipu__setting setting;
    bool may_end_early; /* compilation may end early if variables alone are too
                           large */
};

static struct ipu_executable *executable_new(const struct tools *tools)
{
    struct ipu_executable *e = calloc(1, sizeof *e);

    if (!e)
        return NULL;
    e->progress = tools->progress;
    e->plans = tools->setting.plans;
    e->reserved_bytes = tools->setting.reserved_bytes;
    e->automatic = tools->setting.automatic;
    e->hopeless = tools->may_end_early;
    return e;
}

/* Finds the bytes of the outer program during the bodies of loops, which are
 * compiled before that is known. 0: the bodies need not be compiled again with
 * less room for their code. */
static int find_reserved(const struct ipu_executable *e, uint32_t without,
                         int64_t *bytes)
{
    int64_t excess, body = 0;

    *bytes = 0;
    if (e->nloops == 0 || without & IPU_PASS_OUTLINE || e->hopeless)
        return IPU_OK;
    IPU_TRY(ipu__excess(e, &excess));
    if (excess <= 0)
        return IPU_OK;
    for (int32_t i = 0; i < e->nloops; i++) {
        const struct ipu_executable *program = e->loops[i].body.program;

        if (program && body < program->info.fullest_tile_bytes)
            body = program->info.fullest_tile_bytes;
    }
    *bytes = e->reserved_bytes + e->info.fullest_tile_bytes - body;
    return IPU_OK;
}

static int build_twice(const ipu_graph *graph,
                       const ipu_compile_options *options,
                       const struct tools *tools, struct ipu_executable **e)
{
    int64_t reserved = 0;

    for (int i = 0; i < 2; i++) {
        ipu_executable_free(*e);
        *e = executable_new(tools);
        if (!*e) {
            ipu__fail_memory(sizeof **e);
            return IPU_ERR_MEMORY;
        }
        IPU_TRY(build_program(graph, options, reserved, *e));
        IPU_TRY(find_reserved(*e, options->without, &reserved));
        if (reserved <= 0)
            break;
    }
    return IPU_OK;
}

/* Compiles with the optimiser's state in streaming memory. If that fits, it
 * replaces e. */
static int try_off_chip(const ipu_graph *graph,
                        const ipu_compile_options *options,
                        const struct tools *tools, struct ipu_executable **e)
{
    struct tools off_chip = *tools;
    struct ipu_executable *made = NULL;
    int fits;

    off_chip.setting.automatic = IPU_OFFLOAD_ON;
    fits = build_twice(graph, options, &off_chip, &made);
    if (fits >= 0)
        fits = ipu__fits(made);
    if (fits <= 0) {
        ipu_executable_free(made);
        return fits;
    }
    made->info.automatic_bytes = (*e)->spared_bytes;
    made->info.tile_bytes_without = (*e)->info.fullest_tile_bytes;
    ipu_executable_free(*e);
    *e = made;
    return fits;
}

/* Compiles with the optimiser's state on the chip, or in streaming memory if
 * the program fits only in that way. If it fits in neither way, the state stays
 * on the chip. */
static int build_to_fit(const ipu_graph *graph,
                        const ipu_compile_options *options,
                        const struct tools *tools, struct ipu_executable **e)
{
    struct tools on_chip = *tools;
    int fits;

    if (tools->setting.automatic != IPU_OFFLOAD_AUTO)
        return build_twice(graph, options, tools, e);
    on_chip.setting.automatic = IPU_OFFLOAD_OFF;
    on_chip.may_end_early = true;
    IPU_TRY(build_twice(graph, options, &on_chip, e));
    if ((*e)->spared_bytes == 0)
        return IPU_OK;
    fits = (*e)->hopeless ? 0 : ipu__fits(*e);
    if (fits == 0)
        fits = try_off_chip(graph, options, tools, e);
    if (fits != 0 || !(*e)->hopeless)
        return fits;
    on_chip.may_end_early = false;
    return build_twice(graph, options, &on_chip, e);
}

static int compile_with_plans(const ipu_graph *graph,
                              const ipu_compile_options *options,
                              const struct ipu__setting *setting,
                              ipu_executable **executable)
{
    struct ipu__progress progress = {.fn = options->progress,
                                     .context = options->progress_context};
    const struct tools tools = {.progress = &progress, .setting = *setting};
    struct ipu_executable *e = NULL;
    int status = build_to_fit(graph, options, &tools, &e);

    if (status >= 0)
        status = ipu__progress(&progress, "fit", 0, 1);
    if (status < 0) {
        ipu_executable_free(e);
        return status;
    }
    e->progress = NULL;
    e->plans = NULL;
    *executable = e;
    return IPU_OK;
}

int ipu__compile(const ipu_graph *graph, const ipu_compile_options *options,
                 const struct ipu__setting *setting,
                 ipu_executable **executable)
{
    struct ipu__setting with_plans = *setting;
    int status;

    IPU_TRY(ipu__graph_status(graph));
    if (!setting->plans)
        with_plans.plans = ipu__plans_new();
    if (!with_plans.plans)
        return ipu__fail_memory(1);
    status = compile_with_plans(graph, options, &with_plans, executable);
    if (!setting->plans)
        ipu__plans_free(with_plans.plans);
    return status;
}

int ipu__check_compile_options(const ipu_compile_options *o)
{
    IPU_TRY(ipu__check_size("options", o->size, sizeof *o));
    IPU_TRY(ipu__check_proportion("available_memory_proportion",
                                  o->available_memory_proportion));
    IPU_TRY(ipu__check_proportion("matmul_memory_proportion",
                                  o->matmul_memory_proportion));
    return ipu__check_proportion("convolution_memory_proportion",
                                 o->convolution_memory_proportion);
}
