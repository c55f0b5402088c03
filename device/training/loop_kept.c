/* SPDX-License-Identifier: Apache-2.0 */
/*
 * loop_kept.c - what the forward loop keeps of each iteration for the backward
 * loop: a row of a stack, [iterations, ...], which the loop carries.
 *
 * The derivatives of the body read tensors of the body. The backward loop can
 * see what is the same in all iterations: constants, what the body uses from
 * around it, and what is made of these alone. It makes again what costs
 * nothing: views, and a row that a gather reads from what it can see. The rest
 * is kept. With recomputation (ipu_allow_recompute) only checkpoints, carried
 * values and elements of queues are kept, and an iteration is computed again
 * from these.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "ops/control/control.h"
#include "ops/op.h"
#include "training/loop.h"

/* ------------------------------------------------------ what has to be kept */

/* Returns whether a variable of the body is the same in all iterations. */
static bool is_fixed(const struct ipu__loop_back *b, int32_t variable)
{
    const struct ipu__loop *loop = &b->graph->loops[b->loop];
    const ipu_graph *body = b->body;

    if (body->tensors[variable].remote || body->tensors[variable].renews >= 0)
        return false;
    for (int32_t i = 0; i < body->nimports; i++)
        if (body->imports[i].inner == variable)
            return !body->imports[i].written;
    for (int32_t i = 0; i < loop->ncarried; i++)
        if (loop->body.carried[i] == variable)
            return ipu__next_of(body, variable) == variable;
    return false;
}

static bool is_pure(const struct ipu__node *node)
{
    return node->loop < 0 && !node->op->effects && !node->op->collective &&
           node->op->network == IPU__NO_NETWORK;
}

static void find_available(struct ipu__loop_back *b)
{
    const ipu_graph *body = b->body;

    for (int32_t t = 0; t < body->ntensors; t++)
        b->available[t] =
            body->tensors[t].kind == IPU__CONSTANT ||
            (body->tensors[t].kind == IPU__VARIABLE && is_fixed(b, t));
    for (int32_t n = 0; n < b->nforward; n++) {
        const struct ipu__node *node = &body->nodes[n];
        bool all = is_pure(node);

        for (int i = 0; i < node->op->ninputs; i++)
            all &= b->available[node->inputs[i]];
        b->available[node->output] |= all;
    }
}

/* Returns whether the node reads one row of what the backward loop can see. */
static bool reads_row(const struct ipu__loop_back *b,
                      const struct ipu__node *node)
{
    return node->op == &ipu__gather &&
           b->body->tensors[node->inputs[1]].shape.ndim == 0 &&
           b->available[node->inputs[0]];
}

bool ipu__is_kept(const struct ipu__loop_back *b, int32_t tensor)
{
    const struct ipu__tensor *t = &b->body->tensors[tensor];
    const struct ipu__node *node;

    if (b->available[tensor])
        return false;
    if (t->kind != IPU__RESULT)
        return tensor < b->ntensors; /* what follows are seeds */
    if (t->node >= b->nforward)
        return false;
    node = &b->body->nodes[t->node];
    if (!is_pure(node))
        return true;
    if (node->op->alias || reads_row(b, node))
        return false;
    return b->graph->recompute ? t->checkpoint : true;
}

static void read_needs(struct ipu__loop_back *b, const struct ipu__node *node)
{
    int32_t t;

    for (int i = 0; i < node->op->ninputs; i++)
        b->read[node->inputs[i]] = true;
    for (int32_t i = 0; (t = ipu__loop_need(b->body, node, i)) >= 0; i++)
        b->read[t] = true;
}

/* Marks what the derivatives need, directly or to make it again. */
static void find_read(struct ipu__loop_back *b)
{
    const ipu_graph *body = b->body;

    for (int32_t i = 0; i < b->nadjoints; i++)
        if (b->adjoints[i].result.id >= 0)
            b->read[ipu__index(body, b->adjoints[i].result)] = true;
    for (int32_t n = b->nnodes - 1; n >= 0; n--) {
        const struct ipu__node *node = &body->nodes[n];
        const struct ipu__loop *loop =
            node->loop >= 0 ? &body->loops[node->loop] : NULL;
        bool read = b->read[node->output];

        for (int32_t i = 0; loop && i < loop->ncarried; i++)
            read |= b->read[loop->outputs[i]];
        if (read && !ipu__is_kept(b, node->output))
            read_needs(b, node);
    }
}

/* --------------------------------------------------------------- keeping it */

static int grow(int32_t **list, int32_t count)
{
    int32_t *grown = realloc(*list, ((size_t)count + 2) * sizeof **list);

    if (!grown)
        return ipu__fail_memory(((size_t)count + 2) * sizeof **list);
    *list = grown;
    return IPU_OK;
}

/* Gives a tensor another name: memory is reported by that of its first. */
static int rename_tensor(struct ipu__tensor *tensor, const char *name)
{
    char *copy = strdup(name);

    if (!copy)
        return ipu__fail_memory(strlen(name) + 1);
    free(tensor->name);
    tensor->name = copy;
    return IPU_OK;
}

/* Has the loop carry one more value, which begins as the last node's output.
 * Returns the body's variable. */
