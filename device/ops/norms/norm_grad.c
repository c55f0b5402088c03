/* SPDX-License-Identifier: Apache-2.0 */
/*
 * norm_grad.c - derivatives of the normalisations. With z = (x - mean) f,
 * f = 1 / sqrt(variance + epsilon), and s the scale:
 *
 *     dx     = f (dy s - mean(dy s) - z mean(dy s z))
 *     dscale = sum(dy z)                    over outer and rows
 */
#include <string.h>

#include "base/error.h"
#include "ops/costs.h"
#include "ops/norms/norm.h"
#include "ops/rows.h"

/* Sums over rows, for each element of a row: of dy, and of dy z. */
struct sums {
    double *dy, *dyz;
};

IPU__WIDE(static, void, add_slopes,
          (const struct sums *sums, const float *dy, const float *x,
           const float *centers, const float *factors, int64_t count),
          (sums, dy, x, centers, factors, count))
{
    double *plain = sums->dy, *weighted = sums->dyz;

    IPU__BY_ELEMENT
    for (int64_t i = 0; i < count; i++) {
        plain[i] += (double)dy[i];
        weighted[i] += (double)(dy[i] * ((x[i] - centers[i]) * factors[i]));
    }
}

/* ----------------------------------------------------------------------- dx */

static int dx_shape(const struct ipu__call *call, struct ipu__shape *output)
{
    *output = call->inputs[1].shape;
    IPU_TRY(ipu__two_floats(call, output));
    IPU_TRY(ipu__norm_check_view(call, output));
    IPU_TRY(ipu__norm_check_statistics(call, 3));
    return ipu__norm_check_scale(call, &call->inputs[2].shape);
}

/* Two rows of double, four of float. */
static size_t dx_scratch(const struct ipu__call *call)
{
    return (size_t)ipu__norm_of(call->attributes).width *
           (2 * sizeof(double) + 4 * sizeof(float));
}

IPU__WIDE(static, void, scaled,
          (float *y, const float *dy, const float *scale, int64_t count),
          (y, dy, scale, count))
{
    IPU__BY_ELEMENT
    for (int64_t i = 0; i < count; i++)
        y[i] = dy[i] * scale[i];
}

IPU__WIDE(static, void, dx_row,
          (float *dx, const float *dys, const float *x, float center,
           float factor, float mean_dys, float mean_dysz, int64_t count),
          (dx, dys, x, center, factor, mean_dys, mean_dysz, count))
{
    IPU__BY_ELEMENT
    for (int64_t i = 0; i < count; i++)
        dx[i] =
            factor * (dys[i] - mean_dys - (x[i] - center) * factor * mean_dysz);
}

/* Computes dx of one group, a row, from its sums. dys is scratch. */
static void dx_of_one(const struct ipu__norm *n, float *dx, const float *dy,
                      const float *x, const float *scale, float center,
                      float variance, float *dys)
{
    float factor = ipu__norm_factor(n, variance);
    double number = (double)n->number, sum, dot;

    scaled(dys, dy, scale, n->width);
    sum = ipu__row_sum(dys, n->width);
    dot = (ipu__row_dot(dys, x, n->width) - sum * (double)center) *
          (double)factor;
    dx_row(dx, dys, x, center, factor, (float)(sum / number),
           (float)(dot / number), n->width);
}

IPU__WIDE(static, void, dx_wide,
          (float *dx, const float *dy, const float *x, const float *centers,
           const float *factors, const float *scale, const float *mean_dys,
           const float *mean_dysz, int64_t count),
          (dx, dy, x, centers, factors, scale, mean_dys, mean_dysz, count))
{
    IPU__BY_ELEMENT
    for (int64_t i = 0; i < count; i++)
        dx[i] = factors[i] * (dy[i] * scale[i] - mean_dys[i] -
                              (x[i] - centers[i]) * factors[i] * mean_dysz[i]);
}

/* The mean over a group of sums times scale, for each element of a row. */
static void fold(const struct ipu__norm *n, const double *sums,
                 const float *scale, float *wide)
{
    for (int64_t g = 0; g < n->groups; g++) {
        double sum = 0;

        for (int64_t k = g * n->columns; k < (g + 1) * n->columns; k++)
            sum += sums[k] * (double)scale[k];
        for (int64_t k = 0; k < n->columns; k++)
            *wide++ = (float)(sum / (double)n->number);
    }
}

