/* SPDX-License-Identifier: Apache-2.0 */
/*
 * matmul.c - products of matrices, either transposed on request, through
 * OpenBLAS: a: [..., m, k] times b: [..., k, n], one product for each of the
 * leading dimensions, or with one of the two the same for all.
 *
 * If b is the same for all, and the rows of all a's lie one below the other,
 * all are one product.
 *
 * Products of many rows are convolutions of single pixels, in strips: those are
 * faster than OpenBLAS if b is not packed for too few rows, or is small.
 * Otherwise, and with threads, OpenBLAS multiplies.
 */
#include <cblas.h>
#include <limits.h>
#include <string.h>

#include "base/error.h"
#include "ops/products/conv2d.h"

/* Rows and columns after transposition. */
static int64_t rows_of(const struct ipu__call *call, int i)
{
    const struct ipu__shape *s = &call->inputs[i].shape;

    return s->extents[s->ndim - 2 + call->attributes->transpose[i]];
}

static int64_t columns_of(const struct ipu__call *call, int i)
{
    const struct ipu__shape *s = &call->inputs[i].shape;

    return s->extents[s->ndim - 1 - call->attributes->transpose[i]];
}

static int expect_matrices(const struct ipu__call *call, int i,
                           const char *form)
{
    IPU_TRY(ipu__expect(call, i, IPU_FLOAT32,
                        call->inputs[i].shape.ndim < 2 ? 2 : -1, form));
    return IPU_OK;
}

static bool leading_fit(const struct ipu__shape *a, const struct ipu__shape *b)
{
    if (a->ndim == 2 || b->ndim == 2)
        return true;
    if (a->ndim != b->ndim)
        return false;
    for (int32_t i = 0; i < a->ndim - 2; i++)
        if (a->extents[i] != b->extents[i])
            return false;
    return true;
}

static int shape(const struct ipu__call *call, struct ipu__shape *output)
{
    const struct ipu__shape *a = &call->inputs[0].shape;
    const struct ipu__shape *b = &call->inputs[1].shape;

    IPU_TRY(expect_matrices(call, 0, "[m, k] or [..., m, k]"));
    IPU_TRY(expect_matrices(call, 1, "[k, n] or [..., k, n]"));
    if (columns_of(call, 0) != rows_of(call, 1))
        return ipu__unfit(call, 0, 1, "the inner dimensions must be equal");
    if (!leading_fit(a, b))
        return ipu__unfit(call, 0, 1,
                          "the dimensions before the last two must be equal, "
                          "or one must have only two");
    for (int i = 0; i < 2; i++)
        if (rows_of(call, i) > INT_MAX || columns_of(call, i) > INT_MAX)
            return ipu__unfit(call, 0, 1,
                              "OpenBLAS takes at most 2147483647 rows or "
                              "columns");
    *output = a->ndim > 2 ? *a : *b;
    output->extents[output->ndim - 2] = rows_of(call, 0);
    output->extents[output->ndim - 1] = columns_of(call, 1);
    return IPU_OK;
}

static enum CBLAS_TRANSPOSE transposition(const struct ipu__call *call, int i)
{
    return call->attributes->transpose[i] ? CblasTrans : CblasNoTrans;
}

/* Elements of one matrix; 0 if it is the same for all products. */
static int64_t advance_of(const struct ipu__shape *shape)
{
    return shape->ndim == 2 ? 0
                            : shape->extents[shape->ndim - 2] *
                                  shape->extents[shape->ndim - 1];
}

/* The fewest rows, columns and elements of the depth of a product in strips;
 * and the most elements of a matrix b that is packed anew in each run: OpenBLAS
 * multiplies larger ones at least as fast. */
enum {
    STRIP_ROWS = 96,
    STRIP_COLUMNS = 16,
    STRIP_DEPTH = 16,
    MOST_TO_PACK = 256 << 10
};

