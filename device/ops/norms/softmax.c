/* SPDX-License-Identifier: Apache-2.0 */
/*
 * softmax.c - softmax, which is exp(x) over its sum in each row of the last
 * dimension, and its logarithm. The largest element is subtracted first, so
 * that nothing overflows.
 *
 *     softmax        dx = y (dy - sum(dy y))
 *     log_softmax    dx = dy - exp(y) sum(dy)
 */
#include <math.h>

#include "base/error.h"
#include "ops/costs.h"
#include "ops/functions.h"
#include "ops/op.h"
#include "ops/rows.h"

static int rows_shape(const struct ipu__call *call, struct ipu__shape *output)
{
    const struct ipu__shape *x = &call->inputs[0].shape;

    *output = *x;
    return ipu__expect(call, 0, IPU_FLOAT32, x->ndim > 0 ? -1 : 1, "[..., n]");
}

static int grad_shape(const struct ipu__call *call, struct ipu__shape *output)
{
    IPU_TRY(rows_shape(call, output));
    return ipu__expect_same(call, 0, 1);
}

static int64_t columns_of(const struct ipu__call *call)
{
    const struct ipu__shape *y = &call->output.shape;

    return y->extents[y->ndim - 1];
}

static int64_t rows_of(const struct ipu__call *call)
{
    int64_t n = columns_of(call);

    return n ? ipu__shape_count(&call->output.shape) / n : 0;
}

/* ------------------------------------------------------------------ softmax */

static int run_softmax(const struct ipu__call *call)
{
    int64_t rows = rows_of(call), n = columns_of(call);
    const float *x = call->inputs[0].data;
    float *y = call->output.data;

    for (int64_t r = 0; r < rows; r++, x += n, y += n) {
        float most = ipu__row_max(-INFINITY, x, n);
        double sum = ipu__row_exp(y, x, most, n);

        ipu__row_scale(y, (float)(1 / sum), n);
    }
    return IPU_OK;
}

IPU__WIDE(static, void, softmax_slopes,
          (float *dx, const float *dy, const float *y, float dot, int64_t n),
          (dx, dy, y, dot, n))
{
    IPU__BY_ELEMENT
    for (int64_t i = 0; i < n; i++)
        dx[i] = y[i] * (dy[i] - dot);
}

static int run_softmax_grad(const struct ipu__call *call)
{
    int64_t rows = rows_of(call), n = columns_of(call);
    const float *dy = call->inputs[0].data, *y = call->inputs[1].data;
    float *dx = call->output.data;

    for (int64_t r = 0; r < rows; r++, dx += n, dy += n, y += n)
        softmax_slopes(dx, dy, y, (float)ipu__row_dot(dy, y, n), n);
    return IPU_OK;
}

const struct ipu__op ipu__softmax_grad = {
    .name = "softmax_grad",
    .ninputs = 2,
    .in_place = IPU__FIRST,
    .by_row = true,
    .slots = IPU__SOFTMAX_GRAD_SLOTS,
    .half_slots = IPU__SOFTMAX_GRAD_HALVES,
    .loops = IPU__SOFTMAX_GRAD_LOOPS,
    .shape = grad_shape,
    .run = run_softmax_grad,
    .cost = ipu__rows_cost,
};

const struct ipu__op ipu__softmax = {
    .name = "softmax",
    .ninputs = 1,
    .in_place = IPU__FIRST,
    .by_row = true,
    .functions = {IPU__EXP},
    .slots = IPU__SOFTMAX_SLOTS,
    .half_slots = IPU__SOFTMAX_HALVES,
    .loops = IPU__SOFTMAX_LOOPS,
    .shape = rows_shape,
    .run = run_softmax,
    .cost = ipu__rows_cost,
    .gradient = ipu__slope_by_output,
    .slope = &ipu__softmax_grad,
};

/* -------------------------------------------------------------- log_softmax */

