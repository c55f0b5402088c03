/* SPDX-License-Identifier: Apache-2.0 */
/*
 * half.c - float16 and bfloat16: conversions, and the run of an op on halves.
 *
 * Widening is exact; narrowing rounds to the nearest, of two as near to the
 * even one. The op itself sees float32 alone: inputs are widened into scratch
 * memory, and the output is narrowed from there. The engine and the compiler
 * (which computes constants) run ops through ipu__run_wide.
 */
#include "ops/half.h"

#include <string.h>

#include "base/error.h"
#include "ops/functions.h"

/* -------------------------------------------------------------- one element */

/* No step of it has a subnormal float, which the engine takes for zero. */
static inline float wide_of_float16(uint16_t half)
{
    uint32_t size = half & 0x7fff;
    uint32_t small = ipu__bits((float)(int32_t)size * 0x1p-24f);
    uint32_t bits = size < 0x400 ? small : (size << 13) + 0x38000000;

    bits |= size >= 0x7c00 ? 0x7f800000 : 0; /* infinity, NaN */
    return ipu__float(bits | (uint32_t)(half & 0x8000) << 16);
}

/* Adding 1/2 rounds a float to what float16's subnormal numbers can be. */
static inline uint16_t float16_of(float x)
{
    uint32_t bits = ipu__bits(x), size = bits & 0x7fffffff;
    uint32_t small = ipu__bits(ipu__float(size) + 0.5f) - 0x3f000000;
    uint32_t normal = (size - 0x38000000 + 0xfff + (size >> 13 & 1)) >> 13;
    uint32_t large = size > 0x7f800000 ? 0x7e00 : 0x7c00;
    uint32_t half = size < 0x38800000 ? small : normal;

    half = size >= 0x47800000 ? large : half;
    return (uint16_t)(half | (bits >> 16 & 0x8000));
}

static inline uint16_t bfloat16_of(float x)
{
    uint32_t bits = ipu__bits(x);
    uint32_t rounded = (bits + 0x7fff + (bits >> 16 & 1)) >> 16;

    return (uint16_t)(x == x ? rounded : bits >> 16 | 0x40);
}

/* ------------------------------------------------------------------- arrays */

IPU__WIDE(static, void, widen_float16,
          (float *to, const uint16_t *from, int64_t count), (to, from, count))
{
    for (int64_t i = 0; i < count; i++)
        to[i] = wide_of_float16(from[i]);
}

IPU__WIDE(static, void, widen_bfloat16,
          (float *to, const uint16_t *from, int64_t count), (to, from, count))
{
    for (int64_t i = 0; i < count; i++)
        to[i] = ipu__float((uint32_t)from[i] << 16);
}

IPU__WIDE(static, void, narrow_float16,
          (uint16_t * to, const float *from, int64_t count), (to, from, count))
{
    for (int64_t i = 0; i < count; i++)
        to[i] = float16_of(from[i]);
}

IPU__WIDE(static, void, narrow_bfloat16,
          (uint16_t * to, const float *from, int64_t count), (to, from, count))
{
    for (int64_t i = 0; i < count; i++)
        to[i] = bfloat16_of(from[i]);
}

void ipu__widen(ipu_dtype dtype, float *to, const void *from, int64_t count)
{
    if (dtype == IPU_FLOAT16)
        widen_float16(to, from, count);
    else
        widen_bfloat16(to, from, count);
}

void ipu__narrow(ipu_dtype dtype, void *to, const float *from, int64_t count)
{
    if (dtype == IPU_FLOAT16)
        narrow_float16(to, from, count);
    else
        narrow_bfloat16(to, from, count);
}

/* -------------------------------------------------------------------- calls */

static size_t wide_bytes(const struct ipu__operand *operand)
{
    size_t bytes = ipu__shape_bytes(&operand->shape);

    if (operand->dtype == operand->shape.dtype)
        return 0;
    return ipu__aligned(bytes);
}

static size_t own_scratch(const struct ipu__call *call)
{
    size_t bytes = call->op->scratch ? call->op->scratch(call) : 0;

    return ipu__aligned(bytes);
}

size_t ipu__wide_scratch(const struct ipu__call *call)
{
    size_t bytes = wide_bytes(&call->output);

    for (int i = 0; i < call->op->ninputs; i++)
        bytes += wide_bytes(&call->inputs[i]);
    return bytes ? bytes + own_scratch(call) : 0;
}

int ipu__run_wide(struct ipu__call *call)
{
    char *scratch = (char *)call->scratch + own_scratch(call);
    void *narrow = call->output.data;

    for (int i = 0; i < call->op->ninputs; i++) {
        struct ipu__operand *x = &call->inputs[i];

        if (wide_bytes(x) == 0)
            continue;
        ipu__widen(x->dtype, (void *)scratch, x->data,
                   ipu__shape_count(&x->shape));
        x->data = scratch;
        scratch += wide_bytes(x);
    }
    if (wide_bytes(&call->output))
        call->output.data = scratch;
    IPU_TRY(call->op->run(call));
    if (wide_bytes(&call->output))
        ipu__narrow(call->output.dtype, narrow, call->output.data,
                    ipu__shape_count(&call->output.shape));
    return IPU_OK;
}
