/* SPDX-License-Identifier: Apache-2.0 */
/*
 * norm.c - the normalisations: y = (x - mean) / sqrt(variance + epsilon) *
 * scale + offset.
 *
 * The mean and the variance are an op of their own, so that its result serves
 * the derivatives, too: [2, outer, groups], means before variances. Squares are
 * those of distances from a mean: x may be far from 0.
 *
 * With one group, sums go along rows; with several, element by element of a
 * row, and are folded in the end.
 */
#include "ops/norms/norm.h"
#include "ops/costs.h"

#include <math.h>
#include <string.h>

#include "base/error.h"
#include "ops/columns.h"
#include "ops/rows.h"

struct ipu__norm ipu__norm_of(const struct ipu__attributes *a)
{
    return (struct ipu__norm){
        .outer = a->view[0],
        .rows = a->view[1],
        .groups = a->view[2],
        .columns = a->view[3],
        .width = a->view[2] * a->view[3],
        .number = a->view[1] * a->view[3],
        .epsilon = a->offset,
    };
}

float ipu__norm_factor(const struct ipu__norm *n, float variance)
{
    return (float)(1 / sqrt((double)variance + n->epsilon));
}

void ipu__norm_widen(const struct ipu__norm *n, float *wide,
                     const float *by_group)
{
    for (int64_t g = 0; g < n->groups; g++)
        for (int64_t k = 0; k < n->columns; k++)
            *wide++ = by_group[g];
}

void ipu__norm_factors(const struct ipu__norm *n, float *wide,
                       const float *variances)
{
    for (int64_t g = 0; g < n->groups; g++) {
        float factor = ipu__norm_factor(n, variances[g]);

        for (int64_t k = 0; k < n->columns; k++)
            *wide++ = factor;
    }
}

/* -------------------------------------------------------------- statistics */

int ipu__norm_check_view(const struct ipu__call *call,
                         const struct ipu__shape *x)
{
    struct ipu__shape view = {.dtype = IPU_FLOAT32, .ndim = 4}, made;

    memcpy(view.extents, call->attributes->view, sizeof call->attributes->view);
    /* This checks that nothing overflows. */
    IPU_TRY(ipu__shape_make("a normalisation", view.dtype, view.ndim,
                            view.extents, &made));
    return ipu__expect_true(call,
                            ipu__shape_count(&view) == ipu__shape_count(x));
}

int ipu__norm_check_statistics(const struct ipu__call *call, int i)
{
    const struct ipu__shape *s = &call->inputs[i].shape;
    const int64_t *view = call->attributes->view;

    return ipu__expect_true(call, call->inputs[i].dtype == IPU_FLOAT32 &&
                                      s->ndim == 3 && s->extents[0] == 2 &&
                                      s->extents[1] == view[0] &&
                                      s->extents[2] == view[2]);
}

int ipu__norm_check_scale(const struct ipu__call *call,
                          const struct ipu__shape *scale)
{
    return ipu__expect_true(call, ipu__shape_count(scale) ==
                                      ipu__norm_of(call->attributes).width);
}

static int statistics_shape(const struct ipu__call *call,
                            struct ipu__shape *output)
{
    IPU_TRY(ipu__expect(call, 0, IPU_FLOAT32, -1, "of any shape"));
    IPU_TRY(ipu__norm_check_view(call, &call->inputs[0].shape));
    *output = (struct ipu__shape){.dtype = IPU_FLOAT32, .ndim = 3};
    output->extents[0] = 2;
    output->extents[1] = call->attributes->view[0];
    output->extents[2] = call->attributes->view[2];
    return IPU_OK;
}

static size_t statistics_scratch(const struct ipu__call *call)
{
    struct ipu__norm n = ipu__norm_of(call->attributes);

    return (size_t)n.width *
           (2 * sizeof(double) + IPU__COLUMNS_ROOM * sizeof(float));
}

static void statistics_of_one(const struct ipu__norm *n, const float *x,
                              float *mean, float *variance)
{
    double number = (double)n->number;

    *mean = (float)(ipu__row_sum(x, n->number) / number);
    *variance = (float)(ipu__row_squares(x, *mean, n->number) / number);
}

/* Joins the moments of each group's columns. */
static void fold(const struct ipu__norm *n, const double *means,
                 const double *squares, float *mean, float *variance)
{
    for (int64_t g = 0; g < n->groups; g++) {
        const double *m = means + g * n->columns;
        double sum = 0, all = 0;

        for (int64_t k = 0; k < n->columns; k++)
            sum += m[k];
        sum = sum * (double)n->rows / (double)n->number;
        for (int64_t k = 0; k < n->columns; k++)
            all += squares[g * n->columns + k] +
                   (m[k] - sum) * (m[k] - sum) * (double)n->rows;
        mean[g] = (float)sum;
        variance[g] = (float)(all / (double)n->number);
    }
}

