/* SPDX-License-Identifier: Apache-2.0 */
/*
 * resize.c - images and other tensors of another size.
 *
 * Each axis is resized by itself: a row of the result is a sum of one, two or
 * four rows of the input (nearest, linear, cubic) with weights that are known
 * when the model is loaded. So an axis takes as many gathers, whatever its
 * extent is, and their derivatives are known.
 */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

#include "onnx/operators/rows.h"

enum { MOST_TAPS = 4 };
/* Rows that an axis may become; a few bytes can ask for any number. */
enum { MOST_ROWS = 1 << 22 };

enum { NEAREST, LINEAR, CUBIC };
static const char *const modes[] = {"nearest", "linear", "cubic", NULL};

/* Where a row of the result lies in the input. */
enum { HALF_PIXEL, TORCH, CORNERS, ASYMMETRIC, CROP, TF_NEAREST };
static const char *const places[] = {
    "half_pixel", "pytorch_half_pixel", "align_corners",
    "asymmetric", "tf_crop_and_resize", "tf_half_pixel_for_nn",
    NULL};

enum { PREFER_FLOOR, PREFER_CEIL, FLOOR, CEIL };
static const char *const roundings[] = {
    "round_prefer_floor", "round_prefer_ceil", "floor", "ceil", NULL};

struct resize {
    int mode, place, rounding;
    double cubic_a, outside; /* the value outside of the input, for CROP */
    bool excludes;           /* rows outside have no weight */
    double scale[IPU_MAX_DIMS];
    double from[IPU_MAX_DIMS], to[IPU_MAX_DIMS]; /* what CROP takes, of 1 */
    int64_t extents[IPU_MAX_DIMS];               /* of the result */
};

/* The rows that are summed for each row of an axis. */
struct taps {
    int32_t *rows;   /* [MOST_TAPS][count] */
    float *weights;  /* the same */
    int32_t *inside; /* [count]; 0: the row is outside of the input */
    int64_t count;
};

/* Sets a choice to the number of the attribute's text in a list. */
static int choose(struct ipu__onnx_call *call, const char *name,
                  const char *const *texts, int other, int *choice)
{
    for (*choice = 0; texts[*choice]; ++*choice)
        if (onnx__text_is(call, name, texts[*choice], texts[other]))
            return IPU_OK;
    return onnx__refuse(call, "there is no such %s", name);
}

/* -------------------------------------------------------------- parameters */

/* Sets scales and extents from a list of either. */
static int read_scales(struct ipu__onnx_call *call, struct resize *r,
                       const struct ipu__onnx_value *scales)
{
    const struct ipu__onnx_value *x = call->inputs[0];

    if (!scales->floats || onnx__size(scales) != x->ndim)
        return onnx__refuse(call, "its scales do not fit its input");
    for (int32_t d = 0; d < x->ndim; d++) {
        double part = r->place == CROP ? r->to[d] - r->from[d] : 1, n;

        r->scale[d] = (double)scales->floats[d];
        n = floor((double)x->extents[d] * part * r->scale[d]);
        if (!(r->scale[d] > 0) || !(n >= 0 && n <= MOST_ROWS))
            return onnx__refuse(call, "its scales are wrong or too large");
        r->extents[d] = (int64_t)n;
    }
    return IPU_OK;
}

static int read_sizes(struct ipu__onnx_call *call, struct resize *r,
                      const struct ipu__onnx_value *sizes)
{
    const struct ipu__onnx_value *x = call->inputs[0];

    if (!sizes->wholes || onnx__size(sizes) != x->ndim)
        return onnx__refuse(call, "its sizes do not fit its input");
    for (int32_t d = 0; d < x->ndim; d++) {
        r->extents[d] = sizes->wholes[d];
        if (sizes->wholes[d] < 0 || sizes->wholes[d] > MOST_ROWS)
            return onnx__refuse(call, "its sizes are negative or too large");
        r->scale[d] = (double)sizes->wholes[d] / (double)x->extents[d];
    }
    return IPU_OK;
}

/* Reads what is taken of the input, for CROP. */
static int read_crop(struct ipu__onnx_call *call, struct resize *r)
{
    const struct ipu__onnx_value *x = call->inputs[0], *roi = onnx__in(call, 1);

    if (!roi)
        return onnx__refuse(call, "its roi is missing");
    IPU_TRY(onnx__need(call, 1, "roi"));
    if (!roi->floats || onnx__size(roi) != 2 * x->ndim)
        return onnx__refuse(call, "its roi does not fit its input");
    for (int32_t d = 0; d < x->ndim; d++) {
        r->from[d] = (double)roi->floats[d];
        r->to[d] = (double)roi->floats[x->ndim + d];
    }
    return IPU_OK;
}

