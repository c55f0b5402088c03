/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The mean of each window, of any size, stride and padding: of the pixels that
 * it has, or, on request, as if it had zeros beyond the edges. Each pixel of a
 * window gets an equal share of its derivative.
 */
#include <string.h>

#include "base/error.h"
#include "ops/costs.h"
#include "ops/windows/pool.h"

IPU__WIDE(static, void, add_scaled,
          (float *y, const float *x, float factor, int64_t count),
          (y, x, factor, count))
{
    IPU__BY_ELEMENT
    for (int64_t i = 0; i < count; i++)
        y[i] += x[i] * factor;
}

static float share(const struct ipu__call *call, const struct ipu__pooling *p,
                   struct ipu__window at)
{
    int64_t pixels = call->attributes->keep
                         ? p->window[0] * p->window[1]
                         : (at.bottom - at.top) * (at.right - at.left);

    return 1 / (float)pixels;
}

/* Goes from x to y or, turned around, from y to x: along the windows of all of
 * y's pixels. */
static void go_through(const struct ipu__call *call,
                       const struct ipu__pooling *p, const float *from,
                       float *to, bool back)
{
    int64_t pixels = p->n * p->ho * p->wo;

    for (int64_t i = 0; i < pixels; i++) {
        int64_t image = i / p->wo / p->ho * p->h;
        struct ipu__window at =
            ipu__pooling_window(p, i / p->wo % p->ho, i % p->wo);
        float factor = share(call, p, at);

        for (int64_t row = at.top; row < at.bottom; row++)
            for (int64_t column = at.left; column < at.right; column++) {
                int64_t pixel = ((image + row) * p->w + column) * p->c;

                add_scaled(to + (back ? pixel : i * p->c),
                           from + (back ? i * p->c : pixel), factor, p->c);
            }
    }
}

static int run(const struct ipu__call *call)
{
    const struct ipu__pooling p = ipu__pooling_of(
        call->attributes, &call->inputs[0].shape, &call->output.shape);

    memset(call->output.data, 0, ipu__shape_bytes(&call->output.shape));
    go_through(call, &p, call->inputs[0].data, call->output.data, false);
    return IPU_OK;
}

const struct ipu__op ipu__avg_windows = {
    .name = "avg_windows",
    .ninputs = 1,
    .shape = ipu__windows_shape,
    .run = run,
    .cost = ipu__windows_cost,
    .estimate = IPU__WINDOW_ESTIMATE,
    .gradient = ipu__pooling_slope,
    .slope = &ipu__avg_windows_grad,
};

static int grad_shape(const struct ipu__call *call, struct ipu__shape *output)
{
    *output = call->attributes->shape;
    output->dtype = IPU_FLOAT32;
    IPU_TRY(ipu__expect(call, 0, IPU_FLOAT32, 4, "[n, h, w, c]"));
    return ipu__windows_check(call, output, &call->inputs[0].shape);
}

static int run_grad(const struct ipu__call *call)
{
    const struct ipu__pooling p = ipu__pooling_of(
        call->attributes, &call->output.shape, &call->inputs[0].shape);

    memset(call->output.data, 0, ipu__shape_bytes(&call->output.shape));
    go_through(call, &p, call->inputs[0].data, call->output.data, true);
    return IPU_OK;
}

/* Linear: its derivative is the mean of windows again. */
static void grad_gradient(ipu_graph *graph, const struct ipu__node *node,
                          ipu_tensor dy, ipu_tensor *dx)
{
    struct ipu__attributes attributes = node->attributes;

    attributes.shape = (struct ipu__shape){0};
    dx[0] = ipu__add(graph, &ipu__avg_windows, &dy, &attributes);
}

const struct ipu__op ipu__avg_windows_grad = {
    .name = "avg_windows_grad",
    .ninputs = 1,
    .shape = grad_shape,
    .run = run_grad,
    .cost = ipu__windows_cost,
    .estimate = IPU__WINDOW_ESTIMATE,
    .gradient = grad_gradient,
};

ipu_tensor ipu_avg_pool2d_with(ipu_graph *graph, ipu_tensor x,
                               const ipu_pool_options *options)
{
    return ipu__pooling_with(graph, &ipu__avg_pool2d, &ipu__avg_windows, x,
                             options);
}
