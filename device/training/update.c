/* SPDX-License-Identifier: Apache-2.0 */
/* update.c - the update region as programs see it: its scope, its count, and
 * the check of who may run a graph that has one. */
#include <inttypes.h>

#include "base/error.h"
#include "graph/graph.h"

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
    if (graph->region)
        return ipu__graph_fail(
            graph, ipu__fail(IPU_ERR_STATE,
                             "update: a region of count %d has begun and not "
                             "ended: ipu_update_end it first",
                             (int)graph->regions[graph->region - 1].count));
    region = ipu__region_of(graph, count);
    IPU_TRY(region);
    graph->region = region;
    return IPU_OK;
}

int ipu_update_begin_if(ipu_graph *graph, int32_t count, ipu_tensor condition)
{
    int32_t region;

    IPU_TRY(ipu_update_begin(graph, count));
    region = ipu__region_if(graph, graph->region, condition);
    graph->region = 0;
    IPU_TRY(region);
    graph->region = region;
    return IPU_OK;
}

int ipu_update_end(ipu_graph *graph)
{
    IPU_TRY(check_graph(graph));
    if (!graph->region)
        return ipu__graph_fail(
            graph, ipu__fail(IPU_ERR_STATE, "update: no region has begun that "
                                            "could end"));
    graph->region = 0;
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
    graph->regions[region - 1].offload = offload;
    graph->regions[region - 1].minimum_bytes = minimum_bytes;
    return IPU_OK;
}

/* ----------------------------------------------------- who may run the graph
 */

static int64_t common_divisor(int64_t a, int64_t b)
{
    while (b > 0) {
        int64_t rest = a % b;

        a = b;
        b = rest;
    }
    return a;
}

int ipu_update_count(const ipu_graph *graph)
{
    int64_t all = 1;

    IPU_TRY(check_graph(graph));
    for (int32_t r = 0; r < graph->nregions; r++) {
        int64_t count = graph->regions[r].count;

        all = all / common_divisor(all, count) * count;
        if (all > INT32_MAX)
            return ipu__fail(IPU_ERR_ARGUMENT,
                             "update: the counts of the regions have a common "
                             "multiple only after 2^31 runs");
    }
    return (int)all;
}

int ipu_update_check_iterations(const ipu_graph *graph, const char *where,
                                int64_t iterations)
{
    IPU_TRY(check_graph(graph));
    for (int32_t r = 0; r < graph->nregions; r++) {
        int32_t count = graph->regions[r].count;

        if (iterations % count != 0)
            return ipu__fail(
                IPU_ERR_STATE,
                "%s: gradients are accumulated over %d mini-batches inside a "
                "loop of %" PRId64 " iterations: %d must divide the number of "
                "iterations evenly, or the last gradients are never used",
                where ? where : "loop", (int)count, iterations, (int)count);
    }
    return IPU_OK;
}

int ipu_update_check_absent(const ipu_graph *graph, const char *where)
{
    IPU_TRY(check_graph(graph));
    for (int32_t r = 0; r < graph->nregions; r++)
        if (graph->regions[r].count > 1)
            return ipu__fail(
                IPU_ERR_STATE,
                "%s: gradients are accumulated over %d mini-batches by the "
                "optimiser; a pipeline does so itself: give it the plain "
                "optimiser and the number of mini-batches",
                where ? where : "pipeline", (int)graph->regions[r].count);
    return IPU_OK;
}
