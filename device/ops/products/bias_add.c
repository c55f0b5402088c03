/* SPDX-License-Identifier: Apache-2.0 */
/*
 * x: [..., n] plus bias: [n], and the bias's derivative: the sum of dy over
 * all but its last dimension.
 */
#include <string.h>

#include "base/error.h"
#include "ops/columns.h"
#include "ops/costs.h"
#include "ops/op.h"

static int64_t last_extent(const struct ipu__shape *shape)
{
    return shape->extents[shape->ndim - 1];
}

static int shape(const struct ipu__call *call, struct ipu__shape *output)
{
    const struct ipu__shape *x = &call->inputs[0].shape;
    int status = ipu__expect(call, 0, IPU_FLOAT32, -1, "[..., n]");

    if (status == IPU_OK && x->ndim == 0)
        status = ipu__unfit(call, 0, 1, "a scalar has no last dimension");
    if (status == IPU_OK)
        status = ipu__expect(call, 1, IPU_FLOAT32, 1, "[n]");
    if (status == IPU_OK && last_extent(x) != call->inputs[1].shape.extents[0])
        status = ipu__unfit(call, 0, 1, "the last dimensions must be equal");
    *output = *x;
    return status;
}

IPU__WIDE(static, void, add_rows,
          (float *y, const float *x, const float *bias, int64_t rows,
           int64_t n),
          (y, x, bias, rows, n))
{
    for (int64_t r = 0; r < rows; r++) {
        IPU__BY_ELEMENT
        for (int64_t i = 0; i < n; i++)
            y[r * n + i] = x[r * n + i] + bias[i];
    }
}

static int run(const struct ipu__call *call)
{
    int64_t n = last_extent(&call->output.shape);

    if (n > 0)
        add_rows(call->output.data, call->inputs[0].data, call->inputs[1].data,
                 ipu__shape_count(&call->output.shape) / n, n);
    return IPU_OK;
}

static void gradient(ipu_graph *graph, const struct ipu__node *node,
                     ipu_tensor dy, ipu_tensor *dx)
{
    (void)node;
    dx[0] = dy;
    if (ipu__wanted(dx[1]))
        dx[1] = ipu__add(graph, &ipu__bias_add_grad, &dy, NULL);
}

const struct ipu__op ipu__bias_add = {
    .name = "bias_add",
    .ninputs = 2,
    .in_place = IPU__FIRST,
    .by_element = true,
    .slots = 1,
    .loop_slots = IPU__BY_ROW_SLOTS,
    .shape = shape,
    .run = run,
    .gradient = gradient,
};

static int grad_shape(const struct ipu__call *call, struct ipu__shape *output)
{
    IPU_TRY(ipu__expect(call, 0, IPU_FLOAT32,
                        call->inputs[0].shape.ndim > 0 ? -1 : 1, "[..., n]"));
    *output = (struct ipu__shape){.dtype = IPU_FLOAT32, .ndim = 1};
    output->extents[0] = last_extent(&call->inputs[0].shape);
    return IPU_OK;
}

static size_t grad_scratch(const struct ipu__call *call)
{
    return (size_t)call->output.shape.extents[0] *
           (sizeof(double) + IPU__COLUMNS_ROOM * sizeof(float));
}

static int run_grad(const struct ipu__call *call)
{
    int64_t n = call->output.shape.extents[0];
    double *total = call->scratch;
    float *y = call->output.data;

    memset(total, 0, (size_t)n * sizeof *total);
    if (call->sums)
        memcpy(total, call->sums, (size_t)n * sizeof *total);
    else if (n > 0)
        ipu__columns_sum(ipu__shape_count(&call->inputs[0].shape) / n, n,
                         call->inputs[0].data, total, (void *)(total + n));
    for (int64_t i = 0; i < n; i++)
        y[i] = (float)total[i];
    return IPU_OK;
}

const struct ipu__op ipu__bias_add_grad = {
    .name = "bias_add_grad",
    .ninputs = 1,
    .shape = grad_shape,
    .scratch = grad_scratch,
    .run = run_grad,
    .cost = ipu__sum_cost,
};

ipu_tensor ipu_bias_add(ipu_graph *graph, ipu_tensor x, ipu_tensor bias)
{
    return ipu__add(graph, &ipu__bias_add, (const ipu_tensor[]){x, bias}, NULL);
}