static int32_t add_carried(struct ipu__loop_back *b, const char *name)
{
    ipu_graph *g = b->graph;
    struct ipu__loop *loop = &g->loops[b->loop];
    int32_t n = loop->ncarried, first = g->nodes[g->nnodes - 1].output;
    const struct ipu__shape shape = g->tensors[first].shape;

    IPU_TRY(rename_tensor(&g->tensors[first], name));
    IPU_TRY(grow(&loop->initial, n));
    IPU_TRY(grow(&loop->outputs, n));
    IPU_TRY(grow(&loop->body.carried, n));
    loop->initial[n] = first;
    loop->outputs[n] = ipu__tensor_add(g, strdup(name), &shape, IPU__RESULT);
    IPU_TRY(loop->outputs[n]);
    g->tensors[loop->outputs[n]].node = g->tensors[loop->outputs[0]].node;
    loop->body.carried[n] = ipu__carried_add(b->body, strdup(name), &shape);
    IPU_TRY(loop->body.carried[n]);
    loop->ncarried++;
    return loop->body.carried[n];
}

/* Counts iterations. Sets the number of the present one in the body. */
static int add_counter(struct ipu__loop_back *b, ipu_tensor *number)
{
    int32_t carried;

    if (ipu_fill(b->graph, IPU_INT32, 0, NULL, 0).id < 0)
        return ipu__graph_status(b->graph);
    carried = add_carried(b, "iteration");
    IPU_TRY(carried);
    *number = ipu__handle(b->body, carried);
    return ipu__carried_becomes(
        b->body, carried,
        ipu_add(b->body, *number, ipu_fill(b->body, IPU_INT32, 0, NULL, 1)));
}

/* The shape of a stack. Rows of tensors with as many dimensions as there may be
 * are flat. */
static struct ipu__shape stack_shape(const struct ipu__shape *of, int64_t count)
{
    bool is_flat = of->ndim == IPU_MAX_DIMS;
    struct ipu__shape stack = {.dtype = of->dtype,
                               .ndim = is_flat ? 2 : of->ndim + 1};

    stack.extents[0] = count;
    if (is_flat)
        stack.extents[1] = ipu__shape_count(of);
    for (int32_t i = 0; i < of->ndim && !is_flat; i++)
        stack.extents[i + 1] = of->extents[i];
    return stack;
}

static int add_stack(struct ipu__loop_back *b, int32_t tensor,
                     ipu_tensor number)
{
    ipu_graph *g = b->graph, *body = b->body;
    const struct ipu__shape of = body->tensors[tensor].shape;
    const struct ipu__shape stack = stack_shape(&of, g->loops[b->loop].count);
    const struct ipu__attributes row = {.axis = 0};
    ipu_tensor inputs[3];
    char name[96];
    int32_t carried;

    if (ipu__constant(g, &stack, 0).id < 0)
        return ipu__graph_status(g);
    snprintf(name, sizeof name, "%.80s kept", body->tensors[tensor].name);
    carried = add_carried(b, name);
    IPU_TRY(carried);
    inputs[0] = ipu__handle(body, carried);
    inputs[1] = number;
    inputs[2] = ipu__handle(body, tensor);
    if (of.ndim == IPU_MAX_DIMS)
        inputs[2] = ipu_reshape(body, inputs[2], 1, &stack.extents[1]);
    IPU_TRY(ipu__carried_becomes(
        body, carried, ipu__add(body, &ipu__dynamic_update, inputs, &row)));
    IPU_TRY(ipu__reserve((void **)&b->kept, b->nkept, &b->kept_capacity,
                         sizeof *b->kept));
    b->kept[b->nkept++] = (struct ipu__kept){
        tensor, g->loops[b->loop].outputs[g->loops[b->loop].ncarried - 1]};
    return IPU_OK;
}

/* Puts the nodes from number first on before the loop's node. */
static int move_before(struct ipu__loop_back *b, int32_t first)
{
    ipu_graph *g = b->graph;
    int32_t to = g->tensors[g->loops[b->loop].outputs[0]].node;
    size_t count = (size_t)(g->nnodes - first);
    struct ipu__node *moved;

    IPU_TRY(ipu__new_array(&moved, count, sizeof *moved));
    memcpy(moved, g->nodes + first, count * sizeof *moved);
    memmove(g->nodes + to + count, g->nodes + to,
            (size_t)(first - to) * sizeof *moved);
    memcpy(g->nodes + to, moved, count * sizeof *moved);
    free(moved);
    ipu__number_nodes(g);
    return IPU_OK;
}

static int add_stacks(struct ipu__loop_back *b)
{
    int32_t first = b->graph->nnodes, ntensors = b->body->ntensors;
    bool counts = false;
    ipu_tensor number = {-1};

    for (int32_t t = 0; t < ntensors; t++) {
        if (!b->read[t] || !ipu__is_kept(b, t))
            continue;
        if (!counts)
            IPU_TRY(add_counter(b, &number));
        counts = true;
        IPU_TRY(add_stack(b, t, number));
    }
    return move_before(b, first);
}

int ipu__keep(struct ipu__loop_back *b)
{
    ipu_graph *g = b->graph;
    size_t ntensors = (size_t)b->body->ntensors;
    int32_t derived = g->derived, beside = g->beside, region = g->region;
    int status;

    IPU_TRY(ipu__new_array(&b->available, ntensors, sizeof *b->available));
    IPU_TRY(ipu__new_array(&b->read, ntensors, sizeof *b->read));
    find_available(b);
    find_read(b);
    /* What is added belongs to the forward pass. */
    g->derived = g->beside = g->region = IPU__NONE;
    status = add_stacks(b);
    g->derived = derived;
    g->beside = beside;
    g->region = region;
    IPU_TRY(ipu__graph_status(b->body));
    return status;
}
