/* SPDX-License-Identifier: Apache-2.0 */
/*
 * effects.c - nodes that change something in place, and the nodes that must run
 * first.
 *
 * A loop that assigns to variables, and a store into a remote buffer, make new
 * states of tensors. Such nodes run even if nothing needs their output. Readers
 * of the new state depend on it as on any input; readers of the old state must
 * run before it, if anything needs them; this file finds them. schedule.c and
 * required.c call it.
 */
#include <stdlib.h>

#include "base/error.h"
#include "compiler/schedule/effects.h"

static void mark_live(const ipu_graph *g, int32_t tensor, bool *live)
{
    if (g->tensors[tensor].node >= 0)
        live[g->tensors[tensor].node] = true;
}

static void mark_ends(const ipu_graph *g, bool *live)
{
    for (int32_t i = 0; i < g->nsinks; i++)
        mark_live(g, g->sinks[i].tensor, live);
    for (int32_t i = 0; i < g->nassigns; i++)
        mark_live(g, g->assigns[i].value, live);
    for (int32_t i = 0; i < g->nenqueues; i++)
        for (int32_t k = 0; k < g->enqueues[i].count; k++)
            mark_live(g, g->enqueues[i].tensors[k], live);
    for (int32_t n = 0; n < g->nnodes; n++)
        live[n] |= g->nodes[n].effect;
}

static bool has_effects(const ipu_graph *g)
{
    for (int32_t n = 0; n < g->nnodes; n++)
        if (g->nodes[n].effect)
            return true;
    return false;
}

int ipu__effects_init(struct ipu__effects *effects, const ipu_graph *g)
{
    int32_t needs[IPU__MAX_NEEDS], t;

    *effects = (struct ipu__effects){.graph = g};
    if (!has_effects(g))
        return IPU_OK;
    IPU_TRY(ipu__new_array(&effects->live, (size_t)g->nnodes,
                           sizeof *effects->live));
    mark_ends(g, effects->live);
    for (int32_t n = g->nnodes - 1; n >= 0; n--) {
        const struct ipu__node *node = &g->nodes[n];
        int nneeds = ipu__node_needs(g, node, needs);

        for (int i = 0; i < nneeds && effects->live[n]; i++)
            mark_live(g, needs[i], effects->live);
        for (int32_t i = 0;
             effects->live[n] && (t = ipu__loop_need(g, node, i)) >= 0; i++)
            mark_live(g, t, effects->live);
    }
    return IPU_OK;
}

void ipu__effects_fini(struct ipu__effects *effects)
{
    free(effects->live);
}

static bool must_precede(const struct ipu__effects *effects, int32_t m,
                         int32_t n)
{
    const ipu_graph *g = effects->graph;
    const struct ipu__node *before = &g->nodes[m];
    int32_t t;

    for (int i = 0; i < before->op->ninputs; i++)
        if (ipu__node_writes(g, &g->nodes[n], before->inputs[i]))
            return true;
    for (int32_t i = 0; (t = ipu__loop_need(g, before, i)) >= 0; i++)
        if (ipu__node_writes(g, &g->nodes[n], t))
            return true;
    return false;
}

void ipu__effects_want(const struct ipu__effects *effects, int32_t n,
                       const bool *scheduled, bool *wanted)
{
    const ipu_graph *g = effects->graph;
    const struct ipu__node *node = &g->nodes[n];
    int32_t t;

    for (int32_t i = 0; (t = ipu__loop_need(g, node, i)) >= 0; i++)
        if (g->tensors[t].node >= 0 && !scheduled[g->tensors[t].node])
            wanted[g->tensors[t].node] = true;
    if (!effects->live || !node->effect)
        return;
    for (int32_t m = 0; m < n; m++)
        if (effects->live[m] && !scheduled[m] && must_precede(effects, m, n))
            wanted[m] = true;
}
