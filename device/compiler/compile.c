/* SPDX-License-Identifier: Apache-2.0 */
/*
 * compile.c - graph in, executable out: the passes, one after the other.
 *
 *     fold        what constants make                nodes, on a copy
 *     simplify    what changes nothing               nodes
 *     merge       what is computed twice             nodes
 *     offload     what lies beside the chip          nodes
 *     schedule    which nodes, in which order        steps, values, streams
 *     fuse        which steps become one             steps, parts
 *     order       in which less memory is needed     steps
 *     liveness    when each value is needed          blocks
 *     memory      where each block lies              offsets
 *     place       what that means for the tiles      tensors on tiles
 *     cost        what each step takes on the chip   cycles
 *     place       again, with that                   memory info
 *     fit         is that too much?                  refuses, saying why
 */
#include <stdlib.h>
#include <string.h>

#include "compiler/draft.h"
#include "compiler/program.h"
#include "graph/error.h"
#include "target/plans.h"
#include "target/target.h"

/* What nodes become, on a copy; then the steps that they are. */
static int run_on_draft(struct ipu__draft *draft, uint32_t without,
                        struct ipu_executable *e)
{
    if (!(without & IPU_PASS_FOLD))
        IPU_TRY(ipu__fold(draft));
    if (!(without & IPU_PASS_SIMPLIFY))
        IPU_TRY(ipu__simplify(draft));
    if (!(without & IPU_PASS_MERGE))
        IPU_TRY(ipu__merge(draft));
    IPU_TRY(ipu__offload(draft, &e->target));
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

/* Each pass tells how far it is, the long ones on the way. */
static int run_passes(const ipu_graph *graph, uint32_t without,
                      struct ipu_executable *e)
{
    IPU_TRY(ipu__progress(e->progress, "schedule", 0, graph->nnodes));
    IPU_TRY(make_steps(graph, without, e));
    IPU_TRY(ipu__check_maps(e));
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
    return ipu__place(e, true);
}

static int build(const ipu_graph *graph, const ipu_compile_options *options,
                 struct ipu_executable *e)
{
    e->info.size = sizeof e->info;
    ipu_target_init(&e->target, sizeof e->target);
    if (options->target) {
        e->target = *options->target;
        e->target.size = sizeof e->target;
    }
    IPU_TRY(ipu__compile_loops(graph, options, e));
    IPU_TRY(run_passes(graph, options->without, e));
    IPU_TRY(ipu__progress(e->progress, "fit", 0, 1));
    if (options->allow_out_of_memory)
        return IPU_OK;
    return ipu__check_fit(e, graph, options);
}

static int compile(const ipu_graph *graph, const ipu_compile_options *options,
                   struct ipu__plans *plans, ipu_executable **executable)
{
    struct ipu__progress progress = {.fn = options->progress,
                                     .context = options->progress_context};
    struct ipu_executable *e = calloc(1, sizeof *e);
    int status;

    if (!e)
        return ipu__fail_memory(sizeof *e);
    e->progress = &progress;
    e->plans = plans;
    status = build(graph, options, e);
    e->progress = NULL;
    e->plans = NULL;
    if (status < 0) {
        ipu_executable_free(e);
        return status;
    }
    *executable = e;
    return IPU_OK;
}

int ipu__compile(const ipu_graph *graph, const ipu_compile_options *options,
                 struct ipu__plans *plans, ipu_executable **executable)
{
    struct ipu__plans *own;
    int status;

    IPU_TRY(ipu__graph_status(graph));
    own = plans ? NULL : ipu__plans_new();
    status = compile(graph, options, plans ? plans : own, executable);

    ipu__plans_free(own);
    return status;
}

int ipu_compile_with(const ipu_graph *graph, const ipu_compile_options *options,
                     ipu_executable **executable)
{
    if (!graph || !options || !executable)
        return ipu__fail(IPU_ERR_ARGUMENT, "compile: %s is NULL",
                         !graph     ? "the graph"
                         : !options ? "options"
                                    : "the place for an executable");
    IPU_TRY(ipu__check_size("options", options->size, sizeof *options));
    if (options->target)
        IPU_TRY(ipu_target_check(options->target));
    return ipu__compile(graph, options, NULL, executable);
}

int ipu_compile(const ipu_graph *graph, const ipu_target *target,
                ipu_executable **executable)
{
    const ipu_compile_options options = {.size = sizeof options,
                                         .target = target};

    return ipu_compile_with(graph, &options, executable);
}

void ipu_executable_free(ipu_executable *e)
{
    if (!e)
        return;
    for (int32_t i = 0; i < e->nvalues; i++) {
        free(e->values[i].name);
        free(e->values[i].data);
        free(e->values[i].file);
    }
    for (int32_t i = 0; i < e->nstreams; i++)
        free(e->streams[i].name);
    for (int32_t i = 0; i < e->nsteps; i++)
        free(e->steps[i].text);
    ipu__loop_codes_free(e);
    free(e->values);
    free(e->blocks);
    free(e->tenants);
    free(e->steps);
    free(e->parts);
    free(e->streams);
    free(e->tiles);
    for (int32_t i = 0; i < e->ntexts; i++)
        free(e->texts[i]);
    free(e->texts);
    free(e);
}
