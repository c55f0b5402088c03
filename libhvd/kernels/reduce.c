/* SPDX-License-Identifier: Apache-2.0 */
/*
 * reduce.c - the reduction of n buffers into one, for every dtype and op.
 *
 * reduce.inc holds the loops; this file says what they mean for each dtype:
 *
 *   integers   SUM and PRODUCT wrap modulo 2^bits, as they would in C with
 *              unsigned types. They are combined in int64 (int64 itself in
 *              128 bits, so that its average cannot overflow). AVERAGE
 *              truncates toward zero; scale factors are applied in long
 *              double (64 bits of mantissa on x86-64), so no integer loses
 *              digits above 2^53, and truncate toward zero as well.
 *   float16,   combined in float32 and rounded once, at the end.
 *   bfloat16
 *   bool       0 or not 0. SUM and MAX are or, PRODUCT and MIN are and.
 *
 * The prescale of an integer truncates before the reduction, as Horovod does
 * (horovod/common/ops/collective_operations.h, ScaleBuffer).
 */
#include "kernels/kernels.h"

#include <string.h>

#include "kernels/half.h"

/* Elements of an accumulator: 4 KiB in float32. */
enum { BLOCK = 1024 };

typedef __int128 int128;

/* A long double outside the range has no defined conversion: clamp to what
 * the widest accumulator holds safely, int64 then wraps it as it does sums.
 * NaN, from a factor of infinity times 0, becomes 0. */
static int128 truncate_scaled(long double value)
{
    const long double limit = 0x1p100L;

    if (value != value)
        return 0;
    if (value > limit)
        return (int128)limit;
    if (value < -limit)
        return -(int128)limit;
    return (int128)value;
}

static int128 scale_integer(int128 value, double factor)
{
    return truncate_scaled((long double)value * factor);
}

static int128 finish_integer(int128 value, const struct hvd__reduction *r,
                             int n)
{
    int divisor = r->op != HVD_AVERAGE ? 1 : r->divisor ? r->divisor : n;

    if (r->postscale == 1.0)
        return value / divisor;
    return truncate_scaled((long double)value * r->postscale / divisor);
}

/* Divides instead of multiplying by 1/n: the division rounds correctly. In
 * double, which is exact enough to round a float32 once. */
static inline double finish_float(double value, const struct hvd__reduction *r,
                                  int n)
{
    if (r->op == HVD_AVERAGE)
        value /= r->divisor ? r->divisor : n;
    return value * r->postscale;
}

#define NAME u8
#define T uint8_t
#define INTEGER int64_t
#include "kernels/reduce.inc"

#define NAME i8
#define T int8_t
#define INTEGER int64_t
#include "kernels/reduce.inc"

#define NAME u16
#define T uint16_t
#define INTEGER int64_t
#include "kernels/reduce.inc"

#define NAME i16
#define T int16_t
#define INTEGER int64_t
#include "kernels/reduce.inc"

#define NAME i32
#define T int32_t
#define INTEGER int64_t
#include "kernels/reduce.inc"

#define NAME i64
#define T int64_t
#define INTEGER int128
#include "kernels/reduce.inc"

#define NAME f16
#define T uint16_t
#define FLOAT float
#define TO_A hvd__from_float16
#define FROM_A hvd__to_float16
#include "kernels/reduce.inc"

#define NAME bf16
#define T uint16_t
#define FLOAT float
#define TO_A hvd__from_bfloat16
#define FROM_A hvd__to_bfloat16
#include "kernels/reduce.inc"

#define NAME f32
#define T float
#define FLOAT float
#include "kernels/reduce.inc"

#define NAME f64
#define T double
#define FLOAT double
#include "kernels/reduce.inc"

#define NAME b8
#define T uint8_t
#include "kernels/reduce.inc"

typedef void reduce_function(const struct hvd__reduction *, unsigned char *,
                             const void *const *, int, int64_t);

static reduce_function *const functions[HVD_NUM_DTYPES] = {
#define X(constant, name, bytes, suffix) [constant] = reduce_##suffix,
    HVD__DTYPES(X)
#undef X
};

void hvd__reduce(const struct hvd__reduction *reduction, void *out,
                 const void *const *sources, int nsources, int64_t count)
{
    functions[reduction->dtype](reduction, out, sources, nsources, count);
}

void hvd__reduce_to(const struct hvd__reduction *reduction, void *const *outs,
                    int nouts, const void *const *sources, int nsources,
                    int64_t count)
{
    size_t element = hvd__dtype_bytes(reduction->dtype);
    const void *from[64];

    for (int64_t start = 0; start < count; start += BLOCK) {
        int64_t n = count - start < BLOCK ? count - start : BLOCK;
        size_t offset = (size_t)start * element;
        for (int s = 0; s < nsources; s++)
            from[s] = (const char *)sources[s] + offset;
        hvd__reduce(reduction, (char *)outs[0] + offset, from, nsources, n);
        for (int o = 1; o < nouts; o++)
            memcpy((char *)outs[o] + offset, (char *)outs[0] + offset,
                   (size_t)n * element);
    }
}
