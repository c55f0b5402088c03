/* SPDX-License-Identifier: Apache-2.0 */
/*
 * attention.c - scaled dot-product attention (Vaswani et al., 2017) of all
 * heads: qkv: [batch, t, 3 c] holds queries, keys and values side by side,
 * heads side by side in each -> [batch, t, c].
 *
 *     S = Q K' / sqrt(d)    P = softmax(S)    Y = P V         d = c / heads
 *
 * Causal attention has 0 in row i of P beyond column i.
 *
 * It is one op, to save memory: S and P are made for a block of rows of one
 * head at a time, which stays in the cache, and are never stored; the
 * derivative makes them again. Heads are read where they lie, as matrices whose
 * rows are 3 c elements from each other, so that nothing is transposed. Only
 * the columns that the last row of a causal block sees are computed.
 *
 *     dP = dY V'    dS = P (dP - sum(dP P))    over columns
 *     dQ = dS K / sqrt(d)    dK = dS' Q / sqrt(d)    dV = P' dY
 */
#include <cblas.h>
#include <limits.h>
#include <math.h>
#include <string.h>

#include "base/error.h"
#include "ops/costs.h"
#include "ops/op.h"
#include "ops/rows.h"

/* Rows of a block: enough for a fast product, few enough that little is
 * computed above the diagonal. */
enum { BLOCK = 64 };

struct attention {
    int64_t batch, t, c, heads;
    int d;     /* of a head */
    int pitch; /* elements from row to row of qkv */
    bool causal;
    float scale;
};

static struct attention attention_of(const struct ipu__call *call)
{
    const struct ipu__shape *qkv = &call->inputs[0].shape;
    int64_t heads = call->attributes->groups, c = qkv->extents[2] / 3;
    int64_t of_head = c / heads;

    return (struct attention){
        .batch = qkv->extents[0],
        .t = qkv->extents[1],
        .c = c,
        .heads = heads,
        .d = (int)of_head,
        .pitch = (int)qkv->extents[2],
        .causal = call->attributes->keep,
        .scale = (float)(1 / sqrt((double)of_head)),
    };
}

static int shape(const struct ipu__call *call, struct ipu__shape *output)
{
    const struct ipu__shape *qkv = &call->inputs[0].shape;
    int64_t heads = call->attributes->groups, least = 3 * heads;

    IPU_TRY(ipu__expect(call, 0, IPU_FLOAT32, 3, "[batch, t, 3 c]"));
    if (heads < 1)
        return ipu__fail(IPU_ERR_ARGUMENT,
                         "attention: %d heads, there must be at least 1",
                         (int)heads);
    if (qkv->extents[2] == 0 || qkv->extents[2] % least)
        return ipu__fail(IPU_ERR_SHAPE,
                         "attention: %s has %lld columns, which are no "
                         "queries, keys and values of %lld heads: it must be a "
                         "multiple of %lld",
                         call->inputs[0].name, (long long)qkv->extents[2],
                         (long long)heads, (long long)least);
    if (qkv->extents[1] > INT_MAX || qkv->extents[2] > INT_MAX)
        return ipu__fail(
            IPU_ERR_SHAPE,
            "attention: %s has %lld rows and %lld columns: OpenBLAS "
            "takes at most %d of each",
            call->inputs[0].name, (long long)qkv->extents[1],
            (long long)qkv->extents[2], INT_MAX);
    *output = *qkv;
    output->extents[2] = qkv->extents[2] / 3;
    return IPU_OK;
}

/* Columns that a block of rows up to end sees. */
static int columns_of(const struct attention *a, int64_t end)
{
    return (int)(a->causal ? end : a->t);
}

/* The softmax of each row of s: [rows, n], of those columns that it sees;
 * first: the number of the first row. */
