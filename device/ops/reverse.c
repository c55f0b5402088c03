/* SPDX-License-Identifier: Apache-2.0 */
/* The elements along some axes in the opposite order. */
#include "graph/error.h"
#include "ops/copy.h"
#include "ops/op.h"

static int shape(const struct ipu__call *call, struct ipu__shape *output)
{
    *output = call->inputs[0].shape;
    return IPU_OK;
}

static int run(const struct ipu__call *call)
{
    const struct ipu__shape *x = &call->inputs[0].shape;
    const char *from = call->inputs[0].data;
    int64_t bytes = (int64_t)ipu__dtype_bytes(x->dtype);
    ipu__strides to, back;

    ipu__strides_of(x, to);
    ipu__strides_of(x, back);
    for (int32_t i = 0; i < x->ndim; i++)
        if (call->attributes->axes[i] && x->extents[i] > 0) {
            from += (x->extents[i] - 1) * back[i] * bytes;
            back[i] = -back[i];
        }
    ipu__copy(x, call->output.data, to, from, back);
    return IPU_OK;
}

static void gradient(ipu_graph *graph, const struct ipu__node *node,
                     const bool *needed, ipu_tensor dy, ipu_tensor *dx)
{
    (void)needed;
    dx[0] = ipu__add(graph, &ipu__reverse, &dy, &node->attributes);
}

const struct ipu__op ipu__reverse = {
    .name = "reverse",
    .ninputs = 1,
    .in_place = -1,
    .raw = true,
    .shape = shape,
    .run = run,
    .cost = ipu__copy_cost,
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
