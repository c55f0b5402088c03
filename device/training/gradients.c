/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gradients.c - reverse-mode differentiation.
 *
 * ipu_gradients walks the nodes from the loss backwards. Each node that the
 * loss depends on, and that depends on a requested tensor, turns the derivative
 * with respect to its output into those with respect to its inputs; if several
 * nodes use one tensor, their derivatives are added. The derivatives are nodes
 * of the same graph, made of the same ops where possible.
 */
#include <stdlib.h>

#include "base/error.h"
#include "ops/op.h"
#include "training/recompute.h"
#include "training/training.h"

/* Returns the node that adds one row to zeros, if it makes the tensor; NULL:
 * something else does. */
static const struct ipu__node *row_among_zeros(const ipu_graph *g,
                                               ipu_tensor tensor)
{
    int32_t n = g->tensors[ipu__index(g, tensor)].node, zeros;
    const struct ipu__node *node = n < 0 ? NULL : &g->nodes[n];

    if (!node || node->op != &ipu__scatter_add ||
        g->tensors[node->inputs[1]].shape.ndim > 0)
        return NULL;
    zeros = g->tensors[node->inputs[0]].node;
    return zeros >= 0 && g->nodes[zeros].op == &ipu__fill &&
                   g->nodes[zeros].attributes.scale == 0
               ? node
               : NULL;
}

/* A row is added where it belongs: so the rows that iterations of a loop read
 * take one row's work each, and not that of the whole tensor. */
static int accumulate(ipu_graph *g, ipu_tensor *total, ipu_tensor part)
{
    const struct ipu__node *row;

    if (part.id < 0)
        return g->status;
    row = total->id < 0 ? NULL : row_among_zeros(g, part);
    if (row) {
        const struct ipu__attributes attributes = row->attributes;
        const ipu_tensor inputs[] = {*total, ipu__input(g, row, 1),
                                     ipu__input(g, row, 2)};

        *total = ipu__add(g, &ipu__scatter_add, inputs, &attributes);
    } else {
        *total = total->id < 0 ? part : ipu_add(g, *total, part);
    }
    return g->status;
}

void ipu__accumulate_of(ipu_graph *g, int32_t tensor, ipu_tensor *total,
                        ipu_tensor part)
{
    int32_t asked = g->shard, beside = g->beside;

    g->shard = g->tensors[tensor].shard;
    g->beside = tensor;
    accumulate(g, total, part);
    g->shard = asked;
    g->beside = beside;
}

static bool any_input_needed(const struct ipu__node *node, const bool *needed)
{
    for (int i = 0; i < node->op->ninputs; i++)
        if (needed[node->inputs[i]])
            return true;
    return false;
}

static int differentiate_node(ipu_graph *g, int32_t n, const bool *needed,
                              ipu_tensor *derivatives)
{
    /* The node is copied because the array may move while nodes are added. */
    const struct ipu__node node = g->nodes[n];
    ipu_tensor parts[IPU__MAX_INPUTS];
    ipu_tensor dy = derivatives[node.output];
    struct ipu__source asked = g->source;
    double proportion = g->proportion;
    int32_t shard = g->shard;

    if (node.loop >= 0)
        return ipu__loop_gradient(g, n, needed, derivatives);
    if (dy.id < 0 || !any_input_needed(&node, needed))
        return IPU_OK;
    /* A derivative has the source line of its op. */
    g->source = g->tensors[node.output].source;
    g->shard = g->tensors[node.output].shard;
    g->proportion = node.attributes.proportion;
    if (!node.op->gradient)
        return ipu__graph_fail(g, ipu__fail(IPU_ERR_ARGUMENT,
                                            "%s has no derivative",
                                            g->tensors[node.output].name));
    for (int i = 0; i < node.op->ninputs; i++)
        parts[i].id = needed[node.inputs[i]] ? IPU__WANTED : -1;
    g->derived = ipu__index(g, dy);
    g->beside = node.output;
    node.op->gradient(g, &node, dy, parts);
    g->source = asked;
    g->shard = shard;
    g->proportion = proportion;
    for (int i = 0; i < node.op->ninputs && g->status >= 0; i++)
        if (needed[node.inputs[i]])
            ipu__accumulate_of(g, node.inputs[i], &derivatives[node.inputs[i]],
                               parts[i]);
    g->derived = g->beside = IPU__NONE;
    return ipu__graph_status(g);
}

