/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sampling.c - images at places that are computed: between their pixels.
 *
 * An image is a matrix with a row for each pixel, and its channels. A place is
 * a weighted sum of 1, 4 or 16 pixels around it, each of which is one gather of
 * rows whose numbers are computed. All but the numbers have derivatives.
 */
#include <math.h>

#include "onnx/operators/rows.h"

enum { ZEROS, BORDER, REFLECTION };

struct sampler {
    ipu_graph *graph;
    ipu_dtype dtype;  /* of the image */
    ipu_tensor rows;  /* [n * height * width, channels] */
    ipu_tensor first; /* number of the image's first pixel, int32 */
    double height, width;
    int padding;  /* what is outside of the image */
    bool corners; /* the ends of the grid are pixels, and not their edges */
};

static void set_sampler(struct ipu__onnx_call *call, struct sampler *s)
{
    struct ipu__onnx_value *x = call->inputs[0];
    const int64_t *e = x->extents;

    s->graph = call->graph;
    s->dtype = ipu__onnx_kind(x->type)->dtype;
    s->height = (double)e[2];
    s->width = (double)e[3];
    s->rows = ipu_reshape(call->graph, onnx__last(call, x), 2,
                          (const int64_t[]){e[0] * e[2] * e[3], e[1]});
}

/* Returns 1 where x, whole numbers, is an index of n, else 0. */
static ipu_tensor is_inside(ipu_graph *g, ipu_tensor x, double n)
{
    ipu_tensor zero = ipu_fill(g, IPU_FLOAT32, 0, NULL, 0);
    ipu_tensor most = ipu_fill(g, IPU_FLOAT32, 0, NULL, n - 1);

    return ipu_multiply(g, ipu_greater_equal(g, x, zero),
                        ipu_less_equal(g, x, most));
}

/* Returns the pixels at rows y and columns x, which are whole numbers, times
 * weights. */
static ipu_tensor take_pixels(const struct sampler *s, ipu_tensor y,
                              ipu_tensor x, ipu_tensor weight)
{
    ipu_graph *g = s->graph;
    ipu_tensor inside, row, column, number;

    row = ipu_cast(g, ipu_clip(g, y, 0, s->height - 1), IPU_INT32);
    column = ipu_cast(g, ipu_clip(g, x, 0, s->width - 1), IPU_INT32);
    number = ipu_multiply(g, row, ipu_fill(g, IPU_INT32, 0, NULL, s->width));
    number = ipu_add(g, ipu_add(g, number, column), s->first);
    if (s->padding == ZEROS) {
        inside = ipu_multiply(g, is_inside(g, y, s->height),
                              is_inside(g, x, s->width));
        weight = ipu_multiply(g, weight, ipu_cast(g, inside, IPU_FLOAT32));
    }
    weight = ipu_cast(g, ipu_expand_dims(g, weight, -1), s->dtype);
    return ipu_multiply(g, ipu_gather(g, s->rows, number, 0), weight);
}

static const double CUBIC = -0.75;

/* ((a t + b) t + c) t + d */
static ipu_tensor polynomial(ipu_graph *g, ipu_tensor t, double a, double b,
                             double c, double d)
{
    ipu_tensor y = ipu_scale(g, t, a, b);

    y = ipu_scale(g, ipu_multiply(g, y, t), 1, c);
    return ipu_scale(g, ipu_multiply(g, y, t), 1, d);
}

/* Sets the weights of four pixels; t: the distance from the second. */
static void cubic_weights(ipu_graph *g, ipu_tensor t, ipu_tensor *weights)
{
    const double a = CUBIC;
    ipu_tensor rest = ipu_scale(g, t, -1, 1);

    weights[0] = polynomial(g, ipu_scale(g, t, 1, 1), a, -5 * a, 8 * a, -4 * a);
    weights[1] = polynomial(g, t, a + 2, -(a + 3), 0, 1);
    weights[2] = polynomial(g, rest, a + 2, -(a + 3), 0, 1);
    weights[3] =
        polynomial(g, ipu_scale(g, rest, 1, 1), a, -5 * a, 8 * a, -4 * a);
}