static void dx_of_many(const struct ipu__norm *n, float *dx, const float *dy,
                       const float *x, const float *scale, const float *mean,
                       const float *variance, void *scratch)
{
    int64_t w = n->width;
    struct sums sums = {scratch, (double *)scratch + w};
    float *centers = (void *)(sums.dyz + w), *factors = centers + w;
    float *mean_dys = factors + w, *mean_dysz = mean_dys + w;

    ipu__norm_widen(n, centers, mean);
    ipu__norm_factors(n, factors, variance);
    memset(scratch, 0, (size_t)w * 2 * sizeof(double));
    for (int64_t r = 0; r < n->rows; r++)
        add_slopes(&sums, dy + r * w, x + r * w, centers, factors, w);
    fold(n, sums.dy, scale, mean_dys);
    fold(n, sums.dyz, scale, mean_dysz);
    for (int64_t r = 0; r < n->rows; r++)
        dx_wide(dx + r * w, dy + r * w, x + r * w, centers, factors, scale,
                mean_dys, mean_dysz, w);
}

static int run_dx(const struct ipu__call *call)
{
    const struct ipu__norm n = ipu__norm_of(call->attributes);
    const float *dy = call->inputs[0].data, *x = call->inputs[1].data;
    const float *scale = call->inputs[2].data, *mean = call->inputs[3].data;
    const float *variance = mean + n.outer * n.groups;
    float *dx = call->output.data;

    for (int64_t o = 0; o < n.outer; o++) {
        int64_t at = o * n.rows * n.width, g = o * n.groups;

        if (n.groups == 1 && n.rows == 1)
            dx_of_one(&n, dx + at, dy + at, x + at, scale, mean[g], variance[g],
                      call->scratch);
        else
            dx_of_many(&n, dx + at, dy + at, x + at, scale, mean + g,
                       variance + g, call->scratch);
    }
    return IPU_OK;
}

const struct ipu__op ipu__norm_grad = {
    .name = "norm_grad",
    .ninputs = 4,
    .last_wide = true,
    .in_place = IPU__FIRST,
    .by_row = true,
    .slots = IPU__NORM_GRAD_SLOTS,
    .half_slots = IPU__NORM_GRAD_HALVES,
    .loops = IPU__NORM_GRAD_LOOPS,
    .shape = dx_shape,
    .scratch = dx_scratch,
    .run = run_dx,
    .cost = ipu__norm_grad_cost,
};

/* ------------------------------------------------------------------- dscale */

static int dscale_shape(const struct ipu__call *call, struct ipu__shape *output)
{
    struct ipu__shape x;

    *output = call->attributes->shape;
    IPU_TRY(ipu__two_floats(call, &x));
    IPU_TRY(ipu__norm_check_view(call, &x));
    IPU_TRY(ipu__norm_check_statistics(call, 2));
    return ipu__norm_check_scale(call, output);
}

static int run_dscale(const struct ipu__call *call)
{
    const struct ipu__norm n = ipu__norm_of(call->attributes);
    int64_t w = n.width;
    const float *dy = call->inputs[0].data, *x = call->inputs[1].data;
    const float *mean = call->inputs[2].data;
    const float *variance = mean + n.outer * n.groups;
    struct sums sums = {call->scratch, (double *)call->scratch + w};
    float *centers = (void *)(sums.dyz + w), *factors = centers + w;
    float *y = call->output.data;

    memset(call->scratch, 0, (size_t)w * 2 * sizeof(double));
    for (int64_t o = 0; o < n.outer; o++) {
        ipu__norm_widen(&n, centers, mean + o * n.groups);
        ipu__norm_factors(&n, factors, variance + o * n.groups);
        for (int64_t r = 0; r < n.rows; r++, dy += w, x += w)
            add_slopes(&sums, dy, x, centers, factors, w);
    }
    for (int64_t i = 0; i < w; i++)
        y[i] = (float)sums.dyz[i];
    return IPU_OK;
}

const struct ipu__op ipu__norm_scale_grad = {
    .name = "norm_scale_grad",
    .ninputs = 3,
    .last_wide = true,
    .slots = IPU__SCALE_GRAD_SLOTS,
    .half_slots = IPU__SCALE_GRAD_HALVES,
    .loops = IPU__SCALE_GRAD_LOOPS,
    .shape = dscale_shape,
    .scratch = dx_scratch,
    .run = run_dscale,
    .cost = ipu__scale_grad_cost,
};
