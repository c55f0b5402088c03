/* SPDX-License-Identifier: Apache-2.0 */
/*
 * update.c - the update region as programs see it: its scope, its count, and
 * the check of the callers that may run a graph with one.
 *
 * A region of count n runs in every n-th run. Its counter is a variable of the
 * graph, which every run advances; the compiler finds the steps of a region by
 * the region of their nodes.
 */
#include <inttypes.h>
#include <stdio.h>

#include "base/error.h"
#include "ops/op.h"
#include "training/training.h"

enum { MOST_RUNS = 1 << 20 };

/* Adds the counter, and its next value. */
static int add_counter(ipu_graph *g, struct ipu__region *region)
{
    ipu_tensor counter, due, next;
    char name[48];

    snprintf(name, sizeof name, "update/%d/mini_batch", (int)region->count);
    counter = ipu_variable(g, name, IPU_INT32, 0, NULL);
    due = ipu_equal(g, counter,
                    ipu_fill(g, IPU_INT32, 0, NULL, region->count - 1));
    next = ipu_add(g, counter, ipu_fill(g, IPU_INT32, 0, NULL, 1));
    next = ipu_select(g, due, ipu_fill(g, IPU_INT32, 0, NULL, 0), next);
    IPU_TRY(ipu_assign(g, counter, next));
    region->counter = ipu__index(g, counter);
    region->due = ipu__index(g, due);
    return IPU_OK;
}

static int32_t add_region(ipu_graph *g, int32_t count)
{
    struct ipu__region region;
    int32_t scope = g->region;
    int status = ipu__reserve((void **)&g->regions, g->nregions,
                              &g->region_capacity, sizeof *g->regions);

    if (status < 0)
        return ipu__graph_fail(g, status);
    ipu__region_init(&region, count);
    g->region = IPU__NONE; /* mini-batches are counted in each run */
    status = count > 1 ? add_counter(g, &region) : IPU_OK;
    g->region = scope;
    IPU_TRY(status);
    g->regions[g->nregions] = region;
    return g->nregions++;
}

int32_t ipu__region_of(ipu_graph *g, int32_t count)
{
    if (count < 1 || count > MOST_RUNS)
        return ipu__graph_fail(g,
                               ipu__fail(IPU_ERR_ARGUMENT,
                                         "update: of %d mini-batches; 1 to %d",
                                         (int)count, MOST_RUNS));
    for (int32_t r = 0; r < g->nregions; r++)
        if (g->regions[r].count == count && !g->regions[r].conditional)
            return r;
    return add_region(g, count);
}

/*
 * Makes a region that runs if condition, a tensor, is not 0 and the region
 * within (-1: none) runs; it offloads like that region. Returns its index, or a
 * failure, which stays in the graph.
 *
 * The condition may be computed in the region within. When that does not run,
 * its value is that of an earlier run, or none; due is 0 then, so that it does
 * not matter. The select runs each time, though its input does not.
 */
static int32_t region_if(ipu_graph *g, int32_t within, ipu_tensor condition)
{
    struct ipu__region region;
    int32_t index = ipu__index(g, condition), scope = g->region, of;

    if (index < 0)
        return ipu__graph_fail(
            g, ipu__fail(index, "update: the condition: %s", ipu_last_error()));
    of = ipu__tensor_region(g, index);
    if (g->tensors[index].shape.dtype != IPU_INT32 ||
        g->tensors[index].shape.ndim != 0 || (of >= 0 && of != within))
        return ipu__graph_fail(
            g, ipu__fail(IPU_ERR_SHAPE,
                         "update: the condition %s is not an int32 scalar that "
                         "is computed in each run, or in the region of that "
                         "count",
                         g->tensors[index].name));
    ipu__region_init(&region, 1);
    if (within >= 0)
        region = g->regions[within];
    region.within = within;
    region.conditional = true;
    g->region = IPU__NONE;
    if (region.due >= 0) {
        condition = ipu_select(g, condition, ipu__handle(g, region.due),
                               ipu_fill(g, IPU_INT32, 0, NULL, 0));
        index = ipu__index(g, condition);
        if (index >= 0)
            g->nodes[g->tensors[index].node].region = IPU__NONE;
    }
    /* Steps look at it until the end of the run. */
    region.due = ipu__index_kept(g, condition);
    g->region = scope;
    IPU_TRY(g->status);
    IPU_TRY(ipu__reserve((void **)&g->regions, g->nregions, &g->region_capacity,
                         sizeof *g->regions));
    g->regions[g->nregions] = region;
    return g->nregions++;
}