/* Mirrors x at low and at low + span, as often as it takes. */
static ipu_tensor reflect(ipu_graph *g, ipu_tensor x, double low, double span)
{
    ipu_tensor times, odd, rest;

    if (span <= 0)
        return ipu_scale(g, x, 0, 0);
    x = ipu_abs(g, ipu_scale(g, x, 1, -low));
    times = ipu_floor(g, ipu_scale(g, x, 1 / span, 0));
    rest = ipu_subtract(g, x, ipu_scale(g, times, span, 0));
    odd = ipu_subtract(
        g, times,
        ipu_scale(g, ipu_floor(g, ipu_scale(g, times, 0.5, 0)), 2, 0));
    rest = ipu_select(g, ipu_cast(g, odd, IPU_INT32),
                      ipu_scale(g, rest, -1, span), rest);
    return ipu_scale(g, rest, 1, low);
}

/* Puts a place along n pixels into the image. */
static ipu_tensor pad_place(const struct sampler *s, ipu_tensor x, double n)
{
    if (s->padding == ZEROS)
        return x;
    if (s->padding == REFLECTION)
        x = s->corners ? reflect(s->graph, x, 0, n - 1)
                       : reflect(s->graph, x, -0.5, n);
    return ipu_clip(s->graph, x, 0, n - 1);
}

/* Sums pixels around (y, x): taps in each direction, from `first` on, with
 * weights of rows and columns. Each is padded by itself. */
static ipu_tensor sum_pixels(const struct sampler *s, ipu_tensor y,
                             ipu_tensor x, int taps, int first,
                             const ipu_tensor *of_rows,
                             const ipu_tensor *of_columns)
{
    ipu_graph *g = s->graph;
    ipu_tensor sum = {-1}, part, row, column;

    for (int i = 0; i < taps; i++)
        for (int j = 0; j < taps; j++) {
            row = pad_place(s, ipu_scale(g, y, 1, i + first), s->height);
            column = pad_place(s, ipu_scale(g, x, 1, j + first), s->width);
            part = take_pixels(s, row, column,
                               ipu_multiply(g, of_rows[i], of_columns[j]));
            sum = sum.id < 0 ? part : ipu_add(g, sum, part);
        }
    return sum;
}

static ipu_tensor sample_linear(const struct sampler *s, ipu_tensor y,
                                ipu_tensor x)
{
    ipu_graph *g = s->graph;
    ipu_tensor low_y = ipu_floor(g, y), low_x = ipu_floor(g, x);
    ipu_tensor rows[2], columns[2];

    rows[1] = ipu_subtract(g, y, low_y);
    rows[0] = ipu_scale(g, rows[1], -1, 1);
    columns[1] = ipu_subtract(g, x, low_x);
    columns[0] = ipu_scale(g, columns[1], -1, 1);
    return sum_pixels(s, low_y, low_x, 2, 0, rows, columns);
}

static ipu_tensor sample_cubic(const struct sampler *s, ipu_tensor y,
                               ipu_tensor x)
{
    ipu_graph *g = s->graph;
    ipu_tensor low_y = ipu_floor(g, y), low_x = ipu_floor(g, x);
    ipu_tensor rows[4], columns[4];

    cubic_weights(g, ipu_subtract(g, y, low_y), rows);
    cubic_weights(g, ipu_subtract(g, x, low_x), columns);
    return sum_pixels(s, low_y, low_x, 4, -1, rows, columns);
}

/* -------------------------------------------------------------- grid sample */

/* Returns places in pixels from the grid's, which are -1 to 1. */
static ipu_tensor place_of(const struct sampler *s, ipu_tensor grid, int which,
                           double n)
{
    ipu_graph *g = s->graph;
    ipu_tensor x =
        ipu_gather(g, grid, ipu_fill(g, IPU_INT32, 0, NULL, which), 3);

    return ipu_scale(g, x, s->corners ? (n - 1) / 2 : n / 2, (n - 1) / 2);
}