static void statistics_of_many(const struct ipu__norm *n, const float *x,
                               double *means, float *mean, float *variance)
{
    double *squares = means + n->width;

    ipu__columns_moments(n->rows, n->width, x, means, squares,
                         (void *)(squares + n->width));
    fold(n, means, squares, mean, variance);
}

static int run_statistics(const struct ipu__call *call)
{
    const struct ipu__norm n = ipu__norm_of(call->attributes);
    const float *x = call->inputs[0].data;
    float *mean = call->output.data, *variance = mean + n.outer * n.groups;

    for (int64_t o = 0; o < n.outer; o++) {
        if (n.groups == 1)
            statistics_of_one(&n, x, mean, variance);
        else
            statistics_of_many(&n, x, call->scratch, mean, variance);
        x += n.rows * n.width;
        mean += n.groups;
        variance += n.groups;
    }
    return IPU_OK;
}

const struct ipu__op ipu__norm_statistics = {
    .name = "norm_statistics",
    .makes_wide = true,
    .ninputs = 1,
    .slots = IPU__STATISTICS_SLOTS,
    .half_slots = IPU__STATISTICS_HALVES,
    .loops = IPU__STATISTICS_LOOPS,
    .shape = statistics_shape,
    .scratch = statistics_scratch,
    .run = run_statistics,
    .cost = ipu__statistics_cost,
};

/* ----------------------------------------------------------- the three ops
 *
 * Inputs: x, scale, offset, statistics.
 */

static size_t scratch(const struct ipu__call *call)
{
    return (size_t)ipu__norm_of(call->attributes).width * 2 * sizeof(float);
}

IPU__WIDE(static, void, apply_one,
          (float *y, const float *x, float center, float factor,
           const float *scale, const float *offset, int64_t count),
          (y, x, center, factor, scale, offset, count))
{
    IPU__BY_ELEMENT
    for (int64_t i = 0; i < count; i++)
        y[i] = (x[i] - center) * factor * scale[i] + offset[i];
}

IPU__WIDE(static, void, apply_many,
          (float *y, const float *x, const float *centers, const float *factors,
           const float *offset, int64_t rows, int64_t width),
          (y, x, centers, factors, offset, rows, width))
{
    for (int64_t r = 0; r < rows; r++, x += width, y += width) {
        IPU__BY_ELEMENT
        for (int64_t i = 0; i < width; i++)
            y[i] = (x[i] - centers[i]) * factors[i] + offset[i];
    }
}

/* Normalises rows that are normalised by the same statistics, from number first
 * on. */
static void apply_rows(const struct ipu__call *call, const struct ipu__norm *n,
                       int64_t first, int64_t rows)
{
    const float *scale = call->inputs[1].data, *offset = call->inputs[2].data;
    const float *mean = call->inputs[3].data;
    const float *x = (const float *)call->inputs[0].data + first * n->width;
    float *y = (float *)call->output.data + first * n->width;
    int64_t at = first / n->rows * n->groups;
    const float *variance = mean + n->outer * n->groups + at;
    float *centers = call->scratch, *factors = centers + n->width;

    if (n->groups == 1) {
        for (int64_t r = 0; r < rows; r++)
            apply_one(y + r * n->width, x + r * n->width, mean[at],
                      ipu__norm_factor(n, *variance), scale, offset, n->width);
        return;
    }
    if (first % n->rows == 0) {
        ipu__norm_widen(n, centers, mean + at);
        ipu__norm_factors(n, factors, variance);
        for (int64_t i = 0; i < n->width; i++)
            factors[i] *= scale[i];
    }
    apply_many(y, x, centers, factors, offset, rows, n->width);
}

/* Elements that are handed over at a time: they stay in the nearest caches. */
enum { HANDED = 8192 };

/* Normalises; done NULL: no callback. */
static int run_in_parts(const struct ipu__call *call, ipu__done *done,
                        void *context)
{
    const struct ipu__norm n = ipu__norm_of(call->attributes);
    int64_t block = n.width > 0 && n.width < HANDED ? HANDED / n.width : 1;

    for (int64_t first = 0, rows; first < n.outer * n.rows; first += rows) {
        int64_t left = n.rows - first % n.rows;

        rows = left < block ? left : block;
        apply_rows(call, &n, first, rows);
        if (done)
            done(context, first * n.width, rows * n.width);
    }
    return IPU_OK;
}

static int run(const struct ipu__call *call)
{
    return run_in_parts(call, NULL, NULL);
}

