/* SPDX-License-Identifier: Apache-2.0 */
/* a + b and a * b of equal shapes. */
#include "ops/op.h"

static int same_shapes(const struct ipu__call *call, struct ipu__shape *output)
{
    int status = ipu__expect(call, 0, IPU_FLOAT32, -1, "of any shape");

    if (status == IPU_OK &&
        !ipu__shape_equal(&call->inputs[0].shape, &call->inputs[1].shape))
        status = ipu__unfit(call, 0, 1, "they must be the same");
    *output = call->inputs[0].shape;
    return status;
}

IPU__WIDE static void add(float *y, const float *a, const float *b,
                          int64_t count)
{
    IPU__BY_ELEMENT
    for (int64_t i = 0; i < count; i++)
        y[i] = a[i] + b[i];
}

static int run_add(const struct ipu__call *call)
{
    add(call->output.data, call->inputs[0].data, call->inputs[1].data,
        ipu__shape_count(&call->output.shape));
    return IPU_OK;
}

static void add_gradient(ipu_graph *graph, const struct ipu__node *node,
                         const bool *needed, ipu_tensor dy, ipu_tensor *dx)
{
    (void)graph, (void)node, (void)needed;
    dx[0] = dx[1] = dy;
}

const struct ipu__op ipu__binary_add = {
    .name = "add",
    .ninputs = 2,
    .in_place = 0,
    .shape = same_shapes,
    .run = run_add,
    .gradient = add_gradient,
};

IPU__WIDE static void multiply(float *y, const float *a, const float *b,
                               int64_t count)
{
    IPU__BY_ELEMENT
    for (int64_t i = 0; i < count; i++)
        y[i] = a[i] * b[i];
}

static int run_multiply(const struct ipu__call *call)
{
    multiply(call->output.data, call->inputs[0].data, call->inputs[1].data,
             ipu__shape_count(&call->output.shape));
    return IPU_OK;
}

static void multiply_gradient(ipu_graph *graph, const struct ipu__node *node,
                              const bool *needed, ipu_tensor dy, ipu_tensor *dx)
{
    const int32_t a = node->inputs[0], b = node->inputs[1];

    if (needed[a])
        dx[0] = ipu_multiply(graph, dy, ipu__handle(graph, b));
    if (needed[b])
        dx[1] = ipu_multiply(graph, dy, ipu__handle(graph, a));
}

const struct ipu__op ipu__binary_multiply = {
    .name = "multiply",
    .ninputs = 2,
    .in_place = 0,
    .shape = same_shapes,
    .run = run_multiply,
    .gradient = multiply_gradient,
};

ipu_tensor ipu_add(ipu_graph *graph, ipu_tensor a, ipu_tensor b)
{
    return ipu__add(graph, &ipu__binary_add, (const ipu_tensor[]){a, b}, NULL);
}

ipu_tensor ipu_multiply(ipu_graph *graph, ipu_tensor a, ipu_tensor b)
{
    return ipu__add(graph, &ipu__binary_multiply, (const ipu_tensor[]){a, b},
                    NULL);
}