static ipu_tensor sample(struct ipu__onnx_call *call, const struct sampler *s,
                         ipu_tensor y, ipu_tensor x)
{
    ipu_graph *g = call->graph;

    if (onnx__text_is(call, "mode", "bicubic", "bilinear"))
        return sample_cubic(s, y, x);
    y = pad_place(s, y, s->height);
    x = pad_place(s, x, s->width);
    if (onnx__text_is(call, "mode", "bilinear", "bilinear"))
        return sample_linear(s, y, x);
    return take_pixels(s, ipu_round(g, y), ipu_round(g, x),
                       ipu_fill(g, IPU_FLOAT32, 0, NULL, 1));
}

static int read_padding(struct ipu__onnx_call *call, int *padding)
{
    static const char *const names[] = {"zeros", "border", "reflection"};

    for (*padding = 0; *padding < 3; ++*padding)
        if (onnx__text_is(call, "padding_mode", names[*padding], "zeros"))
            return IPU_OK;
    return onnx__refuse(call, "there is no such padding_mode");
}

static int build_grid_sample(struct ipu__onnx_call *call)
{
    struct ipu__onnx_value *x = call->inputs[0], *grid = call->inputs[1];
    ipu_graph *g = call->graph;
    struct sampler s;
    ipu_tensor t, first;

    IPU_TRY(onnx__want_floats(call, 0));
    IPU_TRY(onnx__want_floats(call, 1));
    IPU_TRY(read_padding(call, &s.padding));
    if (x->ndim != 4 || grid->ndim != 4 || grid->extents[3] != 2 ||
        grid->extents[0] != x->extents[0] || onnx__size(x) < 1 ||
        onnx__size(x) > INT32_MAX)
        return onnx__refuse(call, "its grid does not fit its images");
    if (!onnx__text_is(call, "mode", "nearest", "bilinear") &&
        !onnx__text_is(call, "mode", "bilinear", "bilinear") &&
        !onnx__text_is(call, "mode", "bicubic", "bilinear"))
        return onnx__refuse(call, "there is no such mode");
    set_sampler(call, &s);
    s.corners = onnx__int(call, "align_corners", 0) != 0;
    first = ipu_range(g, IPU_INT32, x->extents[0], 0, s.height * s.width);
    s.first = ipu_reshape(g, first, 3, (const int64_t[]){x->extents[0], 1, 1});
    t = ipu_cast(g, onnx__tensor(call, grid), IPU_FLOAT32);
    return onnx__give_last(call, 0, x->type,
                           sample(call, &s, place_of(&s, t, 1, s.height),
                                  place_of(&s, t, 0, s.width)));
}

/* ---------------------------------------------------------------- RoI align */

/* Describes the places that are looked at in each region, in one direction. If
 * their number depends on the region, it is at most ratio, and the places
 * beyond it do not count. */
struct direction {
    int from, to; /* columns of the regions */
    int64_t outputs, ratio;
    ipu_tensor places; /* [regions, outputs * ratio] */
    ipu_tensor counts; /* [regions, 1, 1], floats; -1: ratio */
};

static ipu_tensor number(ipu_graph *g, double value)
{
    return ipu_fill(g, IPU_FLOAT32, 0, NULL, value);
}

/* Returns [regions, outputs * ratio] of a tensor that broadcasts to [regions,
 * outputs, ratio]. */
static ipu_tensor spread(ipu_graph *g, const struct direction *d,
                         int64_t regions, ipu_tensor x)
{
    x = ipu_broadcast(g, x, 3,
                      (const int64_t[]){regions, d->outputs, d->ratio});
    return ipu_reshape(g, x, 2,
                       (const int64_t[]){regions, d->outputs * d->ratio});
}

/* Finds as many places in each region as its size asks for: one for each pixel
 * of an output. from, size: [regions]. */
