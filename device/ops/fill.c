/* SPDX-License-Identifier: Apache-2.0 */
/* A tensor of one value; attributes: shape, scale (the value). */
#include "ops/op.h"

static int shape(const struct ipu__call *call, struct ipu__shape *output)
{
    *output = call->attributes->shape;
    return IPU_OK;
}

static int run(const struct ipu__call *call)
{
    float *y = call->output.data, value = (float)call->attributes->scale;
    int64_t count = ipu__shape_count(&call->output.shape);

    for (int64_t i = 0; i < count; i++)
        y[i] = value;
    return IPU_OK;
}

const struct ipu__op ipu__fill = {
    .name = "fill",
    .ninputs = 0,
    .in_place = -1,
    .shape = shape,
    .run = run,
};

ipu_tensor ipu__constant(ipu_graph *graph, const struct ipu__shape *shape_of,
                         double value)
{
    const struct ipu__attributes attributes = {.shape = *shape_of,
                                               .scale = value};

    return ipu__add(graph, &ipu__fill, NULL, &attributes);
}
