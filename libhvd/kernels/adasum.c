/* SPDX-License-Identifier: Apache-2.0 */
/*
 * adasum.c - the arithmetic of an adaptive sum of two vectors.
 *
 *     a' = (1 - a·b / 2|a|²) a + (1 - a·b / 2|b|²) b
 *
 * Orthogonal vectors are added, parallel ones averaged. Source: Maleki et al.,
 * Scaling Distributed Training with Adaptive Summation (2020). The dot products
 * are summed in double; a vector of (nearly) no length counts in full, as in
 * Horovod (common/ops/adasum/adasum.h).
 */
#include <float.h>
#include <math.h>

#include "kernels/kernels.h"
#include "kernels/variant.h"

void hvd__adasum_dots(hvd_dtype dtype, const void *a, const void *b,
                      int64_t count, double dots[3])
{
    const struct hvd__kernel_variant *v = hvd__kernel_variant();

    (dtype == HVD_FLOAT64 ? v->dots_f64 : v->dots_f32)(a, b, count, dots);
}

static double coefficient(double ab, double square)
{
    return square < sqrt(DBL_MIN) ? 1 : 1 - ab / (2 * square);
}

void hvd__adasum_combine(hvd_dtype dtype, void *out, const void *a,
                         const void *b, int64_t count, const double dots[3])
{
    const struct hvd__kernel_variant *v = hvd__kernel_variant();
    double ca = coefficient(dots[1], dots[0]);
    double cb = coefficient(dots[1], dots[2]);

    (dtype == HVD_FLOAT64 ? v->blend_f64 : v->blend_f32)(out, a, ca, b, cb,
                                                         count);
}
