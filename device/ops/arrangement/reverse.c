/* SPDX-License-Identifier: Apache-2.0 */
/* The elements along some axes in the opposite order. */
#include "base/error.h"
#include "ops/copy.h"
#include "ops/op.h"

static void moves(const struct ipu__call *call, int i, struct ipu__moves *m)
{
    const struct ipu__shape *x = &call->inputs[i].shape;

    m->shape = *x;
    ipu__strides_of(x, m->to);
    ipu__strides_of(x, m->from);
    for (int32_t k = 0; k < x->ndim; k++)
        if (call->attributes->axes[k] && x->extents[k] > 0) {
            m->from_offset += (x->extents[k] - 1) * m->from[k];
            m->from[k] = -m->from[k];
        }
}

static void gradient(ipu_graph *graph, const struct ipu__node *node,
                     ipu_tensor dy, ipu_tensor *dx)
{
    dx[0] = ipu__add(graph, &ipu__reverse, &dy, &node->attributes);
}

const struct ipu__op ipu__reverse = {
    .name = "reverse",
    .ninputs = 1,
    .raw = true,
    .shape = ipu__same_shape,
    .run = ipu__copy_run,
    .cost = ipu__copy_cost,
    .moves = moves,
    .gradient = gradient,
};

ipu_tensor ipu_reverse(ipu_graph *graph, ipu_tensor x, int32_t naxes,
                       const int32_t *axes)
{
    struct ipu__attributes attributes = {0};

    if (naxes < 0 || (naxes > 0 && !axes))
        return ipu__invalid(graph, ipu__fail(IPU_ERR_ARGUMENT, "reverse: %s",
                                             naxes < 0 ? "less than 0 axes"
                                                       : "the axes are NULL"));
    for (int32_t i = 0; i < naxes; i++) {
        int32_t axis;

        if (ipu__find_axis(graph, &ipu__reverse, x, axes[i], &axis) < 0)
            return (ipu_tensor){-1};
        attributes.axes[axis] = !attributes.axes[axis];
    }
    return ipu__add(graph, &ipu__reverse, &x, &attributes);
}
