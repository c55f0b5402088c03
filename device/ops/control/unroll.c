/* SPDX-License-Identifier: Apache-2.0 */
/*
 * unroll.c - builds a loop of a known number of iterations as its iterations,
 * without the loop, so that derivatives can pass it.
 *
 * The body has been built as for any loop. Its nodes are added to the graph
 * around it once for each iteration, by ipu__add, with the carried values of
 * that iteration; imports are the tensors themselves. The host sees the same
 * calls, with the iteration behind their names.
 *
 * A variable that the body assigns, a counter for instance, takes the value of
 * the last iteration at the end of the run; nodes that are built later see that
 * value already, as after a loop. Until ipu__unrolled its handle means that
 * value, so nobody may have used the variable before; the first iteration has a
 * copy.
 *
 * Some things cannot be done once for each iteration and are refused: a queue,
 * a row of a remote buffer, an update region, a loop of unknown length.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "ops/control/control.h"
#include "ops/op.h"

struct unroll {
    ipu_graph *graph; /* around */
    const ipu_graph *body;
    const struct ipu__loop *loop;
    int32_t *now;  /* owned, [body's tensors]: tensors of the graph, or -1 */
    int32_t *next; /* owned, [assigns]: what variables become */
};

static int refuse_body(const char *what, const char *thing)
{
    return ipu__fail(
        IPU_ERR_ARGUMENT,
        "%s: its body has %s: where derivatives are to pass, as in "
        "a stage of a pipeline that trains, a loop's iterations "
        "are built one after the other, and that cannot be",
        what, thing);
}

static int check_body(const ipu_graph *body, const char *what)
{
    bool remote = false, effect = false;

    for (int32_t t = 0; t < body->ntensors; t++)
        remote |= body->tensors[t].remote;
    for (int32_t n = 0; n < body->nnodes; n++)
        effect |= body->nodes[n].effect || body->nodes[n].after >= 0;
    if (body->nfeeds > 0)
        return refuse_body(what, "a queue that it dequeues");
    if (body->nenqueues > 0)
        return refuse_body(what, "a queue that it enqueues into");
    if (remote)
        return refuse_body(what, "a remote buffer");
    if (body->nregions > 0)
        return refuse_body(what, "an update region");
    if (body->nloops > 0)
        return refuse_body(what, "a loop of unknown length");
    return effect ? refuse_body(what, "activations that are computed again")
                  : IPU_OK;
}

static bool is_assigned(const ipu_graph *body, int32_t tensor)
{
    for (int32_t i = 0; i < body->nassigns; i++)
        if (body->assigns[i].variable == tensor)
            return true;
    return false;
}

/* Copies a variable that the body assigns, as it is before the loop. */
static int copy_variable(struct unroll *u, const struct ipu__import *import)
{
    ipu_graph *g = u->graph;
    ipu_tensor before = ipu__handle(g, import->outer);
    bool used = false;

    for (int32_t n = 0; n < g->nnodes; n++)
        used |= ipu__node_reads(g, &g->nodes[n], import->outer);
    for (int32_t i = 0; i < g->nsinks; i++)
        used |= g->sinks[i].tensor == import->outer;
    if (used)
        return ipu__fail(IPU_ERR_ARGUMENT,
                         "repeat: its body assigns '%s', which has been used "
                         "before the loop: where derivatives are to pass, read "
                         "it in the body alone, or after the loop",
                         g->tensors[import->outer].name);
    before = ipu__add(g, &ipu__identity, &before, NULL);
    if (before.id < 0)
        return ipu__graph_status(g);
    u->now[import->inner] = ipu__index(g, before);
    return IPU_OK;
}

/* Carried values, imports and constants, before the first iteration. */
static int begin_iterations(struct unroll *u)
{
    const ipu_graph *body = u->body;

    for (int32_t t = 0; t < body->ntensors; t++)
        u->now[t] = -1;
    for (int32_t i = 0; i < u->loop->ncarried; i++)
        u->now[u->loop->body.carried[i]] = u->loop->initial[i];
    for (int32_t i = 0; i < body->nimports; i++) {
        u->now[body->imports[i].inner] = body->imports[i].outer;
        if (u->loop->count > 0 && is_assigned(body, body->imports[i].inner))
            IPU_TRY(copy_variable(u, &body->imports[i]));
    }
    for (int32_t t = 0; t < body->ntensors; t++) {
        const struct ipu__tensor *from = &body->tensors[t];
        ipu_tensor made;

        if (from->kind != IPU__CONSTANT || u->now[t] >= 0)
            continue;
        made = ipu_constant(u->graph, from->shape.dtype, from->shape.ndim,
                            from->shape.extents, from->data);
        if (made.id < 0)
            return ipu__graph_status(u->graph);
        u->now[t] = ipu__index(u->graph, made);
    }
    return IPU_OK;
}

