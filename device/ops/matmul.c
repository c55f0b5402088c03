/* SPDX-License-Identifier: Apache-2.0 */
/*
 * a: [m, k] times b: [k, n], either transposed on request (the derivatives
 * need it), through OpenBLAS.
 */
#include <cblas.h>
#include <limits.h>
#include <string.h>

#include "graph/error.h"
#include "ops/op.h"

/* Rows and columns after transposition. */
static int64_t rows_of(const struct ipu__call *call, int i)
{
    return call->inputs[i].shape.extents[call->attributes->transpose[i]];
}

static int64_t columns_of(const struct ipu__call *call, int i)
{
    return call->inputs[i].shape.extents[!call->attributes->transpose[i]];
}

static int shape(const struct ipu__call *call, struct ipu__shape *output)
{
    IPU_TRY(ipu__expect(call, 0, IPU_FLOAT32, 2, "[m, k]"));
    IPU_TRY(ipu__expect(call, 1, IPU_FLOAT32, 2, "[k, n]"));
    if (columns_of(call, 0) != rows_of(call, 1))
        return ipu__unfit(call, 0, 1, "the inner dimensions must be equal");
    for (int i = 0; i < 2; i++)
        if (rows_of(call, i) > INT_MAX || columns_of(call, i) > INT_MAX)
            return ipu__unfit(call, 0, 1,
                              "OpenBLAS takes at most 2147483647 rows or "
                              "columns");
    *output = (struct ipu__shape){.dtype = IPU_FLOAT32, .ndim = 2};
    output->extents[0] = rows_of(call, 0);
    output->extents[1] = columns_of(call, 1);
    return IPU_OK;
}

static enum CBLAS_TRANSPOSE transposition(const struct ipu__call *call, int i)
{
    return call->attributes->transpose[i] ? CblasTrans : CblasNoTrans;
}

static int run(const struct ipu__call *call)
{
    int m = (int)rows_of(call, 0), k = (int)columns_of(call, 0);
    int n = (int)columns_of(call, 1);
    int lda = (int)call->inputs[0].shape.extents[1];
    int ldb = (int)call->inputs[1].shape.extents[1];

    if (m == 0 || n == 0)
        return IPU_OK;
    if (k == 0)
        memset(call->output.data, 0, ipu__shape_bytes(&call->output.shape));
    else
        cblas_sgemm(CblasRowMajor, transposition(call, 0),
                    transposition(call, 1), m, n, k, 1, call->inputs[0].data,
                    lda, call->inputs[1].data, ldb, 0, call->output.data, n);
    return IPU_OK;
}

static ipu_tensor multiply(ipu_graph *graph, ipu_tensor a, bool transpose_a,
                           ipu_tensor b, bool transpose_b)
{
    const struct ipu__attributes attributes = {
        .transpose = {transpose_a, transpose_b}};

    return ipu__add(graph, &ipu__matmul, (const ipu_tensor[]){a, b},
                    &attributes);
}

/* With A = op(a), B = op(b), Y = A B: dA = dY B', dB = A' dY. */
static void gradient(ipu_graph *graph, const struct ipu__node *node,
                     const bool *needed, ipu_tensor dy, ipu_tensor *dx)
{
    bool ta = node->attributes.transpose[0], tb = node->attributes.transpose[1];
    ipu_tensor a = ipu__handle(graph, node->inputs[0]);
    ipu_tensor b = ipu__handle(graph, node->inputs[1]);

    if (needed[node->inputs[0]])
        dx[0] = ta ? multiply(graph, b, tb, dy, true)
                   : multiply(graph, dy, false, b, !tb);
    if (needed[node->inputs[1]])
        dx[1] = tb ? multiply(graph, dy, true, a, ta)
                   : multiply(graph, a, !ta, dy, false);
}

const struct ipu__op ipu__matmul = {
    .name = "matmul",
    .ninputs = 2,
    .in_place = -1,
    .shape = shape,
    .run = run,
    .gradient = gradient,
};

ipu_tensor ipu_matmul(ipu_graph *graph, ipu_tensor x, ipu_tensor w)
{
    return multiply(graph, x, false, w, false);
}
