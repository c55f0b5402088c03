/* SPDX-License-Identifier: Apache-2.0 */
/*
 * loops.c - builds loops: a body is called once and becomes a graph, the loop
 * becomes one node of the graph around it.
 *
 * A carried value is a variable of the body that is assigned at the end of each
 * iteration, like any other. Its last value is an output of the loop, and that
 * output's memory is the variable's: the loop begins by copying the initial
 * value there.
 *
 * A condition is a graph of its own with the same carried values, which it only
 * reads, and one output.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "ops/control/control.h"
#include "ops/op.h"
#include "streams/streams.h"

const struct ipu__op ipu__loop_op = {
    .name = "loop",
    .raw = true,
    .checks = true,
    .effects = true,
};

/* The arguments of ipu_repeat and ipu_while. */
struct request {
    const char *what;
    int64_t count;
    ipu_body_fn condition, body;
    void *context;
    int32_t ninputs;
    const ipu_tensor *inputs;
    ipu_infeed *infeed;
    ipu_tensor *outputs;
};

static int check_request(const struct request *r)
{
    if (!r->body)
        return ipu__fail(IPU_ERR_ARGUMENT, "%s: the body is NULL", r->what);
    if (r->count < 0)
        return ipu__fail(IPU_ERR_ARGUMENT,
                         "%s: %" PRId64 " iterations, less than 0", r->what,
                         r->count);
    if (r->ninputs < 0)
        return ipu__fail(IPU_ERR_ARGUMENT, "%s: %d carried values, less than 0",
                         r->what, (int)r->ninputs);
    if (r->ninputs > 0 && (!r->inputs || !r->outputs))
        return ipu__fail(IPU_ERR_ARGUMENT, "%s: an array of tensors is NULL",
                         r->what);
    return IPU_OK;
}

/* ------------------------------------------------------------------ a graph */

int ipu__loop_open(ipu_graph *g, const char *what, const struct ipu__loop *loop,
                   struct ipu__block_graph *block)
{
    IPU_TRY(ipu_graph_new(&block->graph));
    block->graph->parent = g;
    block->graph->proportion = g->proportion;
    block->graph->source = g->source;
    block->graph->recompute = g->recompute;
    block->graph->unrolls = g->unrolls;
    IPU_TRY(ipu__new_array(&block->carried, (size_t)loop->ncarried,
                           sizeof *block->carried));
    for (int32_t i = 0; i < loop->ncarried; i++) {
        const struct ipu__tensor *t = &g->tensors[loop->initial[i]];
        char name[96];

        snprintf(name, sizeof name, "%s:%d/%d", what, (int)g->nloops, (int)i);
        block->carried[i] =
            ipu__carried_add(block->graph, strdup(name), &t->shape);
        IPU_TRY(block->carried[i]);
    }
    return IPU_OK;
}

int32_t ipu__carried_add(ipu_graph *body, char *name,
                         const struct ipu__shape *shape)
{
    int32_t tensor = ipu__tensor_add(body, name, shape, IPU__VARIABLE);

    IPU_TRY(tensor);
    body->tensors[tensor].imported = true;
    body->tensors[tensor].fixed = true;
    return tensor;
}

int ipu__carried_becomes(ipu_graph *body, int32_t carried, ipu_tensor next)
{
    int status;

    body->tensors[carried].fixed = false;
    status = ipu_assign(body, ipu__handle(body, carried), next);
    body->tensors[carried].fixed = true;
    return status;
}

/* Call a body or a condition. inputs: the carried values and extra ones. */
static int call_builder(ipu_graph *g, const struct request *r,
                        const char *which, ipu_body_fn fn, ipu_graph *inner,
                        int32_t ninputs, const ipu_tensor *inputs,
                        int32_t noutputs, ipu_tensor *outputs)
{
    struct ipu__source source = g->source;
    int status;

    for (int32_t i = 0; i < noutputs; i++)
        outputs[i] = (ipu_tensor){-1};
    g->open = inner;
    status = fn(inner, r->context, ninputs, inputs, noutputs, outputs);
    g->open = NULL;
    g->source = source;
    if (inner->status < 0) {
        ipu__graph_status(inner);
        return ipu__fail(inner->status, "%s: in its %s: %s", r->what, which,
                         ipu_last_error());
    }
    IPU_TRY(ipu__graph_status(g));
    if (status < 0)
        return ipu__fail(IPU_ERR_CALLBACK, "%s: the %s returned %d", r->what,
                         which, status);
    for (int32_t i = 0; i < noutputs; i++) {
        if (outputs[i].id < 0)
            return ipu__fail(IPU_ERR_SHAPE,
                             "%s: the %s must give %d value%s, and has not set "
                             "number %d",
                             r->what, which, (int)noutputs,
                             noutputs == 1 ? "" : "s", (int)i);
        if (ipu__index(inner, outputs[i]) < 0)
            return ipu__fail(IPU_ERR_ARGUMENT, "%s: value %d of the %s: %s",
                             r->what, (int)i, which, ipu_last_error());
    }
    return IPU_OK;
}