static int copy_node(struct unroll *u, const struct ipu__node *node)
{
    const struct ipu__tensor *from = &u->body->tensors[node->output];
    ipu_tensor inputs[IPU__MAX_INPUTS], made;
    int32_t index;

    for (int i = 0; i < node->op->ninputs; i++)
        inputs[i] = ipu__handle(u->graph, u->now[node->inputs[i]]);
    u->graph->source = from->source;
    made = ipu__add(u->graph, node->op, inputs, &node->attributes);
    if (made.id < 0)
        return ipu__graph_status(u->graph);
    index = ipu__index(u->graph, made);
    u->graph->tensors[index].checkpoint = from->checkpoint;
    u->graph->tensors[index].map = from->map;
    u->now[node->output] = index;
    return IPU_OK;
}

static int copy_calls(struct unroll *u, int64_t iteration)
{
    for (int32_t i = 0; i < u->body->nsinks; i++) {
        const struct ipu__sink *s = &u->body->sinks[i];
        char name[256];

        snprintf(name, sizeof name, "%.220s/%" PRId64, s->name, iteration);
        IPU_TRY(ipu_host_call(u->graph, name,
                              ipu__handle(u->graph, u->now[s->tensor]), s->fn,
                              s->context));
    }
    return IPU_OK;
}

/* All assignments take effect together. */
static int add_iteration(struct unroll *u, int64_t iteration)
{
    const ipu_graph *body = u->body;

    for (int32_t n = 0; n < body->nnodes; n++)
        IPU_TRY(copy_node(u, &body->nodes[n]));
    IPU_TRY(copy_calls(u, iteration));
    for (int32_t i = 0; i < body->nassigns; i++)
        u->next[i] = u->now[body->assigns[i].value];
    for (int32_t i = 0; i < body->nassigns; i++)
        u->now[body->assigns[i].variable] = u->next[i];
    return IPU_OK;
}

/* Gives the graph's own variables their last values. */
static int renew_variables(struct unroll *u)
{
    for (int32_t i = 0; i < u->body->nimports; i++) {
        int32_t outer = u->body->imports[i].outer;
        int32_t now = u->now[u->body->imports[i].inner];

        if (now == outer)
            continue;
        IPU_TRY(ipu_assign(u->graph, ipu__handle(u->graph, outer),
                           ipu__handle(u->graph, now)));
        u->graph->tensors[outer].renewed = now;
    }
    return IPU_OK;
}

static int add_iterations(struct unroll *u)
{
    struct ipu__source asked = u->graph->source;

    IPU_TRY(begin_iterations(u));
    for (int64_t i = 0; i < u->loop->count; i++)
        IPU_TRY(add_iteration(u, i));
    u->graph->source = asked;
    IPU_TRY(renew_variables(u));
    for (int32_t i = 0; i < u->loop->ncarried; i++)
        u->loop->outputs[i] = u->now[u->loop->body.carried[i]];
    return IPU_OK;
}

int ipu__unroll(ipu_graph *graph, const struct ipu__loop *loop,
                const char *what)
{
    const ipu_graph *body = loop->body.graph;
    struct unroll u = {.graph = graph, .body = body, .loop = loop};
    int status = check_body(body, what);

    if (status < 0)
        return status;
    u.now = malloc(((size_t)body->ntensors + 1) * sizeof *u.now);
    u.next = malloc(((size_t)body->nassigns + 1) * sizeof *u.next);
    if (u.now && u.next)
        status = add_iterations(&u);
    else
        status = ipu__fail_memory((size_t)body->ntensors * sizeof *u.now);
    free(u.now);
    free(u.next);
    return status;
}

void ipu__unrolled(ipu_graph *graph)
{
    for (int32_t i = 0; i < graph->nassigns; i++) {
        struct ipu__tensor *t = &graph->tensors[graph->assigns[i].variable];

        if (t->renewed >= 0 && graph->tensors[t->renewed].renews < 0)
            t->renewed = IPU__NONE;
    }
}