/* Sets the convolution that a product is: a's rows are pixels. */
static bool as_conv(const struct ipu__call *call, int64_t m, int64_t n,
                    int64_t k, struct ipu__conv *c)
{
    if (call->attributes->transpose[0] || m < STRIP_ROWS || n < STRIP_COLUMNS ||
        k < STRIP_DEPTH)
        return false;
    *c = (struct ipu__conv){.n = 1,
                            .h = 1,
                            .w = m,
                            .ci = k,
                            .kh = 1,
                            .kw = 1,
                            .ho = 1,
                            .wo = m,
                            .co = n,
                            .stride = {1, 1},
                            .dilation = {1, 1},
                            .groups = 1};
    ipu__conv_complete(c);
    return true;
}

/* Makes one product; done NULL: no callback. Its elements are counted from the
 * first of y. packed: where b may be kept; NULL: nowhere. */
static void multiply_one(const struct ipu__call *call, int m, int n, int k,
                         const float *a, const float *b,
                         struct ipu__packed *packed, float *y, ipu__done *done,
                         void *context)
{
    const struct ipu__conv_kernel kernel = {b, call->attributes->transpose[1],
                                            packed};
    const struct ipu__shape *as = &call->inputs[0].shape;
    const struct ipu__shape *bs = &call->inputs[1].shape;
    struct ipu__conv c;

    if ((packed || (int64_t)n * k <= MOST_TO_PACK) &&
        as_conv(call, m, n, k, &c) &&
        ipu__conv_strips(&c, a, &kernel, y, call->scratch, done, context))
        return;
    cblas_sgemm(CblasRowMajor, transposition(call, 0), transposition(call, 1),
                m, n, k, 1, a, (int)as->extents[as->ndim - 1], b,
                (int)bs->extents[bs->ndim - 1], 0, y, n);
    if (done)
        done(context, 0, (int64_t)m * n);
}

/* Makes all products; done NULL: no callback. */
static void multiply_all(const struct ipu__call *call, int64_t count, int m,
                         int n, int k, ipu__done *done, void *context)
{
    const struct ipu__shape *as = &call->inputs[0].shape;
    const struct ipu__shape *bs = &call->inputs[1].shape;
    const float *a = call->inputs[0].data, *b = call->inputs[1].data;
    float *y = call->output.data;

    for (int64_t i = 0; i < count; i++) {
        multiply_one(call, m, n, k, a, b, count == 1 ? call->packed : NULL, y,
                     count == 1 ? done : NULL, context);
        if (done && count > 1)
            done(context, i * m * n, (int64_t)m * n);
        a += advance_of(as);
        b += advance_of(bs);
        y += (int64_t)m * n;
    }
}

/* The number of products, and the rows of each. */
static int64_t count_products(const struct ipu__call *call, int64_t *m)
{
    const struct ipu__shape *y = &call->output.shape;
    int64_t count = ipu__shape_span(y, 0, y->ndim - 2);

    *m = rows_of(call, 0);
    if (call->inputs[1].shape.ndim > 2 || call->attributes->transpose[0] ||
        count == 0 || *m > INT_MAX / count)
        return count;
    *m *= count;
    return 1;
}

static size_t scratch(const struct ipu__call *call)
{
    struct ipu__conv c;
    int64_t m;

    if (count_products(call, &m) == 0 ||
        !as_conv(call, m, columns_of(call, 1), columns_of(call, 0), &c))
        return 0;
    return ipu__conv_strips_scratch(&c);
}

static int run_in_parts(const struct ipu__call *call, ipu__done *done,
                        void *context)
{
    int64_t m, count = count_products(call, &m), k = columns_of(call, 0);
    int64_t n = columns_of(call, 1);
    const struct ipu__shape *y = &call->output.shape;

    if (count == 0 || m == 0 || n == 0)
        return IPU_OK;
    if (k > 0)
        multiply_all(call, count, (int)m, (int)n, (int)k, done, context);
    else
        memset(call->output.data, 0, ipu__shape_bytes(y));
    if (k == 0 && done)
        done(context, 0, count * m * n);
    return IPU_OK;
}

