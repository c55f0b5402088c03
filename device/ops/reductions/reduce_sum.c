/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The sum of all elements times a scale, and what its derivative needs: a
 * scalar times a scale, spread over a shape.
 */
#include "ops/costs.h"
#include "ops/op.h"

static int scalar(const struct ipu__call *call, struct ipu__shape *output)
{
    *output = (struct ipu__shape){.dtype = IPU_FLOAT32};
    return ipu__expect(call, 0, IPU_FLOAT32, -1, "of any shape");
}

/* Summed in double: the order of a long sum must not show. */
static int run(const struct ipu__call *call)
{
    const float *x = call->inputs[0].data;
    int64_t count = ipu__shape_count(&call->inputs[0].shape);
    double sum = 0;

    for (int64_t i = 0; i < count; i++)
        sum += (double)x[i];
    *(float *)call->output.data = (float)(sum * call->attributes->scale);
    return IPU_OK;
}

static void gradient(ipu_graph *graph, const struct ipu__node *node,
                     ipu_tensor dy, ipu_tensor *dx)
{
    const struct ipu__attributes attributes = {
        .shape = graph->tensors[node->inputs[0]].shape,
        .scale = node->attributes.scale};

    dx[0] = ipu__add(graph, &ipu__spread, &dy, &attributes);
}

const struct ipu__op ipu__reduce_sum = {
    .name = "reduce_sum",
    .ninputs = 1,
    .shape = scalar,
    .run = run,
    .cost = ipu__sum_cost,
    .gradient = gradient,
};

static int spread_shape(const struct ipu__call *call, struct ipu__shape *output)
{
    *output = call->attributes->shape;
    return ipu__expect(call, 0, IPU_FLOAT32, 0, "a scalar");
}

static int run_spread(const struct ipu__call *call)
{
    float *y = call->output.data;
    float value = (float)((double)*(const float *)call->inputs[0].data *
                          call->attributes->scale);
    int64_t count = ipu__shape_count(&call->output.shape);

    for (int64_t i = 0; i < count; i++)
        y[i] = value;
    return IPU_OK;
}

static void spread_gradient(ipu_graph *graph, const struct ipu__node *node,
                            ipu_tensor dy, ipu_tensor *dx)
{
    dx[0] = ipu_reduce_sum(graph, dy, node->attributes.scale);
}

const struct ipu__op ipu__spread = {
    .name = "spread",
    .ninputs = 1,
    .by_element = true,
    .slots = -1,
    .shape = spread_shape,
    .run = run_spread,
    .gradient = spread_gradient,
};

ipu_tensor ipu_reduce_sum(ipu_graph *graph, ipu_tensor x, double scale)
{
    const struct ipu__attributes attributes = {.scale = scale};

    return ipu__add(graph, &ipu__reduce_sum, &x, &attributes);
}
