/* SPDX-License-Identifier: Apache-2.0 */
/*
 * top_k.c - the k largest of each row of the last dimension, in falling order,
 * the first first of equal ones, NaN before all; and elements of rows by their
 * numbers.
 *
 *     top_k_indices   x: [..., n] -> [..., k], int32
 *     take            x: [..., n], indices: [..., k] -> [..., k]
 *     take_grad       dy: [..., k], indices: [..., k] -> [..., n]
 *
 * A row is sorted by inserting: k is small, and most elements fail the first
 * comparison.
 */
#include <inttypes.h>
#include <string.h>

#include "base/error.h"
#include "ops/op.h"

static int64_t last_of(const struct ipu__shape *s)
{
    return s->extents[s->ndim - 1];
}

/* Returns whether the shapes are the same but for the last dimension. */
static bool rows_fit(const struct ipu__shape *a, const struct ipu__shape *b)
{
    return a->ndim == b->ndim && a->ndim > 0 &&
           memcmp(a->extents, b->extents,
                  (size_t)(a->ndim - 1) * sizeof *a->extents) == 0;
}

/* ----------------------------------------------------------- top_k_indices */

static int top_shape(const struct ipu__call *call, struct ipu__shape *output)
{
    int32_t k = call->attributes->size;

    *output = call->inputs[0].shape;
    IPU_TRY(ipu__expect(call, 0, IPU_FLOAT32, output->ndim > 0 ? -1 : 1,
                        "[..., n]"));
    if (k < 1 || k > last_of(output) || last_of(output) > INT32_MAX)
        return ipu__fail(
            IPU_ERR_SHAPE, "top_k: %s is %s, of which there are no %d largest",
            call->inputs[0].name, ipu__shape_print(output).text, (int)k);
    output->dtype = IPU_INT32;
    output->extents[output->ndim - 1] = k;
    return IPU_OK;
}

/* Returns whether a goes before b, although b came first. */
static bool goes_before(float a, float b)
{
    return b == b && (a > b || a != a);
}

static void top_row(int32_t *y, const float *x, int64_t n, int64_t k)
{
    int64_t found = 0;

    for (int64_t i = 0; i < n; i++) {
        int64_t at = found;

        if (found == k && !goes_before(x[i], x[y[k - 1]]))
            continue;
        if (found < k)
            found++;
        else
            at--;
        for (; at > 0 && goes_before(x[i], x[y[at - 1]]); at--)
            y[at] = y[at - 1];
        y[at] = (int32_t)i;
    }
}

static int run_top(const struct ipu__call *call)
{
    const struct ipu__shape *s = &call->inputs[0].shape;
    int64_t n = last_of(s), k = call->attributes->size;
    int64_t rows = ipu__shape_count(s) / n;
    const float *x = call->inputs[0].data;
    int32_t *y = call->output.data;

    for (int64_t r = 0; r < rows; r++)
        top_row(y + r * k, x + r * n, n, k);
    return IPU_OK;
}

const struct ipu__op ipu__top_k_indices = {
    .name = "top_k_indices",
    .ninputs = 1,
    .shape = top_shape,
    .run = run_top,
};

/* -------------------------------------------------------------------- take */

static int take_shape(const struct ipu__call *call, struct ipu__shape *output)
{
    IPU_TRY(ipu__expect(call, 0, IPU_FLOAT32, -1, "[..., n]"));
    IPU_TRY(ipu__expect(call, 1, IPU_INT32, -1, "[..., k]"));
    *output = call->inputs[1].shape;
    output->dtype = IPU_FLOAT32;
    if (rows_fit(&call->inputs[0].shape, output))
        return IPU_OK;
    return ipu__unfit(call, 0, 1,
                      "all dimensions but the last must be the same");
}