/* Reads scales or sizes from input i or i + 1. */
static int read_targets(struct ipu__onnx_call *call, struct resize *r, int i)
{
    const struct ipu__onnx_value *scales = onnx__in(call, i);

    if (scales && onnx__size(scales) > 0) {
        IPU_TRY(onnx__need(call, i, "scales"));
        IPU_TRY(read_scales(call, r, scales));
    } else {
        IPU_TRY(onnx__need(call, i + 1, "sizes"));
        IPU_TRY(read_sizes(call, r, call->inputs[i + 1]));
    }
    return onnx__check_shape(call, call->inputs[0]->ndim, r->extents);
}

/* ------------------------------------------------------------------ weights */

/* Returns where row i lies in an input of n rows. */
static double place_of(const struct resize *r, int32_t d, int64_t i, double n)
{
    double scale = r->scale[d], width = scale * n, at = (double)i;

    switch (r->place) {
    case CORNERS: return width == 1 ? 0 : at * (n - 1) / (width - 1);
    /* In float32, as PyTorch computes it: 3 / 0.6 is row 5 then, not one before
     * it, as 0.6 is a little more in float32 than in float64. */
    case ASYMMETRIC: return (double)((float)at / (float)scale);
    case TF_NEAREST: return (at + 0.5) / scale;
    case CROP:
        return r->from[d] * (n - 1) +
               (r->to[d] - r->from[d]) * (n - 1) *
                   (r->extents[d] == 1 ? 0.5
                                       : at / (double)(r->extents[d] - 1));
    case TORCH:
        if (r->extents[d] == 1)
            return -0.5;
        return (at + 0.5) / scale - 0.5;
    default: return (at + 0.5) / scale - 0.5;
    }
}

/* The weight of a row at a distance from the place, for cubic. */
static double cubic(double a, double distance)
{
    double t = fabs(distance);

    if (t <= 1)
        return ((a + 2) * t - (a + 3)) * t * t + 1;
    return t < 2 ? ((a * t - 5 * a) * t + 8 * a) * t - 4 * a : 0;
}

/* Returns the row that is nearest to a place. */
static double nearest(int rounding, double at)
{
    double low = floor(at), rest = at - low;

    if (rest == 0 || rounding == FLOOR)
        return low;
    if (rounding == CEIL)
        return low + 1;
    return rest < 0.5 || (rest == 0.5 && rounding == PREFER_FLOOR) ? low
                                                                   : low + 1;
}

/* Sets row i of the taps: the rows around the place, limited to the input. */
static void set_taps(const struct resize *r, struct taps *taps, int64_t i,
                     double at, int64_t n)
{
    double first = r->mode == NEAREST  ? nearest(r->rounding, at)
                   : r->mode == LINEAR ? floor(at)
                                       : floor(at) - 1;
    int count = r->mode == NEAREST ? 1 : r->mode == LINEAR ? 2 : 4;
    double sum = 0, weights[MOST_TAPS];

    for (int k = 0; k < count; k++) {
        double row = first + k, most = (double)(n - 1);

        weights[k] = r->mode == NEAREST  ? 1
                     : r->mode == LINEAR ? 1 - fabs(at - row)
                                         : cubic(r->cubic_a, at - row);
        if (r->excludes && (row < 0 || row > most))
            weights[k] = 0;
        sum += weights[k];
        row = !(row >= 0) ? 0 : row > most ? most : row; /* NaN, too */
        taps->rows[k * taps->count + i] = (int32_t)row;
    }
    for (int k = 0; k < count; k++)
        taps->weights[k * taps->count + i] =
            (float)(r->excludes ? weights[k] / sum : weights[k]);
    taps->inside[i] = at >= 0 && at <= (double)(n - 1);
}

/* --------------------------------------------------------------------- axes */

/* Returns a vector in the direction of an axis of ndim. */
static ipu_tensor along(ipu_graph *g, ipu_tensor vector, int64_t count,
                        int32_t axis, int32_t ndim)
{
    int64_t extents[IPU_MAX_DIMS];

    for (int32_t d = 0; d < ndim; d++)
        extents[d] = d == axis ? count : 1;
    return ipu_reshape(g, vector, ndim, extents);
}

/* Resizes axis `at` of x by its taps. */
static ipu_tensor sum_rows(struct ipu__onnx_call *call, const struct resize *r,
                           const struct taps *taps, ipu_tensor x, int32_t at)
{
    const struct ipu__onnx_value *value = call->inputs[0];
    int count = r->mode == NEAREST ? 1 : r->mode == LINEAR ? 2 : 4;
    ipu_graph *g = call->graph;
    ipu_tensor y = {-1};

    for (int k = 0; k < count; k++) {
        ipu_tensor row, weight;

        row = ipu_constant(g, IPU_INT32, 1, &taps->count,
                           taps->rows + k * taps->count);
        row = ipu_gather(g, x, row, at);
        if (r->mode == NEAREST)
            return row;
        weight = onnx__constant(call, value->type, 1, &taps->count,
                                taps->weights + k * taps->count, NULL);
        row = ipu_multiply(g, row,
                           along(g, weight, taps->count, at, value->ndim));
        y = k == 0 ? row : ipu_add(g, y, row);
    }
    return y;
}

