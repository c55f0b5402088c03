/* SPDX-License-Identifier: Apache-2.0 */
/*
 * loop_backward.c - builds the backward loop of derivatives that are nodes of
 * the forward loop's body, and takes them out of that.
 *
 * The nodes are copied to the new body in their order, with those of the
 * forward pass that are made again. What was kept is read where it is needed
 * first: row number r of its stack, where r counts iterations backwards. Loops
 * among the derivatives, which are those of loops in the body, move with the
 * graphs that they own.
 */
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "ops/control/control.h"
#include "ops/op.h"
#include "training/loop.h"

struct mover {
    const struct ipu__loop_back *back;
    ipu_graph *from, *to; /* borrowed: the bodies */
    ipu_tensor number;    /* of the iteration, in the new body */
    int32_t *map;         /* owned, [tensors]: in the new body; -1: not yet */
};

/* ------------------------------------------------ what the nodes begin with */

/* Reads what was kept of this iteration. */
static ipu_tensor read_kept(const struct mover *m, int32_t tensor)
{
    const struct ipu__loop_back *b = m->back;
    const struct ipu__shape shape = m->from->tensors[tensor].shape;
    const struct ipu__attributes row = {.axis = 0};
    ipu_tensor inputs[2] = {{-1}, m->number}, read;

    for (int32_t i = 0; i < b->nkept; i++)
        if (b->kept[i].tensor == tensor)
            inputs[0] = ipu__handle(b->graph, b->kept[i].stack);
    read = ipu__add(m->to, &ipu__gather, inputs, &row);
    if (shape.ndim == IPU_MAX_DIMS)
        read = ipu_reshape(m->to, read, shape.ndim, shape.extents);
    return read;
}

/* Imports what the body sees of the graph around it, or carries and does not
 * change. */
static ipu_tensor import_fixed(const struct mover *m, int32_t tensor)
{
    const struct ipu__loop *loop = &m->back->graph->loops[m->back->loop];
    int32_t outer = IPU__NONE, inner;

    for (int32_t i = 0; i < m->from->nimports; i++)
        if (m->from->imports[i].inner == tensor)
            outer = m->from->imports[i].outer;
    for (int32_t i = 0; i < loop->ncarried && outer < 0; i++)
        if (loop->body.carried[i] == tensor)
            outer = loop->initial[i];
    inner = ipu__import(m->to, ipu__handle(m->back->graph, outer));
    return inner < 0 ? ipu__invalid(m->to, inner) : ipu__handle(m->to, inner);
}

/* Finds or makes a tensor in the new body. Returns its index there. */
static int32_t place(struct mover *m, int32_t tensor)
{
    const struct ipu__tensor *t = &m->from->tensors[tensor];
    ipu_tensor made;

    if (m->map[tensor] >= 0)
        return m->map[tensor];
    m->to->source = t->source;
    if (ipu__is_kept(m->back, tensor))
        made = read_kept(m, tensor);
    else if (t->kind == IPU__CONSTANT)
        made = ipu_constant(m->to, t->shape.dtype, t->shape.ndim,
                            t->shape.extents, t->data);
    else
        made = import_fixed(m, tensor);
    if (made.id < 0)
        return ipu__graph_status(m->to);
    m->map[tensor] = ipu__index(m->to, made);
    return m->map[tensor];
}

/* ------------------------------------------------------------- their nodes */

static int copy_node(struct mover *m, const struct ipu__node *node)
{
    ipu_tensor inputs[IPU__MAX_INPUTS];

    for (int i = 0; i < node->op->ninputs; i++) {
        int32_t input = place(m, node->inputs[i]);

        IPU_TRY(input);
        inputs[i] = ipu__handle(m->to, input);
    }
    m->to->source = m->from->tensors[node->output].source;
    m->to->shard = m->from->tensors[node->output].shard;
    /* Not by ipu__add: where a float16 is rounded, the nodes are there. */
    m->map[node->output] =
        ipu__add_node(m->to, node->op, inputs, &node->attributes);
    m->to->shard = IPU__NONE;
    return m->map[node->output];
}

/* Moves a loop to the new body. The old one is left without contents, to be
 * dropped. */
static int move_loop(struct mover *m, const struct ipu__node *node)
{
    struct ipu__loop *old = &m->from->loops[node->loop], *new;
    ipu_graph *body = old->body.graph;

    for (int32_t i = 0; i < body->nimports; i++)
        IPU_TRY(place(m, body->imports[i].outer));
    for (int32_t i = 0; i < old->ncarried; i++)
        IPU_TRY(place(m, old->initial[i]));
    IPU_TRY(ipu__reserve((void **)&m->to->loops, m->to->nloops,
                         &m->to->loop_capacity, sizeof *m->to->loops));
    new = &m->to->loops[m->to->nloops];
    *new = (struct ipu__loop){.body = old->body,
                              .count = old->count,
                              .ncarried = old->ncarried,
                              .initial = old->initial};
    old->body = (struct ipu__block_graph){0};
    old->initial = NULL;
    body->parent = m->to;
    for (int32_t i = 0; i < body->nimports; i++)
        body->imports[i].outer = m->map[body->imports[i].outer];
    for (int32_t i = 0; i < new->ncarried; i++)
        new->initial[i] = m->map[new->initial[i]];
    if (ipu__new_array(&new->outputs, (size_t) new->ncarried,
                       sizeof *new->outputs) < 0 ||
        ipu__loop_add(m->to, "repeat", new) < 0) {
        ipu__loop_fini(new);
        return IPU_ERR_MEMORY;
    }
    for (int32_t i = 0; i < old->ncarried; i++)
        m->map[old->outputs[i]] = new->outputs[i];
    return IPU_OK;
}