static void adapt_places(ipu_graph *g, struct direction *d, int64_t regions,
                         ipu_tensor from, ipu_tensor size)
{
    const int64_t column[] = {regions, 1, 1}, row[] = {d->outputs, 1};
    ipu_tensor s = ipu_range(g, IPU_FLOAT32, d->ratio, 0.5, 1);
    ipu_tensor p =
        ipu_reshape(g, ipu_range(g, IPU_FLOAT32, d->outputs, 0, 1), 2, row);

    size = ipu_scale(g, ipu_reshape(g, size, 3, column), 1 / (double)d->outputs,
                     0);
    d->counts = ipu_clip(g, ipu_ceil(g, size), 0, (double)d->ratio);
    s = ipu_divide(g, s, ipu_maximum(g, d->counts, number(g, 1)));
    d->places = spread(g, d, regions,
                       ipu_add(g, ipu_reshape(g, from, 3, column),
                               ipu_multiply(g, size, ipu_add(g, p, s))));
}

/* Returns 1 where a place counts, else 0: [regions, outputs * ratio]. */
static ipu_tensor are_counted(ipu_graph *g, const struct direction *d,
                              int64_t regions)
{
    ipu_tensor s = ipu_range(g, IPU_FLOAT32, d->ratio, 0.5, 1);

    return spread(g, d, regions, ipu_less(g, s, d->counts));
}

static void find_places(struct ipu__onnx_call *call, ipu_tensor regions,
                        struct direction *d, bool adapts, bool aligned)
{
    double scale = onnx__float(call, "spatial_scale", 1);
    double each = 1 / (double)(d->outputs * d->ratio);
    ipu_graph *g = call->graph;
    ipu_tensor from, size, steps;

    from = ipu_gather(g, regions, ipu_fill(g, IPU_INT32, 0, NULL, d->from), 1);
    size = ipu_gather(g, regions, ipu_fill(g, IPU_INT32, 0, NULL, d->to), 1);
    size = ipu_scale(g, ipu_subtract(g, size, from), scale, 0);
    from = ipu_scale(g, from, scale, aligned ? -0.5 : 0);
    if (!aligned) /* a region has at least one pixel */
        size = ipu_clip(g, size, 1, INFINITY);
    if (adapts) {
        adapt_places(g, d, call->inputs[1]->extents[0], from, size);
        return;
    }
    steps = ipu_range(g, IPU_FLOAT32, d->outputs * d->ratio, 0.5 * each, each);
    d->places = ipu_add(g, ipu_expand_dims(g, from, -1),
                        ipu_multiply(g, ipu_expand_dims(g, size, -1), steps));
}

/* Returns the most places that an output of a region within the image has. */
static int64_t most_places(const struct direction *d, double extent,
                           double least)
{
    double pixels = extent < least ? least : extent;

    return (int64_t)ceil(pixels / (double)d->outputs);
}

/* Returns 1 where a place is at most one pixel outside; else 0. */
static ipu_tensor is_near(ipu_graph *g, ipu_tensor x, double n)
{
    return ipu_multiply(
        g, ipu_greater_equal(g, x, ipu_fill(g, IPU_FLOAT32, 0, NULL, -1)),
        ipu_less_equal(g, x, ipu_fill(g, IPU_FLOAT32, 0, NULL, n)));
}

/* Divides sums over places, [regions, ...], by their number. */
static ipu_tensor average_counted(ipu_graph *g, const struct sampler *s,
                                  ipu_tensor sums, const struct direction *v,
                                  const struct direction *h)
{
    ipu_tensor counts =
        ipu_maximum(g, ipu_multiply(g, v->counts, h->counts), number(g, 1));

    return ipu_divide(g, sums,
                      ipu_cast(g, ipu_expand_dims(g, counts, -1), s->dtype));
}

static int check_regions(struct ipu__onnx_call *call)
{
    struct ipu__onnx_value *const *in = call->inputs;

    IPU_TRY(onnx__want_floats(call, 0));
    IPU_TRY(onnx__want_floats(call, 1));
    if (in[0]->ndim != 4 || in[1]->ndim != 2 || in[1]->extents[1] != 4 ||
        in[2]->ndim != 1 || in[2]->extents[0] != in[1]->extents[0] ||
        onnx__size(in[0]) < 1 || onnx__size(in[0]) > INT32_MAX)
        return onnx__refuse(call, "its regions do not fit its images");
    if (!onnx__text_is(call, "mode", "avg", "avg"))
        return onnx__refuse(call, "its mode is not supported");
    return onnx__check_indices(call, in[2], in[0]->extents[0]);
}

