/* SPDX-License-Identifier: Apache-2.0 */
/*
 * offload.c - which variables lie in the DRAM beside the chip.
 *
 * Those that only an update region uses: read there and nowhere else, assigned
 * there or not at all. An optimiser's state is such; the weights, which the
 * forward pass reads, and accumulators, which each run writes, are not. They
 * are on the chip from the step that first reads them until they have been
 * stored, one after the other, and not while the rest of the program runs.
 *
 * Of a loop, the body may use a variable so, if nothing around it does.
 *
 * Small ones stay: a transfer takes its latency however few bytes it has.
 */
#include "compiler/program.h"
#include "graph/error.h"

enum { USUAL_BYTES = 128 };

/* What is known of a variable: in which region it is used (+ 1); that the body
 * of a loop uses it so; or that it stays. */
enum { UNUSED = 0, STAYS = -1, BY_LOOP = -2 };

static bool is_remote(const ipu_graph *g, const ipu_target *target,
                      int32_t tensor);

static void note_use(int32_t *use, int32_t by)
{
    if (by == 0 || (*use != UNUSED && *use != by))
        *use = STAYS;
    else
        *use = by;
}

/* What a graph calls a tensor of the graph around it; -1: it does not use
 * it. */
static int32_t inner_of(const ipu_graph *g, int32_t outer)
{
    for (int32_t i = 0; g && i < g->nimports; i++)
        if (ipu__origin(g->parent, g->imports[i].outer) == outer)
            return g->imports[i].inner;
    return -1;
}

static void note_loop(const ipu_graph *g, const ipu_target *target,
                      const struct ipu__loop *loop, int32_t tensor,
                      int32_t *use)
{
    int32_t inner = inner_of(loop->body.graph, tensor);

    for (int32_t i = 0; i < loop->ncarried; i++)
        if (ipu__origin(g, loop->initial[i]) == tensor)
            *use = STAYS;
    if (inner_of(loop->condition.graph, tensor) >= 0)
        *use = STAYS;
    if (inner >= 0)
        note_use(use,
                 *use == BY_LOOP || !is_remote(loop->body.graph, target, inner)
                     ? STAYS
                     : BY_LOOP);
}

static bool is_enqueued(const ipu_graph *g, int32_t tensor)
{
    for (int32_t i = 0; i < g->nenqueues; i++)
        for (int32_t k = 0; k < g->enqueues[i].count; k++)
            if (ipu__origin(g, g->enqueues[i].tensors[k]) == tensor)
                return true;
    return false;
}

static int32_t use_of(const ipu_graph *g, const ipu_target *target,
                      int32_t tensor)
{
    int32_t use = is_enqueued(g, tensor) ? STAYS : UNUSED;

    for (int32_t n = 0; n < g->nnodes && use != STAYS; n++)
        for (int i = 0; i < g->nodes[n].op->ninputs; i++)
            if (ipu__origin(g, g->nodes[n].inputs[i]) == tensor)
                note_use(&use, g->nodes[n].region);
    for (int32_t i = 0; i < g->nassigns; i++)
        if (ipu__origin(g, g->assigns[i].variable) == tensor)
            note_use(&use, ipu__tensor_region(g, g->assigns[i].value));
    for (int32_t i = 0; i < g->nsinks; i++)
        if (ipu__origin(g, g->sinks[i].tensor) == tensor && g->sinks[i].fn)
            use = STAYS; /* the host sees it in each run */
    for (int32_t i = 0; i < g->nloops; i++)
        note_loop(g, target, &g->loops[i], tensor, &use);
    return use;
}

static bool wants(const struct ipu__region *region, const ipu_target *target,
                  const struct ipu__shape *shape)
{
    int64_t least =
        region->minimum_bytes > 0 ? region->minimum_bytes : USUAL_BYTES;

    return region->offload != IPU_OFFLOAD_OFF &&
           target->streaming_bytes_per_second > 0 &&
           (int64_t)ipu__shape_bytes(shape) >= least;
}

/* As this graph and the loops in it use it. */
static bool is_remote(const ipu_graph *g, const ipu_target *target,
                      int32_t tensor)
{
    const struct ipu__tensor *t = &g->tensors[tensor];
    int32_t use;

    /* Not carried values, nor rows that lie there anyway. */
    if (t->kind != IPU__VARIABLE || t->fixed || t->remote || t->renews)
        return false;
    use = use_of(g, target, tensor);
    if (use > 0)
        return wants(&g->regions[use - 1], target, &g->tensors[tensor].shape);
    return use == BY_LOOP;
}

/* The graphs around a body use it in no other way. */
static bool is_remote_outside(const ipu_graph *g, const ipu_target *target,
                              int32_t tensor)
{
    for (int32_t i = 0; g->parent && i < g->nimports; i++)
        if (g->imports[i].inner == tensor) {
            int32_t outer = ipu__origin(g->parent, g->imports[i].outer);

            return is_remote(g->parent, target, outer) &&
                   is_remote_outside(g->parent, target, outer);
        }
    return true;
}

int ipu__choose_remote(const ipu_graph *g, const ipu_target *target,
                       bool *remote)
{
    if (g->nregions == 0 && g->nloops == 0)
        return IPU_OK;
    for (int32_t r = 0; r < g->nregions; r++)
        if (g->regions[r].offload == IPU_OFFLOAD_ON &&
            !(target->streaming_bytes_per_second > 0))
            return ipu__fail(IPU_ERR_ARGUMENT,
                             "compile: variables of the update are to be kept "
                             "beside the chip, but '%s' has no streaming "
                             "memory: do not ask for it, or take another "
                             "target",
                             target->name);
    for (int32_t t = 0; t < g->ntensors; t++)
        remote[t] = g->tensors[t].kind == IPU__VARIABLE &&
                    is_remote(g, target, t) && is_remote_outside(g, target, t);
    return IPU_OK;
}
