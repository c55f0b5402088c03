/* SPDX-License-Identifier: Apache-2.0 */
/*
 * signals.c - Fourier transforms and windows of signals, and determinants.
 *
 * A transform is a product with a matrix of cosines and sines, which the device
 * does faster than the few steps of a fast transform up to some thousand
 * elements; more are refused. What depends on sizes alone is computed when the
 * model is loaded.
 */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

#include "onnx/operators/rows.h"

static const double TURN = 6.283185307179586;

/* ------------------------------------------------------------------ windows */

/* a0 - a1 cos(t) + a2 cos(2 t) */
struct window {
    double a[3];
};

static int build_window(struct ipu__onnx_call *call)
{
    const struct window *how = call->op->how;
    int64_t number = onnx__int(call, "output_datatype", IPU_ONNX_FLOAT), n;
    bool periodic = onnx__int(call, "periodic", 1) != 0;
    double size = 0;
    int64_t *wholes;
    float *floats;

    IPU_TRY(onnx__number(call, 0, "size", &size));
    if (ipu__onnx_kind(number)->bytes == 0 || ipu__onnx_kind(number)->whole)
        return onnx__refuse(call, "its type is not supported");
    n = size >= 0 && size <= INT32_MAX ? (int64_t)size : -1;
    if (n < 0 || !onnx__room(call, 0, (int32_t)number, 1, &n, &floats, &wholes))
        return onnx__refuse(call, "its size is wrong or too large");
    for (int64_t i = 0; i < n; i++) {
        double t = TURN * (double)i / (periodic ? size : size - 1);

        floats[i] = n == 1 ? 1
                           : (float)(how->a[0] - how->a[1] * cos(t) +
                                     how->a[2] * cos(2 * t));
    }
    return IPU_OK;
}

static const struct window how_hann = {{0.5, 0.5, 0}};
static const struct window how_hamming = {{25.0 / 46, 21.0 / 46, 0}};
static const struct window how_blackman = {{0.42, 0.5, 0.08}};

/* ---------------------------------------------------------------------- mel */

/* Sets the bins of a spectrum at which the bands begin, have their middle and
 * end: they are equally far from each other in mel. */
static void set_bands(int64_t bands, const double *number, int64_t bins,
                      int64_t *at)
{
    double low = 2595 * log10(1 + number[3] / 700);
    double high = 2595 * log10(1 + number[4] / 700);
    double step = (high - low) / (double)(bands + 2);

    for (int64_t i = 0; i < bands + 2; i++) {
        double hertz = 700 * (pow(10, (low + (double)i * step) / 2595) - 1);
        double bin = floor((number[1] + 1) * hertz / number[2]);

        at[i] = bin > 0 ? (bin < (double)bins ? (int64_t)bin : bins - 1) : 0;
    }
}

/* Sets column `band` of [bins, bands] to a triangle. */
static void set_triangle(float *to, int64_t bands, int64_t band,
                         const int64_t *at)
{
    int64_t low = at[0], middle = at[1], high = at[2];

    for (int64_t j = low; j <= middle; j++)
        to[j * bands + band] =
            middle == low ? 1 : (float)(j - low) / (float)(middle - low);
    for (int64_t j = middle; j < high; j++)
        to[j * bands + band] = (float)(high - j) / (float)(high - middle);
}

static int build_mel(struct ipu__onnx_call *call)
{
    static const char *const what[] = {"num_mel_bins", "dft_length",
                                       "sample_rate", "lower_edge_hertz",
                                       "upper_edge_hertz"};
    int64_t number = onnx__int(call, "output_datatype", IPU_ONNX_FLOAT);
    double given[5] = {0};
    int64_t shape[2], *wholes, *at;
    float *floats;

    for (int i = 0; i < 5; i++)
        IPU_TRY(onnx__number(call, i, what[i], &given[i]));
    if (ipu__onnx_kind(number)->bytes == 0 || ipu__onnx_kind(number)->whole)
        return onnx__refuse(call, "its type is not supported");
    if (!(given[0] >= 1 && given[0] < 1e6 && given[1] >= 1 && given[1] < 1e6 &&
          given[2] > 0 && given[3] >= 0 && given[4] >= given[3]))
        return onnx__refuse(call, "its numbers make no bands");
    shape[1] = (int64_t)given[0];
    shape[0] = (int64_t)given[1] / 2 + 1;
    if (!onnx__room(call, 0, (int32_t)number, 2, shape, &floats, &wholes))
        return onnx__refuse(call, "its output takes too much memory");
    IPU_TRY(ipu__new_array(&at, (size_t)shape[1] + 2, sizeof *at));
    set_bands(shape[1], given, shape[0], at);
    for (int64_t i = 0; i < shape[1]; i++)
        set_triangle(floats, shape[1], i, at + i);
    free(at);
    return IPU_OK;
}

/* --------------------------------------------------------------- transforms */

/* Numbers of the matrix of a transform. */
enum { MOST_NUMBERS = 1 << 24 };

