/* SPDX-License-Identifier: Apache-2.0 */
/*
 * adasum.c - the arithmetic of an adaptive sum of two vectors.
 *
 *     a' = (1 - a·b / 2|a|²) a + (1 - a·b / 2|b|²) b
 *
 * Orthogonal vectors are added, parallel ones averaged. Source: Maleki et
 * al., Scaling Distributed Training with Adaptive Summation (2020). The dot
 * products are summed in double; a vector of (nearly) no length counts whole,
 * as in Horovod (common/ops/adasum/adasum.h).
 */
#include <float.h>
#include <math.h>

#include "kernels/kernels.h"

#define DOTS(name, T)                                                          \
    static void name(const T *a, const T *b, int64_t count, double *dots)      \
    {                                                                          \
        double aa = 0, ab = 0, bb = 0;                                         \
        for (int64_t i = 0; i < count; i++) {                                  \
            aa += (double)a[i] * (double)a[i];                                 \
            ab += (double)a[i] * (double)b[i];                                 \
            bb += (double)b[i] * (double)b[i];                                 \
        }                                                                      \
        dots[0] = aa;                                                          \
        dots[1] = ab;                                                          \
        dots[2] = bb;                                                          \
    }

#define COMBINE(name, T)                                                       \
    static void name(T *out, const T *a, double ca, const T *b, double cb,     \
                     int64_t count)                                            \
    {                                                                          \
        for (int64_t i = 0; i < count; i++)                                    \
            out[i] = (T)(ca * (double)a[i] + cb * (double)b[i]);               \
    }

DOTS(dots_float, float)
DOTS(dots_double, double)
COMBINE(combine_float, float)
COMBINE(combine_double, double)

void hvd__adasum_dots(hvd_dtype dtype, const void *a, const void *b,
                      int64_t count, double dots[3])
{
    if (dtype == HVD_FLOAT64)
        dots_double(a, b, count, dots);
    else
        dots_float(a, b, count, dots);
}

static double coefficient(double ab, double square)
{
    return square < sqrt(DBL_MIN) ? 1 : 1 - ab / (2 * square);
}

void hvd__adasum_combine(hvd_dtype dtype, void *out, const void *a,
                         const void *b, int64_t count, const double dots[3])
{
    double ca = coefficient(dots[1], dots[0]);
    double cb = coefficient(dots[1], dots[2]);

    if (dtype == HVD_FLOAT64)
        combine_double(out, a, ca, b, cb, count);
    else
        combine_float(out, a, ca, b, cb, count);
}
