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

#include "graph/error.h"
#include "ops/pool.h"

/* Where the pixels of window (row, column) of an image start, in elements;
 * row: counted over all images. */
struct geometry {
    int64_t rows, columns, c; /* of the output, rows over all images */
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

/* y = max(y, x), NaN winning. */
IPU__WIDE static void maximum(float *y, const float *x, int64_t count)
{
    IPU__BY_ELEMENT
    for (int64_t i = 0; i < count; i++)
        y[i] = !(x[i] <= y[i]) && y[i] == y[i] ? x[i] : y[i];
}

static int run(const struct ipu__call *call)
{
    const struct geometry g =
        geometry_of(call, &call->inputs[0].shape, &call->output.shape);
    const float *x = call->inputs[0].data;
    float *y = call->output.data;

    for (int64_t row = 0; row < g.rows; row++)
        for (int64_t column = 0; column < g.columns; column++, y += g.c) {
            const float *first = x + window(&g, row, column);

            memcpy(y, first, (size_t)g.c * sizeof *y);
            for (int64_t i = 1; i < g.size * g.size; i++)
                maximum(y, first + (i / g.size * g.in_w + i % g.size) * g.c,
                        g.c);
        }
    return IPU_OK;
}

static void gradient(ipu_graph *graph, const struct ipu__node *node,
                     const bool *needed, ipu_tensor dy, ipu_tensor *dx)
{
    const ipu_tensor inputs[] = {ipu__handle(graph, node->inputs[0]),
                                 ipu__handle(graph, node->output), dy};

    (void)needed;
    dx[0] = ipu__add(graph, &ipu__max_pool2d_grad, inputs, &node->attributes);
}

const struct ipu__op ipu__max_pool2d = {
    .name = "max_pool2d",
    .ninputs = 1,
    .in_place = -1,
    .shape = ipu__pool_shape,
    .run = run,
    .gradient = gradient,
};

/* x, y, dy -> dx */
static int grad_shape(const struct ipu__call *call, struct ipu__shape *output)
{
    IPU_TRY(ipu__same_floats(call, output));
    IPU_TRY(ipu__expect_same(call, 1, 2));
    return ipu__pool_check(call, output, &call->inputs[1].shape);
}

/* One pixel of a window: takes what is left of dy where x is the maximum. */
IPU__WIDE static void take(float *dx, float *left, const float *x,
                           const float *y, int64_t count)
{
    IPU__BY_ELEMENT
    for (int64_t i = 0; i < count; i++) {
        bool is_maximum = x[i] == y[i] || (x[i] != x[i] && y[i] != y[i]);

        dx[i] = is_maximum ? left[i] : 0;
        left[i] = is_maximum ? 0 : left[i];
    }
}

static size_t grad_scratch(const struct ipu__call *call)
{
    return (size_t)call->inputs[0].shape.extents[3] * sizeof(float);
}

/* What no window covers. The rest must stay: it may hold x. */
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
    for (int64_t row = 0; row < g.rows; row++)
        for (int64_t column = 0; column < g.columns; column++) {
            int64_t first = window(&g, row, column);

            memcpy(left, dy, (size_t)g.c * sizeof *left);
            for (int64_t i = 0; i < g.size * g.size; i++) {
                int64_t at = first + (i / g.size * g.in_w + i % g.size) * g.c;
                take(dx + at, left, x + at, y, g.c);
            }
            y += g.c;
            dy += g.c;
        }
    return IPU_OK;
}

const struct ipu__op ipu__max_pool2d_grad = {
    .name = "max_pool2d_grad",
    .ninputs = 3,
    .in_place = 0,
    .shape = grad_shape,
    .scratch = grad_scratch,
    .run = run_grad,
};

ipu_tensor ipu_max_pool2d(ipu_graph *graph, ipu_tensor x, int32_t size)
{
    const struct ipu__attributes attributes = {.size = size};

    return ipu__add(graph, &ipu__max_pool2d, &x, &attributes);
}
