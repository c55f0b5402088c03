/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cast.c - casts: the elements of a tensor in another dtype.
 *
 * Everything goes through float32, a stretch at a time. In a graph that rounds
 * stochastically, a cast to float16 becomes a stochastic_cast (ops/add.c).
 */
#include <string.h>

#include "base/error.h"
#include "ops/half.h"

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

/* So many elements at a time stay in the nearest cache. */
enum { STRETCH = 512 };

static void load(float *to, ipu_dtype dtype, const void *from, int64_t first,
                 int64_t count)
{
    const int32_t *ints = from;

    if (ipu__is_half(dtype))
        ipu__widen(dtype, to, (const uint16_t *)from + first, count);
    else if (dtype == IPU_FLOAT32)
        memcpy(to, (const float *)from + first, (size_t)count * sizeof *to);
    else
        for (int64_t i = 0; i < count; i++)
            to[i] = (float)ints[first + i];
}

static void store(ipu_dtype dtype, void *to, int64_t first, const float *from,
                  int64_t count)
{
    int32_t *ints = to;

    if (ipu__is_half(dtype))
        ipu__narrow(dtype, (uint16_t *)to + first, from, count);
    else if (dtype == IPU_FLOAT32)
        memcpy((float *)to + first, from, (size_t)count * sizeof *from);
    else
        for (int64_t i = 0; i < count; i++)
            ints[first + i] = to_int(from[i]);
}

/* Casts through float32, unless the dtype stays the same. */
static int run(const struct ipu__call *call)
{
    ipu_dtype from = call->inputs[0].shape.dtype;
    ipu_dtype to = call->output.shape.dtype;
    int64_t count = ipu__shape_count(&call->output.shape);
    float stretch[STRETCH];

    if (from == to) {
        memcpy(call->output.data, call->inputs[0].data,
               ipu__shape_bytes(&call->output.shape));
        return IPU_OK;
    }
    for (int64_t i = 0; i < count; i += STRETCH) {
        int64_t n = count - i < STRETCH ? count - i : STRETCH;

        load(stretch, from, call->inputs[0].data, i, n);
        store(to, call->output.data, i, stretch, n);
    }
    return IPU_OK;
}

/* Integers have none. */
static void gradient(ipu_graph *graph, const struct ipu__node *node,
                     ipu_tensor dy, ipu_tensor *dx)
{
    ipu_dtype from = graph->tensors[node->inputs[0]].shape.dtype;

    if (from != IPU_INT32)
        dx[0] = ipu_cast(graph, dy, from);
}

const struct ipu__op ipu__cast = {
    .name = "cast",
    .ninputs = 1,
    .raw = true,
    .by_element = true,
    .slots = 2,
    .loop_slots = -1,
    .shape = shape,
    .run = run,
    .gradient = gradient,
};

/* Returns whether x has a dtype of which a half may not hold all values. */
static bool is_wide(const ipu_graph *graph, ipu_tensor x)
{
    ipu_dtype dtype;

    return ipu_tensor_info(graph, x, &dtype, NULL, NULL) >= 0 &&
           dtype == IPU_FLOAT32;
}

ipu_tensor ipu_cast(ipu_graph *graph, ipu_tensor x, ipu_dtype dtype)
{
    const struct ipu__attributes attributes = {.size = dtype};

    if (ipu__casts_stochastically(graph, dtype) && is_wide(graph, x))
        return ipu__round_stochastically(graph, x);
    return ipu__add(graph, &ipu__cast, &x, &attributes);
}
