/* SPDX-License-Identifier: Apache-2.0 */
/*
 * shards.c - the chip of each tensor, chosen by hand or by weight.
 *
 * By weight, forward nodes are a chain, in the order in which they were built.
 * Each weighs as many bytes as it makes, and as the variables that it is the
 * first to use; the chain is cut into parts that weigh about the same.
 *
 * advice/balance.c cuts the chain by time. For that it asks for the units of
 * which the chain consists; derivatives, and the nodes that a program builds
 * after its gradients, belong to the units of their tensors.
 */
#include <stdlib.h>

#include "base/error.h"
#include "graph/graph.h"
#include "graph/op.h"

int ipu_shard(ipu_graph *graph, int32_t shard)
{
    if (!graph)
        return ipu__fail(IPU_ERR_ARGUMENT, "shard: the graph is NULL");
    if (graph->status < 0)
        return ipu__graph_status(graph);
    if (shard < -1 || shard >= IPU_MAX_IPUS)
        return ipu__graph_fail(graph,
                               ipu__fail(IPU_ERR_ARGUMENT,
                                         "shard %d: there are 0 to %d, or -1: "
                                         "where inputs are",
                                         (int)shard, IPU_MAX_IPUS - 1));
    graph->shard = shard;
    return IPU_OK;
}

int32_t ipu_tensor_shard(const ipu_graph *graph, ipu_tensor tensor)
{
    int32_t index;

    if (!graph)
        return ipu__fail(IPU_ERR_ARGUMENT, "shard: the graph is NULL");
    index = ipu__index(graph, tensor);
    return index < 0 ? index : graph->tensors[index].shard;
}

static int64_t bytes_of(const ipu_graph *g, int32_t tensor)
{
    return (int64_t)ipu__shape_bytes(&g->tensors[tensor].shape);
}

/* Puts the inputs that the node is the first to use on its chip; returns their
 * weight. */
static int64_t claim_inputs(const ipu_graph *g, int32_t n, bool *seen)
{
    const struct ipu__node *node = &g->nodes[n];
    int64_t bytes = bytes_of(g, node->output);

    for (int i = 0; i < node->op->ninputs; i++) {
        int32_t t = node->inputs[i];

        if (seen[t] || g->tensors[t].node >= 0)
            continue;
        seen[t] = true;
        if (g->tensors[t].kind == IPU__VARIABLE)
            bytes += bytes_of(g, t);
    }
    return bytes;
}

static void place_node(ipu_graph *g, int32_t n, int32_t shard, bool *seen)
{
    const struct ipu__node *node = &g->nodes[n];

    g->tensors[node->output].shard = shard;
    for (int i = 0; i < node->op->ninputs; i++) {
        int32_t t = node->inputs[i];

        if (!seen[t] && g->tensors[t].node < 0)
            g->tensors[t].shard = shard;
        seen[t] = true;
    }
}

/* An op by element is one step with what it follows, on one chip. */
static bool follows(const ipu_graph *g, int32_t n)
{
    const struct ipu__node *node = &g->nodes[n];

    for (int i = 0; node->op->by_element && i < node->op->ninputs; i++)
        if (g->tensors[node->inputs[i]].node == n - 1 && n > 0)
            return true;
    return false;
}

/* Chooses the chip of each of the first nnodes nodes: a part is full when the
 * next node would be more beyond its share of what is left than within it. */
static void share_out(ipu_graph *g, int32_t nnodes, int32_t count,
                      const int64_t *weights, int64_t left, bool *seen)
{
    int64_t share = left / count, part = 0;
    int32_t shard = 0;

    for (int32_t n = 0; n < nnodes; n++) {
        if (shard < count - 1 && part > 0 && !follows(g, n) &&
            2 * part + weights[n] > 2 * share) {
            left -= part;
            part = 0;
            shard++;
            share = left / (count - shard);
        }
        place_node(g, n, shard, seen);
        part += weights[n];
    }
}

