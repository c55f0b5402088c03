/* SPDX-License-Identifier: Apache-2.0 */
/*
 * divide.c - changes a graph to one for a part of the batch. remedy.c calls it.
 *
 * The batch is the smallest first extent of the inputs, and those of the others
 * are multiples of it. From the inputs on, each op infers its output again.
 * Some ops have a shape among their attributes, which may contain the batch. It
 * is divided if a tensor that was divided had the same shape, if it begins with
 * the batch and there is no other evidence, or if the op refuses otherwise.
 *
 * A wrong guess ends in shapes that do not fit, which some op refuses: then
 * this fails, and advice does not mention the remedy. It never ends in a graph
 * that computes something else.
 */
#include <stdlib.h>
#include <string.h>

#include "advice/remedy.h"
#include "base/error.h"

struct divider {
    ipu_graph *graph;
    int32_t parts;
    int64_t batch;
    struct ipu__shape *were; /* [tensors]: shapes as they were */
};

static bool has_rows(const struct ipu__tensor *t)
{
    return t->kind == IPU__INPUT && t->shape.ndim > 0;
}

static bool is_divided(const struct divider *d, int32_t tensor)
{
    return !ipu__shape_equal(&d->were[tensor],
                             &d->graph->tensors[tensor].shape);
}

/* Finds the batch of a graph and the loops in it; 0: there are no rows. */
static int64_t find_batch(const ipu_graph *g)
{
    int64_t batch = 0;

    for (int32_t t = 0; t < g->ntensors; t++) {
        int64_t rows = g->tensors[t].shape.extents[0];

        if (has_rows(&g->tensors[t]) && (batch == 0 || rows < batch))
            batch = rows;
    }
    for (int32_t i = 0; i < g->nloops; i++) {
        int64_t inner = find_batch(g->loops[i].body.graph);

        if (inner > 0 && (batch == 0 || inner < batch))
            batch = inner;
    }
    return batch;
}

static void divide_inputs(struct divider *d)
{
    ipu_graph *g = d->graph;

    for (int32_t t = 0; t < g->ntensors; t++)
        d->were[t] = g->tensors[t].shape;
    for (int32_t t = 0; t < g->ntensors; t++)
        if (has_rows(&g->tensors[t]) && d->were[t].extents[0] % d->batch == 0)
            g->tensors[t].shape.extents[0] /= d->parts;
}

static bool reads_divided(const struct divider *d, const struct ipu__node *node)
{
    for (int i = 0; i < node->op->ninputs; i++)
        if (is_divided(d, node->inputs[i]))
            return true;
    return false;
}

/* Returns whether a tensor of the shape among an op's attributes has been
 * divided; or whether the shape begins with the batch, and no input has been
 * divided. */
static bool seems_divided(const struct divider *d, const struct ipu__node *node)
{
    struct ipu__shape like = node->attributes.shape;

    if (like.ndim == 0)
        return false;
    if (!reads_divided(d, node) && like.extents[0] == d->batch)
        return true;
    for (int32_t t = 0; t < node->output; t++) {
        like.dtype = d->were[t].dtype;
        if (ipu__shape_equal(&like, &d->were[t]) && is_divided(d, t))
            return true;
    }
    return false;
}

static void divide_extent(int64_t *extent, int32_t parts, bool *possible)
{
    *possible = *possible && *extent % parts == 0;
    *extent /= parts;
}

enum { DIVIDE_SHAPE = 1, DIVIDE_OUTER = 2, DIVIDE_ROWS = 4, WAYS = 6 };

/* Tries a way to divide an op's attributes: the shape and, of the view of a
 * normalisation, how many there are, or the rows that it is over. */
static bool try_node(const struct divider *d, struct ipu__node *node, int way,
                     struct ipu__shape *output)
{
    const struct ipu__attributes told = node->attributes;
    bool possible = true;

    if (way & DIVIDE_SHAPE)
        divide_extent(&node->attributes.shape.extents[0], d->parts, &possible);
    if (way & DIVIDE_OUTER)
        divide_extent(&node->attributes.view[0], d->parts, &possible);
    if (way & DIVIDE_ROWS)
        divide_extent(&node->attributes.view[1], d->parts, &possible);
    if (possible && ipu__node_shape(d->graph, node, output) >= 0)
        return true;
    node->attributes = told;
    return false;
}

/* A body is divided by itself, by the batches that its queues give it. */
static int divide_loop(const struct divider *d, const struct ipu__node *node)
{
    int32_t t;

    for (int32_t i = 0; (t = ipu__loop_need(d->graph, node, i)) >= 0; i++)
        if (is_divided(d, t))
            return ipu__fail(IPU_ERR_SHAPE,
                             "a loop takes the whole batch of %s",
                             d->graph->tensors[t].name);
    return IPU_OK;
}

static int divide_node(struct divider *d, struct ipu__node *node)
{
    static const int views[] = {0, DIVIDE_OUTER, DIVIDE_ROWS};
    int first = seems_divided(d, node) ? DIVIDE_SHAPE : 0;
    struct ipu__shape output;

    if (node->loop >= 0)
        return divide_loop(d, node);
    for (int i = 0; i < WAYS; i++) {
        int way = (i < WAYS / 2 ? first : first ^ DIVIDE_SHAPE) |
                  views[i % (WAYS / 2)];

        if ((way & DIVIDE_SHAPE && node->attributes.shape.ndim == 0) ||
            !try_node(d, node, way, &output))
            continue;
        d->graph->tensors[node->output].shape = output;
        return IPU_OK;
    }
    return ipu__fail(IPU_ERR_SHAPE, "%s takes the whole batch at once",
                     d->graph->tensors[node->output].name);
}

static int divide_all(struct divider *d)
{
    ipu_graph *g = d->graph;

    divide_inputs(d);
    for (int32_t n = 0; n < g->nnodes; n++)
        IPU_TRY(divide_node(d, &g->nodes[n]));
    for (int32_t i = 0; i < g->nassigns; i++)
        if (is_divided(d, g->assigns[i].value))
            return ipu__fail(IPU_ERR_SHAPE, "%s is given the whole batch",
                             g->tensors[g->assigns[i].variable].name);
    return IPU_OK;
}

static int divide_graph(ipu_graph *g, int32_t parts, int64_t batch)
{
    struct divider d = {.graph = g, .parts = parts, .batch = batch};
    int status;

    IPU_TRY(ipu__new_array(&d.were, (size_t)g->ntensors, sizeof *d.were));
    status = divide_all(&d);
    free(d.were);
    for (int32_t i = 0; i < g->nloops && status >= 0; i++)
        status = divide_graph(g->loops[i].body.graph, parts, batch);
    return status;
}

int ipu__divide_batch(ipu_graph *g, int32_t parts)
{
    int64_t batch = find_batch(g);

    if (batch == 0 || batch % parts)
        return ipu__fail(IPU_ERR_SHAPE, "no batch of a multiple of %d",
                         (int)parts);
    return divide_graph(g, parts, batch);
}
