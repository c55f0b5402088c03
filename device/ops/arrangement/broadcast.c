/* SPDX-License-Identifier: Apache-2.0 */
/* The op that repeats a tensor to a larger shape, and the derivative of every
 * op that does so. */
#include "ops/arrangement/broadcast.h"

#include "base/error.h"
#include "ops/copy.h"

ipu_tensor ipu__unbroadcast(ipu_graph *graph, const struct ipu__node *node,
                            int i, ipu_tensor dy)
{
    /* Copied: the array may move while nodes are added. */
    const struct ipu__shape wanted = graph->tensors[node->inputs[i]].shape;
    const struct ipu__shape wide = graph->tensors[node->output].shape;
    int32_t axes[IPU_MAX_DIMS], naxes = 0;
    int32_t missing = wide.ndim - wanted.ndim;

    for (int32_t k = 0; k < wide.ndim; k++)
        if (k < missing || wanted.extents[k - missing] != wide.extents[k])
            axes[naxes++] = k;
    if (naxes > 0)
        dy = ipu_sum(graph, dy, naxes, axes, 1);
    if (missing > 0)
        dy = ipu_reshape(graph, dy, wanted.ndim, wanted.extents);
    return dy;
}

static int shape(const struct ipu__call *call, struct ipu__shape *output)
{
    const struct ipu__shape *from = &call->inputs[0].shape;
    struct ipu__shape wide;

    *output = call->attributes->shape;
    output->dtype = from->dtype;
    wide = *output;
    if (ipu__shape_widen(&wide, from) && ipu__shape_equal(&wide, output))
        return IPU_OK;
    return ipu__fail(IPU_ERR_SHAPE,
                     "broadcast: %s is %s and cannot become %s: dimensions, "
                     "aligned at the last, must be equal, 1, or missing",
                     call->inputs[0].name, ipu__shape_print(from).text,
                     ipu__shape_print(output).text);
}

static int run(const struct ipu__call *call)
{
    ipu__strides to, from;

    ipu__strides_of(&call->output.shape, to);
    ipu__strides_broadcast(&call->inputs[0].shape, &call->output.shape, from);
    ipu__copy(&call->output.shape, call->output.data, to, call->inputs[0].data,
              from);
    return IPU_OK;
}

static void gradient(ipu_graph *graph, const struct ipu__node *node,
                     ipu_tensor dy, ipu_tensor *dx)
{
    dx[0] = ipu__unbroadcast(graph, node, 0, dy);
}

const struct ipu__op ipu__broadcast = {
    .name = "broadcast",
    .ninputs = 1,
    .raw = true,
    .by_element = true,
    .slots = -1,
    .shape = shape,
    .run = run,
    .gradient = gradient,
};

ipu_tensor ipu_broadcast(ipu_graph *graph, ipu_tensor x, int32_t ndim,
                         const int64_t *extents)
{
    struct ipu__attributes attributes = {0};
    int status = ipu__shape_make("broadcast", IPU_FLOAT32, ndim, extents,
                                 &attributes.shape);

    if (status < 0)
        return ipu__invalid(graph, status);
    return ipu__add(graph, &ipu__broadcast, &x, &attributes);
}
