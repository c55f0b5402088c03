/* SPDX-License-Identifier: Apache-2.0 */
#include "expected.h"

#include <math.h>

enum { PATTERNS = 132 };

static int pattern_of(int64_t i)
{
    return (int)((i * 7 + i / 1000) % PATTERNS);
}

static int is_unsigned(hvd_dtype dtype)
{
    return dtype == HVD_UINT8 || dtype == HVD_UINT16;
}

int expected_is_integer(hvd_dtype dtype)
{
    return dtype <= HVD_INT64;
}

double expected_given(hvd_dtype dtype, hvd_op op, int rank, int64_t i)
{
    int pattern = pattern_of(i), mixed = pattern + rank * 5;

    if (dtype == HVD_BOOL)
        return (double)((pattern >> rank % 3) & 1);
    if (op == HVD_PRODUCT)
        return is_unsigned(dtype) ? (double)(mixed % 3 == 0 ? 2 : 1)
               : mixed % 3 == 0   ? -1
               : mixed % 4 == 0   ? 2
                                  : 1;
    return (double)(mixed % 11) - (is_unsigned(dtype) ? 0 : 5);
}

static double combine(hvd_dtype dtype, hvd_op op, double a, double b)
{
    if (dtype == HVD_BOOL)
        return op == HVD_SUM || op == HVD_MAX ? a != 0 || b != 0
                                              : a != 0 && b != 0;
    switch (op) {
    case HVD_MIN: return a < b ? a : b;
    case HVD_MAX: return a > b ? a : b;
    case HVD_PRODUCT: return a * b;
    default: return a + b;
    }
}

double expected_reduced(hvd_dtype dtype, hvd_op op, int nranks, const int *has,
                        int divisor, int64_t i)
{
    double result = 0;
    int n = 0;

    for (int rank = 0; rank < nranks; rank++) {
        double x = expected_given(dtype, op, rank, i);

        if (has && !has[rank])
            continue;
        result = n++ == 0 ? x : combine(dtype, op, result, x);
    }
    if (op == HVD_AVERAGE)
        result = expected_is_integer(dtype) ? trunc(result / divisor)
                                            : result / divisor;
    return result;
}

double expected_tolerance(hvd_dtype dtype, hvd_op op)
{
    if (op != HVD_AVERAGE || expected_is_integer(dtype))
        return 0;
    switch (dtype) {
    case HVD_FLOAT16: return 0x1p-11;
    case HVD_BFLOAT16: return 0x1p-8;
    case HVD_FLOAT32: return 0x1p-24;
    default: return 0x1p-53;
    }
}