IPU__WIDE(static, void, subtract_each,
          (float *y, const float *x, float most, float rest, int64_t n),
          (y, x, most, rest, n))
{
    IPU__BY_ELEMENT
    for (int64_t i = 0; i < n; i++)
        y[i] = (x[i] - most) - rest;
}

static int run_log_softmax(const struct ipu__call *call)
{
    int64_t rows = rows_of(call), n = columns_of(call);
    const float *x = call->inputs[0].data;
    float *y = call->output.data;

    for (int64_t r = 0; r < rows; r++, x += n, y += n) {
        float most = ipu__row_max(-INFINITY, x, n);
        double sum = ipu__row_exp_sum(x, most, n);

        subtract_each(y, x, most, (float)log(sum), n);
    }
    return IPU_OK;
}

IPU__WIDE(static, void, log_softmax_slopes,
          (float *dx, const float *dy, const float *y, float sum, int64_t n),
          (dx, dy, y, sum, n))
{
    IPU__BY_ELEMENT
    for (int64_t i = 0; i < n; i++)
        dx[i] = dy[i] - ipu__exp(y[i]) * sum;
}

static int run_log_softmax_grad(const struct ipu__call *call)
{
    int64_t rows = rows_of(call), n = columns_of(call);
    const float *dy = call->inputs[0].data, *y = call->inputs[1].data;
    float *dx = call->output.data;

    for (int64_t r = 0; r < rows; r++, dx += n, dy += n, y += n)
        log_softmax_slopes(dx, dy, y, (float)ipu__row_sum(dy, n), n);
    return IPU_OK;
}

const struct ipu__op ipu__log_softmax_grad = {
    .name = "log_softmax_grad",
    .ninputs = 2,
    .in_place = IPU__FIRST,
    .by_row = true,
    .functions = {IPU__EXP},
    .slots = 4,
    .shape = grad_shape,
    .run = run_log_softmax_grad,
    .cost = ipu__rows_cost,
};

const struct ipu__op ipu__log_softmax = {
    .name = "log_softmax",
    .ninputs = 1,
    .in_place = IPU__FIRST,
    .by_row = true,
    .functions = {IPU__EXP},
    .slots = 6,
    .shape = rows_shape,
    .run = run_log_softmax,
    .cost = ipu__rows_cost,
    .gradient = ipu__slope_by_output,
    .slope = &ipu__log_softmax_grad,
};

/* Along another axis: with that as the last one, and back. */
static ipu_tensor along(ipu_graph *graph, const struct ipu__op *op,
                        ipu_tensor x, int32_t axis)
{
    int32_t order[IPU_MAX_DIMS], ndim, at;

    if (ipu__find_axis(graph, op, x, axis, &at) < 0)
        return (ipu_tensor){-1};
    ndim = graph->tensors[ipu__index(graph, x)].shape.ndim;
    if (at == ndim - 1)
        return ipu__add(graph, op, &x, NULL);
    /* Exchanging two axes is undone by doing it again. */
    for (int32_t i = 0; i < ndim; i++)
        order[i] = i == at ? ndim - 1 : i == ndim - 1 ? at : i;
    x = ipu_transpose(graph, x, order);
    x = ipu__add(graph, op, &x, NULL);
    return ipu_transpose(graph, x, order);
}

ipu_tensor ipu_softmax_axis(ipu_graph *graph, ipu_tensor x, int32_t axis)
{
    return along(graph, &ipu__softmax, x, axis);
}

ipu_tensor ipu_log_softmax_axis(ipu_graph *graph, ipu_tensor x, int32_t axis)
{
    return along(graph, &ipu__log_softmax, x, axis);
}

ipu_tensor ipu_softmax(ipu_graph *graph, ipu_tensor x)
{
    return ipu__add(graph, &ipu__softmax, &x, NULL);
}

ipu_tensor ipu_log_softmax(ipu_graph *graph, ipu_tensor x)
{
    return ipu__add(graph, &ipu__log_softmax, &x, NULL);
}
