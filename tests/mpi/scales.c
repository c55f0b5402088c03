/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Integers that are scaled before and after a reduction follow the rule of
 * hvd.h, which is written down here once more: every value of the 8 and 16-bit
 * types, and small, large and outermost values of the larger types.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "ranks.h"

__extension__ typedef __int128 wide;

enum { MOST = 1 << 16, FEW = 4096 };

static const hvd_op ops[] = {HVD_AVERAGE, HVD_SUM, HVD_MIN, HVD_MAX};
enum { OPS = sizeof ops / sizeof *ops };

static int reduce_scaled(hvd_dtype dtype, hvd_op op, const void *in, void *out,
                         int64_t count, double prescale, double postscale)
{
    hvd_request request = ranks_sum(dtype, in, out, &count);

    request.op = op;
    request.prescale = prescale;
    request.postscale = postscale;
    return ranks_run(&request);
}

/* The value that has the low bits of this one. */
static int64_t wrapped(hvd_dtype dtype, int64_t value)
{
    switch (dtype) {
    case HVD_UINT8: return (uint8_t)value;
    case HVD_INT8: return (int8_t)value;
    case HVD_UINT16: return (uint16_t)value;
    case HVD_INT16: return (int16_t)value;
    case HVD_INT32: return (int32_t)value;
    default: return value;
    }
}

static void put(hvd_dtype dtype, void *to, int64_t i, int64_t value)
{
    size_t bytes = (size_t)hvd_dtype_size(dtype);

    memcpy((char *)to + (size_t)i * bytes, &value, bytes);
}

static int64_t get(hvd_dtype dtype, const void *from, int64_t i)
{
    size_t bytes = (size_t)hvd_dtype_size(dtype);
    int64_t value = 0;

    memcpy(&value, (const char *)from + (size_t)i * bytes, bytes);
    return wrapped(dtype, value);
}

static wide combine(hvd_op op, wide a, wide b)
{
    return op == HVD_MIN   ? (a < b ? a : b)
           : op == HVD_MAX ? (a > b ? a : b)
                           : a + b;
}

/* ------------------------------------------------------ small values
 *
 * Products stay below 2^53: each is rounded to a double. */

/* All values of 8 and 16 bits come on every rank, in another order. */
static int64_t small_value(hvd_dtype dtype, int rank, int64_t i)
{
    static const int64_t ends[] = {INT32_MIN, INT32_MAX, -1, 0, 1, 10, -100};

    if (hvd_dtype_size(dtype) < 4)
        return wrapped(dtype, i + rank * 37);
    return i < 7 ? ends[(i + rank) % 7]
                 : (int32_t)((uint32_t)(i + rank) * 2654435761u) >> i % 31;
}

static int64_t small_result(hvd_dtype dtype, hvd_op op, int64_t i,
                            double prescale, double postscale)
{
    int n = ranks_size();
    wide sum = 0;

    for (int rank = 0; rank < n; rank++) {
        double value = (double)small_value(dtype, rank, i) * prescale;
        wide x = wrapped(dtype, (int64_t)trunc(value));

        sum = rank == 0 ? x : combine(op, sum, x);
    }
    return wrapped(dtype, (int64_t)trunc((double)sum * postscale /
                                         (op == HVD_AVERAGE ? n : 1)));
}

static void check_small(hvd_dtype dtype, hvd_op op, double prescale,
                        double postscale)
{
    size_t bytes = (size_t)hvd_dtype_size(dtype);
    int64_t count = bytes == 1 ? 256 : bytes == 2 ? MOST : FEW;
    char *in = ranks_memory((size_t)count * bytes);
    char *out = ranks_memory((size_t)count * bytes);

    for (int64_t i = 0; i < count; i++)
        put(dtype, in, i, small_value(dtype, ranks_rank(), i));
    ck_hvd(reduce_scaled(dtype, op, in, out, count, prescale, postscale));
    for (int64_t i = 0; i < count; i++) {
        int64_t wanted = small_result(dtype, op, i, prescale, postscale);

        if (get(dtype, out, i) != wanted)
            ck_abort_msg("%s %s, prescale %g, postscale %g: element %lld is "
                         "%lld, not %lld",
                         hvd_dtype_name(dtype), hvd_op_name(op), prescale,
                         postscale, (long long)i, (long long)get(dtype, out, i),
                         (long long)wanted);
    }
    hvd_free(in);
    hvd_free(out);
}

