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
#include "ops/columns.h"
#include "ops/costs.h"
#include "ops/norms/norm.h"
#include "ops/rows.h"

/* Sums over rows, for each element of a row: of dy, and of dy (x - mean); and
 * of dy z over all rows. */
struct sums {
    double *dy, *dyz, *dscale;
    float *centers, *factors; /* of the rows that were added last */
    float *room;
};

enum { FLOATS = 2 + IPU__COLUMNS_ROOM }; /* of each element of a row */

/* Lays sums out in scratch of three rows of double, and FLOATS of float. */
static struct sums new_sums(const struct ipu__norm *n, void *scratch)
{
    struct sums s = {.dy = scratch};

    s.dyz = s.dy + n->width;
    s.dscale = s.dyz + n->width;
    s.centers = (void *)(s.dscale + n->width);
    s.factors = s.centers + n->width;
    s.room = s.factors + n->width;
    memset(s.dscale, 0, (size_t)n->width * sizeof *s.dscale);
    return s;
}

/* Makes the sums of n->rows rows of dy and x: [2, width]. */
static void make_sums(const struct ipu__norm *n, const float *dy,
                      const float *x, const float *centers, double *sums,
                      float *room)
{
    memset(sums, 0, (size_t)n->width * 2 * sizeof *sums);
    ipu__columns_slopes(n->rows, n->width, dy, x, centers, sums,
                        sums + n->width, room);
}

/* Sets the sums to those of the rows of outer number o. */
static void add_rows(const struct ipu__call *call, const struct ipu__norm *n,
                     const struct sums *s, int64_t o)
{
    const float *dy = call->inputs[0].data, *x = call->inputs[1].data;
    const float *mean = call->inputs[call->op->ninputs - 1].data;
    int64_t at = o * n->rows * n->width;

    mean += o * n->groups;
    ipu__norm_widen(n, s->centers, mean);
    ipu__norm_factors(n, s->factors, mean + n->outer * n->groups);
    if (call->sums)
        memcpy(s->dy, call->sums, (size_t)n->width * 2 * sizeof *s->dy);
    else
        make_sums(n, dy + at, x + at, s->centers, s->dy, s->room);
}

bool ipu__norm_has_sums(const struct ipu__op *op)
{
    return op == &ipu__norm_grad || op == &ipu__norm_scale_grad;
}

size_t ipu__norm_sums_bytes(const struct ipu__attributes *attributes)
{
    return (size_t)ipu__norm_of(attributes).width *
           (2 * sizeof(double) + IPU__COLUMNS_ROOM * sizeof(float));
}

void ipu__norm_sums(const struct ipu__call *call, double *sums)
{
    const struct ipu__norm n = ipu__norm_of(call->attributes);

    make_sums(&n, call->inputs[0].data, call->inputs[1].data,
              call->inputs[call->op->ninputs - 1].data, sums,
              (void *)(sums + 2 * n.width));
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

static size_t dx_scratch(const struct ipu__call *call)
{
    return (size_t)ipu__norm_of(call->attributes).width *
           (3 * sizeof(double) + FLOATS * sizeof(float));
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

/* dx = each dy - z slope - constant, where z is not multiplied yet. */
struct slopes {
    const float *centers;
    float *each, *slope, *constant;
};

IPU__WIDE(static, void, dx_wide,
          (float *dx, const float *dy, const float *x, const struct slopes *s,
           int64_t rows, int64_t width),
          (dx, dy, x, s, rows, width))
{
    const float *centers = s->centers, *each = s->each, *slope = s->slope;
    const float *constant = s->constant;

    for (int64_t r = 0; r < rows; r++, dx += width, dy += width, x += width) {
        IPU__BY_ELEMENT
        for (int64_t i = 0; i < width; i++)
            dx[i] =
                dy[i] * each[i] - constant[i] - (x[i] - centers[i]) * slope[i];
    }
}

/* Finds the slopes of a group's elements from its sums; factor is the group's,
 * and each has the scale. */
static void find_group(const struct ipu__norm *n, const struct sums *sums,
                       const struct slopes *s, float factor, int64_t first)
{
    double dys = 0, dysz = 0, number = (double)n->number;

    for (int64_t k = first; k < first + n->columns; k++) {
        dys += sums->dy[k] * (double)s->each[k];
        dysz += sums->dyz[k] * (double)s->each[k];
    }
    for (int64_t k = first; k < first + n->columns; k++) {
        s->each[k] *= factor;
        s->constant[k] = factor * (float)(dys / number);
        s->slope[k] = (float)(dysz * (double)factor * (double)factor *
                              (double)factor / number);
    }
}

static void dx_of_many(const struct ipu__norm *n, int64_t o,
                       const struct ipu__call *call)
{
    const float *dy = call->inputs[0].data, *x = call->inputs[1].data;
    const struct sums sums = new_sums(n, call->scratch);
    const struct slopes s = {.centers = sums.centers,
                             .each = sums.room,
                             .slope = sums.room + n->width,
                             .constant = sums.room + 2 * n->width};
    int64_t at = o * n->rows * n->width;

    add_rows(call, n, &sums, o);
    memcpy(s.each, call->inputs[2].data, (size_t)n->width * sizeof *s.each);
    for (int64_t g = 0; g < n->groups; g++)
        find_group(n, &sums, &s, sums.factors[g * n->columns], g * n->columns);
    dx_wide((float *)call->output.data + at, dy + at, x + at, &s, n->rows,
            n->width);
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
            dx_of_many(&n, o, call);
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

IPU__WIDE(static, void, add_row,
          (double *dscale, const float *dy, const float *x, float center,
           float factor, int64_t count),
          (dscale, dy, x, center, factor, count))
{
    IPU__BY_ELEMENT
    for (int64_t i = 0; i < count; i++)
        dscale[i] += (double)(dy[i] * ((x[i] - center) * factor));
}

/* Adds what each row gives that has a mean of its own. */
static void add_rows_of_one(const struct ipu__norm *n, double *dscale,
                            const struct ipu__call *call)
{
    const float *dy = call->inputs[0].data, *x = call->inputs[1].data;
    const float *mean = call->inputs[2].data, *variance = mean + n->outer;

    for (int64_t o = 0; o < n->outer; o++)
        add_row(dscale, dy + o * n->width, x + o * n->width, mean[o],
                ipu__norm_factor(n, variance[o]), n->width);
}

/* Adds what rows give that have a mean in common. */
static void add_rows_of_many(const struct ipu__norm *n, const struct sums *s,
                             const struct ipu__call *call)
{
    for (int64_t o = 0; o < n->outer; o++) {
        add_rows(call, n, s, o);
        for (int64_t i = 0; i < n->width; i++)
            s->dscale[i] += s->dyz[i] * (double)s->factors[i];
    }
}

static int run_dscale(const struct ipu__call *call)
{
    const struct ipu__norm n = ipu__norm_of(call->attributes);
    const struct sums s = new_sums(&n, call->scratch);
    float *y = call->output.data;

    if (n.groups == 1 && n.rows == 1)
        add_rows_of_one(&n, s.dscale, call);
    else if (n.rows > 0) /* the statistics of none are NaN */
        add_rows_of_many(&n, &s, call);
    for (int64_t i = 0; i < n.width; i++)
        y[i] = (float)s.dscale[i];
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
