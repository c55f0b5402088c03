/* SPDX-License-Identifier: Apache-2.0 */
/*
 * wide.c - reductions of integers that are averaged or scaled.
 *
 * Integers are combined in int64, and int64 itself in 128 bits, so that its
 * average cannot overflow; only a product can wrap. AVERAGE truncates toward
 * zero. Scaling by a factor does so, too, by the prescale before the reduction,
 * as in Horovod (horovod/common/ops/collective_operations.h, ScaleBuffer).
 *
 * The product of an integer and a factor is rounded to a double before it is
 * truncated, as in numpy and Horovod. So 10 times 0.7 is 7, although the double
 * nearest to 0.7 is a little smaller than that, and the exact product a little
 * smaller than 7. If the integer or the product exceeds 2^53, a double cannot
 * hold all integers any more. Then the product is computed exactly instead, and
 * no digit is lost. A result that does not fit its type wraps modulo 2^bits, as
 * sums do.
 */
#include "kernels/wide.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

/* A block has 4 KiB of int64. */
enum { BLOCK = 512 };

__extension__ typedef __int128 int128;
__extension__ typedef unsigned __int128 uint128;

/* A double holds every integer up to LARGEST. */
#define LARGEST (INT64_C(1) << 53)

/* The factors of integers. Callers have refused a scale that is not finite. */
struct factor {
    double scale;
    int divisor;
};

/* A number of 192 bits, the lowest 64 of them first. */
enum { LIMBS = 3 };

/* Multiplies the limbs. value is less than 2^127, so that the product has
 * room. */
static void multiply(uint64_t *limbs, uint128 value, uint64_t by)
{
    uint128 low = (uint128)(uint64_t)value * by;
    uint128 high = (value >> 64) * by + (low >> 64);

    limbs[0] = (uint64_t)low;
    limbs[1] = (uint64_t)high;
    limbs[2] = (uint64_t)(high >> 64);
}

static void shift_right(uint64_t *limbs, unsigned bits)
{
    unsigned whole = bits / 64, rest = bits % 64;

    for (unsigned i = 0; i < LIMBS; i++) {
        uint64_t low = i + whole < LIMBS ? limbs[i + whole] : 0;
        uint64_t high = i + whole + 1 < LIMBS ? limbs[i + whole + 1] : 0;

        limbs[i] = (uint64_t)((((uint128)high << 64) | low) >> rest);
    }
}

/* Makes the limbs the quotient, rounded down, and returns the remainder. */
static uint64_t divide(uint64_t *limbs, uint64_t by)
{
    uint64_t rest = 0;

    for (int i = LIMBS - 1; i >= 0; i--) {
        uint128 part = (uint128)rest << 64 | limbs[i];

        limbs[i] = (uint64_t)(part / by);
        rest = (uint64_t)(part % by);
    }
    return rest;
}

/* Returns size * |scale| / divisor, rounded down, modulo 2^64; |scale| is an
 * integer of 53 bits times a power of 2. */
static uint64_t scale_size(uint128 size, const struct factor *f)
{
    uint64_t limbs[LIMBS], by = (uint64_t)f->divisor, rest, quotient;
    int exponent;

    multiply(limbs, size,
             (uint64_t)ldexp(frexp(fabs(f->scale), &exponent), 53));
    exponent -= 53;
    if (exponent < 0)
        shift_right(limbs, (unsigned)-exponent);
    rest = divide(limbs, by);
    quotient = limbs[0];
    /* The digits that follow come as many at a time as the remainder has room
     * for: a divisor has at most 31 bits. */
    while (exponent > 0) {
        int bits = exponent < 32 ? exponent : 32;

        quotient = quotient << bits | (rest << bits) / by;
        rest = (rest << bits) % by;
        exponent -= bits;
    }
    return quotient;
}

/* Scales without losing a digit. Infinity, which callers have refused, would
 * give 0. */
static uint64_t scale_exactly(int128 value, const struct factor *f)
{
    uint128 size = value < 0 ? -(uint128)value : (uint128)value;
    uint64_t scaled = isfinite(f->scale) ? scale_size(size, f) : 0;

    return (value < 0) != (f->scale < 0) ? -scaled : scaled;
}

/* Returns value * scale / divisor, by the rule above; a result of more than 64
 * bits wraps. */
static inline int64_t scale_integer(int128 value, const struct factor *f)
{
    if (value >= -LARGEST && value <= LARGEST) {
        double product = (double)(int64_t)value * f->scale;

        if (fabs(product) <= (double)LARGEST)
            return (int64_t)(product / f->divisor);
    }
    return (int64_t)scale_exactly(value, f);
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
