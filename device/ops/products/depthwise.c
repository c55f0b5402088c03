/* SPDX-License-Identifier: Apache-2.0 */
/*
 * depthwise.c - depthwise convolutions: each channel of y: [n, ho, wo, c] is
 * made of the same channel of x: [n, h, w, c], with kernel: [kh, kw, 1, c].
 *
 * There is no product of matrices in it. A line computes pixels of one row that
 * have the same taps, four at a time, channels as the lanes of vectors; sums
 * stay in registers. The derivative of x is made in lines, too: pixels of x
 * that a stride apart have the same taps, of pixels of y that lie side by side.
 * So all of it only adds up, and nothing is stored twice.
 */
#include <string.h>

#include "ops/lanes.h"
#include "ops/products/conv2d.h"

enum { ABREAST = 4 }; /* pixels that share the kernel's elements */

/* The taps of a line, and where the next pixel's are; in elements. */
struct line {
    int64_t rows, columns; /* of taps */
    int64_t in_row, in_column, in_pixel;
    int64_t kernel_row, kernel_column;
    int64_t out_pixel, pixels, channels;
    int64_t wide, half_wide; /* of the channels (ops/lanes.h) */
};

/* Channels of the widths that a line goes in. */
typedef ipu__wide wide;
typedef ipu__half_wide half_wide;
typedef ipu__narrow narrow;
typedef ipu__single single;

/* Defines a function that adds up the taps of n pixels abreast. columns and
 * pixel are those of the line: where they are known when this is compiled, what
 * neighbours read is loaded once. */
#define SUMS(type)                                                             \
    IPU__INLINE void sum_##type(const struct line *l, float *y,                \
                                const float *x, const float *kernel, int n,    \
                                int64_t columns, int64_t pixel)                \
    {                                                                          \
        type sums[ABREAST] = {0};                                              \
                                                                               \
        for (int64_t r = 0; r < l->rows; r++)                                  \
            UNROLL for (int64_t c = 0; c < columns; c++)                       \
            {                                                                  \
                const float *from = x + r * l->in_row + c * l->in_column;      \
                type k = *(const type *)(kernel + r * l->kernel_row +          \
                                         c * l->kernel_column);                \
                                                                               \
                UNROLL for (int i = 0; i < n; i++) sums[i] +=                  \
                    *(const type *)(from + i * pixel) * k;                     \
            }                                                                  \
        UNROLL for (int i = 0; i < n; i++) * (type *)(y + i * l->out_pixel) =  \
            sums[i];                                                           \
    }
#define UNROLL _Pragma("GCC unroll 4")
SUMS(wide)
SUMS(half_wide)
SUMS(narrow)
SUMS(single)

/* All channels of n pixels. */
IPU__INLINE void sum_channels(const struct line *l, float *y, const float *x,
                              const float *kernel, int n, int64_t columns,
                              int64_t pixel)
{
    int64_t i = 0;

    for (; i < l->wide; i += 16)
        sum_wide(l, y + i, x + i, kernel + i, n, columns, pixel);
    for (; i < l->half_wide; i += 8)
        sum_half_wide(l, y + i, x + i, kernel + i, n, columns, pixel);
    for (; i + 4 <= l->channels; i += 4)
        sum_narrow(l, y + i, x + i, kernel + i, n, columns, pixel);
    for (; i < l->channels; i++)
        sum_single(l, y + i, x + i, kernel + i, n, columns, pixel);
}

/* Four pixels of most depthwise convolutions: three columns, side by side. */
IPU__INLINE void sum_abreast(const struct line *l, float *y, const float *x,
                             const float *kernel)
{
    if (l->columns == 3 && l->in_column == l->in_pixel)
        sum_channels(l, y, x, kernel, ABREAST, 3, l->in_column);
    else if (l->columns == 3)
        sum_channels(l, y, x, kernel, ABREAST, 3, l->in_pixel);
    else
        sum_channels(l, y, x, kernel, ABREAST, l->columns, l->in_pixel);
}

