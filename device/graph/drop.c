/* SPDX-License-Identifier: Apache-2.0 */
/*
 * drop.c - takes nodes and tensors out of a graph, and numbers the rest anew.
 * Derivatives of loops call it for bodies whose derivatives they have moved
 * elsewhere.
 */
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "graph/graph.h"

void ipu__number_nodes(ipu_graph *g)
{
    for (int32_t n = 0; n < g->nnodes; n++) {
        const struct ipu__node *node = &g->nodes[n];
        const struct ipu__loop *loop =
            node->loop >= 0 ? &g->loops[node->loop] : NULL;

        g->tensors[node->output].node = n;
        for (int32_t i = 0; loop && i < loop->ncarried; i++)
            g->tensors[loop->outputs[i]].node = n;
        for (int32_t i = 0; loop && i < loop->nwritten; i++)
            g->tensors[loop->renewed[i]].node = n;
    }
}

/* A tensor's new number; IPU__NONE stays. */
static void renumber(int32_t *tensor, const int32_t *to)
{
    if (*tensor >= 0)
        *tensor = to[*tensor];
}

static void renumber_list(int32_t *tensors, int32_t count, const int32_t *to)
{
    for (int32_t i = 0; i < count; i++)
        renumber(&tensors[i], to);
}

static void renumber_imports(ipu_graph *body, const int32_t *to)
{
    for (int32_t i = 0; body && i < body->nimports; i++)
        renumber(&body->imports[i].outer, to);
}

static void renumber_node(struct ipu__node *node, const int32_t *to)
{
    renumber_list(node->inputs, IPU__MAX_INPUTS, to);
    renumber(&node->output, to);
    renumber(&node->derived, to);
    renumber(&node->beside, to);
    renumber(&node->after, to);
}

static void renumber_loop(struct ipu__loop *loop, const int32_t *to)
{
    renumber_list(loop->initial, loop->ncarried, to);
    renumber_list(loop->outputs, loop->ncarried, to);
    renumber_list(loop->written, loop->nwritten, to);
    renumber_list(loop->renewed, loop->nwritten, to);
    renumber_imports(loop->body.graph, to);
    renumber_imports(loop->condition.graph, to);
}

/* Everything in a graph, other than its nodes and loops, that has the number of
 * a tensor. */
static void renumber_rest(ipu_graph *g, const int32_t *to)
{
    for (int32_t t = 0; t < g->ntensors; t++) {
        renumber(&g->tensors[t].renews, to);
        renumber(&g->tensors[t].renewed, to);
    }
    for (int32_t i = 0; i < g->nsinks; i++)
        renumber(&g->sinks[i].tensor, to);
    for (int32_t i = 0; i < g->nassigns; i++) {
        renumber(&g->assigns[i].variable, to);
        renumber(&g->assigns[i].value, to);
    }
    for (int32_t i = 0; i < g->nregions; i++) {
        renumber(&g->regions[i].counter, to);
        renumber(&g->regions[i].due, to);
    }
    for (int32_t i = 0; i < g->nimports; i++)
        renumber(&g->imports[i].inner, to);
    for (int32_t i = 0; i < g->nfeeds; i++)
        renumber(&g->feeds[i].first, to);
    for (int32_t i = 0; i < g->nenqueues; i++)
        renumber_list(g->enqueues[i].tensors, g->enqueues[i].count, to);
}

static void drop_nodes(ipu_graph *g, const bool *nodes)
{
    int32_t left = 0;

    for (int32_t n = 0; n < g->nnodes; n++)
        if (!nodes[n])
            g->nodes[left++] = g->nodes[n];
    g->nnodes = left;
}

/* Takes out the loops that no node has. */
static void drop_loops(ipu_graph *g)
{
    int32_t left = 0;

    for (int32_t i = 0; i < g->nloops; i++) {
        struct ipu__node *of = NULL;

        for (int32_t n = 0; n < g->nnodes && !of; n++)
            if (g->nodes[n].loop == i)
                of = &g->nodes[n];
        if (!of) {
            ipu__loop_fini(&g->loops[i]);
            continue;
        }
        of->loop = left;
        g->loops[left++] = g->loops[i];
    }
    g->nloops = left;
}

static void drop_tensors(ipu_graph *g, const bool *tensors, int32_t *to)
{
    int32_t left = 0;

    for (int32_t t = 0; t < g->ntensors; t++) {
        to[t] = tensors[t] ? IPU__NONE : left;
        if (tensors[t]) {
            free(g->tensors[t].name);
            free(g->tensors[t].data);
        } else {
            g->tensors[left++] = g->tensors[t];
        }
    }
    g->ntensors = left;
}

void ipu__graph_drop(ipu_graph *g, const bool *nodes, const bool *tensors,
                     int32_t *to)
{
    int32_t step = g->rounding.on ? ipu__index(g, g->rounding.step) : IPU__NONE;

    drop_nodes(g, nodes);
    drop_loops(g);
    drop_tensors(g, tensors, to);
    for (int32_t n = 0; n < g->nnodes; n++)
        renumber_node(&g->nodes[n], to);
    for (int32_t i = 0; i < g->nloops; i++)
        renumber_loop(&g->loops[i], to);
    renumber_rest(g, to);
    if (step >= 0)
        g->rounding.step = ipu__handle(g, to[step]);
    ipu__number_nodes(g);
}
