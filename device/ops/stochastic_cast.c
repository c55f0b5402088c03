/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stochastic_cast.c - float32 to a half, up or down by chance.
 *
 * x lies between two neighbours a and b of the dtype; it becomes b with the
 * probability (x - a) / (b - a). So the mean of many draws is x, and a sum of
 * small steps grows where rounding to the nearest would leave it as it is.
 * What the dtype has is never changed. What is too large becomes what it does
 * when it is rounded to the nearest: chance makes no infinities.
 *
 * Bits below the last that stays are added to random ones, and cut off: that
 * carries with just the probability wanted. float16's subnormal numbers are a
 * multiple of 2^-24 instead, whatever the exponent of x.
 */
#include <math.h>

#include "graph/error.h"
#include "ops/functions.h"
#include "ops/half.h"
#include "ops/random.h"

static int shape(const struct ipu__call *call, struct ipu__shape *output)
{
    ipu_dtype dtype = (ipu_dtype)call->attributes->size;

    IPU_TRY(ipu__expect(call, 0, IPU_FLOAT32, -1, "of any shape"));
    IPU_TRY(ipu__expect(call, 1, IPU_INT32, 0, "the step, a scalar"));
    if (!ipu__is_half(dtype))
        return ipu__fail(IPU_ERR_ARGUMENT,
                         "stochastic_cast: dtype %d is neither float16 nor "
                         "bfloat16",
                         (int)dtype);
    *output = call->inputs[0].shape;
    output->dtype = dtype;
    return IPU_OK;
}

/* The largest that is not rounded up to infinity, and what it becomes. */
static const float float16_limit = 65520.0f;

static uint16_t float16_of(float x, uint32_t chance)
{
    uint32_t bits = ipu__bits(x), size = bits & 0x7fffffff;
    uint16_t sign = (uint16_t)(bits >> 16 & 0x8000);
    double multiple;

    if (size > 0x7f800000)
        return sign | 0x7e00;
    if (fabsf(x) >= float16_limit)
        return sign | 0x7c00;
    if (fabsf(x) >= 65504.0f)
        return sign | 0x7bff;
    if (size >= 0x38800000) /* 2^-14: a normal number */
        return (uint16_t)(sign |
                          ((size + (chance & 0x1fff) - 0x38000000) >> 13));
    multiple = (double)fabsf(x) * 16777216.0 + chance * 0x1p-32;
    return (uint16_t)(sign | (uint32_t)multiple);
}

static uint16_t bfloat16_of(float x, uint32_t chance)
{
    uint32_t bits = ipu__bits(x), size = bits & 0x7fffffff;
    uint16_t sign = (uint16_t)(bits >> 16 & 0x8000);

    if (size > 0x7f800000)
        return (uint16_t)(bits >> 16 | 0x40);
    if (size >= 0x7f7f8000) /* half way to what is infinity */
        return sign | 0x7f80;
    if (size >= 0x7f7f0000)
        return sign | 0x7f7f;
    return (uint16_t)(sign | (size + (chance & 0xffff)) >> 16);
}

static int run(const struct ipu__call *call)
{
    int64_t count = ipu__shape_count(&call->output.shape);
    struct ipu__random random = ipu__random_of(
        call->attributes->seed, *(const int32_t *)call->inputs[1].data, 4);
    const float *x = call->inputs[0].data;
    uint16_t *y = call->output.data;
    bool is_float16 = call->attributes->size == IPU_FLOAT16;

    for (int64_t i = 0; i < count; i++) {
        uint32_t chance = ipu__random_bits(random, call->first + i);

        y[i] =
            is_float16 ? float16_of(x[i], chance) : bfloat16_of(x[i], chance);
    }
    return IPU_OK;
}

static void gradient(ipu_graph *graph, const struct ipu__node *node,
                     const bool *needed, ipu_tensor dy, ipu_tensor *dx)
{
    (void)node, (void)needed;
    dx[0] = ipu_cast(graph, dy, IPU_FLOAT32);
}

const struct ipu__op ipu__stochastic_cast = {
    .name = "stochastic_cast",
    .ninputs = 2,
    .in_place = -1,
    .raw = true,
    .by_element = true,
    .slots = 2,
    .shape = shape,
    .run = run,
    .gradient = gradient,
};

ipu_tensor ipu_stochastic_cast(ipu_graph *graph, ipu_tensor x, ipu_dtype dtype,
                               uint64_t seed, ipu_tensor step)
{
    const struct ipu__attributes attributes = {.size = dtype, .seed = seed};

    return ipu__add(graph, &ipu__stochastic_cast, (const ipu_tensor[]){x, step},
                    &attributes);
}