IPU__WIDE(static, void, run_line,
          (const struct line *l, float *y, const float *x, const float *kernel),
          (l, y, x, kernel))
{
    int64_t i = 0;

    for (; i + ABREAST <= l->pixels; i += ABREAST)
        sum_abreast(l, y + i * l->out_pixel, x + i * l->in_pixel, kernel);
    for (; i < l->pixels; i++)
        sum_channels(l, y + i * l->out_pixel, x + i * l->in_pixel, kernel, 1,
                     l->columns, l->in_pixel);
}

/* --------------------------------------------------------------- which taps */

static int64_t floor_over(int64_t a, int64_t b)
{
    return a >= 0 ? a / b : -((-a + b - 1) / b);
}

static int64_t ceil_over(int64_t a, int64_t b)
{
    return -floor_over(-a, b);
}

static int64_t smaller(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static int64_t larger(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

/*
 * One side of an image, in the terms of what a line reads: position out of the
 * output has the taps first + i * every of the kernel, for i in [from, to),
 * which read position start + i * step of the input.
 */
struct taps {
    int64_t first, every, count; /* of the kernel, wherever they read */
    int64_t start, step;
    int64_t from, to; /* that are inside the input */
};

/* Keeps those taps that read positions [0, extent). */
static void keep_inside(struct taps *t, int64_t extent)
{
    if (t->step > 0) {
        t->from = ceil_over(-t->start, t->step);
        t->to = ceil_over(extent - t->start, t->step);
    } else {
        t->from = ceil_over(t->start - extent + 1, -t->step);
        t->to = floor_over(t->start, -t->step) + 1;
    }
    t->from = larger(t->from, 0);
    t->to = smaller(t->to, t->count);
    if (t->to < t->from)
        t->to = t->from = 0;
}

/* The taps of position out of y, along side i. */
static struct taps forward_taps(const struct ipu__conv *c, int i, int64_t out)
{
    struct taps t = {.every = 1,
                     .count = i ? c->kw : c->kh,
                     .start = out * c->stride[i] - c->pad[i],
                     .step = c->dilation[i]};

    keep_inside(&t, i ? c->w : c->h);
    return t;
}

/* The taps of position out of dx: those that it was read through, of one in
 * every few places. */
static struct taps backward_taps(const struct ipu__conv *c, int i, int64_t out)
{
    int64_t kernel = i ? c->kw : c->kh, at = out + c->pad[i];
    struct taps t = {.every = 1};

    while ((t.every * c->dilation[i]) % c->stride[i])
        t.every++;
    while (t.first < t.every && (at - t.first * c->dilation[i]) % c->stride[i])
        t.first++;
    if (t.first < t.every && t.first < kernel)
        t.count = (kernel - t.first + t.every - 1) / t.every;
    t.start = floor_over(at - t.first * c->dilation[i], c->stride[i]);
    t.step = -(t.every * c->dilation[i] / c->stride[i]);
    keep_inside(&t, i ? c->wo : c->ho);
    return t;
}

/* Positions without taps are on both sides of those with some: each is alone.
 */
static bool same_taps(const struct taps *a, const struct taps *b)
{
    return a->first == b->first && a->from == b->from && a->to == b->to &&
           a->from < a->to;
}

/* --------------------------------------------------------------------- rows */

/* The way of an output, y or dx, from its input. */
struct way {
    const struct ipu__conv *c;
    struct taps (*taps)(const struct ipu__conv *c, int i, int64_t out);
    int64_t in_h, in_w, out_h, out_w;
    /* Positions of the output that have the same taps are so many apart, and
     * read so many apart. */
    int64_t out_step, in_step;
};

/* Returns how many pixels from column on, out_step from each other, have its
 * taps: bisects, as they lie together. */
static int64_t count_alike(const struct way *w, const struct taps *t,
                           int64_t column)
{
    int64_t from = 1, to = (w->out_w - column + w->out_step - 1) / w->out_step;

    while (from < to) {
        int64_t middle = from + (to - from) / 2;
        struct taps other = w->taps(w->c, 1, column + middle * w->out_step);

        if (same_taps(t, &other))
            from = middle + 1;
        else
            to = middle;
    }
    return from;
}

/* Computes the pixels of a row from column on that have the same taps, out_step
 * from each other; returns how many. */
static int64_t run_pixels(const struct way *w, const struct taps *rows,
                          int64_t column, const float *image,
                          const float *kernel, float *out)
{
    const struct ipu__conv *c = w->c;
    struct taps t = w->taps(c, 1, column);
    struct line l = {
        .rows = rows->to - rows->from,
        .columns = t.to - t.from,
        .in_row = rows->step * w->in_w * c->ci,
        .in_column = t.step * c->ci,
        .in_pixel = w->in_step * c->ci,
        .kernel_row = rows->every * c->kw * c->ci,
        .kernel_column = t.every * c->ci,
        .out_pixel = w->out_step * c->ci,
        .channels = c->ci,
        .wide = ipu__in_wide(c->ci),
        .half_wide = ipu__in_half_wide(c->ci),
    };
    int64_t y = rows->start + rows->from * rows->step;
    int64_t x = t.start + t.from * t.step;
    int64_t ky = rows->first + rows->from * rows->every;
    int64_t kx = t.first + t.from * t.every;

    l.pixels = count_alike(w, &t, column);
    if (l.rows == 0 || l.columns == 0) {
        l.rows = l.columns = 0;
        x = y = kx = ky = 0;
    }
    run_line(&l, out + column * c->ci, image + (y * w->in_w + x) * c->ci,
             kernel + (ky * c->kw + kx) * c->ci);
    return l.pixels;
}

static void run_row(const struct way *w, int64_t row, const float *image,
                    const float *kernel, float *out)
{
    struct taps rows = w->taps(w->c, 0, row);

    for (int64_t phase = 0; phase < w->out_step; phase++)
        for (int64_t column = phase; column < w->out_w;)
            column +=
                w->out_step * run_pixels(w, &rows, column, image, kernel, out);
}

static void run_way(const struct way *w, const float *in, const float *kernel,
                    float *out, ipu__done *done, void *context)
{
    int64_t row_count = w->out_w * w->c->ci;
    int64_t image_count = w->in_h * w->in_w * w->c->ci;

    for (int64_t r = 0; r < w->c->n * w->out_h; r++) {
        run_row(w, r % w->out_h, in + r / w->out_h * image_count, kernel,
                out + r * row_count);
        if (done)
            done(context, r * row_count, row_count);
    }
}

void ipu__depthwise(const struct ipu__conv *c, const float *x,
                    const float *kernel, float *y, ipu__done *done,
                    void *context)
{
    const struct way w = {c,     forward_taps, c->h, c->w,
                          c->ho, c->wo,        1,    c->stride[1]};

    run_way(&w, x, kernel, y, done, context);
}

void ipu__depthwise_input_grad(const struct ipu__conv *c, const float *dy,
                               const float *kernel, float *dx, ipu__done *done,
                               void *context)
{
    const struct way w = {c,    backward_taps, c->ho,        c->wo,
                          c->h, c->w,          c->stride[1], 1};

    run_way(&w, dy, kernel, dx, done, context);
}

/* ------------------------------------------------------------ of the kernel */

/* Pixels of a row that some taps of a row of the kernel meet. */
struct meeting {
    int64_t pixels, channels;
    int64_t
        step; /* from the element of x that a pixel meets to the next one's */
    int64_t tap; /* from the element that a tap meets to the next one's */
    int64_t wide, half_wide; /* of the channels (ops/lanes.h) */
};

/* Defines a function that adds to n taps of dk the sums of x and dy's products
 * over all pixels. Several sums at a time hide how long an addition takes. */
#define PRODUCTS(type)                                                         \
    IPU__INLINE void products_##type(const struct meeting *m, float *dk,       \
                                     const float *x, const float *dy, int n)   \
    {                                                                          \
        type sums[TAPS] = {0};                                                 \
                                                                               \
        for (int64_t p = 0; p < m->pixels; p++) {                              \
            type d = *(const type *)(dy + p * m->channels);                    \
                                                                               \
            _Pragma("GCC unroll 4") for (int i = 0; i < n; i++) sums[i] +=     \
                *(const type *)(x + p * m->step + i * m->tap) * d;             \
        }                                                                      \
        _Pragma("GCC unroll 4") for (int i = 0; i < n; i++) *                  \
            (type *)(dk + i * m->channels) += sums[i];                         \
    }
enum { TAPS = 4 };
PRODUCTS(wide)
PRODUCTS(half_wide)
PRODUCTS(narrow)
PRODUCTS(single)

/* All channels of n taps. */
IPU__INLINE void add_taps(const struct meeting *m, float *dk, const float *x,
                          const float *dy, int n)
{
    int64_t i = 0;

    for (; i < m->wide; i += 16)
        products_wide(m, dk + i, x + i, dy + i, n);
    for (; i < m->half_wide; i += 8)
        products_half_wide(m, dk + i, x + i, dy + i, n);
    for (; i + 4 <= m->channels; i += 4)
        products_narrow(m, dk + i, x + i, dy + i, n);
    for (; i < m->channels; i++)
        products_single(m, dk + i, x + i, dy + i, n);
}

IPU__WIDE(static, void, add_products,
          (const struct meeting *m, float *dk, const float *x, const float *dy,
           int64_t taps),
          (m, dk, x, dy, taps))
{
    for (; taps >= TAPS; taps -= TAPS) {
        add_taps(m, dk, x, dy, TAPS);
        dk += TAPS * m->channels;
        x += TAPS * m->tap;
    }
    if (taps == 3)
        add_taps(m, dk, x, dy, 3);
    else if (taps == 2)
        add_taps(m, dk, x, dy, 2);
    else if (taps == 1)
        add_taps(m, dk, x, dy, 1);
}

/* Sets [from, to) to the pixels of a row of y for which tap kx is inside x. */
static void find_pixels(const struct ipu__conv *c, int64_t kx, int64_t *from,
                        int64_t *to)
{
    int64_t left = kx * c->dilation[1] - c->pad[1];

    *from = smaller(larger(ceil_over(-left, c->stride[1]), 0), c->wo);
    *to = larger(*from, smaller(ceil_over(c->w - left, c->stride[1]), c->wo));
}

/* Adds what pixels [from, to) of a row of dy give to some taps, kx and those
 * behind it. */
static void add_pixels(const struct ipu__conv *c, const float *x,
                       const float *dy, float *dk, int64_t kx, int64_t taps,
                       int64_t from, int64_t to)
{
    struct meeting m = {.pixels = to - from,
                        .channels = c->ci,
                        .step = c->stride[1] * c->ci,
                        .tap = c->dilation[1] * c->ci,
                        .wide = ipu__in_wide(c->ci),
                        .half_wide = ipu__in_half_wide(c->ci)};
    int64_t left = kx * c->dilation[1] - c->pad[1];

    if (from < to)
        add_products(&m, dk + kx * c->ci,
                     x + (from * c->stride[1] + left) * c->ci,
                     dy + from * c->ci, taps);
}

/* Adds what one row of dy gives to one row of the kernel: first the pixels that
 * all taps meet, then those at the edges, which only some do. x: the row of the
 * image that it meets. */
static void add_row(const struct ipu__conv *c, const float *x, const float *dy,
                    float *dk)
{
    int64_t from, to, first, end;

    find_pixels(c, c->kw - 1, &first, &to);
    find_pixels(c, 0, &from, &end);
    first = larger(first, from);
    end = smaller(end, to);
    if (first < end)
        add_pixels(c, x, dy, dk, 0, c->kw, first, end);
    else
        first = end = 0;
    for (int64_t kx = 0; kx < c->kw; kx++) {
        find_pixels(c, kx, &from, &to);
        add_pixels(c, x, dy, dk, kx, 1, from, smaller(to, first));
        add_pixels(c, x, dy, dk, kx, 1, larger(from, end), to);
    }
}

void ipu__depthwise_kernel_grad(const struct ipu__conv *c, const float *x,
                                const float *dy, float *dkernel)
{
    memset(dkernel, 0, (size_t)(c->depth * c->ci) * sizeof *dkernel);
    for (int64_t r = 0; r < c->n * c->ho; r++) {
        int64_t image = r / c->ho, row = r % c->ho;
        struct taps t = forward_taps(c, 0, row);

        for (int64_t k = t.from; k < t.to; k++)
            add_row(c, x + (image * c->h + t.start + k * t.step) * c->w * c->ci,
                    dy + r * c->wo * c->ci, dkernel + k * c->kw * c->ci);
    }
}