/* Describes a transform: of n elements with `parts` numbers each, the first of
 * `length`, to `outputs` complex ones. */
struct transform {
    int64_t n, parts, length, outputs;
    bool inverse;
};

/* Returns the matrix [n * parts, outputs * 2]. */
static ipu_tensor matrix_of(struct ipu__onnx_call *call,
                            const struct transform *f)
{
    int64_t shape[2] = {f->n * f->parts, f->outputs * 2}, columns = shape[1];
    double sign = f->inverse ? 1 : -1;
    double scale = f->inverse ? 1 / (double)f->length : 1;
    ipu_tensor t = {-1};
    float *m;

    if (ipu__new_array(&m, (size_t)(shape[0] * columns) + 1, sizeof *m) < 0)
        return t;
    for (int64_t i = 0; i < f->n && i < f->length; i++)
        for (int64_t k = 0; k < f->outputs; k++) {
            double angle =
                sign * TURN * (double)(i * k % f->length) / (double)f->length;
            float *row = m + i * f->parts * columns + 2 * k;

            row[0] = (float)(scale * cos(angle));
            row[1] = (float)(scale * sin(angle));
            if (f->parts == 2) {
                row[columns] = -row[1];
                row[columns + 1] = row[0];
            }
        }
    t = onnx__constant(call, call->inputs[0]->type, 2, shape, m, NULL);
    free(m);
    return t;
}

/* Transforms x, [..., n, parts], to [..., outputs, 2]. */
static int transform(struct ipu__onnx_call *call, const struct transform *f,
                     ipu_tensor *x)
{
    int64_t shape[IPU_MAX_DIMS] = {0};
    int32_t ndim = ipu_tensor_info(call->graph, *x, NULL, shape, NULL);
    ipu_graph *g = call->graph;

    if (f->n < 1 || f->length < 1 || f->n * f->parts > MOST_NUMBERS ||
        f->outputs > MOST_NUMBERS ||
        f->n * f->parts * f->outputs > MOST_NUMBERS / 2)
        return onnx__refuse(call, "a transform of so many elements is not "
                                  "supported");
    if (ndim < 3)
        return onnx__refuse(call, "its input is no list of signals");
    shape[ndim - 2] = f->n * f->parts;
    *x = ipu_reshape(g, *x, ndim - 1, shape);
    *x = ipu_batch_matmul(g, *x, matrix_of(call, f), 0, 0);
    shape[ndim - 2] = f->outputs;
    shape[ndim - 1] = 2;
    *x = ipu_reshape(g, *x, ndim, shape);
    return IPU_OK;
}

/* Exchanges the axis and the last but one. */
static ipu_tensor exchange(ipu_graph *g, ipu_tensor x, int32_t ndim,
                           int32_t axis)
{
    int32_t order[IPU_MAX_DIMS];

    if (axis == ndim - 2)
        return x;
    for (int32_t d = 0; d < ndim; d++)
        order[d] = d == axis ? ndim - 2 : d == ndim - 2 ? axis : d;
    return ipu_transpose(g, x, order);
}

static int build_dft(struct ipu__onnx_call *call)
{
    struct ipu__onnx_value *x = call->inputs[0];
    bool onesided = onnx__int(call, "onesided", 0) != 0;
    ipu_graph *g = call->graph;
    struct transform f = {.inverse = onnx__int(call, "inverse", 0) != 0};
    double length;
    ipu_tensor t;
    int32_t axis;

    IPU_TRY(onnx__want_floats(call, 0));
    IPU_TRY(onnx__axis(call, onnx__int(call, "axis", 1), x->ndim, &axis));
    if (x->ndim < 3 || axis == x->ndim - 1)
        return onnx__refuse(call, "its axis is none of its signals");
    f.parts = x->extents[x->ndim - 1];
    if (f.parts != 1 && f.parts != 2)
        return onnx__refuse(call, "its signals are neither real nor complex");
    f.n = x->extents[axis];
    length = (double)f.n;
    IPU_TRY(onnx__number(call, 1, "dft_length", &length));
    if (!(length >= 1 && length <= MOST_NUMBERS))
        return onnx__refuse(call, "its dft_length is wrong or too large");
    f.length = (int64_t)length;
    f.outputs = onesided ? f.length / 2 + 1 : f.length;
    t = exchange(g, onnx__tensor(call, x), x->ndim, axis);
    IPU_TRY(transform(call, &f, &t));
    return onnx__give(call, 0, x->type, exchange(g, t, x->ndim, axis));
}

/* Returns frames of signals, [batch, n, parts] -> [batch, frames, length,
 * parts], times the window. */
static ipu_tensor frames_of(struct ipu__onnx_call *call, ipu_tensor x,
                            int64_t frames, int64_t step, int64_t length)
{
    struct ipu__onnx_value *window = onnx__in(call, 2);
    ipu_graph *g = call->graph;
    ipu_tensor rows = ipu_range(g, IPU_INT32, frames, 0, (double)step);

    rows = ipu_add(g, ipu_expand_dims(g, rows, -1),
                   ipu_range(g, IPU_INT32, length, 0, 1));
    x = ipu_gather(g, x, rows, 1);
    if (window)
        x = ipu_multiply(g, x,
                         ipu_expand_dims(g, onnx__tensor(call, window), -1));
    return x;
}