static bool uses(const ipu_graph *g, int32_t tensor)
{
    for (int32_t n = 0; n < g->nnodes; n++)
        if (ipu__node_reads(g, &g->nodes[n], tensor))
            return true;
    for (int32_t i = 0; i < g->nsinks; i++)
        if (g->sinks[i].tensor == tensor)
            return true;
    for (int32_t i = 0; i < g->nassigns; i++)
        if (g->assigns[i].value == tensor)
            return true;
    for (int32_t i = 0; i < g->nenqueues; i++)
        for (int32_t k = 0; k < g->enqueues[i].count; k++)
            if (g->enqueues[i].tensors[k] == tensor)
                return true;
    return false;
}

static int check_infeed_used(const struct request *r, const ipu_graph *body)
{
    /* It is the first one, because it was dequeued before the body was called.
     */
    const struct ipu__feed *feed = body->feeds;

    for (int32_t i = 0; r->infeed && i < feed->count; i++)
        if (uses(body, feed->first + i))
            return IPU_OK;
    if (!r->infeed)
        return IPU_OK;
    return ipu__fail(IPU_ERR_STATE,
                     "%s: the infeed queue '%s' has not been dequeued: the "
                     "body uses none of its tensors",
                     r->what, ipu__infeed_name(r->infeed));
}

/* ----------------------------------------------------------------- the body */

static int check_carried(const struct request *r, const ipu_graph *body,
                         int32_t i, int32_t from, int32_t to)
{
    const struct ipu__tensor *a = &body->tensors[from];
    const struct ipu__tensor *b = &body->tensors[to];

    if (ipu__shape_equal(&a->shape, &b->shape))
        return IPU_OK;
    return ipu__fail(IPU_ERR_SHAPE,
                     "%s: carried value %d is %s, and its body makes %s, which "
                     "is %s, of it: dtype and shape must not change",
                     r->what, (int)i, ipu__shape_print(&a->shape).text, b->name,
                     ipu__shape_print(&b->shape).text);
}

/* Assigns to each carried value what the body makes of it. */
static int close_body(const struct request *r, struct ipu__block_graph *block,
                      const ipu_tensor *outputs)
{
    ipu_graph *body = block->graph;

    IPU_TRY(check_infeed_used(r, body));
    for (int32_t i = 0; i < r->ninputs; i++) {
        int32_t carried = block->carried[i];
        int32_t to = ipu__index(body, outputs[i]);

        IPU_TRY(to);
        IPU_TRY(check_carried(r, body, i, carried, to));
        if (to == carried)
            continue; /* it stays */
        IPU_TRY(ipu__carried_becomes(body, carried, outputs[i]));
    }
    return r->condition ? IPU_OK
                        : ipu_update_check_iterations(body, r->what, r->count);
}

static int build_body(ipu_graph *g, const struct request *r,
                      struct ipu__loop *loop)
{
    int32_t nfed = r->infeed ? ipu_infeed_tensors(r->infeed, NULL) : 0;
    size_t n = (size_t)r->ninputs + (size_t)nfed + 1;
    ipu_tensor *inputs;
    ipu_graph *body;
    int status;

    IPU_TRY(ipu__new_array(&inputs, 2 * n, sizeof *inputs));
    status = ipu__loop_open(g, r->what, loop, &loop->body);
    body = loop->body.graph;
    if (status == IPU_OK && r->infeed)
        status = ipu_infeed_dequeue(body, r->infeed, inputs + r->ninputs);
    for (int32_t i = 0; status == IPU_OK && i < r->ninputs; i++)
        inputs[i] = ipu__handle(body, loop->body.carried[i]);
    if (status == IPU_OK)
        status = call_builder(g, r, "body", r->body, body, r->ninputs + nfed,
                              inputs, r->ninputs, inputs + n);
    if (status == IPU_OK)
        status = close_body(r, &loop->body, inputs + n);
    free(inputs);
    return status;
}

