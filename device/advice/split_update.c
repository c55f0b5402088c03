/* SPDX-License-Identifier: Apache-2.0 */
/*
 * split_update.c - gives a program that was written without one an update
 * region. remedy.c calls it.
 *
 * The nodes of the update are those that depend on derivatives and are none
 * themselves: optimisers, and whatever else is made of gradients. So are nodes
 * that were built after gradients and serve nothing else, as a counter of
 * updates. The gradients are the tensors that these nodes read from others. If
 * count is more than 1, each gradient gets an accumulator, between the
 * derivatives and the update, and the update, the host and assignments read the
 * accumulated one; nodes are put into another order for that.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "advice/remedy.h"
#include "base/error.h"
#include "training/training.h"

struct update {
    ipu_graph *graph;
    int32_t nnodes, ntensors; /* numbers in the original graph */
    int32_t region;
    bool *depends;        /* [tensors]: it depends on derivatives */
    bool *inside;         /* [nodes]: it belongs to the update */
    int32_t *accumulated; /* [tensors]: the accumulated gradient; -1: none */
};

static int find_update(struct update *u)
{
    const ipu_graph *g = u->graph;

    for (int32_t n = 0; n < u->nnodes; n++) {
        const struct ipu__node *node = &g->nodes[n];
        bool reads_update = false;

        for (int i = 0; i < node->op->ninputs; i++) {
            int32_t maker = g->tensors[node->inputs[i]].node;

            u->depends[node->output] |= u->depends[node->inputs[i]];
            reads_update |= maker >= 0 && u->inside[maker];
        }
        u->depends[node->output] |= node->derived >= 0;
        u->inside[n] =
            u->depends[node->output] && node->derived < 0 && !node->again;
        if (!u->inside[n] && reads_update)
            return ipu__fail(IPU_ERR_STATE, "its update is differentiated");
    }
    return IPU_OK;
}

/* Returns whether anything outside of the update needs a tensor. */
static bool is_needed(const struct update *u, int32_t tensor)
{
    const ipu_graph *g = u->graph;

    for (int32_t n = 0; n < u->nnodes; n++)
        for (int i = 0; !u->inside[n] && i < g->nodes[n].op->ninputs; i++)
            if (g->nodes[n].inputs[i] == tensor)
                return true;
    for (int32_t i = 0; i < g->nsinks; i++)
        if (g->sinks[i].tensor == tensor)
            return true;
    for (int32_t i = 0; i < g->nassigns; i++)
        if (g->assigns[i].value == tensor && g->assigns[i].variable != tensor &&
            is_needed(u, g->assigns[i].variable))
            return true;
    return false;
}

/* Finds nodes that serve the update alone: begins with all that might, and
 * drops those that others need until nothing changes. */
static void find_servants(struct update *u)
{
    const ipu_graph *g = u->graph;
    int32_t first = 0;
    bool changed = true;

    while (first < u->nnodes && g->nodes[first].derived < 0)
        first++;
    for (int32_t n = first; n < u->nnodes; n++)
        u->inside[n] |= !u->depends[g->nodes[n].output] && !g->nodes[n].again;
    while (changed) {
        changed = false;
        for (int32_t n = first; n < u->nnodes; n++) {
            int32_t output = g->nodes[n].output;

            if (!u->inside[n] || u->depends[output] || !is_needed(u, output))
                continue;
            u->inside[n] = false;
            changed = true;
        }
    }
}

/* Returns whether a tensor is a gradient: made outside of the update, of
 * derivatives. */
static bool is_gradient(const struct update *u, int32_t tensor)
{
    int32_t maker = u->graph->tensors[tensor].node;

    return tensor < u->ntensors && u->depends[tensor] && maker >= 0 &&
           !u->inside[maker];
}

/* Returns the gradient that the update reads: with a count of 1, itself. */
static int add_accumulator(struct update *u, int32_t gradient)
{
    ipu_graph *g = u->graph;
    const struct ipu__region *r = &g->regions[u->region];
    const struct ipu__attributes sum = {.factors = {1}};
    ipu_tensor inputs[3], total;
    char name[48];

    if (u->accumulated[gradient] >= 0)
        return u->accumulated[gradient];
    u->accumulated[gradient] = gradient;
    if (r->due < 0)
        return gradient;
    snprintf(name, sizeof name, "remedy/%d", (int)gradient);
    inputs[0] = ipu_variable(g, name, g->tensors[gradient].shape.dtype,
                             g->tensors[gradient].shape.ndim,
                             g->tensors[gradient].shape.extents);
    inputs[1] = ipu__handle(g, gradient);
    inputs[2] = ipu__handle(g, r->counter);
    total = ipu__add(g, &ipu__accumulate, inputs, &sum);
    IPU_TRY(ipu_assign(g, inputs[0], total));
    g->region = u->region;
    total = ipu__add(g, &ipu__accumulated, &total, NULL);
    g->region = IPU__NONE;
    IPU_TRY(g->status);
    u->accumulated[gradient] = ipu__index(g, total);
    return u->accumulated[gradient];
}

