/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rows.c - sums, maxima and exponentials of rows, with the same bits for every
 * set of instructions.
 *
 * A sum is carried in IPU__LANES lanes, which are joined in a fixed order, so
 * that the width of a register does not show. Softmax, norms, attention and
 * reductions call these.
 */
#include "ops/rows.h"

#include <string.h>

#include "ops/functions.h"
#include "ops/op.h"

/* Each in lanes; what is left goes to the first lanes, so that one order
 * serves every count. */
static inline double fold(const double *lanes)
{
    double sum = 0;

    for (int l = 0; l < IPU__LANES; l++)
        sum += lanes[l];
    return sum;
}

IPU__WIDE(extern, double, ipu__row_sum, (const float *x, int64_t count),
          (x, count))
{
    double lanes[IPU__LANES] = {0};
    int64_t i = 0;

    for (; i + IPU__LANES <= count; i += IPU__LANES)
        for (int l = 0; l < IPU__LANES; l++)
            lanes[l] += (double)x[i + l];
    for (int l = 0; i + l < count; l++)
        lanes[l] += (double)x[i + l];
    return fold(lanes);
}

IPU__WIDE(extern, double, ipu__row_squares,
          (const float *x, float center, int64_t count), (x, center, count))
{
    double lanes[IPU__LANES] = {0};
    int64_t i = 0;

    for (; i + IPU__LANES <= count; i += IPU__LANES)
        for (int l = 0; l < IPU__LANES; l++) {
            float d = x[i + l] - center;

            lanes[l] += (double)(d * d);
        }
    for (int l = 0; i + l < count; l++) {
        float d = x[i + l] - center;

        lanes[l] += (double)(d * d);
    }
    return fold(lanes);
}

IPU__WIDE(extern, double, ipu__row_dot,
          (const float *a, const float *b, int64_t count), (a, b, count))
{
    double lanes[IPU__LANES] = {0};
    int64_t i = 0;

    for (; i + IPU__LANES <= count; i += IPU__LANES)
        for (int l = 0; l < IPU__LANES; l++)
            lanes[l] += (double)(a[i + l] * b[i + l]);
    for (int l = 0; i + l < count; l++)
        lanes[l] += (double)(a[i + l] * b[i + l]);
    return fold(lanes);
}

IPU__WIDE(extern, float, ipu__row_max,
          (float most, const float *x, int64_t count), (most, x, count))
{
    float lanes[IPU__LANES];
    int64_t i = 0;

    for (int l = 0; l < IPU__LANES; l++)
        lanes[l] = most;
    for (; i + IPU__LANES <= count; i += IPU__LANES) {
        IPU__BY_LANE
        for (int l = 0; l < IPU__LANES; l++)
            lanes[l] = ipu__larger(lanes[l], x[i + l]);
    }
    for (; i < count; i++)
        most = ipu__larger(most, x[i]);
    /* The lanes are added in halves; all but the last few are vectors. */
    for (int half = IPU__LANES / 2; half > 0; half /= 2)
        for (int l = 0; l < half; l++)
            lanes[l] = ipu__larger(lanes[l], lanes[l + half]);
    return ipu__larger(most, lanes[0]);
}

IPU__WIDE(extern, void, ipu__row_raise,
          (float *y, const float *x, int64_t count), (y, x, count))
{
    IPU__BY_ELEMENT
    for (int64_t i = 0; i < count; i++)
        y[i] = ipu__larger(y[i], x[i]);
}

IPU__WIDE(extern, float, ipu__row_min,
          (float least, const float *x, int64_t count), (least, x, count))
{
    float lanes[IPU__LANES];
    int64_t i = 0;

    for (int l = 0; l < IPU__LANES; l++)
        lanes[l] = least;
    for (; i + IPU__LANES <= count; i += IPU__LANES) {
        IPU__BY_LANE
        for (int l = 0; l < IPU__LANES; l++)
            lanes[l] = ipu__smaller(lanes[l], x[i + l]);
    }
    for (; i < count; i++)
        least = ipu__smaller(least, x[i]);
    /* The lanes are joined in halves; all but the last few are vectors. */
    for (int half = IPU__LANES / 2; half > 0; half /= 2)
        for (int l = 0; l < half; l++)
            lanes[l] = ipu__smaller(lanes[l], lanes[l + half]);
    return ipu__smaller(least, lanes[0]);
}

IPU__WIDE(extern, void, ipu__row_lower,
          (float *y, const float *x, int64_t count), (y, x, count))
{
    IPU__BY_ELEMENT
    for (int64_t i = 0; i < count; i++)
        y[i] = ipu__smaller(y[i], x[i]);
}

IPU__WIDE(static, void, exp_each,
          (float *y, const float *x, float most, int64_t count),
          (y, x, most, count))
{
    IPU__BY_ELEMENT
    for (int64_t i = 0; i < count; i++)
        y[i] = ipu__exp(x[i] - most);
}

double ipu__row_exp(float *y, const float *x, float most, int64_t count)
{
    exp_each(y, x, most, count);
    return ipu__row_sum(y, count);
}

/* Elements that need not be kept are worked on in stretches that stay in the
 * nearest cache. */
enum { STRETCH = 512 };

double ipu__row_exp_sum(const float *x, float most, int64_t count)
{
    float stretch[STRETCH];
    double sum = 0;

    for (int64_t i = 0; i < count; i += STRETCH) {
        int64_t n = count - i < STRETCH ? count - i : STRETCH;

        exp_each(stretch, x + i, most, n);
        sum += ipu__row_sum(stretch, n);
    }
    return sum;
}

IPU__WIDE(extern, void, ipu__row_scale, (float *x, float factor, int64_t count),
          (x, factor, count))
{
    for (int64_t i = 0; i < count; i++)
        x[i] *= factor;
}

IPU__WIDE(extern, void, ipu__row_accumulate,
          (double *sums, const float *x, int64_t count), (sums, x, count))
{
    IPU__BY_ELEMENT
    for (int64_t i = 0; i < count; i++)
        sums[i] += (double)x[i];
}