static int build_condition(ipu_graph *g, const struct request *r,
                           struct ipu__loop *loop)
{
    struct ipu__block_graph *block = &loop->condition;
    ipu_tensor *inputs, output;
    char name[64];
    int status;

    IPU_TRY(ipu__loop_open(g, r->what, loop, block));
    IPU_TRY(ipu__new_array(&inputs, (size_t)r->ninputs, sizeof *inputs));
    for (int32_t i = 0; i < r->ninputs; i++)
        inputs[i] = ipu__handle(block->graph, block->carried[i]);
    status = call_builder(g, r, "condition", r->condition, block->graph,
                          r->ninputs, inputs, 1, &output);
    free(inputs);
    IPU_TRY(status);
    ipu__find_written(block->graph);
    if (block->graph->nassigns || ipu__has_effects(block->graph))
        return ipu__fail(IPU_ERR_STATE,
                         "%s: the condition must only compute: no assignments, "
                         "no host calls, no queues, no stores",
                         r->what);
    status = ipu__index(block->graph, output);
    if (block->graph->tensors[status].shape.dtype != IPU_INT32 ||
        block->graph->tensors[status].shape.ndim != 0)
        return ipu__fail(
            IPU_ERR_SHAPE,
            "%s: the condition must give an int32 scalar, not %s", r->what,
            ipu__shape_print(&block->graph->tensors[status].shape).text);
    /* Bodies have no outputs, so this one has no parent while it gets it. */
    snprintf(name, sizeof name, "%s:%d/condition", r->what, (int)g->nloops);
    block->graph->parent = NULL;
    status = ipu_output(block->graph, name, output);
    block->graph->parent = g;
    return status;
}

/* ----------------------------------------------------------------- the node */

/* Host calls that show a variable as it is before the loop must not show it
 * as it is afterwards. */
static int keep_shown(ipu_graph *g, int32_t variable)
{
    for (int32_t i = 0; i < g->nsinks; i++) {
        ipu_tensor kept = {g->sinks[i].tensor};

        if (!g->sinks[i].fn || g->sinks[i].tensor != variable)
            continue;
        kept = ipu__handle(g, variable);
        kept = ipu__add(g, &ipu__identity, &kept, NULL);
        if (kept.id < 0)
            return ipu__graph_status(g);
        g->sinks[i].tensor = ipu__index(g, kept);
    }
    return IPU_OK;
}

static int note_written(ipu_graph *g, struct ipu__loop *loop)
{
    const ipu_graph *body = loop->body.graph;
    size_t n = (size_t)body->nimports + 1;

    IPU_TRY(ipu__new_array(&loop->written, n, sizeof *loop->written));
    IPU_TRY(ipu__new_array(&loop->renewed, n, sizeof *loop->renewed));
    for (int32_t i = 0; i < body->nimports; i++)
        if (body->imports[i].written) {
            IPU_TRY(keep_shown(g, body->imports[i].outer));
            loop->written[loop->nwritten++] = body->imports[i].outer;
        }
    return IPU_OK;
}

/* A tensor that the node makes. */
static int32_t add_result(ipu_graph *g, const char *what, int32_t i,
                          const struct ipu__shape *shape, int32_t node)
{
    char name[96];
    int32_t tensor;

    snprintf(name, sizeof name, "%s:%d/%d", what, (int)g->nloops, (int)i);
    tensor = ipu__tensor_add(g, strdup(name), shape, IPU__RESULT);
    if (tensor >= 0)
        g->tensors[tensor].node = node;
    return tensor;
}

static int add_outputs(ipu_graph *g, const char *what, struct ipu__loop *loop,
                       struct ipu__node *node)
{
    static const struct ipu__shape nothing = {.dtype = IPU_INT32, .ndim = 1};

    for (int32_t i = 0; i < loop->ncarried; i++) {
        const struct ipu__shape shape = g->tensors[loop->initial[i]].shape;

        loop->outputs[i] = add_result(g, what, i, &shape, g->nnodes);
        IPU_TRY(loop->outputs[i]);
    }
    node->output = loop->ncarried > 0
                       ? loop->outputs[0]
                       : add_result(g, what, 0, &nothing, g->nnodes);
    IPU_TRY(node->output);
    for (int32_t i = 0; i < loop->nwritten; i++) {
        loop->renewed[i] = ipu__renew(g, loop->written[i], g->nnodes);
        IPU_TRY(loop->renewed[i]);
    }
    return IPU_OK;
}

