/* SPDX-License-Identifier: Apache-2.0 */
/*
 * remedy.c - what of a program that does not fit would be if its author did
 * something about it: a copy of the graph is changed in that way and compiled,
 * so that bytes and time are those of a program, not a rule of thumb.
 */
#include "compiler/remedy.h"

#include <stdlib.h>

#include "graph/error.h"
#include "ops/half.h"
#include "training/recompute.h"

/* Compile what was changed; runs: up to an update. */
static int measure(const ipu_graph *g, const ipu_compile_options *options,
                   int32_t runs, struct ipu__remedy *remedy)
{
    ipu_compile_options o = {.size = sizeof o,
                             .target = options->target,
                             .without = options->without,
                             .allow_out_of_memory = 1};
    ipu_program_cycles cycles = {.size = sizeof cycles};
    ipu_executable *e = NULL;
    int64_t total;

    IPU_TRY(ipu_compile_with(g, &o, &e));
    ipu_executable_cycles(e, &cycles);
    total = cycles.total + (runs - 1) * (cycles.total - cycles.update);
    remedy->bytes = e->info.fullest_tile_bytes;
    remedy->ms = 1e3 * ipu_model_seconds(&e->target, total);
    remedy->remote = e->info.remote_bytes;
    ipu_executable_free(e);
    return IPU_OK;
}

/* --------------------------------------------------------------- recompute */

int ipu__try_recompute(const ipu_graph *graph,
                       const ipu_compile_options *options,
                       struct ipu__remedy *remedy)
{
    ipu_graph *g;
    int32_t nnodes;
    int status;

    if (graph->recompute)
        return ipu__fail(IPU_ERR_STATE, "it does so already");
    IPU_TRY(ipu__graph_copy(graph, &g));
    nnodes = g->nnodes;
    status = ipu__recompute(g, 0);
    if (status >= 0 && g->nnodes == nnodes)
        status = ipu__fail(IPU_ERR_STATE, "there is nothing to compute again");
    if (status >= 0)
        status = measure(g, options, 1, remedy);
    ipu_graph_free(g);
    return status;
}

/* ------------------------------------------------------------------- float16
 */

static int halve_constant(struct ipu__tensor *t)
{
    int64_t count = ipu__shape_count(&t->shape);
    void *halves = malloc((size_t)count * 2 + 1);

    if (!halves)
        return ipu__fail_memory((size_t)count * 2);
    ipu__narrow(IPU_FLOAT16, halves, t->data, count);
    free(t->data);
    t->data = halves;
    return IPU_OK;
}

static bool is_scalar(const struct ipu__shape *shape)
{
    return shape->ndim == 0;
}

int ipu__halve_dtypes(ipu_graph *g)
{
    for (int32_t i = 0; i < g->ntensors; i++) {
        struct ipu__tensor *t = &g->tensors[i];

        if (t->shape.dtype != IPU_FLOAT32 || is_scalar(&t->shape))
            continue;
        if (t->data)
            IPU_TRY(halve_constant(t));
        t->shape.dtype = IPU_FLOAT16;
    }
    for (int32_t n = 0; n < g->nnodes; n++) {
        struct ipu__shape *told = &g->nodes[n].attributes.shape;

        if (told->dtype == IPU_FLOAT32 && !is_scalar(told))
            told->dtype = IPU_FLOAT16;
    }
    return IPU_OK;
}

int ipu__try_half(const ipu_graph *graph, const ipu_compile_options *options,
                  struct ipu__remedy *remedy)
{
    ipu_graph *g;
    int status;

    IPU_TRY(ipu__graph_copy(graph, &g));
    status = ipu__halve_dtypes(g);
    if (status >= 0)
        status = measure(g, options, 1, remedy);
    ipu_graph_free(g);
    return status;
}

/* ----------------------------------------------------------- update regions
 */

int ipu__try_accumulation(const ipu_graph *graph,
                          const ipu_compile_options *options, int32_t parts,
                          struct ipu__remedy *remedy)
{
    ipu_graph *g;
    int status;

    IPU_TRY(ipu__graph_copy(graph, &g));
    status = ipu__divide_batch(g, parts);
    if (status >= 0)
        status = ipu__put_update_apart(g, parts);
    for (int32_t r = 0; r < g->nregions; r++)
        g->regions[r].offload = IPU_OFFLOAD_OFF; /* a remedy of its own */
    if (status >= 0)
        status = measure(g, options, parts, remedy);
    ipu_graph_free(g);
    return status;
}

int ipu__try_offload(const ipu_graph *graph, const ipu_compile_options *options,
                     struct ipu__remedy *remedy)
{
    ipu_graph *g;
    int status;

    IPU_TRY(ipu__graph_copy(graph, &g));
    status = ipu__put_update_apart(g, 1);
    if (status >= 0)
        g->regions[0].offload = IPU_OFFLOAD_ON;
    if (status >= 0)
        status = measure(g, options, 1, remedy);
    if (status >= 0 && remedy->remote == 0)
        status = ipu__fail(IPU_ERR_STATE, "there is nothing to offload");
    ipu_graph_free(g);
    return status;
}
