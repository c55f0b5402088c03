/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stochastic_cast.c - casts float32 to a half, rounded up or down at random.
 *
 * x lies between two neighbours a and b of the dtype; it becomes b with the
 * probability (x - a) / (b - a). So the mean of many draws is x, and a sum of
 * small steps grows where rounding to the nearest would leave it as it is.
 * Numbers of the dtype itself never change. Numbers that are too large become
 * the same as with rounding to the nearest: this rounding makes no infinities.
 *
 * Bits below the last that stays are added to random ones, and cut off: that
 * carries with just the probability wanted. float16's subnormal numbers are a
 * multiple of 2^-24 instead, whatever the exponent of x.
 */
#include <math.h>

#include "base/error.h"
#include "ops/functions.h"
#include "ops/half.h"
#include "ops/random/random.h"

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

/*
 * Both sides of every choice are computed, so that loops become vector code. A
 * float16 is subnormal below 2^-14, which is selected by a mask of bits: two
 * choices by one comparison would become a branch. From 65504 on it is the
 * largest, and from 65520 on, which is half way to what would follow, infinity.
 */
IPU__INLINE uint16_t float16_of(float x, uint32_t random)
{
    uint32_t bits = ipu__bits(x), size = bits & 0x7fffffff;
    uint32_t is_small = -(uint32_t)(size < 0x38800000);
    uint32_t normal = (size + (random & 0x1fff) - 0x38000000) >> 13;
    double multiple = (double)ipu__float(size & is_small) * 16777216.0 +
                      (double)random * 0x1p-32;
    uint32_t small = (uint32_t)(int32_t)multiple;
    uint32_t half = (small & is_small) | (normal & ~is_small);

    half = size >= 0x477fe000 ? 0x7bff : half;
    half = size >= 0x477ff000 ? 0x7c00 : half;
    half = size > 0x7f800000 ? 0x7e00 : half;
    return (uint16_t)(half | (bits >> 16 & 0x8000));
}

/* Does the same for bfloat16, whose subnormal numbers are those of float32. */
IPU__INLINE uint16_t bfloat16_of(float x, uint32_t random)
{
    uint32_t bits = ipu__bits(x), size = bits & 0x7fffffff;
    uint32_t half = (size + (random & 0xffff)) >> 16;

    half = size >= 0x7f7f0000 ? 0x7f7f : half;
    half = size >= 0x7f7f8000 ? 0x7f80 : half;
    half = size > 0x7f800000 ? (size >> 16 | 0x40) : half;
    return (uint16_t)(half | (bits >> 16 & 0x8000));
}

IPU__WIDE(static, void, cast_float16,
          (uint16_t * y, const float *x, struct ipu__random r, int64_t first,
           int64_t count),
          (y, x, r, first, count))
{
    IPU__BY_ELEMENT
    for (int64_t i = 0; i < count; i++)
        y[i] = float16_of(x[i], ipu__random_bits(r, first + i));
}

IPU__WIDE(static, void, cast_bfloat16,
          (uint16_t * y, const float *x, struct ipu__random r, int64_t first,
           int64_t count),
          (y, x, r, first, count))
{
    IPU__BY_ELEMENT
    for (int64_t i = 0; i < count; i++)
        y[i] = bfloat16_of(x[i], ipu__random_bits(r, first + i));
}

static int run(const struct ipu__call *call)
{
    int64_t count = ipu__shape_count(&call->output.shape);
    struct ipu__random random = ipu__random_of(
        call->attributes->seed, *(const int32_t *)call->inputs[1].data, 4);

    if (call->attributes->size == IPU_FLOAT16)
        cast_float16(call->output.data, call->inputs[0].data, random,
                     call->first, count);
    else
        cast_bfloat16(call->output.data, call->inputs[0].data, random,
                      call->first, count);
    return IPU_OK;
}

static void gradient(ipu_graph *graph, const struct ipu__node *node,
                     ipu_tensor dy, ipu_tensor *dx)
{
    (void)node;
    dx[0] = ipu_cast(graph, dy, IPU_FLOAT32);
}

const struct ipu__op ipu__stochastic_cast = {
    .name = "stochastic_cast",
    .ninputs = 2,
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
