/* SPDX-License-Identifier: Apache-2.0 */
/* Elements in another dtype. */
#include "ops/op.h"

#include "graph/error.h"

static int shape(const struct ipu__call *call, struct ipu__shape *output)
{
    ipu_dtype dtype = (ipu_dtype)call->attributes->size;

    *output = call->inputs[0].shape;
    output->dtype = dtype;
    if (ipu__dtype_name(dtype))
        return IPU_OK;
    return ipu__fail(IPU_ERR_ARGUMENT, "cast: dtype %d is none (0 to %d)",
                     (int)dtype, IPU_NUM_DTYPES - 1);
}

static int32_t to_int(float x)
{
    if (x >= 2147483648.0f)
        return INT32_MAX;
    if (x < -2147483648.0f)
        return INT32_MIN;
    return x == x ? (int32_t)x : 0;
}

/* Through float32, but from int32 to int32. */
static int run(const struct ipu__call *call)
{
    ipu_dtype from = call->inputs[0].shape.dtype;
    ipu_dtype to = call->output.shape.dtype;
    int64_t count = ipu__shape_count(&call->output.shape);
    const char *x = call->inputs[0].data;
    float *floats = call->output.data;
    int32_t *ints = call->output.data;

    for (int64_t i = 0; i < count; i++) {
        const float *f = (const void *)(x + i * 4);
        const int32_t *n = (const void *)(x + i * 4);

        if (to == IPU_INT32)
            ints[i] = from == IPU_INT32 ? *n : to_int(*f);
        else
            floats[i] = from == IPU_INT32 ? (float)*n : *f;
    }
    return IPU_OK;
}

/* Integers have none. */
static void gradient(ipu_graph *graph, const struct ipu__node *node,
                     const bool *needed, ipu_tensor dy, ipu_tensor *dx)
{
    ipu_dtype from = graph->tensors[node->inputs[0]].shape.dtype;

    (void)needed;
    if (from != IPU_INT32)
        dx[0] = ipu_cast(graph, dy, from);
}

const struct ipu__op ipu__cast = {
    .name = "cast",
    .ninputs = 1,
    .in_place = -1,
    .shape = shape,
    .run = run,
    .gradient = gradient,
};

ipu_tensor ipu_cast(ipu_graph *graph, ipu_tensor x, ipu_dtype dtype)
{
    const struct ipu__attributes attributes = {.size = dtype};

    return ipu__add(graph, &ipu__cast, &x, &attributes);
}
