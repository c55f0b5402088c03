/* SPDX-License-Identifier: Apache-2.0 */
/* Products of matrices. */
#include <string.h>

#include "onnx/operators/rows.h"

/* Broadcasts the leading dimensions of a matrix operand. */
static ipu_tensor lead(ipu_graph *g, ipu_tensor x, int32_t lead_ndim,
                       const int64_t *leading, int32_t ndim,
                       const int64_t *extents)
{
    int64_t shape[IPU_MAX_DIMS];

    if (ndim == 2) /* the op takes one matrix with any number of others */
        return x;
    memcpy(shape, leading, (size_t)lead_ndim * sizeof *shape);
    shape[lead_ndim] = extents[ndim - 2];
    shape[lead_ndim + 1] = extents[ndim - 1];
    return ipu_broadcast(g, x, lead_ndim + 2, shape);
}

/* Takes a vector for a matrix of one row (first) or one column. */
static ipu_tensor as_matrix(struct ipu__onnx_call *call,
                            struct ipu__onnx_value *x, bool first,
                            int32_t *ndim, int64_t *extents)
{
    ipu_tensor t = onnx__tensor(call, x);

    *ndim = x->ndim;
    memcpy(extents, x->extents, sizeof x->extents);
    if (x->ndim != 1)
        return t;
    *ndim = 2;
    extents[first ? 1 : 0] = x->extents[0];
    extents[first ? 0 : 1] = 1;
    return ipu_reshape(call->graph, t, 2, extents);
}

/* Removes the dimensions that vectors were given. */
static ipu_tensor without_added(struct ipu__onnx_call *call, ipu_tensor y)
{
    struct ipu__onnx_value *const *in = call->inputs;

    if (in[1]->ndim == 1)
        y = ipu_squeeze(call->graph, y, -1);
    if (in[0]->ndim == 1)
        y = ipu_squeeze(call->graph, y, in[1]->ndim == 1 ? -1 : -2);
    return y;
}

int onnx__multiply_matrices(struct ipu__onnx_call *call, ipu_tensor *y)
{
    struct ipu__onnx_value *const *in = call->inputs;
    int64_t a[IPU_MAX_DIMS], b[IPU_MAX_DIMS], leading[IPU_MAX_DIMS];
    int32_t na, nb, nlead;
    ipu_graph *g = call->graph;
    ipu_tensor x, w;
    bool turned;

    if (in[0]->ndim == 0 || in[1]->ndim == 0)
        return onnx__refuse(call, "a scalar is no matrix");
    x = as_matrix(call, in[0], true, &na, a);
    w = as_matrix(call, in[1], false, &nb, b);
    nlead = na - 2;
    memcpy(leading, a, sizeof leading);
    if (!onnx__broadcast(&nlead, leading, nb - 2, b))
        return onnx__refuse(call, "the shapes of its inputs do not fit");
    x = lead(g, x, nlead, leading, na, a);
    /* The product does what a transposition before it does. */
    turned = in[1]->is_turned &&
             (nb == 2 || (nb == nlead + 2 &&
                          !memcmp(b, leading, (size_t)nlead * sizeof *b)));
    w = turned ? in[1]->turned : lead(g, w, nlead, leading, nb, b);
    *y = without_added(call, ipu_batch_matmul(g, x, w, 0, turned));
    return IPU_OK;
}

static int build_mat_mul(struct ipu__onnx_call *call)
{
    ipu_tensor y;

    IPU_TRY(onnx__want_floats(call, 0));
    IPU_TRY(onnx__multiply_matrices(call, &y));
    return onnx__give(call, 0, call->inputs[0]->type, y);
}

/* alpha A B + beta C */
static int build_gemm(struct ipu__onnx_call *call)
{
    struct ipu__onnx_value *const *in = call->inputs, *c = onnx__in(call, 2);
    double alpha = onnx__float(call, "alpha", 1);
    double beta = onnx__float(call, "beta", 1);
    bool a_turned = onnx__int(call, "transA", 0) != 0;
    bool b_turned = onnx__int(call, "transB", 0) != 0;
    ipu_graph *g = call->graph;
    ipu_tensor y, offset;

    onnx__int(call, "broadcast", 0); /* before version 7; the shapes say it */
    IPU_TRY(onnx__want_floats(call, 0));
    if (in[0]->ndim != 2 || in[1]->ndim != 2 || (c && c->ndim > 2))
        return onnx__refuse(call, "its inputs are no matrices");
    y = ipu_batch_matmul(g, onnx__tensor(call, in[0]),
                         onnx__tensor(call, in[1]), a_turned, b_turned);
    if (alpha != 1)
        y = ipu_scale(g, y, alpha, 0);
    if (!c || beta == 0)
        return onnx__give(call, 0, in[0]->type, y);
    offset = onnx__tensor(call, c);
    if (beta != 1)
        offset = ipu_scale(g, offset, beta, 0);
    y = c->ndim == 1 && c->extents[0] > 1 ? ipu_bias_add(g, y, offset)
                                          : ipu_add(g, y, offset);
    return onnx__give(call, 0, in[0]->type, y);
}

const struct ipu__onnx_operator onnx__product_rows[] = {
    {"Gemm", 1, "alpha beta broadcast transA transB", 2, 3, build_gemm, NULL,
     "integers are refused"},
    {"MatMul", 1, "", 2, 2, build_mat_mul, NULL, "integers are refused"},
    {.name = NULL},
};