static void weigh(const struct attention *a, float *s, int64_t first,
                  int64_t rows, int64_t n)
{
    for (int64_t r = 0; r < rows; r++, s += n) {
        int64_t seen = a->causal ? first + r + 1 : n;
        float most = ipu__row_max(-INFINITY, s, seen);
        double sum = ipu__row_exp(s, s, most, seen);

        ipu__row_scale(s, (float)(1 / sum), seen);
        memset(s + seen, 0, (size_t)(n - seen) * sizeof *s);
    }
}

/* P of rows [first, first + rows): p: [rows, n]. */
static void weights(const struct attention *a, const float *q, const float *k,
                    int64_t first, int rows, int n, float *p)
{
    cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, rows, n, a->d,
                a->scale, q + first * a->pitch, a->pitch, k, a->pitch, 0, p, n);
    weigh(a, p, first, rows, n);
}

static int rows_at(const struct attention *a, int64_t first)
{
    return (int)(first + BLOCK < a->t ? BLOCK : a->t - first);
}

static int64_t block_count(const struct attention *a)
{
    return (a->t < BLOCK ? a->t : BLOCK) * a->t;
}

static size_t scratch(const struct ipu__call *call)
{
    const struct attention a = attention_of(call);

    return (size_t)block_count(&a) * sizeof(float);
}

static void attend(const struct attention *a, const float *q, float *y,
                   float *p)
{
    const float *k = q + a->c, *v = k + a->c;

    for (int64_t first = 0; first < a->t; first += BLOCK) {
        int rows = rows_at(a, first), n = columns_of(a, first + rows);

        weights(a, q, k, first, rows, n, p);
        cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, rows, a->d, n, 1,
                    p, n, v, a->pitch, 0, y + first * a->c, (int)a->c);
    }
}

static int run(const struct ipu__call *call)
{
    const struct attention a = attention_of(call);
    const float *qkv = call->inputs[0].data;
    float *y = call->output.data;

    for (int64_t b = 0; b < a.batch; b++)
        for (int64_t h = 0; h < a.heads; h++)
            attend(&a, qkv + b * a.t * a.pitch + h * a.d,
                   y + b * a.t * a.c + h * a.d, call->scratch);
    return IPU_OK;
}

/* Counts the products of all heads. Causal attention leaves out nearly half;
 * the chip would do all. */
static void count_products(const struct attention *a, int64_t products,
                           struct ipu__work *work)
{
    work->kind = IPU__WORK_PRODUCT;
    work->product = (ipu_product){.batch = products * a->batch * a->heads,
                                  .m = a->t,
                                  .k = a->d,
                                  .n = a->t};
    /* The softmax of S between them, scaled where it has been computed; of
     * the derivative, that of the softmax too. */
    work->rows = a->batch * a->heads * a->t;
    work->elements = work->rows * a->t;
    work->sums = 2;
    work->loads = 3;
    work->stores = 1;
    work->arithmetic =
        ipu__slots(&ipu__softmax, work->element_bytes) + IPU__BY_ROW_SLOTS;
    work->loops = ipu__softmax.loops + 1;
    if (products > 2) {
        work->arithmetic +=
            ipu__slots(&ipu__softmax_grad, work->element_bytes) +
            IPU__BY_ROW_SLOTS;
        work->loops += ipu__softmax_grad.loops + 1;
    }
}

static void cost(const struct ipu__call *call, struct ipu__work *work)
{
    const struct attention a = attention_of(call);

    count_products(&a, 2, work);
}

static void gradient(ipu_graph *graph, const struct ipu__node *node,
                     ipu_tensor dy, ipu_tensor *dx)
{
    const ipu_tensor inputs[] = {ipu__input(graph, node, 0), dy};

    dx[0] = ipu__add(graph, &ipu__attention_grad, inputs, &node->attributes);
}

const struct ipu__op ipu__attention = {
    .name = "attention",
    .ninputs = 1,
    .product = IPU__MATMUL,
    .shape = shape,
    .scratch = scratch,
    .run = run,
    .cost = cost,
    .estimate = IPU__FUNCTION_ESTIMATE,
    .gradient = gradient,
};

/* ----------------------------------------------------------- the derivative */

