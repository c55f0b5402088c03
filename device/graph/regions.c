/* SPDX-License-Identifier: Apache-2.0 */
/*
 * regions.c - what runs in every count-th run only.
 *
 * A region is a number that nodes carry. A node has that of its inputs, so
 * that what depends on accumulated gradients is in their region without being
 * told; and that of the scope it was built in, for what does not depend on
 * them, such as the counter of updates.
 *
 * The graph itself counts: a variable goes from 0 to count - 1 and back, and
 * "due" is 1 in the last of these runs. The compiler makes due an input of all
 * steps of the region, and the engine passes over them while it is 0. A region
 * of count 1 runs always: it has neither, and only tells the compiler what the
 * update is.
 *
 * A region may also run only if something holds, and only when another does
 * within which it is; then what depends on both belongs to the inner one.
 */
#include <stdio.h>

#include "base/error.h"
#include "graph/graph.h"
#include "ops/op.h"

enum { MOST_RUNS = 1 << 20 };

int32_t ipu__tensor_region(const ipu_graph *g, int32_t tensor)
{
    int32_t node = g->tensors[tensor].node;

    return node < 0 ? 0 : g->nodes[node].region;
}

/* Whatever runs region does, too: of 0, everything. */
static bool is_within(const ipu_graph *g, int32_t region, int32_t outer)
{
    while (region != outer && region != 0)
        region = g->regions[region - 1].within;
    return region == outer;
}

int ipu__region_join(const ipu_graph *g, struct ipu__node *node)
{
    node->region = g->region;
    for (int i = 0; i < node->op->ninputs; i++) {
        int32_t region = ipu__tensor_region(g, node->inputs[i]);

        if (is_within(g, node->region, region))
            continue;
        if (!is_within(g, region, node->region))
            return ipu__fail(
                IPU_ERR_STATE,
                "%s: %s is computed in each %d runs, and cannot be used in "
                "what is computed in each %d",
                node->op->name, g->tensors[node->inputs[i]].name,
                (int)g->regions[region - 1].count,
                (int)g->regions[node->region - 1].count);
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
    if (node->after)
        needs[n++] = node->after - 1;
    if (node->region && g->regions[node->region - 1].due >= 0)
        needs[n++] = g->regions[node->region - 1].due;
    return n;
}

/* The counter, and what it becomes. */
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
    struct ipu__region region = {.count = count, .counter = -1, .due = -1};
    int32_t scope = g->region;
    int status = ipu__reserve((void **)&g->regions, g->nregions,
                              &g->region_capacity, sizeof *g->regions);

    if (status < 0)
        return ipu__graph_fail(g, status);
    g->region = 0; /* mini-batches are counted in each run */
    status = count > 1 ? add_counter(g, &region) : IPU_OK;
    g->region = scope;
    IPU_TRY(status);
    g->regions[g->nregions++] = region;
    return g->nregions;
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
            return r + 1;
    return add_region(g, count);
}

int32_t ipu__region_if(ipu_graph *g, int32_t within, ipu_tensor condition)
{
    struct ipu__region region = {.count = 1, .counter = -1, .due = -1};
    int32_t index = ipu__index(g, condition), scope = g->region;

    if (index < 0)
        return ipu__graph_fail(
            g, ipu__fail(index, "update: the condition: %s", ipu_last_error()));
    if (g->tensors[index].shape.dtype != IPU_INT32 ||
        g->tensors[index].shape.ndim != 0 || ipu__tensor_region(g, index))
        return ipu__graph_fail(
            g, ipu__fail(IPU_ERR_SHAPE,
                         "update: the condition %s is not an int32 scalar that "
                         "is computed in each run",
                         g->tensors[index].name));
    if (within)
        region = g->regions[within - 1];
    region.within = within;
    region.conditional = true;
    g->region = 0;
    if (region.due >= 0)
        condition = ipu_select(g, condition, ipu__handle(g, region.due),
                               ipu_fill(g, IPU_INT32, 0, NULL, 0));
    /* Steps look at it until the end of the run. */
    region.due = ipu__index_kept(g, condition);
    g->region = scope;
    IPU_TRY(g->status);
    IPU_TRY(ipu__reserve((void **)&g->regions, g->nregions, &g->region_capacity,
                         sizeof *g->regions));
    g->regions[g->nregions++] = region;
    return g->nregions;
}
