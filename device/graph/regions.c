/* SPDX-License-Identifier: Apache-2.0 */
/*
 * regions.c - update regions: nodes that run in every count-th run only.
 *
 * Nodes carry the number of their region. A node has the region of its inputs,
 * so that whatever depends on accumulated gradients is in their region by
 * itself; and the region of the scope it was built in, if it does not depend on
 * them, such as the counter of updates.
 *
 * The graph itself counts (training/update.c): a variable goes from 0 to count
 * - 1 and back, and "due" is 1 in the last of these runs. The compiler makes
 * due an input of all steps of the region, and the engine passes over them
 * while it is 0. A region of count 1 runs always: it has neither, and only
 * shows the compiler the update.
 *
 * A region may also run only if something holds, and only when an outer region
 * runs; nodes that depend on both belong to the inner one.
 */
#include <inttypes.h>

#include "base/error.h"
#include "graph/op.h"

void ipu__region_init(struct ipu__region *region, int32_t count)
{
    *region = (struct ipu__region){.count = count,
                                   .counter = IPU__NONE,
                                   .due = IPU__NONE,
                                   .within = IPU__NONE};
}

int32_t ipu__tensor_region(const ipu_graph *g, int32_t tensor)
{
    int32_t node = g->tensors[tensor].node;

    return node < 0 ? IPU__NONE : g->nodes[node].region;
}

bool ipu__region_is_within(const ipu_graph *g, int32_t region, int32_t outer)
{
    while (region != outer && region >= 0)
        region = g->regions[region].within;
    return region == outer;
}

int ipu__region_join(const ipu_graph *g, struct ipu__node *node)
{
    node->region = g->region;
    for (int i = 0; i < node->op->ninputs; i++) {
        int32_t region = ipu__tensor_region(g, node->inputs[i]);

        if (ipu__region_is_within(g, node->region, region))
            continue;
        if (!ipu__region_is_within(g, region, node->region))
            return ipu__fail(
                IPU_ERR_STATE,
                "%s: %s is computed in each %d runs, and cannot be used in "
                "what is computed in each %d",
                node->op->name, g->tensors[node->inputs[i]].name,
                (int)g->regions[region].count,
                (int)g->regions[node->region].count);
        node->region = region;
    }
    return IPU_OK;
}

int ipu__node_needs(const ipu_graph *g, const struct ipu__node *node,
                    int32_t *needs)
{
    int n = 0;

    for (int i = 0; i < node->op->ninputs; i++)
        needs[n++] = node->inputs[i];
    if (node->after >= 0)
        needs[n++] = node->after;
    if (node->region >= 0 && g->regions[node->region].due >= 0)
        needs[n++] = g->regions[node->region].due;
    return n;
}

/* ---------------------------------------------------- checks of the graph */

static int check_graph(const ipu_graph *graph)
{
    if (!graph)
        return ipu__fail(IPU_ERR_ARGUMENT, "update: the graph is NULL");
    return ipu__graph_status(graph);
}

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
