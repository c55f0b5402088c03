/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The mean of each window of size x size, stride size; incomplete windows at
 * the edges are dropped. x: [n, h, w, c] -> [n, h/size, w/size, c]. Each
 * element of a window gets an equal share of the derivative.
 */
#include <string.h>

#include "base/error.h"
#include "ops/costs.h"
#include "ops/windows/pool.h"

/* Adds up between a row of windows and one of the rows of pixels under it. */
IPU__WIDE(static, void, collect,
          (float *small, const float *large, int64_t columns, int64_t size,
           int64_t c),
          (small, large, columns, size, c))
{
    for (int64_t i = 0; i < columns * size; i++) {
        float *to = small + i / size * c;

        IPU__BY_ELEMENT
        for (int64_t k = 0; k < c; k++)
            to[k] += large[i * c + k];
    }
}

IPU__WIDE(static, void, distribute,
          (float *large, const float *small, float part, int64_t columns,
           int64_t size, int64_t c),
          (large, small, part, columns, size, c))
{
    for (int64_t i = 0; i < columns * size; i++) {
        const float *from = small + i / size * c;

        IPU__BY_ELEMENT
        for (int64_t k = 0; k < c; k++)
            large[i * c + k] = from[k] * part;
    }
}

static int run(const struct ipu__call *call)
{
    const struct ipu__shape *x = &call->inputs[0].shape;
    const struct ipu__shape *y = &call->output.shape;
    int64_t size = call->attributes->size, columns = y->extents[2];
    int64_t c = y->extents[3], row = x->extents[2] * c;
    const float *from = call->inputs[0].data;
    float *to = call->output.data, part = 1 / (float)(size * size);
    int64_t windows = y->extents[0] * y->extents[1];

    memset(to, 0, ipu__shape_bytes(y));
    for (int64_t r = 0; r < windows; r++, to += columns * c) {
        int64_t image = r / y->extents[1], top = r % y->extents[1] * size;
        const float *pixels = from + (image * x->extents[1] + top) * row;

        for (int64_t i = 0; i < size; i++)
            collect(to, pixels + i * row, columns, size, c);
        for (int64_t i = 0; i < columns * c; i++)
            to[i] *= part;
    }
    return IPU_OK;
}

const struct ipu__op ipu__avg_pool2d = {
    .name = "avg_pool2d",
    .ninputs = 1,
    .slots = 1,
    .shape = ipu__pooling_shape,
    .run = run,
    .cost = ipu__read_once_cost,
    .estimate = IPU__WINDOW_ESTIMATE,
    .gradient = ipu__pooling_slope,
    .slope = &ipu__avg_pool2d_grad,
};

static int grad_shape(const struct ipu__call *call, struct ipu__shape *output)
{
    *output = call->attributes->shape;
    output->dtype = IPU_FLOAT32;
    IPU_TRY(ipu__expect(call, 0, IPU_FLOAT32, 4, "[n, h, w, c]"));
    return ipu__pooling_check(call, output, &call->inputs[0].shape);
}

static int run_grad(const struct ipu__call *call)
{
    const struct ipu__shape *x = &call->output.shape;
    const struct ipu__shape *y = &call->inputs[0].shape;
    int64_t size = call->attributes->size, columns = y->extents[2];
    int64_t c = y->extents[3], row = x->extents[2] * c;
    const float *from = call->inputs[0].data;
    float *to = call->output.data, part = 1 / (float)(size * size);
    int64_t windows = y->extents[0] * y->extents[1];

    memset(to, 0, ipu__shape_bytes(x)); /* what no window covers */
    for (int64_t r = 0; r < windows; r++, from += columns * c) {
        int64_t image = r / y->extents[1], top = r % y->extents[1] * size;
        float *pixels = to + (image * x->extents[1] + top) * row;

        for (int64_t i = 0; i < size; i++)
            distribute(pixels + i * row, from, part, columns, size, c);
    }
    return IPU_OK;
}

/* Linear: its derivative is the mean of windows again. */
static void grad_gradient(ipu_graph *graph, const struct ipu__node *node,
                          ipu_tensor dy, ipu_tensor *dx)
{
    dx[0] = ipu__add(graph, &ipu__avg_pool2d, &dy, &node->attributes);
}

const struct ipu__op ipu__avg_pool2d_grad = {
    .name = "avg_pool2d_grad",
    .ninputs = 1,
    .slots = 1,
    .shape = grad_shape,
    .run = run_grad,
    .cost = ipu__read_once_cost,
    .estimate = IPU__WINDOW_ESTIMATE,
    .gradient = grad_gradient,
};

ipu_tensor ipu_avg_pool2d(ipu_graph *graph, ipu_tensor x, int32_t size)
{
    const struct ipu__attributes attributes = {.size = size};

    return ipu__add(graph, &ipu__avg_pool2d, &x, &attributes);
}