/* Cuts the chain of the first nnodes nodes into count parts. */
static int cut_chain(ipu_graph *g, int32_t nnodes, int32_t count)
{
    bool *seen = calloc(2 * (size_t)g->ntensors + 1, sizeof *seen);
    int64_t *weights = calloc((size_t)nnodes + 1, sizeof *weights);
    int64_t all = 0;
    int status = IPU_OK;

    if (seen && weights) {
        for (int32_t n = 0; n < nnodes; n++)
            all += weights[n] = claim_inputs(g, n, seen);
        share_out(g, nnodes, count, weights, all, seen + g->ntensors);
    } else {
        status = ipu__fail_memory((size_t)nnodes * sizeof *weights);
    }
    free(seen);
    free(weights);
    return status;
}

int ipu_shard_automatically(ipu_graph *graph, int32_t count)
{
    int status = IPU_OK;

    if (!graph)
        return ipu__fail(IPU_ERR_ARGUMENT, "shard: the graph is NULL");
    if (graph->status < 0)
        return ipu__graph_status(graph);
    if (count < 1 || count > IPU_MAX_IPUS)
        status = ipu__fail(IPU_ERR_ARGUMENT, "shard: %d shards: 1 to %d",
                           (int)count, IPU_MAX_IPUS);
    for (int32_t n = 0; status == IPU_OK && n < graph->nnodes; n++)
        if (graph->nodes[n].derived >= 0)
            status = ipu__fail(IPU_ERR_STATE,
                               "shard: the graph has gradients already: they "
                               "go where the ops that they are of have gone, "
                               "so these must be sharded first");
    if (status == IPU_OK)
        status = cut_chain(graph, graph->nnodes, count);
    return status < 0 ? ipu__graph_fail(graph, status) : IPU_OK;
}

/* ------------------------------------------------- when there are gradients */

/* Returns the chip of a node of which only the inputs are known: that of its
 * first input that was computed, or is a variable that has a place. */
static int32_t beside_inputs(const ipu_graph *g, const struct ipu__node *node,
                             const bool *placed)
{
    for (int i = 0; i < node->op->ninputs; i++) {
        int32_t t = node->inputs[i];

        if (g->tensors[t].kind == IPU__RESULT ||
            (g->tensors[t].kind == IPU__VARIABLE && placed[t]))
            return g->tensors[t].shard;
    }
    return 0;
}

/* placed: [tensors]: variables that have a chip. */
static void place_derivatives(ipu_graph *g, int32_t first, bool *placed)
{
    for (int32_t n = 0; n < first; n++)
        for (int i = 0; i < g->nodes[n].op->ninputs; i++)
            placed[g->nodes[n].inputs[i]] = true;
    for (int32_t n = first; n < g->nnodes; n++) {
        const struct ipu__node *node = &g->nodes[n];
        int32_t shard = node->beside >= 0 ? g->tensors[node->beside].shard
                                          : beside_inputs(g, node, placed);

        g->tensors[node->output].shard = shard;
        for (int i = 0; i < node->op->ninputs; i++) {
            int32_t t = node->inputs[i];

            if (g->tensors[t].node < 0 && !placed[t])
                g->tensors[t].shard = shard;
            placed[t] = true;
        }
    }
    for (int32_t i = 0; i < g->nassigns; i++)
        if (!placed[g->assigns[i].variable])
            g->tensors[g->assigns[i].variable].shard =
                g->tensors[g->assigns[i].value].shard;
}

/* Puts each of the first nnodes nodes on a chip of its own, with those that
 * follow it. Returns the number of chips, at least one. */
static int32_t cut_units(ipu_graph *g, int32_t nnodes, bool *seen)
{
    int32_t last = 0;

    for (int32_t n = 0; n < nnodes; n++) {
        last += n > 0 && !follows(g, n);
        place_node(g, n, last, seen);
    }
    return last + 1;
}

int ipu__shard_units(ipu_graph *g, int32_t *nunits)
{
    bool *seen;
    int32_t first = 0;

    IPU_TRY(ipu__new_array(&seen, 2 * (size_t)g->ntensors, sizeof *seen));
    while (first < g->nnodes && g->nodes[first].derived < 0)
        first++;
    *nunits = cut_units(g, first, seen);
    place_derivatives(g, first, seen + g->ntensors);
    free(seen);
    return IPU_OK;
}
