/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dependents.c - marks the tensors that depend on others, also through loops,
 * in whose bodies marks grow until they no longer change, since values become
 * each other.
 */
#include <stdlib.h>

#include "base/error.h"
#include "ops/op.h"
#include "training/loop.h"
#include "training/training.h"

int32_t ipu__next_of(const ipu_graph *body, int32_t variable)
{
    for (int32_t i = 0; i < body->nassigns; i++)
        if (body->assigns[i].variable == variable)
            return body->assigns[i].value;
    return body->tensors[variable].renewed >= 0
               ? body->tensors[variable].renewed
               : variable;
}

/* Marks a variable of the body that becomes what is marked. Returns whether it
 * was not. */
static bool mark_before(const ipu_graph *body, int32_t variable, bool *inner)
{
    if (inner[variable] || !inner[ipu__next_of(body, variable)])
        return false;
    inner[variable] = true;
    return true;
}

int ipu__mark_body(const struct ipu__loop *loop, const bool *needed,
                   bool *inner)
{
    const ipu_graph *body = loop->body.graph;
    bool changes = true;

    for (int32_t i = 0; i < body->nimports; i++)
        inner[body->imports[i].inner] |= needed[body->imports[i].outer];
    for (int32_t i = 0; i < loop->ncarried; i++)
        inner[loop->body.carried[i]] |= needed[loop->initial[i]];
    while (changes) {
        IPU_TRY(ipu__mark_dependents(body, body->nnodes, inner));
        changes = false;
        for (int32_t i = 0; i < loop->ncarried; i++)
            changes |= mark_before(body, loop->body.carried[i], inner);
        for (int32_t i = 0; i < body->nimports; i++)
            changes |= mark_before(body, body->imports[i].inner, inner);
    }
    return IPU_OK;
}

/* Marks the outputs of the loop, and what it has made of variables. */
static void mark_outputs(const struct ipu__loop *loop, const bool *inner,
                         bool *needed)
{
    const ipu_graph *body = loop->body.graph;

    for (int32_t i = 0; i < loop->ncarried; i++)
        needed[loop->outputs[i]] |= inner[loop->body.carried[i]];
    for (int32_t i = 0; i < loop->nwritten; i++)
        for (int32_t k = 0; k < body->nimports; k++)
            if (body->imports[k].outer == loop->written[i])
                needed[loop->renewed[i]] |=
                    inner[ipu__next_of(body, body->imports[k].inner)];
}

/* Marks what depends on needed tensors through a loop. */
static int mark_loop(const ipu_graph *g, const struct ipu__node *node,
                     bool *needed)
{
    const struct ipu__loop *loop;
    bool any = false, *inner;
    int32_t t;
    int status;

    if (node->loop < 0)
        return IPU_OK;
    for (int32_t i = 0; (t = ipu__loop_need(g, node, i)) >= 0; i++)
        any |= needed[t];
    if (!any)
        return IPU_OK;
    loop = &g->loops[node->loop];
    IPU_TRY(ipu__new_array(&inner, (size_t)loop->body.graph->ntensors,
                           sizeof *inner));
    status = ipu__mark_body(loop, needed, inner);
    if (status == IPU_OK)
        mark_outputs(loop, inner, needed);
    free(inner);
    return status;
}

int ipu__mark_dependents(const ipu_graph *g, int32_t nnodes, bool *needed)
{
    for (int32_t n = 0; n < nnodes; n++) {
        const struct ipu__node *node = &g->nodes[n];

        for (int i = 0; i < node->op->ninputs; i++)
            needed[node->output] |= needed[node->inputs[i]];
        IPU_TRY(mark_loop(g, node, needed));
    }
    return IPU_OK;
}