int ipu__propagate(ipu_graph *g, int32_t nnodes, const bool *needed,
                   ipu_tensor *derivatives)
{
    for (int32_t n = nnodes - 1; n >= 0; n--)
        IPU_TRY(differentiate_node(g, n, needed, derivatives));
    return IPU_OK;
}

/* Computes, from known derivatives of tensors of the first nnodes nodes, the
 * derivatives of the others. */
static int propagate(ipu_graph *g, int32_t nnodes, int32_t count,
                     const int32_t *wrt, bool *needed, ipu_tensor *derivatives)
{
    for (int32_t i = 0; i < count; i++)
        needed[wrt[i]] = true;
    IPU_TRY(ipu__mark_imports(g, count, wrt, needed));
    IPU_TRY(ipu__mark_dependents(g, nnodes, needed));
    return ipu__propagate(g, nnodes, needed, derivatives);
}

static int differentiate(ipu_graph *g, int32_t loss, int32_t count,
                         const int32_t *wrt, bool *needed,
                         ipu_tensor *derivatives, ipu_tensor *gradients)
{
    int32_t nnodes = g->tensors[loss].node + 1, ntensors = g->ntensors;

    for (int32_t i = 0; i < ntensors; i++)
        derivatives[i] = (ipu_tensor){-1};
    g->derived = g->beside = loss;
    derivatives[loss] = ipu__constant(g, &g->tensors[loss].shape, 1);
    g->derived = g->beside = IPU__NONE;
    IPU_TRY(propagate(g, nnodes, count, wrt, needed, derivatives));
    IPU_TRY(ipu__refuse_imports(g, count, wrt, ntensors, derivatives));
    for (int32_t i = 0; i < count; i++) {
        ipu_tensor found = derivatives[wrt[i]];

        if (found.id < 0) /* the loss does not depend on it */
            found = ipu__constant(g, &g->tensors[wrt[i]].shape, 0);
        if (found.id < 0)
            return ipu__graph_status(g);
        gradients[i] = found;
    }
    return IPU_OK;
}

/* Differentiates, and lets the derivatives read activations that are computed
 * again, if that is wanted. */
static int differentiate_and_forget(ipu_graph *g, int32_t loss, int32_t count,
                                    const int32_t *wrt, bool *needed,
                                    ipu_tensor *derivatives,
                                    ipu_tensor *gradients)
{
    int32_t last = g->nnodes > 0 ? g->nodes[g->nnodes - 1].output : IPU__NONE;

    IPU_TRY(differentiate(g, loss, count, wrt, needed, derivatives, gradients));
    if (!g->recompute)
        return IPU_OK;
    /* Loops may have put nodes before themselves meanwhile. */
    return ipu__recompute(g, last < 0 ? 0 : g->tensors[last].node + 1);
}

static int check_loss(const ipu_graph *g, ipu_tensor loss, int32_t *index)
{
    *index = ipu__index(g, loss);
    if (*index < 0)
        return ipu__fail(*index, "gradients: the loss: %s", ipu_last_error());
    if (g->tensors[*index].shape.ndim != 0 ||
        g->tensors[*index].shape.dtype != IPU_FLOAT32)
        return ipu__fail(
            IPU_ERR_SHAPE,
            "gradients: the loss %s is %s, not a float32 scalar: reduce it "
            "with ipu_reduce_sum, or ipu_cast it",
            g->tensors[*index].name,
            ipu__shape_print(&g->tensors[*index].shape).text);
    return IPU_OK;
}

