/* SPDX-License-Identifier: Apache-2.0 */
#include "expected.h"

#include <math.h>
#include <string.h>

#include "ranks.h"

/* STEP_INVERSE * STEP is 1 modulo the period. */
enum { STEP = 7, STEP_INVERSE = 19 };

/* Element i depends on i only through this number. */
static int pattern_of(int64_t i)
{
    return (int)((i * STEP + i / EXPECTED_RUN) % EXPECTED_PERIOD);
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

/* ------------------------------------------------------------ whole tensors */

static struct expected tabulate(hvd_dtype dtype, hvd_op op, int rank,
                                int nranks)
{
    struct expected tensor = {.dtype = dtype};
    size_t period = EXPECTED_PERIOD * (size_t)hvd_dtype_size(dtype);
    size_t rest = EXPECTED_RUN * (size_t)hvd_dtype_size(dtype);

    for (int64_t i = 0; i < EXPECTED_PERIOD; i++) {
        tensor.values[i] =
            nranks > 0 ? expected_reduced(dtype, op, nranks, NULL, nranks, i)
                       : expected_given(dtype, op, rank, i);
        element_put(dtype, tensor.sequence, i, tensor.values[i]);
    }
    for (size_t i = 0; i < rest; i += period)
        memcpy(tensor.sequence + period + i, tensor.sequence,
               rest - i < period ? rest - i : period);
    return tensor;
}

struct expected expected_tensor(hvd_dtype dtype, hvd_op op, int rank)
{
    return tabulate(dtype, op, rank, 0);
}

struct expected expected_result(hvd_dtype dtype, hvd_op op, int nranks)
{
    struct expected tensor = tabulate(dtype, op, 0, nranks);

    tensor.tolerance = expected_tolerance(dtype, op);
    return tensor;
}

/* Returns the place of element i in the sequence. */
static int64_t place_of(int64_t i)
{
    return pattern_of(i) * STEP_INVERSE % EXPECTED_PERIOD;
}

/* Returns the number of elements from i on, up to the end of their run or to
 * count of them, and their place in the sequence. */
static int64_t find_run(const struct expected *tensor, int64_t i, int64_t count,
                        const char **at)
{
    int64_t n = EXPECTED_RUN - i % EXPECTED_RUN;

    *at = tensor->sequence + place_of(i) * hvd_dtype_size(tensor->dtype);
    return n < count ? n : count;
}

void expected_fill(const struct expected *tensor, int64_t first, int64_t count,
                   void *out)
{
    int64_t bytes = hvd_dtype_size(tensor->dtype), n;
    const char *run;

    for (int64_t i = 0; i < count; i += n) {
        n = find_run(tensor, first + i, count - i, &run);
        memcpy((char *)out + i * bytes, run, (size_t)(n * bytes));
    }
}

static int is_right(const struct expected *tensor, double got, double want)
{
    return fabs(got - want) <= tensor->tolerance * fabs(want);
}

int64_t expected_difference(const struct expected *tensor, int64_t first,
                            int64_t count, const void *data, double *want)
{
    int64_t bytes = hvd_dtype_size(tensor->dtype), n;
    const char *run;

    for (int64_t i = 0; i < count; i += n) {
        const char *at = (const char *)data + i * bytes;

        n = find_run(tensor, first + i, count - i, &run);
        if (memcmp(at, run, (size_t)(n * bytes)) == 0)
            continue;
        /* Bits may differ although values are equal, or near enough. */
        for (int64_t k = 0; k < n; k++) {
            *want = tensor->values[place_of(first + i + k)];
            if (!is_right(tensor, element_get(tensor->dtype, at, k), *want))
                return i + k;
        }
    }
    return -1;
}