/* qkv, dy -> dqkv */
static int grad_shape(const struct ipu__call *call, struct ipu__shape *output)
{
    struct ipu__shape y;

    IPU_TRY(shape(call, &y));
    if (!ipu__shape_equal(&y, &call->inputs[1].shape))
        return ipu__unfit(call, 0, 1, "the second must be like the attention");
    *output = call->inputs[0].shape;
    return IPU_OK;
}

static size_t grad_scratch(const struct ipu__call *call)
{
    return 2 * scratch(call);
}

/* Computes dp = p (dp - sum(dp p)), row by row. */
IPU__WIDE(static, void, slopes,
          (float *dp, const float *p, float dot, int64_t n), (dp, p, dot, n))
{
    IPU__BY_ELEMENT
    for (int64_t i = 0; i < n; i++)
        dp[i] = p[i] * (dp[i] - dot);
}

/* A block of rows of one head. Blocks come from the last on, which sees all
 * columns: it sets dk and dv, the others add to them. */
static void attend_back(const struct attention *a, const float *q,
                        const float *dy, float *dq, int64_t first, float *p)
{
    int rows = rows_at(a, first), n = columns_of(a, first + rows);
    float beta = first + rows < a->t ? 1 : 0;
    const float *k = q + a->c, *v = k + a->c;
    float *dk = dq + a->c, *dv = dk + a->c, *dp = p + block_count(a);

    weights(a, q, k, first, rows, n, p);
    dy += first * a->c;
    cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, rows, n, a->d, 1, dy,
                (int)a->c, v, a->pitch, 0, dp, n);
    cblas_sgemm(CblasRowMajor, CblasTrans, CblasNoTrans, n, a->d, rows, 1, p, n,
                dy, (int)a->c, beta, dv, a->pitch);
    for (int r = 0; r < rows; r++) {
        float *row = dp + (int64_t)r * n;
        const float *weight = p + (int64_t)r * n;

        slopes(row, weight, (float)ipu__row_dot(row, weight, n), n);
    }
    cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, rows, a->d, n,
                a->scale, dp, n, k, a->pitch, 0, dq + first * a->pitch,
                a->pitch);
    cblas_sgemm(CblasRowMajor, CblasTrans, CblasNoTrans, n, a->d, rows,
                a->scale, dp, n, q + first * a->pitch, a->pitch, beta, dk,
                a->pitch);
}

static int run_grad(const struct ipu__call *call)
{
    const struct attention a = attention_of(call);
    const float *qkv = call->inputs[0].data, *dy = call->inputs[1].data;
    float *dqkv = call->output.data;

    if (a.t == 0)
        return IPU_OK;
    for (int64_t b = 0; b < a.batch; b++)
        for (int64_t h = 0; h < a.heads; h++)
            for (int64_t first = (a.t - 1) / BLOCK * BLOCK; first >= 0;
                 first -= BLOCK)
                attend_back(&a, qkv + b * a.t * a.pitch + h * a.d,
                            dy + b * a.t * a.c + h * a.d,
                            dqkv + b * a.t * a.pitch + h * a.d, first,
                            call->scratch);
    return IPU_OK;
}

static void grad_cost(const struct ipu__call *call, struct ipu__work *work)
{
    const struct attention a = attention_of(call);

    count_products(&a, 5, work);
}

const struct ipu__op ipu__attention_grad = {
    .name = "attention_grad",
    .ninputs = 2,
    .product = IPU__MATMUL,
    .shape = grad_shape,
    .scratch = grad_scratch,
    .run = run_grad,
    .cost = grad_cost,
    .estimate = IPU__FUNCTION_ESTIMATE,
};

ipu_tensor ipu_attention(ipu_graph *graph, ipu_tensor qkv, int32_t heads,
                         int32_t causal)
{
    const struct ipu__attributes attributes = {.groups = heads,
                                               .keep = causal != 0};

    return ipu__add(graph, &ipu__attention, &qkv, &attributes);
}