static int check_wrt(const ipu_graph *g, int32_t count, const ipu_tensor *wrt,
                     int32_t *indices)
{
    for (int32_t i = 0; i < count; i++) {
        indices[i] = ipu__index(g, wrt[i]);
        if (indices[i] < 0)
            return ipu__fail(indices[i], "gradients: number %d: %s", (int)i,
                             ipu_last_error());
        if (g->tensors[indices[i]].shape.dtype == IPU_INT32)
            return ipu__fail(IPU_ERR_SHAPE,
                             "gradients: %s is not float32: it has none",
                             g->tensors[indices[i]].name);
    }
    return IPU_OK;
}

/* Imports, in a body, the tensors that the body has not used so far. A failure
 * here is found again later. */
static void import_all(const ipu_graph *g, ipu_tensor loss, int32_t count,
                       const ipu_tensor *wrt)
{
    ipu__index(g, loss);
    for (int32_t i = 0; i < count; i++)
        ipu__index(g, wrt[i]);
}

int ipu_gradients(ipu_graph *graph, ipu_tensor loss, int32_t count,
                  const ipu_tensor *wrt, ipu_tensor *gradients)
{
    size_t ntensors;
    int32_t *indices, index;
    bool *needed;
    ipu_tensor *derivatives;
    int status;

    if (!graph)
        return ipu__fail(IPU_ERR_ARGUMENT, "gradients: the graph is NULL");
    if (graph->status < 0)
        return ipu__graph_status(graph);
    if (count < 0 || (count > 0 && (!wrt || !gradients)))
        return ipu__graph_fail(graph,
                               ipu__fail(IPU_ERR_ARGUMENT, "gradients: %s",
                                         count < 0 ? "the count is less than 0"
                                                   : "an array is NULL"));
    import_all(graph, loss, count, wrt);
    ntensors = (size_t)graph->ntensors + 1;
    indices = calloc((size_t)count + 1, sizeof *indices);
    needed = calloc(ntensors, sizeof *needed);
    derivatives = calloc(ntensors, sizeof *derivatives);
    if (!indices || !needed || !derivatives)
        status = ipu__fail_memory(ntensors);
    else if ((status = check_loss(graph, loss, &index)) == IPU_OK &&
             (status = check_wrt(graph, count, wrt, indices)) == IPU_OK)
        status = differentiate_and_forget(graph, index, count, indices, needed,
                                          derivatives, gradients);
    free(indices);
    free(needed);
    free(derivatives);
    return status < 0 ? ipu__graph_fail(graph, status) : IPU_OK;
}

int ipu__gradients_from(ipu_graph *g, int32_t nseeds, const ipu_tensor *of,
                        const ipu_tensor *seeds, int32_t count,
                        const int32_t *wrt, ipu_tensor *gradients)
{
    size_t ntensors = (size_t)g->ntensors + 1;
    int32_t nnodes = g->nnodes;
    bool *needed = calloc(ntensors, sizeof *needed);
    ipu_tensor *derivatives = calloc(ntensors, sizeof *derivatives);
    int status = IPU_OK;

    if (!needed || !derivatives) {
        free(needed);
        free(derivatives);
        return ipu__fail_memory(ntensors * sizeof *derivatives);
    }
    for (size_t i = 0; i < ntensors; i++)
        derivatives[i] = (ipu_tensor){-1};
    for (int32_t i = 0; status == IPU_OK && i < nseeds; i++)
        status = accumulate(g, &derivatives[ipu__index(g, of[i])], seeds[i]);
    if (status == IPU_OK)
        status = propagate(g, nnodes, count, wrt, needed, derivatives);
    for (int32_t i = 0; status == IPU_OK && i < count; i++)
        gradients[i] = derivatives[wrt[i]];
    free(needed);
    free(derivatives);
    return status;
}