int ipu__loop_add(ipu_graph *g, const char *what, struct ipu__loop *loop)
{
    struct ipu__node node;

    ipu__node_init(&node, &ipu__loop_op);
    node.loop = g->nloops;
    node.derived = g->derived;
    node.beside = g->beside;
    ipu__find_written(loop->body.graph);
    node.effect = ipu__has_effects(loop->body.graph);
    IPU_TRY(note_written(g, loop));
    IPU_TRY(ipu__region_join(g, &node));
    IPU_TRY(ipu__reserve((void **)&g->nodes, g->nnodes, &g->node_capacity,
                         sizeof *g->nodes));
    IPU_TRY(add_outputs(g, what, loop, &node));
    g->nodes[g->nnodes++] = node;
    g->nloops++;
    return IPU_OK;
}

static int find_initial(ipu_graph *g, const struct request *r,
                        struct ipu__loop *loop)
{
    size_t n = (size_t)r->ninputs + 1;

    loop->ncarried = r->ninputs;
    loop->count = r->count;
    IPU_TRY(ipu__new_array(&loop->initial, n, sizeof *loop->initial));
    IPU_TRY(ipu__new_array(&loop->outputs, n, sizeof *loop->outputs));
    for (int32_t i = 0; i < r->ninputs; i++) {
        loop->initial[i] = ipu__index(g, r->inputs[i]);
        if (loop->initial[i] < 0)
            return ipu__fail(loop->initial[i], "%s: carried value %d: %s",
                             r->what, (int)i, ipu_last_error());
    }
    return IPU_OK;
}

/* The array of loops does not move while a body is built: nothing else can be
 * built on this graph then. */
static int build_request(ipu_graph *g, const struct request *r)
{
    struct ipu__loop *loop;
    bool unrolls = g->unrolls && !r->condition;
    int status;

    IPU_TRY(check_request(r));
    IPU_TRY(ipu__check_closed(g, r->what));
    IPU_TRY(ipu__reserve((void **)&g->loops, g->nloops, &g->loop_capacity,
                         sizeof *g->loops));
    loop = &g->loops[g->nloops];
    *loop = (struct ipu__loop){0};
    status = find_initial(g, r, loop);
    if (status == IPU_OK && r->condition)
        status = build_condition(g, r, loop);
    if (status == IPU_OK)
        status = build_body(g, r, loop);
    if (status == IPU_OK)
        status = unrolls ? ipu__unroll(g, loop, r->what)
                         : ipu__loop_add(g, r->what, loop);
    if (status < 0) {
        g->nloops += loop == &g->loops[g->nloops]; /* freed with the others */
        return status;
    }
    for (int32_t i = 0; r->outputs && i < r->ninputs; i++)
        r->outputs[i] = ipu__handle(g, loop->outputs[i]);
    if (unrolls)
        ipu__loop_fini(loop);
    return IPU_OK;
}

static int build_loop(ipu_graph *g, const struct request *r)
{
    int status;

    if (!g)
        return ipu__fail(IPU_ERR_ARGUMENT, "%s: the graph is NULL", r->what);
    if (g->status < 0)
        return ipu__graph_status(g);
    for (int32_t i = 0; i < r->ninputs && r->outputs; i++)
        if (r->inputs != r->outputs)
            r->outputs[i] = (ipu_tensor){-1};
    status = build_request(g, r);
    return status < 0 ? ipu__graph_fail(g, status) : IPU_OK;
}

int ipu_repeat(ipu_graph *graph, int64_t count, ipu_body_fn body, void *context,
               int32_t ninputs, const ipu_tensor *inputs, ipu_infeed *infeed,
               ipu_tensor *outputs)
{
    const struct request request = {
        .what = "repeat",
        .count = count,
        .body = body,
        .context = context,
        .ninputs = ninputs,
        .inputs = inputs,
        .infeed = infeed,
        .outputs = outputs,
    };

    return build_loop(graph, &request);
}

int ipu_while(ipu_graph *graph, int64_t most, ipu_body_fn condition,
              ipu_body_fn body, void *context, int32_t ninputs,
              const ipu_tensor *inputs, ipu_infeed *infeed, ipu_tensor *outputs)
{
    const struct request request = {
        .what = "while",
        .count = most,
        .condition = condition,
        .body = body,
        .context = context,
        .ninputs = ninputs,
        .inputs = inputs,
        .infeed = infeed,
        .outputs = outputs,
    };

    if (graph && graph->status == IPU_OK && !condition)
        return ipu__graph_fail(
            graph, ipu__fail(IPU_ERR_ARGUMENT, "while: the condition is NULL"));
    return build_loop(graph, &request);
}