static int build_stft(struct ipu__onnx_call *call)
{
    struct ipu__onnx_value *x = call->inputs[0], *window = onnx__in(call, 2);
    bool onesided = onnx__int(call, "onesided", 1) != 0;
    ipu_graph *g = call->graph;
    double step = 0, length = -1;
    struct transform f = {.parts = 1};
    int64_t frames;
    ipu_tensor t;

    IPU_TRY(onnx__want_floats(call, 0));
    if (x->ndim == 3)
        f.parts = x->extents[2];
    if (x->ndim < 2 || x->ndim > 3 || (f.parts != 1 && f.parts != 2))
        return onnx__refuse(call, "its input is no list of signals");
    IPU_TRY(onnx__number(call, 1, "frame_step", &step));
    if (window)
        length = window->ndim == 1 ? (double)window->extents[0] : -1;
    IPU_TRY(onnx__number(call, 3, "frame_length", &length));
    if (!(step >= 1 && step <= INT32_MAX) ||
        !(length >= 1 && length <= (double)x->extents[1]) ||
        (window && (window->ndim != 1 || (double)window->extents[0] != length ||
                    window->type != x->type)))
        return onnx__refuse(call, "its frames do not fit its input");
    f.n = f.length = (int64_t)length;
    f.outputs = onesided ? f.n / 2 + 1 : f.n;
    frames = (x->extents[1] - f.n) / (int64_t)step + 1;
    t = onnx__tensor(call, x);
    if (x->ndim == 2)
        t = ipu_expand_dims(g, t, -1);
    t = frames_of(call, t, frames, (int64_t)step, f.n);
    IPU_TRY(transform(call, &f, &t));
    return onnx__give(call, 0, x->type, t);
}

/* ------------------------------------------------------------- determinants */

/* Returns part i of an axis, without the axis. */
static ipu_tensor part(ipu_graph *g, ipu_tensor x, int64_t i, int32_t axis)
{
    return ipu_gather(g, x, ipu_fill(g, IPU_INT32, 0, NULL, (double)i), axis);
}

enum { MOST_MATRIX = 4 };

/* Expands along the first of the rows that are left; bit j of used: column j
 * belongs to a row before. */
static ipu_tensor determinant(ipu_graph *g, const ipu_tensor *elements, int n,
                              int row, int used)
{
    ipu_tensor sum = {-1}, product;
    int sign = 1;

    for (int j = 0; j < n; j++) {
        if (used & 1 << j)
            continue;
        product = elements[row * n + j];
        if (row + 1 < n)
            product = ipu_multiply(
                g, product,
                determinant(g, elements, n, row + 1, used | 1 << j));
        sum = sum.id < 0 ? product
              : sign > 0 ? ipu_add(g, sum, product)
                         : ipu_subtract(g, sum, product);
        sign = -sign;
    }
    return sum;
}

static int build_det(struct ipu__onnx_call *call)
{
    struct ipu__onnx_value *x = call->inputs[0];
    ipu_tensor elements[MOST_MATRIX * MOST_MATRIX], t;
    int64_t n = x->ndim < 2 ? 0 : x->extents[x->ndim - 1];
    ipu_graph *g = call->graph;

    IPU_TRY(onnx__want_floats(call, 0));
    if (n < 1 || x->extents[x->ndim - 2] != n)
        return onnx__refuse(call, "its input is no square matrix");
    if (n > MOST_MATRIX)
        return onnx__refuse(call, "of more than %d x %d it is not supported",
                            MOST_MATRIX, MOST_MATRIX);
    t = onnx__tensor(call, x);
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j < n; j++)
            elements[i * n + j] =
                part(g, part(g, t, j, x->ndim - 1), i, x->ndim - 2);
    return onnx__give(call, 0, x->type, determinant(g, elements, (int)n, 0, 0));
}

#define WINDOW(name, how)                                                      \
    {                                                                          \
        name, 17, "output_datatype periodic", 1, 1, build_window, &how,        \
            "the size must be known"                                           \
    }

const struct ipu__onnx_operator onnx__signal_rows[] = {
    WINDOW("BlackmanWindow", how_blackman),
    {"DFT", 17, "axis inverse onesided", 1, 2, build_dft, NULL,
     "more than some thousand elements are refused; dft_length must be known"},
    {"Det", 11, "", 1, 1, build_det, NULL, "more than 4 x 4 are refused"},
    WINDOW("HammingWindow", how_hamming),
    WINDOW("HannWindow", how_hann),
    {"MelWeightMatrix", 17, "output_datatype", 5, 5, build_mel, NULL,
     "its numbers must be known"},
    {"STFT", 17, "onesided", 2, 4, build_stft, NULL,
     "frames of more than some thousand elements are refused; frame_step and "
     "frame_length must be known"},
    {.name = NULL},
};