static int check_graph(const ipu_graph *graph)
{
    if (!graph)
        return ipu__fail(IPU_ERR_ARGUMENT, "update: the graph is NULL");
    return ipu__graph_status(graph);
}

int ipu_update_begin(ipu_graph *graph, int32_t count)
{
    int32_t region;

    IPU_TRY(check_graph(graph));
    if (graph->region >= 0)
        return ipu__graph_fail(
            graph, ipu__fail(IPU_ERR_STATE,
                             "update: a region of count %d has begun and not "
                             "ended: ipu_update_end it first",
                             (int)graph->regions[graph->region].count));
    region = ipu__region_of(graph, count);
    IPU_TRY(region);
    graph->region = region;
    return IPU_OK;
}

int ipu_update_begin_if(ipu_graph *graph, int32_t count, ipu_tensor condition)
{
    int32_t region;

    IPU_TRY(ipu_update_begin(graph, count));
    region = region_if(graph, graph->region, condition);
    graph->region = IPU__NONE;
    IPU_TRY(region);
    graph->region = region;
    return IPU_OK;
}

int ipu_update_end(ipu_graph *graph)
{
    IPU_TRY(check_graph(graph));
    if (graph->region < 0)
        return ipu__graph_fail(
            graph, ipu__fail(IPU_ERR_STATE, "update: no region has begun that "
                                            "could end"));
    graph->region = IPU__NONE;
    return IPU_OK;
}

static int check_offload(ipu_offload offload)
{
    if (offload >= IPU_OFFLOAD_AUTO && offload <= IPU_OFFLOAD_OFF)
        return IPU_OK;
    return ipu__fail(IPU_ERR_ARGUMENT,
                     "offload: %d is neither AUTO, ON nor OFF", (int)offload);
}

int ipu_offload_variable(ipu_graph *graph, ipu_tensor variable,
                         ipu_offload offload)
{
    ipu_graph *of = graph;
    int32_t index;
    int status;

    IPU_TRY(check_graph(graph));
    status = check_offload(offload);
    if (status < 0)
        return ipu__graph_fail(graph, status);
    index = ipu__index(graph, variable);
    if (index < 0)
        return ipu__graph_fail(
            graph, ipu__fail(index, "offload: %s", ipu_last_error()));
    index = ipu__outermost(&of, index);
    if (of->tensors[index].kind != IPU__VARIABLE || of->tensors[index].fixed)
        return ipu__graph_fail(graph, ipu__fail(IPU_ERR_ARGUMENT,
                                                "offload: %s is not a variable",
                                                of->tensors[index].name));
    of->tensors[index].offload = offload;
    return IPU_OK;
}

int ipu_update_offload(ipu_graph *graph, int32_t count, ipu_offload offload,
                       int64_t minimum_bytes)
{
    int32_t region;

    IPU_TRY(check_graph(graph));
    if (check_offload(offload) < 0)
        return ipu__graph_fail(graph, IPU_ERR_ARGUMENT);
    if (minimum_bytes < 0)
        return ipu__graph_fail(
            graph, ipu__fail(IPU_ERR_ARGUMENT,
                             "offload: of tensors of at least %" PRId64
                             " bytes: it must be 0 or more",
                             minimum_bytes));
    region = ipu__region_of(graph, count);
    IPU_TRY(region);
    graph->regions[region].offload = offload;
    graph->regions[region].minimum_bytes = minimum_bytes;
    return IPU_OK;
}
