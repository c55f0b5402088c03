/* SPDX-License-Identifier: Apache-2.0 */
/*
 * wide.c - reductions of integers that are averaged or scaled.
 *
 * They are combined in int64 (int64 itself in 128 bits, so that its average
 * cannot overflow). AVERAGE truncates toward zero; scale factors are applied
 * in long double (64 bits of mantissa on x86-64), so no integer loses digits
 * above 2^53, and truncate toward zero as well.
 *
 * The prescale truncates before the reduction, as Horovod does
 * (horovod/common/ops/collective_operations.h, ScaleBuffer).
 */
#include "kernels/wide.h"

#include <string.h>

/* Elements of an accumulator: 4 KiB of int64. */
enum { BLOCK = 512 };

__extension__ typedef __int128 int128;

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

#define NAME u8
#define T uint8_t
#define WIDE int64_t
#include "kernels/wide.inc"

#define NAME i8
#define T int8_t
#define WIDE int64_t
#include "kernels/wide.inc"

#define NAME u16
#define T uint16_t
#define WIDE int64_t
#include "kernels/wide.inc"

#define NAME i16
#define T int16_t
#define WIDE int64_t
#include "kernels/wide.inc"

#define NAME i32
#define T int32_t
#define WIDE int64_t
#include "kernels/wide.inc"

#define NAME i64
#define T int64_t
#define WIDE int128
#include "kernels/wide.inc"

void hvd__reduce_wide(const struct hvd__pass *pass, hvd_dtype dtype,
                      int divisor, double postscale)
{
    switch (dtype) {
    case HVD_UINT8: wide_u8(pass, divisor, postscale); break;
    case HVD_INT8: wide_i8(pass, divisor, postscale); break;
    case HVD_UINT16: wide_u16(pass, divisor, postscale); break;
    case HVD_INT16: wide_i16(pass, divisor, postscale); break;
    case HVD_INT32: wide_i32(pass, divisor, postscale); break;
    default: wide_i64(pass, divisor, postscale);
    }
}
