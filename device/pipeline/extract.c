/* SPDX-License-Identifier: Apache-2.0 */
/*
 * extract.c - copies a part of a graph to a new graph.
 *
 * The nodes that a tensor needs are marked backwards from it, up to tensors
 * that are already copied or come from outside. Then the marked nodes are added
 * to the new graph by the same function as any op, which infers shapes again
 * and keeps the place in the user's program. Variables keep their names, so
 * that engines can share them; constants are copied.
 *
 * The order matters, because the compiler keeps it: activations that are
 * computed again later live shorter.
 */
#include "pipeline/extract.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "ops/op.h"

int ipu__extract_init(struct ipu__extract *x, const ipu_graph *from,
                      ipu_graph *to)
{
    size_t ntensors = (size_t)from->ntensors + 1;

    *x = (struct ipu__extract){.from = from, .to = to};
    x->map = malloc(ntensors * sizeof *x->map);
    x->wanted = calloc((size_t)from->nnodes + 1, sizeof *x->wanted);
    if (!x->map || !x->wanted)
        return ipu__fail_memory(ntensors * sizeof *x->map);
    memset(x->map, -1, ntensors * sizeof *x->map);
    return IPU_OK;
}

void ipu__extract_fini(struct ipu__extract *x)
{
    free(x->map);
    free(x->wanted);
}

int ipu__extract_input(struct ipu__extract *x, int32_t tensor, const char *name)
{
    const struct ipu__shape *shape = &x->from->tensors[tensor].shape;
    ipu_tensor made =
        ipu_input(x->to, name, shape->dtype, shape->ndim, shape->extents);

    if (made.id < 0)
        return ipu__graph_status(x->to);
    x->map[tensor] = ipu__index(x->to, made);
    return x->map[tensor];
}

/* Copies a tensor that no node makes. */
static int copy_source(struct ipu__extract *x, int32_t tensor)
{
    const struct ipu__tensor *t = &x->from->tensors[tensor];
    const struct ipu__shape *s = &t->shape;
    ipu_tensor made;

    if (x->map[tensor] >= 0)
        return IPU_OK;
    x->to->source = t->source;
    made = t->kind == IPU__CONSTANT
               ? ipu_constant(x->to, s->dtype, s->ndim, s->extents, t->data)
           : t->kind == IPU__VARIABLE
               ? ipu_variable(x->to, t->name, s->dtype, s->ndim, s->extents)
               : ipu_input(x->to, t->name, s->dtype, s->ndim, s->extents);
    if (made.id < 0)
        return ipu__graph_status(x->to);
    x->map[tensor] = ipu__index(x->to, made);
    return IPU_OK;
}

static int copy_node(struct ipu__extract *x, int32_t n)
{
    const struct ipu__node *node = &x->from->nodes[n];
    ipu_tensor inputs[IPU__MAX_INPUTS], made;

    for (int i = 0; i < node->op->ninputs; i++) {
        if (x->from->tensors[node->inputs[i]].node < 0)
            IPU_TRY(copy_source(x, node->inputs[i]));
        inputs[i] = ipu__handle(x->to, x->map[node->inputs[i]]);
    }
    x->to->source = x->from->tensors[node->output].source;
    made = ipu__add(x->to, node->op, inputs, &node->attributes);
    if (made.id < 0)
        return ipu__graph_status(x->to);
    x->map[node->output] = ipu__index(x->to, made);
    x->wanted[n] = false;
    return IPU_OK;
}

/* Marks the nodes that a tensor still needs. Returns the last node before end,
 * or -1. */
static int32_t mark_wanted(struct ipu__extract *x, int32_t tensor)
{
    const ipu_graph *g = x->from;
    int32_t last = g->tensors[tensor].node;

    if (x->map[tensor] >= 0 || last < 0)
        return -1;
    x->wanted[last] = true;
    for (int32_t n = last; n >= 0; n--)
        for (int i = 0; x->wanted[n] && i < g->nodes[n].op->ninputs; i++) {
            int32_t input = g->nodes[n].inputs[i];

            if (g->tensors[input].node >= 0 && x->map[input] < 0)
                x->wanted[g->tensors[input].node] = true;
        }
    return last;
}

/* Copies all marked nodes from first to last. */
static int copy_wanted(struct ipu__extract *x, int32_t first, int32_t last)
{
    for (int32_t n = first; n <= last; n++)
        if (x->wanted[n])
            IPU_TRY(copy_node(x, n));
    return IPU_OK;
}

int ipu__extract_tensor(struct ipu__extract *x, int32_t tensor, int32_t late)
{
    const ipu_graph *g = x->from;
    int32_t last;

    if (g->tensors[tensor].node < 0)
        IPU_TRY(copy_source(x, tensor));
    last = mark_wanted(x, tensor);
    if (late == 0)
        IPU_TRY(copy_wanted(x, 0, last));
    for (int32_t n = late; late > 0 && n <= last; n++) {
        if (!x->wanted[n])
            continue;
        /* Nodes that come later must keep their marks for now. */
        memset(x->wanted, 0, (size_t)late * sizeof *x->wanted);
        for (int i = 0; i < g->nodes[n].op->ninputs; i++) {
            int32_t need = g->tensors[g->nodes[n].inputs[i]].node;

            if (need >= 0 && need < late) {
                mark_wanted(x, g->nodes[n].inputs[i]);
                IPU_TRY(copy_wanted(x, 0, need));
            }
        }
        IPU_TRY(copy_node(x, n));
    }
    if (last >= 0 && last < late) { /* the tensor's own node is late */
        mark_wanted(x, tensor);
        IPU_TRY(copy_wanted(x, 0, last));
    }
    return x->map[tensor];
}