LOOP_TEST(products_are_rounded_to_doubles, 0, 8)
{
    static const struct {
        double before, after;
    } scales[] = {{0.7, 1},   {1, 0.37},    {0.3, -2.6},   {-0.01, 100},
                  {2.5, 0.4}, {1, 255.999}, {1e-320, 0.5}, {1, 1e5}};

    for (hvd_dtype dtype = HVD_UINT8; dtype <= HVD_INT64; dtype++)
        for (int o = 0; o < OPS; o++)
            check_small(dtype, ops[o], scales[_i].before, scales[_i].after);
}

/* ------------------------------------------------------ large values
 *
 * The factor is a fraction, so that 128 bits hold the exact product. */

/* All ranks have values of one sign and one size. Values whose sums do not
 * exceed 2^53 are so small that the products are exact in a double. */
static int64_t large_value(int rank, int64_t i)
{
    uint64_t bits = (uint64_t)(i + 1) * 0x9e3779b97f4a7c15u + (uint64_t)rank;
    int64_t size = (int64_t)(bits >> 1);

    size = i % 3 == 0 ? size >> 28 : size | (int64_t)1 << 60;
    return i < 2 ? (i ? INT64_MAX : -INT64_MAX) : i % 2 ? size : -size;
}

static int64_t large_result(hvd_op op, int64_t i, int times, int shift)
{
    int n = ranks_size();
    wide sum = 0, result;

    for (int rank = 0; rank < n; rank++) {
        wide x = large_value(rank, i);

        sum = rank == 0 ? x : combine(op, sum, x);
    }
    result = sum * times / ((wide)1 << shift);
    /* Dividing twice gives the quotient by the product. */
    return (int64_t)(uint64_t)(result / (op == HVD_AVERAGE ? n : 1));
}

LOOP_TEST(beyond_2_to_the_53_products_are_exact, 0, 6)
{
    static const struct {
        int times, shift;
    } factors[] = {{1, 1}, {3, 0}, {-5, 2}, {1, 40}, {1001, 10}, {65537, 0}};
    int times = factors[_i].times, shift = factors[_i].shift;
    int64_t *in = ranks_memory(FEW * sizeof *in);
    int64_t *out = ranks_memory(FEW * sizeof *out);

    for (int o = 0; o < OPS; o++) {
        for (int64_t i = 0; i < FEW; i++)
            in[i] = large_value(ranks_rank(), i);
        ck_hvd(reduce_scaled(HVD_INT64, ops[o], in, out, FEW, 1,
                             ldexp(times, -shift)));
        for (int64_t i = 0; i < FEW; i++) {
            int64_t wanted = large_result(ops[o], i, times, shift);

            if (out[i] != wanted)
                ck_abort_msg("%s of %d / 2^%d: element %lld is %lld, not %lld",
                             hvd_op_name(ops[o]), times, shift, (long long)i,
                             (long long)out[i], (long long)wanted);
        }
    }
    hvd_free(in);
    hvd_free(out);
}

/* The examples of the manual page. */
TEST(ten_times_seven_tenths_is_seven)
{
    int32_t value = 10, result;
    int8_t small = 100, wraps;

    ck_hvd(reduce_scaled(HVD_INT32, HVD_MAX, &value, &result, 1, 0.7, 1));
    ck_assert_int_eq(result, 7);
    value = 100;
    ck_hvd(reduce_scaled(HVD_INT32, HVD_AVERAGE, &value, &result, 1, 1, 0.37));
    ck_assert_int_eq(result, 37);
    ck_hvd(reduce_scaled(HVD_INT8, HVD_MIN, &small, &wraps, 1, 1, 2));
    ck_assert_int_eq(wraps, -56);
}

TEST(scales_must_be_finite)
{
    int32_t value = 10, result = 5;

    ck_assert_int_eq(
        reduce_scaled(HVD_INT32, HVD_SUM, &value, &result, 1, INFINITY, 1),
        HVD_ERR_ARGUMENT);
    ck_assert_int_eq(
        reduce_scaled(HVD_INT32, HVD_SUM, &value, &result, 1, 1, NAN),
        HVD_ERR_ARGUMENT);
    ck_assert_int_eq(result, 5);
}

RANKS_TEST_MAIN(HVD_STARTS_MPI, "mpi_scales")
