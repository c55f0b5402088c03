/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The largest of each window of size x size, stride size; incomplete windows
 * at the edges are dropped. x: [n, h, w, c] -> [n, h/size, w/size, c].
 *
 * The derivative goes to the first element of the window, by rows, that
 * equals the maximum: what TensorFlow does on CPUs. A NaN in a window gives
 * NaN, and takes the derivative.
 */
#include <string.h>

#include "base/error.h"
#include "ops/costs.h"
#include "ops/functions.h"
#include "ops/windows/max_pool.h"

/* The starts of the pixels of window (row, column) of an image, in elements;
 * row counts over all images. */
struct geometry {
    int64_t rows, columns,
        c; /* extents of the output, with rows over all images */
    int64_t size, out_h, in_h, in_w;
};

static struct geometry geometry_of(const struct ipu__call *call,
                                   const struct ipu__shape *x,
                                   const struct ipu__shape *y)
{
    return (struct geometry){
        .rows = y->extents[0] * y->extents[1],
        .columns = y->extents[2],
        .c = y->extents[3],
        .size = call->attributes->size,
        .out_h = y->extents[1],
        .in_h = x->extents[1],
        .in_w = x->extents[2],
    };
}

static int64_t window(const struct geometry *g, int64_t row, int64_t column)
{
    int64_t image = row / g->out_h, y = row % g->out_h * g->size;

    return ((image * g->in_h + y) * g->in_w + column * g->size) * g->c;
}

/* A row of windows of 2 x 2, the usual ones: no calls, and nothing stored on
 * the way. top: the first pixel of the first; pitch: elements from row to row.
 */
IPU__WIDE(static, void, maximum_of_4,
          (float *y, const float *top, int64_t pitch, int64_t columns,
           int64_t c),
          (y, top, pitch, columns, c))
{
    for (int64_t column = 0; column < columns; column++) {
        const float *a = top + 2 * column * c, *b = a + pitch;

        IPU__BY_ELEMENT
        for (int64_t i = 0; i < c; i++)
            y[column * c + i] = ipu__larger(ipu__larger(a[i], a[c + i]),
                                            ipu__larger(b[i], b[c + i]));
    }
}

static int run(const struct ipu__call *call)
{
    const struct geometry g =
        geometry_of(call, &call->inputs[0].shape, &call->output.shape);
    const float *x = call->inputs[0].data;
    float *y = call->output.data;

    if (g.size == 2) {
        for (int64_t row = 0; row < g.rows; row++)
            maximum_of_4(y + row * g.columns * g.c, x + window(&g, row, 0),
                         g.in_w * g.c, g.columns, g.c);
        return IPU_OK;
    }
    for (int64_t row = 0; row < g.rows; row++)
        for (int64_t column = 0; column < g.columns; column++, y += g.c) {
            const float *first = x + window(&g, row, column);

            memcpy(y, first, (size_t)g.c * sizeof *y);
            for (int64_t i = 1; i < g.size * g.size; i++)
                ipu__max_pixel(
                    y, first + (i / g.size * g.in_w + i % g.size) * g.c, g.c);
        }
    return IPU_OK;
}

const struct ipu__op ipu__max_pool2d = {
    .name = "max_pool2d",
    .ninputs = 1,
    .slots = 1,
    .shape = ipu__pooling_shape,
    .run = run,
    .cost = ipu__read_once_cost,
    .estimate = IPU__WINDOW_ESTIMATE,
    .gradient = ipu__max_slope,
    .slope = &ipu__max_pool2d_grad,
};

/* x, y, dy -> dx */
static int grad_shape(const struct ipu__call *call, struct ipu__shape *output)
{
    IPU_TRY(ipu__same_floats(call, output));
    IPU_TRY(ipu__expect_same(call, 1, 2));
    return ipu__pooling_check(call, output, &call->inputs[1].shape);
}

/* A row of windows of 2 x 2: as maximum_of_4. dx may be x. */
IPU__WIDE(static, void, take_of_4,
          (float *dx, const float *x, const float *y, const float *dy,
           int64_t pitch, int64_t columns, int64_t c),
          (dx, x, y, dy, pitch, columns, c))
{
    for (int64_t column = 0; column < columns; column++) {
        int64_t first = 2 * column * c, at = column * c;

        IPU__BY_ELEMENT
        for (int64_t i = 0; i < c; i++) {
            int64_t a = first + i, b = a + pitch;
            float most = y[at + i], left = dy[at + i];
            int in_a = ipu__is_largest(x[a], most);
            int in_a2 = ipu__is_largest(x[a + c], most);
            int in_b = ipu__is_largest(x[b], most);
            int in_b2 = ipu__is_largest(x[b + c], most);

            dx[a] = in_a ? left : 0;
            left = in_a ? 0 : left;
            dx[a + c] = in_a2 ? left : 0;
            left = in_a2 ? 0 : left;
            dx[b] = in_b ? left : 0;
            left = in_b ? 0 : left;
            dx[b + c] = in_b2 ? left : 0;
        }
    }
}

/* Clears the pixels that no window covers. The rest must stay: it may hold
 * x. */
static void clear_edges(const struct geometry *g, int64_t images, float *dx)
{
    int64_t rows = g->in_h / g->size * g->size;
    int64_t covered = g->columns * g->size * g->c, row = g->in_w * g->c;

    for (int64_t r = 0; r < images * g->in_h; r++) {
        int64_t from = r % g->in_h < rows ? covered : 0;
        if (row > from)
            memset(dx + r * row + from, 0, (size_t)(row - from) * sizeof *dx);
    }
}

static int run_grad(const struct ipu__call *call)
{
    const struct ipu__shape *xs = &call->inputs[0].shape;
    const struct geometry g = geometry_of(call, xs, &call->inputs[1].shape);
    const float *x = call->inputs[0].data, *y = call->inputs[1].data;
    const float *dy = call->inputs[2].data;
    float *dx = call->output.data, *left = call->scratch;

    clear_edges(&g, xs->extents[0], dx);
    if (g.size == 2) {
        int64_t n = g.columns * g.c;

        for (int64_t row = 0; row < g.rows; row++) {
            int64_t first = window(&g, row, 0);
            take_of_4(dx + first, x + first, y + row * n, dy + row * n,
                      g.in_w * g.c, g.columns, g.c);
        }
        return IPU_OK;
    }
    for (int64_t row = 0; row < g.rows; row++)
        for (int64_t column = 0; column < g.columns; column++) {
            int64_t first = window(&g, row, column);

            memcpy(left, dy, (size_t)g.c * sizeof *left);
            for (int64_t i = 0; i < g.size * g.size; i++) {
                int64_t at = first + (i / g.size * g.in_w + i % g.size) * g.c;
                ipu__max_take(dx + at, left, x + at, y, g.c);
            }
            y += g.c;
            dy += g.c;
        }
    return IPU_OK;
}

const struct ipu__op ipu__max_pool2d_grad = {
    .name = "max_pool2d_grad",
    .ninputs = 3,
    .in_place = IPU__FIRST,
    .slots = 3,
    .shape = grad_shape,
    .scratch = ipu__max_left_scratch,
    .run = run_grad,
    .cost = ipu__read_once_cost,
    .estimate = IPU__WINDOW_ESTIMATE,
};

ipu_tensor ipu_max_pool2d(ipu_graph *graph, ipu_tensor x, int32_t size)
{
    const struct ipu__attributes attributes = {.size = size};

    return ipu__add(graph, &ipu__max_pool2d, &x, &attributes);
}