static int run(const struct ipu__call *call)
{
    return run_in_parts(call, NULL, NULL);
}

static ipu_tensor multiply(ipu_graph *graph, ipu_tensor a, bool transpose_a,
                           ipu_tensor b, bool transpose_b)
{
    const struct ipu__attributes attributes = {
        .transpose = {transpose_a, transpose_b}};

    return ipu__add(graph, &ipu__matmul, (const ipu_tensor[]){a, b},
                    &attributes);
}

/* A matrix that was the same for all products: the sum over all. */
static ipu_tensor sum_leading(ipu_graph *graph, const struct ipu__node *node,
                              int i, ipu_tensor dx)
{
    int32_t extra = graph->tensors[node->output].shape.ndim -
                    graph->tensors[node->inputs[i]].shape.ndim;
    int32_t axes[IPU_MAX_DIMS];

    for (int32_t k = 0; k < extra; k++)
        axes[k] = k;
    return extra > 0 ? ipu_sum(graph, dx, extra, axes, 0) : dx;
}

/* Returns x as one matrix: all of its matrices one below the other. */
static ipu_tensor stacked(ipu_graph *graph, ipu_tensor x)
{
    const struct ipu__shape s = graph->tensors[ipu__index(graph, x)].shape;
    const int64_t extents[2] = {ipu__shape_span(&s, 0, s.ndim - 1),
                                s.extents[s.ndim - 1]};

    return ipu_reshape(graph, x, 2, extents);
}

/* With A = op(a), B = op(b), Y = A B, the derivatives are dA = dY B' and dB =
 * A' dY. */
static void gradient(ipu_graph *graph, const struct ipu__node *node,
                     ipu_tensor dy, ipu_tensor *dx)
{
    bool ta = node->attributes.transpose[0], tb = node->attributes.transpose[1];
    ipu_tensor a = ipu__input(graph, node, 0);
    ipu_tensor b = ipu__input(graph, node, 1);
    bool b_is_shared = graph->tensors[node->inputs[1]].shape.ndim == 2;

    if (ipu__wanted(dx[0]))
        dx[0] = sum_leading(graph, node, 0,
                            ta ? multiply(graph, b, tb, dy, true)
                               : multiply(graph, dy, false, b, !tb));
    if (!ipu__wanted(dx[1]) || graph->status < 0)
        return;
    if (b_is_shared && !ta) { /* one product is the sum */
        a = stacked(graph, a);
        dy = stacked(graph, dy);
        dx[1] = tb ? multiply(graph, dy, true, a, false)
                   : multiply(graph, a, true, dy, false);
        return;
    }
    dx[1] = sum_leading(graph, node, 1,
                        tb ? multiply(graph, dy, true, a, ta)
                           : multiply(graph, a, !ta, dy, false));
}

static void cost(const struct ipu__call *call, struct ipu__work *work)
{
    ipu_product *p = &work->product;

    work->kind = IPU__WORK_PRODUCT;
    p->batch = count_products(call, &p->m);
    p->k = columns_of(call, 0);
    p->n = columns_of(call, 1);
}

const struct ipu__op ipu__matmul = {
    .name = "matmul",
    .ninputs = 2,
    .product = IPU__MATMUL,
    .shape = shape,
    .scratch = scratch,
    .run = run,
    .run_in_parts = run_in_parts,
    .cost = cost,
    .gradient = gradient,
};

ipu_tensor ipu_matmul(ipu_graph *graph, ipu_tensor x, ipu_tensor w)
{
    return multiply(graph, x, false, w, false);
}

ipu_tensor ipu_batch_matmul(ipu_graph *graph, ipu_tensor a, ipu_tensor b,
                            int32_t transpose_a, int32_t transpose_b)
{
    return multiply(graph, a, transpose_a != 0, b, transpose_b != 0);
}