static int build_roi_align(struct ipu__onnx_call *call)
{
    struct ipu__onnx_value *x = call->inputs[0];
    int64_t ratio = onnx__int(call, "sampling_ratio", 0);
    struct direction v = {1, 3, onnx__int(call, "output_height", 1), ratio,
                          .counts = {-1}};
    struct direction h = {0, 2, onnx__int(call, "output_width", 1), ratio,
                          .counts = {-1}};
    bool aligned =
        onnx__text_is(call, "coordinate_transformation_mode", "half_pixel",
                      call->version < 16 ? "output_half_pixel" : "half_pixel");
    static const int32_t taken[] = {2, 4};
    ipu_graph *g = call->graph;
    ipu_tensor regions, py, px, near, y;
    struct sampler s;
    int64_t n;

    IPU_TRY(check_regions(call));
    if (ratio < 0 || ratio > 1024 || v.outputs < 1 || v.outputs > 1 << 16 ||
        h.outputs < 1 || h.outputs > 1 << 16)
        return onnx__refuse(call, "its sampling_ratio is negative or more than "
                                  "1024, or its output has no size");
    n = call->inputs[1]->extents[0];
    set_sampler(call, &s);
    s.padding = BORDER;
    s.corners = false;
    s.first =
        ipu_multiply(g, onnx__indices(call, call->inputs[2], x->extents[0]),
                     ipu_fill(g, IPU_INT32, 0, NULL, s.height * s.width));
    s.first = ipu_reshape(g, s.first, 3, (const int64_t[]){n, 1, 1});
    regions = ipu_cast(g, onnx__tensor(call, call->inputs[1]), IPU_FLOAT32);
    if (ratio == 0) {
        v.ratio = most_places(&v, s.height, aligned ? 0 : 1);
        h.ratio = most_places(&h, s.width, aligned ? 0 : 1);
    }
    find_places(call, regions, &v, ratio == 0, aligned);
    find_places(call, regions, &h, ratio == 0, aligned);
    py = ipu_expand_dims(g, v.places, 2);
    px = ipu_expand_dims(g, h.places, 1);
    near = ipu_multiply(g, is_near(g, py, s.height), is_near(g, px, s.width));
    if (ratio == 0)
        near = ipu_multiply(
            g, near,
            ipu_multiply(g, ipu_expand_dims(g, are_counted(g, &v, n), 2),
                         ipu_expand_dims(g, are_counted(g, &h, n), 1)));
    y = sample_linear(&s, ipu_clip(g, py, 0, s.height - 1),
                      ipu_clip(g, px, 0, s.width - 1));
    y = ipu_multiply(g, y, ipu_cast(g, ipu_expand_dims(g, near, -1), s.dtype));
    y = ipu_reshape(g, y, 6,
                    (const int64_t[]){n, v.outputs, v.ratio, h.outputs, h.ratio,
                                      x->extents[1]});
    if (ratio > 0)
        return onnx__give_last(call, 0, x->type, ipu_mean(g, y, 2, taken, 0));
    return onnx__give_last(
        call, 0, x->type,
        average_counted(g, &s, ipu_sum(g, y, 2, taken, 0), &v, &h));
}

const struct ipu__onnx_operator onnx__sampling_rows[] = {
    {"GridSample", 16, "align_corners mode padding_mode", 2, 2,
     build_grid_sample, NULL, NULL},
    {"RoiAlign", 10,
     "coordinate_transformation_mode mode output_height output_width "
     "sampling_ratio spatial_scale",
     3, 3, build_roi_align, NULL,
     "mode max is refused; with a sampling_ratio of 0, regions larger than the "
     "image have as many samples as one of its size"},
    {.name = NULL},
};
