/* SPDX-License-Identifier: Apache-2.0 */
/* Pixels of windows, of which the largest is wanted: max_pool.h. */
#include "ops/windows/max_pool.h"

#include "base/error.h"
#include "ops/functions.h"

IPU__WIDE(extern, void, ipu__max_pixel,
          (float *y, const float *x, int64_t channels), (y, x, channels))
{
    IPU__BY_ELEMENT
    for (int64_t i = 0; i < channels; i++)
        y[i] = ipu__larger(y[i], x[i]);
}

IPU__WIDE(extern, void, ipu__max_take,
          (float *dx, float *left, const float *x, const float *y,
           int64_t channels),
          (dx, left, x, y, channels))
{
    IPU__BY_ELEMENT
    for (int64_t i = 0; i < channels; i++) {
        int is_maximum = ipu__is_largest(x[i], y[i]);
        float taken = left[i];

        dx[i] = is_maximum ? taken : 0;
        left[i] = is_maximum ? 0 : taken;
    }
}

IPU__WIDE(extern, void, ipu__max_take_more,
          (float *dx, float *left, const float *x, const float *y,
           int64_t channels),
          (dx, left, x, y, channels))
{
    IPU__BY_ELEMENT
    for (int64_t i = 0; i < channels; i++) {
        int is_maximum = ipu__is_largest(x[i], y[i]);
        float taken = left[i];

        dx[i] += is_maximum ? taken : 0;
        left[i] = is_maximum ? 0 : taken;
    }
}

size_t ipu__max_left_scratch(const struct ipu__call *call)
{
    return (size_t)call->inputs[0].shape.extents[3] * sizeof(float);
}

void ipu__max_slope(ipu_graph *graph, const struct ipu__node *node,
                    ipu_tensor dy, ipu_tensor *dx)
{
    const ipu_tensor inputs[] = {ipu__input(graph, node, 0),
                                 ipu__handle(graph, node->output), dy};

    dx[0] = ipu__add(graph, node->op->slope, inputs, &node->attributes);
}
