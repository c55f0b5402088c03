/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The largest of each window, of any size, stride and padding. The derivative
 * goes to the first element of a window, by rows, that equals the maximum; an
 * element in several windows gets the sum of theirs. A NaN in a window gives
 * NaN, and takes the derivative.
 */
#include <string.h>

#include "base/error.h"
#include "ops/costs.h"
#include "ops/windows/max_pool.h"

/* image: of x. */
static void run_window(const struct ipu__pooling *p, float *y,
                       const float *image, struct ipu__window at)
{
    memcpy(y, image + (at.top * p->w + at.left) * p->c,
           (size_t)p->c * sizeof *y);
    for (int64_t row = at.top; row < at.bottom; row++)
        for (int64_t column = at.left; column < at.right; column++)
            ipu__max_pixel(y, image + (row * p->w + column) * p->c, p->c);
}

static int run(const struct ipu__call *call)
{
    const struct ipu__pooling p = ipu__pooling_of(
        call->attributes, &call->inputs[0].shape, &call->output.shape);
    const float *x = call->inputs[0].data;
    float *y = call->output.data;

    for (int64_t i = 0; i < p.n; i++, x += p.h * p.w * p.c)
        for (int64_t row = 0; row < p.ho; row++)
            for (int64_t column = 0; column < p.wo; column++, y += p.c)
                run_window(&p, y, x, ipu__pooling_window(&p, row, column));
    return IPU_OK;
}

const struct ipu__op ipu__max_windows = {
    .name = "max_windows",
    .ninputs = 1,
    .shape = ipu__windows_shape,
    .run = run,
    .cost = ipu__windows_cost,
    .estimate = IPU__WINDOW_ESTIMATE,
    .gradient = ipu__max_slope,
    .slope = &ipu__max_windows_grad,
};

/* ------------------------------------------------------ x, y, dy -> dx */

static int grad_shape(const struct ipu__call *call, struct ipu__shape *output)
{
    IPU_TRY(ipu__same_floats(call, output));
    IPU_TRY(ipu__expect_same(call, 1, 2));
    return ipu__windows_check(call, output, &call->inputs[1].shape);
}

static int run_grad(const struct ipu__call *call)
{
    const struct ipu__pooling p = ipu__pooling_of(
        call->attributes, &call->inputs[0].shape, &call->inputs[1].shape);
    const float *x = call->inputs[0].data, *y = call->inputs[1].data;
    const float *dy = call->inputs[2].data;
    float *dx = call->output.data, *left = call->scratch;
    int64_t pixels = p.n * p.ho * p.wo;

    memset(dx, 0, ipu__shape_bytes(&call->output.shape));
    for (int64_t i = 0; i < pixels; i++, y += p.c, dy += p.c) {
        int64_t image = i / p.wo / p.ho * p.h;
        struct ipu__window at =
            ipu__pooling_window(&p, i / p.wo % p.ho, i % p.wo);

        memcpy(left, dy, (size_t)p.c * sizeof *left);
        for (int64_t row = at.top; row < at.bottom; row++)
            for (int64_t column = at.left; column < at.right; column++) {
                int64_t pixel = ((image + row) * p.w + column) * p.c;

                ipu__max_take_more(dx + pixel, left, x + pixel, y, p.c);
            }
    }
    return IPU_OK;
}

const struct ipu__op ipu__max_windows_grad = {
    .name = "max_windows_grad",
    .ninputs = 3,
    .shape = grad_shape,
    .scratch = ipu__max_left_scratch,
    .run = run_grad,
    .cost = ipu__windows_cost,
    .estimate = IPU__WINDOW_ESTIMATE,
};

ipu_tensor ipu_max_pool2d_with(ipu_graph *graph, ipu_tensor x,
                               const ipu_pool_options *options)
{
    return ipu__pooling_with(graph, &ipu__max_pool2d, &ipu__max_windows, x,
                             options);
}