static int check_number(const struct ipu__call *call, int64_t at, int64_t n)
{
    int32_t number = ((const int32_t *)call->inputs[1].data)[at];

    if (number >= 0 && number < n)
        return IPU_OK;
    return ipu__fail(IPU_ERR_DATA,
                     "%s: number %" PRId64 " of %s is %" PRId32
                     ", not one of the %" PRId64 " of a row",
                     call->op->name, at, call->inputs[1].name, number, n);
}

static int run_take(const struct ipu__call *call)
{
    int64_t n = last_of(&call->inputs[0].shape);
    int64_t count = ipu__shape_count(&call->output.shape);
    int64_t k = last_of(&call->output.shape);
    const float *x = call->inputs[0].data;
    const int32_t *indices = call->inputs[1].data;
    float *y = call->output.data;

    for (int64_t i = 0; i < count; i++) {
        IPU_TRY(check_number(call, i, n));
        y[i] = x[i / k * n + indices[i]];
    }
    return IPU_OK;
}

static void take_gradient(ipu_graph *graph, const struct ipu__node *node,
                          ipu_tensor dy, ipu_tensor *dx)
{
    const ipu_tensor inputs[] = {dy, ipu__input(graph, node, 1)};
    const struct ipu__attributes attributes = {
        .shape = graph->tensors[node->inputs[0]].shape};

    dx[0] = ipu__add(graph, &ipu__take_grad, inputs, &attributes);
}

const struct ipu__op ipu__take = {
    .name = "take",
    .ninputs = 2,
    .checks = true,
    .shape = take_shape,
    .run = run_take,
    .gradient = take_gradient,
};

/* --------------------------------------------------------------- take_grad */

static int grad_shape(const struct ipu__call *call, struct ipu__shape *output)
{
    const struct ipu__shape *dy = &call->inputs[0].shape;

    *output = call->attributes->shape;
    output->dtype = IPU_FLOAT32;
    IPU_TRY(ipu__expect(call, 0, IPU_FLOAT32, -1, "[..., k]"));
    IPU_TRY(ipu__expect(call, 1, IPU_INT32, dy->ndim, "[..., k]"));
    return ipu__expect_true(
        call, rows_fit(output, dy) && rows_fit(dy, &call->inputs[1].shape) &&
                  last_of(dy) == last_of(&call->inputs[1].shape));
}

static int run_grad(const struct ipu__call *call)
{
    int64_t n = last_of(&call->output.shape);
    int64_t count = ipu__shape_count(&call->inputs[0].shape);
    int64_t k = last_of(&call->inputs[0].shape);
    const float *dy = call->inputs[0].data;
    const int32_t *indices = call->inputs[1].data;
    float *dx = call->output.data;

    memset(dx, 0, ipu__shape_bytes(&call->output.shape));
    for (int64_t i = 0; i < count; i++) {
        IPU_TRY(check_number(call, i, n));
        dx[i / k * n + indices[i]] += dy[i];
    }
    return IPU_OK;
}

static void grad_gradient(ipu_graph *graph, const struct ipu__node *node,
                          ipu_tensor dy, ipu_tensor *dx)
{
    const ipu_tensor inputs[] = {dy, ipu__input(graph, node, 1)};

    dx[0] = ipu__add(graph, &ipu__take, inputs, NULL);
}

const struct ipu__op ipu__take_grad = {
    .name = "take_grad",
    .ninputs = 2,
    .checks = true,
    .shape = grad_shape,
    .run = run_grad,
    .gradient = grad_gradient,
};

/* ----------------------------------------------------------------- builders */

ipu_tensor ipu_take(ipu_graph *graph, ipu_tensor x, ipu_tensor indices)
{
    return ipu__add(graph, &ipu__take, (const ipu_tensor[]){x, indices}, NULL);
}

ipu_tensor ipu_top_k(ipu_graph *graph, ipu_tensor x, int32_t k,
                     ipu_tensor *indices)
{
    const struct ipu__attributes attributes = {.size = k};
    ipu_tensor found = ipu__add(graph, &ipu__top_k_indices, &x, &attributes);

    if (indices)
        *indices = found;
    return ipu_take(graph, x, found);
}