static bool is_read(const struct ipu__loop_back *b,
                    const struct ipu__node *node)
{
    const struct ipu__loop *loop =
        node->loop >= 0 ? &b->body->loops[node->loop] : NULL;
    bool read = b->read[node->output];

    for (int32_t i = 0; loop && i < loop->ncarried; i++)
        read |= b->read[loop->outputs[i]];
    return read && !ipu__is_kept(b, node->output);
}

static int copy_nodes(struct mover *m)
{
    const struct ipu__loop_back *b = m->back;

    for (int32_t n = 0; n < b->nnodes; n++) {
        const struct ipu__node *node = &m->from->nodes[n];

        if (!is_read(b, node))
            continue;
        if (node->loop >= 0)
            IPU_TRY(move_loop(m, node));
        else
            IPU_TRY(copy_node(m, node));
    }
    return IPU_OK;
}

/* ------------------------------------------------------------- the new body */

/* Counts backwards, and has the adjoints become what the nodes make of them. */
static int close_body(struct mover *m, const struct ipu__block_graph *block)
{
    const struct ipu__loop_back *b = m->back;
    ipu_graph *to = m->to;

    IPU_TRY(ipu__carried_becomes(
        to, block->carried[0],
        ipu_add(to, m->number, ipu_fill(to, IPU_INT32, 0, NULL, -1))));
    for (int32_t i = 0; i < b->nadjoints; i++) {
        ipu_tensor result = b->adjoints[i].result;
        int32_t carried = block->carried[i + 1], next;

        if (result.id < 0) {
            result = ipu__constant(to, &to->tensors[carried].shape, 0);
        } else {
            next = place(m, ipu__index(m->from, result));
            IPU_TRY(next);
            if (next == carried)
                continue; /* it stays */
            result = ipu__handle(to, next);
        }
        IPU_TRY(ipu__carried_becomes(to, carried, result));
    }
    return IPU_OK;
}

static int build_body(struct mover *m, struct ipu__loop *loop)
{
    const struct ipu__loop_back *b = m->back;

    IPU_TRY(ipu__loop_open(b->graph, "repeat", loop, &loop->body));
    m->to = loop->body.graph;
    m->number = ipu__handle(m->to, loop->body.carried[0]);
    for (int32_t i = 0; i < b->nadjoints; i++)
        m->map[b->adjoints[i].seed] = loop->body.carried[i + 1];
    IPU_TRY(copy_nodes(m));
    IPU_TRY(close_body(m, &loop->body));
    return ipu__graph_status(m->to);
}

/* Takes the derivatives out of the forward loop's body. */
static int clean_body(struct ipu__loop_back *b, int32_t *numbers)
{
    struct ipu__loop *loop = &b->graph->loops[b->loop];
    ipu_graph *body = b->body;
    bool *nodes, *tensors;

    IPU_TRY(ipu__new_array(
        &nodes, (size_t)body->nnodes + (size_t)body->ntensors, sizeof *nodes));
    tensors = nodes + body->nnodes;
    for (int32_t n = b->nforward; n < b->nnodes; n++) {
        const struct ipu__node *node = &body->nodes[n];

        nodes[n] = tensors[node->output] = true;
        for (int32_t i = 0;
             node->loop >= 0 && i < body->loops[node->loop].ncarried; i++)
            tensors[body->loops[node->loop].outputs[i]] = true;
    }
    for (int32_t i = 0; i < b->nadjoints; i++)
        tensors[b->adjoints[i].seed] = true;
    ipu__graph_drop(body, nodes, tensors, numbers);
    for (int32_t i = 0; i < loop->ncarried; i++)
        loop->body.carried[i] = numbers[loop->body.carried[i]];
    free(nodes);
    return IPU_OK;
}

int ipu__add_backward(struct ipu__loop_back *b, struct ipu__loop *loop)
{
    ipu_graph *g = b->graph;
    struct mover m = {.back = b, .from = b->body};
    size_t bytes = ((size_t)b->body->ntensors + 1) * sizeof *m.map;
    int status;

    m.map = malloc(bytes);
    if (m.map) {
        memset(m.map, -1, bytes);
        status = build_body(&m, loop);
    } else {
        status = ipu__fail_memory(bytes);
    }
    if (status >= 0)
        status = ipu__reserve((void **)&g->loops, g->nloops, &g->loop_capacity,
                              sizeof *g->loops);
    if (status >= 0)
        status = clean_body(b, m.map);
    free(m.map);
    if (status < 0) {
        ipu__loop_fini(loop);
        return status;
    }
    g->loops[g->nloops] = *loop;
    status = ipu__loop_add(g, "repeat", &g->loops[g->nloops]);
    if (status < 0)
        ipu__loop_fini(&g->loops[g->nloops]);
    return status;
}
