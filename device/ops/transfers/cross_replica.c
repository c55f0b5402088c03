/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sums and means over replicas. The engine that runs alone is the only one, and
 * gets what it gives; who runs several does the work in between (the room of
 * replicas), and the row below only says what goes in and comes out. The
 * derivative of what all add up goes to all, and is added up in turn.
 */
#include <string.h>

#include "base/error.h"
#include "ops/copy.h"
#include "ops/op.h"

/* size: of a group; keep: it is a mean; order[0]: enum ipu__collective. */
static int shape(const struct ipu__call *call, struct ipu__shape *output)
{
    int32_t size = call->attributes->size;

    *output = call->inputs[0].shape;
    if (size < 0 || size > IPU_MAX_IPUS)
        return ipu__fail(IPU_ERR_ARGUMENT,
                         "%s: groups of %d replicas, there may be 0 (all) to "
                         "%d",
                         call->op->name, (int)size, IPU_MAX_IPUS);
    IPU_TRY(ipu__expect_true(call, call->attributes->order[0] >= 0 &&
                                       call->attributes->order[0] <=
                                           IPU__ALL_GATHER));
    if (call->attributes->keep && output->dtype == IPU_INT32)
        return ipu__fail(IPU_ERR_SHAPE,
                         "%s: the mean of %s would be of int32: cast it first",
                         call->op->name, call->inputs[0].name);
    return IPU_OK;
}

static void gradient(ipu_graph *graph, const struct ipu__node *node,
                     ipu_tensor dy, ipu_tensor *dx)
{
    dx[0] = ipu__add(graph, &ipu__cross_replica, &dy, &node->attributes);
}

const struct ipu__op ipu__cross_replica = {
    .name = "cross_replica",
    .ninputs = 1,
    .in_place = IPU__FIRST,
    .raw = true,
    .collective = true,
    .effects = true,
    .shape = shape,
    .run = ipu__pass_on,
    .gradient = gradient,
};

ipu_tensor ipu_cross_replica_sum(ipu_graph *graph, ipu_tensor x,
                                 int32_t group_size)
{
    const struct ipu__attributes attributes = {.size = group_size};

    return ipu__add(graph, &ipu__cross_replica, &x, &attributes);
}

ipu_tensor ipu_cross_replica_mean(ipu_graph *graph, ipu_tensor x,
                                  int32_t group_size)
{
    const struct ipu__attributes attributes = {.size = group_size,
                                               .keep = true};

    return ipu__add(graph, &ipu__cross_replica, &x, &attributes);
}

ipu_tensor ipu__cross_replica_sum_as(ipu_graph *graph, ipu_tensor x,
                                     enum ipu__collective kind)
{
    const struct ipu__attributes attributes = {.order = {(int32_t)kind}};

    return ipu__add(graph, &ipu__cross_replica, &x, &attributes);
}

int ipu_cross_replica_gradients(ipu_graph *graph, int32_t count,
                                const ipu_tensor *gradients,
                                ipu_tensor *averaged)
{
    if (!graph)
        return ipu__fail(IPU_ERR_ARGUMENT,
                         "cross-replica gradients: the graph is NULL");
    if (count < 0 || (count > 0 && (!gradients || !averaged)))
        return ipu__graph_fail(
            graph, ipu__fail(IPU_ERR_ARGUMENT, "cross-replica gradients: %s",
                             count < 0 ? "the count is less than 0"
                                       : "an array is NULL"));
    for (int32_t i = 0; i < count; i++)
        averaged[i] = ipu_cross_replica_mean(graph, gradients[i], 0);
    return ipu__graph_status(graph);
}

/* The variable belongs to the whole program: the body of a loop imports it. */
ipu_tensor ipu_replica_index(ipu_graph *graph)
{
    for (const ipu_graph *g = graph; g; g = g->parent)
        for (int32_t t = 0; t < g->ntensors; t++)
            if (g->tensors[t].kind == IPU__VARIABLE &&
                strcmp(g->tensors[t].name, IPU__REPLICA_INDEX) == 0)
                return ipu__handle(g, t);
    return ipu_variable(graph, IPU__REPLICA_INDEX, IPU_INT32, 0, NULL);
}