static ipu_tensor resize_axis(struct ipu__onnx_call *call,
                              const struct resize *r, int32_t d, ipu_tensor x,
                              int32_t at)
{
    const struct ipu__onnx_value *value = call->inputs[0];
    struct taps taps = {.count = r->extents[d]};
    size_t n = (size_t)taps.count * MOST_TAPS;
    ipu_graph *g = call->graph;
    ipu_tensor inside;

    if (ipu__new_array(&taps.rows, n + 1, sizeof *taps.rows) < 0 ||
        ipu__new_array(&taps.weights, n + 1, sizeof *taps.weights) < 0 ||
        ipu__new_array(&taps.inside, n + 1, sizeof *taps.inside) < 0) {
        x.id = -1;
        goto done;
    }
    for (int64_t i = 0; i < taps.count; i++)
        set_taps(r, &taps, i, place_of(r, d, i, (double)value->extents[d]),
                 value->extents[d]);
    x = sum_rows(call, r, &taps, x, at);
    if (r->place == CROP) {
        inside = ipu_constant(g, IPU_INT32, 1, &taps.count, taps.inside);
        x = ipu_select(g, along(g, inside, taps.count, at, value->ndim), x,
                       onnx__scalar(call, value->type, r->outside));
    }
done:
    free(taps.rows);
    free(taps.weights);
    free(taps.inside);
    return x;
}

static int resize(struct ipu__onnx_call *call, const struct resize *r)
{
    struct ipu__onnx_value *x = call->inputs[0];
    int32_t back = x->ndim - 1;
    bool last;
    ipu_tensor t;

    if (r->mode != NEAREST)
        IPU_TRY(onnx__want_floats(call, 0));
    for (int32_t d = 0; d < x->ndim; d++)
        if (x->extents[d] == 0 || x->extents[d] > INT32_MAX)
            return onnx__refuse(call, "its input is empty or too large");
    t = onnx__operand(call, x, &last);
    for (int32_t d = 0; d < x->ndim; d++) {
        bool whole = r->place != CROP || (r->from[d] == 0 && r->to[d] == 1);

        if (!whole || r->extents[d] != x->extents[d] || r->scale[d] != 1)
            t = resize_axis(call, r, d, t,
                            !last || d == 0 ? d
                            : d == 1        ? back
                                            : d - 1);
    }
    return onnx__give_as(call, x->type, t, last);
}

static int build_resize(struct ipu__onnx_call *call)
{
    struct resize r = {.cubic_a = onnx__float(call, "cubic_coeff_a", -0.75),
                       .outside = onnx__float(call, "extrapolation_value", 0)};

    IPU_TRY(choose(call, "mode", modes, NEAREST, &r.mode));
    IPU_TRY(choose(call, "coordinate_transformation_mode", places,
                   call->version < 11 ? ASYMMETRIC : HALF_PIXEL, &r.place));
    IPU_TRY(choose(call, "nearest_mode", roundings,
                   call->version < 11 ? FLOOR : PREFER_FLOOR, &r.rounding));
    r.excludes = onnx__int(call, "exclude_outside", 0) != 0 && r.mode == CUBIC;
    if (r.place == CROP)
        IPU_TRY(read_crop(call, &r));
    IPU_TRY(read_targets(call, &r, call->version < 11 ? 1 : 2));
    return resize(call, &r);
}

/* Upsample has its scales in an attribute before version 9. */
static int build_upsample(struct ipu__onnx_call *call)
{
    const struct ipu__onnx_floats *list = onnx__floats(call, "scales");
    struct resize r = {.place = ASYMMETRIC, .rounding = FLOOR};
    struct ipu__onnx_value scales = {.ndim = 1};

    IPU_TRY(choose(call, "mode", modes, NEAREST, &r.mode));
    if (onnx__in(call, 1)) {
        IPU_TRY(read_targets(call, &r, 1));
        return resize(call, &r);
    }
    if (!list)
        return onnx__refuse(call, "its scales are missing");
    scales.extents[0] = (int64_t)list->count;
    scales.floats = list->at;
    IPU_TRY(read_scales(call, &r, &scales));
    IPU_TRY(onnx__check_shape(call, call->inputs[0]->ndim, r.extents));
    return resize(call, &r);
}

const struct ipu__onnx_operator onnx__resize_rows[] = {
    {"Resize", 10,
     "mode coordinate_transformation_mode nearest_mode cubic_coeff_a "
     "exclude_outside extrapolation_value",
     1, 4, build_resize, NULL, "roi, scales and sizes must be known"},
    {"Upsample", 7, "mode scales", 1, 2, build_upsample, NULL,
     "scales must be known"},
    {.name = NULL},
};
