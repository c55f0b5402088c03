/* SPDX-License-Identifier: Apache-2.0 */
/* A tensor of one value; attributes: shape, scale (the value). */
#include <math.h>

#include "base/error.h"
#include "ops/op.h"

static int shape(const struct ipu__call *call, struct ipu__shape *output)
{
    double value = call->attributes->scale;

    *output = call->attributes->shape;
    return ipu__expect_true(call,
                            output->dtype != IPU_INT32 ||
                                (value >= INT32_MIN && value <= INT32_MAX));
}

static int run(const struct ipu__call *call)
{
    double value = call->attributes->scale;
    int64_t count = ipu__shape_count(&call->output.shape);
    float *y = call->output.data;
    int32_t *ints = call->output.data;

    if (call->output.shape.dtype == IPU_INT32)
        for (int64_t i = 0; i < count; i++)
            ints[i] = (int32_t)value;
    else
        for (int64_t i = 0; i < count; i++)
            y[i] = (float)value;
    return IPU_OK;
}

const struct ipu__op ipu__fill = {
    .name = "fill",
    .ninputs = 0,
    .by_element = true,
    .slots = -1,
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

ipu_tensor ipu_fill(ipu_graph *graph, ipu_dtype dtype, int32_t ndim,
                    const int64_t *extents, double value)
{
    struct ipu__shape shape_of;
    int status = ipu__shape_make("fill", dtype, ndim, extents, &shape_of);

    if (status == IPU_OK && dtype == IPU_INT32 &&
        !(value >= INT32_MIN && value <= INT32_MAX && value == rint(value)))
        status = ipu__fail(IPU_ERR_ARGUMENT, "fill: %g is no int32", value);
    if (status < 0)
        return ipu__invalid(graph, status);
    return ipu__constant(graph, &shape_of, value);
}
