/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tensors one after the other along an axis. The op joins two; more are joined
 * as a tree, so that no element is copied more often than the tree is high.
 */

#include "base/error.h"
#include "ops/copy.h"
#include "ops/op.h"

static int shape(const struct ipu__call *call, struct ipu__shape *output)
{
    const struct ipu__shape *a = &call->inputs[0].shape;
    const struct ipu__shape *b = &call->inputs[1].shape;
    int32_t axis = call->attributes->axis;
    struct ipu__shape same = *b;

    IPU_TRY(ipu__expect_axis(call));
    *output = *a;
    if (a->ndim == b->ndim)
        same.extents[axis] = a->extents[axis];
    if (!ipu__shape_equal(a, &same))
        return ipu__unfit(call, 0, 1,
                          "they must be the same but for the axis along which "
                          "they are joined");
    if (__builtin_add_overflow(a->extents[axis], b->extents[axis],
                               &output->extents[axis]))
        return ipu__unfit(call, 0, 1, "together they are too large");
    return IPU_OK;
}

static void moves(const struct ipu__call *call, int i, struct ipu__moves *m)
{
    int32_t axis = call->attributes->axis;

    m->shape = call->inputs[i].shape;
    ipu__strides_of(&call->output.shape, m->to);
    ipu__strides_of(&m->shape, m->from);
    if (i == 1)
        m->to_offset = call->inputs[0].shape.extents[axis] * m->to[axis];
}

/* The parts of dy. */
static void gradient(ipu_graph *graph, const struct ipu__node *node,
                     ipu_tensor dy, ipu_tensor *dx)
{
    int32_t axis = node->attributes.axis;
    struct ipu__attributes attributes = {0};

    for (int i = 0; i < 2; i++) {
        attributes.shape = graph->tensors[node->inputs[i]].shape;
        if (ipu__wanted(dx[i]))
            dx[i] = ipu__add(graph, &ipu__slice, &dy, &attributes);
        attributes.starts[axis] = attributes.shape.extents[axis];
    }
}

const struct ipu__op ipu__concat = {
    .name = "concat",
    .ninputs = 2,
    .raw = true,
    .shape = shape,
    .run = ipu__copy_run,
    .cost = ipu__copy_cost,
    .moves = moves,
    .gradient = gradient,
};

static ipu_tensor join(ipu_graph *graph, int32_t count,
                       const ipu_tensor *tensors,
                       const struct ipu__attributes *attributes)
{
    ipu_tensor halves[2];

    if (count == 1)
        return tensors[0];
    halves[0] = join(graph, count / 2, tensors, attributes);
    halves[1] = join(graph, count - count / 2, tensors + count / 2, attributes);
    return ipu__add(graph, &ipu__concat, halves, attributes);
}

ipu_tensor ipu_concat(ipu_graph *graph, int32_t count,
                      const ipu_tensor *tensors, int32_t axis)
{
    struct ipu__attributes attributes = {.axis = axis};
    int32_t index, ndim;

    if (count < 1 || !tensors)
        return ipu__invalid(graph,
                            ipu__fail(IPU_ERR_ARGUMENT,
                                      "concat: %d tensors: give 1 or more, in "
                                      "an array",
                                      (int)count));
    for (int32_t i = 0; i < count; i++) {
        index = ipu__index_of(graph, &ipu__concat, tensors[i]);
        if (index < 0)
            return (ipu_tensor){-1};
    }
    ndim = graph->tensors[ipu__index(graph, tensors[0])].shape.ndim;
    if (axis < 0)
        attributes.axis += ndim;
    if (attributes.axis < 0 || attributes.axis >= ndim)
        return ipu__invalid(graph,
                            ipu__fail(IPU_ERR_SHAPE,
                                      "concat: there is no axis %d in %d "
                                      "dimensions",
                                      (int)axis, (int)ndim));
    return join(graph, count, tensors, &attributes);
}