static int replace_gradient(struct update *u, int32_t *tensor)
{
    int index;

    if (!is_gradient(u, *tensor))
        return IPU_OK;
    index = add_accumulator(u, *tensor);
    IPU_TRY(index);
    *tensor = index;
    return IPU_OK;
}

static int enter_region(struct update *u)
{
    ipu_graph *g = u->graph;
    int32_t nassigns = g->nassigns;

    for (int32_t n = 0; n < u->nnodes; n++) {
        if (!u->inside[n])
            continue;
        g->nodes[n].region = u->region;
        for (int i = 0; i < g->nodes[n].op->ninputs; i++) {
            int32_t tensor = g->nodes[n].inputs[i];

            IPU_TRY(replace_gradient(u, &tensor)); /* nodes may move */
            g->nodes[n].inputs[i] = tensor;
        }
    }
    for (int32_t i = 0; i < nassigns; i++) {
        int32_t value = g->assigns[i].value;

        IPU_TRY(replace_gradient(u, &value));
        g->assigns[i].value = value;
    }
    for (int32_t i = 0; i < g->nsinks; i++)
        IPU_TRY(replace_gradient(u, &g->sinks[i].tensor));
    return IPU_OK;
}

struct order {
    ipu_graph *graph;
    int32_t first;           /* the first of the new nodes */
    bool *placed;            /* owned, [nodes] */
    struct ipu__node *nodes; /* owned */
    int32_t count;
};

/* Puts a node, and before it the new ones that it needs. */
static void put_node(struct order *o, int32_t n)
{
    int32_t needs[IPU__MAX_NEEDS];
    int count = ipu__node_needs(o->graph, &o->graph->nodes[n], needs);

    for (int i = 0; i < count; i++) {
        int32_t maker = o->graph->tensors[needs[i]].node;

        if (maker >= o->first && !o->placed[maker])
            put_node(o, maker);
    }
    o->placed[n] = true;
    o->nodes[o->count++] = o->graph->nodes[n];
}

/* Puts assignments in the order in which their values are made, as the author
 * would have written them. Few move, and not far. */
static void reorder_assigns(ipu_graph *g)
{
    for (int32_t i = 1; i < g->nassigns; i++) {
        const struct ipu__assign a = g->assigns[i];
        int32_t k = i, node = g->tensors[a.value].node;

        for (; k > 0 && g->tensors[g->assigns[k - 1].value].node > node; k--)
            g->assigns[k] = g->assigns[k - 1];
        g->assigns[k] = a;
    }
}

/* Puts new nodes right before what needs them, as the author would have written
 * them. They are few, so the recursion is not deep. */
static int reorder_nodes(struct update *u)
{
    ipu_graph *g = u->graph;
    size_t n = (size_t)g->nnodes + 1;
    struct order o = {.graph = g,
                      .first = u->nnodes,
                      .placed = calloc(n, sizeof *o.placed),
                      .nodes = calloc(n, sizeof *o.nodes)};

    if (!o.placed || !o.nodes) {
        free(o.placed);
        free(o.nodes);
        return ipu__fail_memory(n * sizeof *o.nodes);
    }
    for (int32_t i = 0; i < g->nnodes; i++) {
        /* The count of mini-batches begins the update. */
        if (i < u->nnodes && u->inside[i])
            for (int32_t k = o.first;
                 k < g->nnodes && g->nodes[k].op != &ipu__accumulate; k++)
                if (!o.placed[k])
                    put_node(&o, k);
        if (!o.placed[i])
            put_node(&o, i);
    }
    free(o.placed);
    free(g->nodes);
    g->nodes = o.nodes;
    g->node_capacity = g->nnodes + 1;
    for (int32_t i = 0; i < g->nnodes; i++)
        g->tensors[g->nodes[i].output].node = i;
    reorder_assigns(g);
    return IPU_OK;
}

static int put_apart(struct update *u, int32_t count)
{
    IPU_TRY(find_update(u));
    find_servants(u);
    u->region = ipu__region_of(u->graph, count);
    IPU_TRY(u->region);
    IPU_TRY(enter_region(u));
    return reorder_nodes(u);
}

int ipu__split_update(ipu_graph *g, int32_t count)
{
    size_t ntensors = (size_t)g->ntensors + 1;
    struct update u = {
        .graph = g,
        .nnodes = g->nnodes,
        .ntensors = g->ntensors,
        .depends = calloc(ntensors, sizeof *u.depends),
        .inside = calloc((size_t)g->nnodes + 1, sizeof *u.inside),
        .accumulated = malloc(ntensors * sizeof *u.accumulated),
    };
    int status;

    if (u.depends && u.inside && u.accumulated) {
        memset(u.accumulated, -1, ntensors * sizeof *u.accumulated);
        status = put_apart(&u, count);
    } else {
        status = ipu__fail_memory(ntensors * sizeof *u.accumulated);
    }
    free(u.depends);
    free(u.inside);
    free(u.accumulated);
    return status;
}