/* The derivative through the statistics is in that by x. */
static void gradient(ipu_graph *graph, const struct ipu__node *node,
                     ipu_tensor dy, ipu_tensor *dx)
{
    ipu_tensor x = ipu__input(graph, node, 0);
    ipu_tensor scale = ipu__input(graph, node, 1);
    ipu_tensor statistics = ipu__input(graph, node, 3);
    struct ipu__attributes a = node->attributes;

    if (ipu__wanted(dx[0]))
        dx[0] = ipu__add(graph, &ipu__norm_grad,
                         (const ipu_tensor[]){dy, x, scale, statistics}, &a);
    a.shape = graph->tensors[node->inputs[1]].shape;
    if (ipu__wanted(dx[1]))
        dx[1] = ipu__add(graph, &ipu__norm_scale_grad,
                         (const ipu_tensor[]){dy, x, statistics}, &a);
    if (ipu__wanted(dx[2])) {
        const int64_t rows[] = {-1, a.view[2] * a.view[3]};

        dy = ipu_reshape(graph, dy, 2, rows);
        dx[2] =
            ipu_reshape(graph, ipu__add(graph, &ipu__bias_add_grad, &dy, NULL),
                        a.shape.ndim, a.shape.extents);
    }
}

/* Checks that scale and offset are of that shape. */
static int check_parameters(const struct ipu__call *call,
                            const struct ipu__shape *shape, const char *what)
{
    for (int i = 1; i <= 2; i++) {
        IPU_TRY(ipu__expect(call, i, IPU_FLOAT32, -1, what));
        if (!ipu__shape_equal(&call->inputs[i].shape, shape))
            return ipu__unfit(call, 0, i, what);
    }
    return IPU_OK;
}

/* The dimensions of scale are the last of x. */
static int layer_shape(const struct ipu__call *call, struct ipu__shape *output)
{
    const struct ipu__shape *x = &call->inputs[0].shape;
    struct ipu__shape last = {.dtype = x->dtype,
                              .ndim = call->inputs[1].shape.ndim};

    *output = *x;
    IPU_TRY(ipu__expect(call, 0, IPU_FLOAT32, -1, "[..., n]"));
    if (last.ndim < 1 || last.ndim > x->ndim)
        return ipu__unfit(call, 0, 1,
                          "scale has one or more of the last dimensions");
    for (int32_t i = 0; i < last.ndim; i++)
        last.extents[i] = x->extents[x->ndim - last.ndim + i];
    return check_parameters(call, &last,
                            "scale and offset must have the last dimensions of "
                            "what is normalised");
}

static int channels_shape(const struct ipu__call *call,
                          struct ipu__shape *output)
{
    const struct ipu__shape *x = &call->inputs[0].shape;
    struct ipu__shape last = {.dtype = x->dtype, .ndim = 1};

    *output = *x;
    IPU_TRY(ipu__expect(call, 0, IPU_FLOAT32, x->ndim >= 2 ? -1 : 2,
                        "[n, ..., channels]"));
    last.extents[0] = x->extents[x->ndim - 1];
    return check_parameters(call, &last,
                            "scale and offset must be [channels], the last "
                            "dimension of what is normalised");
}

static int group_shape(const struct ipu__call *call, struct ipu__shape *output)
{
    int32_t groups = call->attributes->groups;
    const struct ipu__shape *x = &call->inputs[0].shape;

    IPU_TRY(channels_shape(call, output));
    if (groups >= 1 && x->extents[x->ndim - 1] % groups == 0)
        return IPU_OK;
    return ipu__fail(groups < 1 ? IPU_ERR_ARGUMENT : IPU_ERR_SHAPE,
                     "group_norm: the channels of %s, %s, do not divide by %d "
                     "groups",
                     call->inputs[0].name, ipu__shape_print(x).text,
                     (int)groups);
}

int ipu__norm_parameters(const struct ipu__call *call,
                         struct ipu__shape *output)
{
    if (call->op == &ipu__layer_norm)
        return layer_shape(call, output);
    return call->op == &ipu__group_norm ? group_shape(call, output)
                                        : channels_shape(call, output);
}

static int shape(const struct ipu__call *call, struct ipu__shape *output)
{
    IPU_TRY(ipu__norm_parameters(call, output));
    IPU_TRY(ipu__norm_check_view(call, output));
    IPU_TRY(ipu__norm_check_statistics(call, 3));
    return ipu__norm_check_scale(call, &call->inputs[1].shape);
}

/* The three rows have these members in common. */
#define NORM                                                                   \
    .ninputs = 4, .last_wide = true, .in_place = IPU__FIRST, .by_row = true,   \
    .slots = IPU__NORM_SLOTS, .loops = IPU__NORM_LOOPS, .shape = shape,        \
    .scratch = scratch, .run = run, .run_in_parts = run_in_parts,              \
    .cost = ipu__normalize_cost, .gradient = gradient

const struct ipu__op ipu__layer_norm = {.name = "layer_norm", NORM};
const struct ipu__op ipu__group_norm = {.name = "group_norm", NORM};
const struct ipu__op ipu__batch_norm = {.name = "batch_norm", NORM};
