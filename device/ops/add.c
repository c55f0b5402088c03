/* SPDX-License-Identifier: Apache-2.0 */
/*
 * add.c - adds the nodes of all builders, and rounds float16 stochastically in
 * graphs that ask for it.
 *
 * In such a graph an op that would make a float16 is built of three: its inputs
 * as float32, the op on these, and a stochastic_cast of the result. Ops on
 * halves work like that anyway, but for the rounding; the compiler fuses the
 * three, so that the tensors in between have no memory. Derivatives and
 * optimisers are built through ipu__add, too.
 *
 * Each result has random numbers of its own, made from the seed and the node's
 * number.
 */
#include "base/error.h"
#include "ops/op.h"

/* The settings are those of the graph around, in a body of a loop. */
static const struct ipu__rounding *settings_of(const ipu_graph *g)
{
    while (!g->rounding.on && g->parent)
        g = g->parent;
    return &g->rounding;
}

/* Returns whether the op on these inputs makes a float16. An op that fails does
 * not: the failure then comes from ipu__add_node. */
static bool makes_float16(const ipu_graph *g, const struct ipu__op *op,
                          const int32_t *inputs,
                          const struct ipu__attributes *attributes)
{
    struct ipu__node node;
    struct ipu__shape shape;
    bool found = false;

    ipu__node_init(&node, op);
    if (attributes)
        node.attributes = *attributes;
    for (int i = 0; i < op->ninputs; i++) {
        node.inputs[i] = inputs[i];
        found |= g->tensors[inputs[i]].shape.dtype == IPU_FLOAT16;
    }
    return found && ipu__node_shape(g, &node, &shape) == IPU_OK &&
           shape.dtype == IPU_FLOAT16;
}

static bool is_rounded(ipu_graph *graph, const struct ipu__op *op,
                       const ipu_tensor *inputs,
                       const struct ipu__attributes *attributes)
{
    int32_t indices[IPU__MAX_INPUTS] = {0};

    if (!settings_of(graph)->on || op->raw)
        return false;
    for (int i = 0; i < op->ninputs; i++) {
        indices[i] = ipu__index(graph, inputs[i]);
        if (indices[i] < 0)
            return false;
    }
    return makes_float16(graph, op, indices, attributes);
}

ipu_tensor ipu__round_stochastically(ipu_graph *graph, ipu_tensor x)
{
    const struct ipu__rounding *r = settings_of(graph);
    uint64_t seed = r->seed + 0x9e3779b97f4a7c15u * (uint64_t)graph->nnodes;

    return ipu_stochastic_cast(graph, x, IPU_FLOAT16, seed, r->step);
}

static ipu_tensor add_rounded(ipu_graph *graph, const struct ipu__op *op,
                              const ipu_tensor *inputs,
                              const struct ipu__attributes *attributes)
{
    struct ipu__attributes wide = {0};
    ipu_tensor all[IPU__MAX_INPUTS], y;
    ipu_dtype dtype;

    if (attributes)
        wide = *attributes;
    if (wide.shape.dtype == IPU_FLOAT16)
        wide.shape.dtype = IPU_FLOAT32;
    for (int i = 0; i < op->ninputs; i++) {
        all[i] = inputs[i];
        if (ipu_tensor_info(graph, inputs[i], &dtype, NULL, NULL) >= 0 &&
            dtype == IPU_FLOAT16)
            all[i] = ipu_cast(graph, inputs[i], IPU_FLOAT32);
    }
    y = ipu__add(graph, op, all, &wide);
    if (ipu_tensor_info(graph, y, &dtype, NULL, NULL) < 0 ||
        dtype != IPU_FLOAT32)
        return y;
    return ipu__round_stochastically(graph, y);
}

ipu_tensor ipu__add(ipu_graph *graph, const struct ipu__op *op,
                    const ipu_tensor *inputs,
                    const struct ipu__attributes *attributes)
{
    int index;

    if (!graph) {
        ipu__fail(IPU_ERR_ARGUMENT, "%s: the graph is NULL", op->name);
        return (ipu_tensor){-1};
    }
    if (graph->status < 0)
        return (ipu_tensor){-1};
    if (is_rounded(graph, op, inputs, attributes))
        return add_rounded(graph, op, inputs, attributes);
    index = ipu__add_node(graph, op, inputs, attributes);
    return index < 0 ? ipu__invalid(graph, index) : ipu__handle(graph, index);
}

static ipu_tensor slope_by(ipu_graph *graph, const struct ipu__node *node,
                           ipu_tensor dy, int32_t tensor)
{
    const ipu_tensor inputs[IPU__MAX_INPUTS] = {dy, ipu__handle(graph, tensor)};

    return ipu__add(graph, node->op->slope, inputs, NULL);
}

void ipu__slope_by_input(ipu_graph *graph, const struct ipu__node *node,
                         ipu_tensor dy, ipu_tensor *dx)
{
    dx[0] = slope_by(graph, node, dy, node->inputs[0]);
}

void ipu__slope_by_output(ipu_graph *graph, const struct ipu__node *node,
                          ipu_tensor dy, ipu_tensor *dx)
{
    dx[0] = slope_by(graph, node, dy, node->output);
}

bool ipu__casts_stochastically(const ipu_graph *graph, ipu_dtype dtype)
{
    return graph && dtype == IPU_FLOAT16 && settings_of(graph)->on;
}

int ipu_stochastic_rounding(ipu_graph *graph, int32_t on, uint64_t seed,
                            ipu_tensor step)
{
    int32_t index;

    if (!graph)
        return ipu__fail(IPU_ERR_ARGUMENT,
                         "stochastic rounding: the graph is NULL");
    if (graph->status < 0)
        return ipu__graph_status(graph);
    graph->rounding.on = false;
    if (!on)
        return IPU_OK;
    index = ipu__index(graph, step);
    if (index < 0)
        return ipu__graph_fail(
            graph, ipu__fail(index, "stochastic rounding: the step: %s",
                             ipu_last_error()));
    if (graph->tensors[index].shape.dtype != IPU_INT32 ||
        graph->tensors[index].shape.ndim != 0)
        return ipu__graph_fail(
            graph, ipu__fail(IPU_ERR_SHAPE,
                             "stochastic rounding: the step, %s, is no int32 "
                             "scalar",
                             graph->tensors[index].name));
    graph->rounding = (struct ipu__rounding){true, seed, step};
    return IPU_OK;
}
