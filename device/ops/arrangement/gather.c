/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gather.c - gathers rows of a tensor by their numbers, and adds to rows by
 * their numbers: each is the derivative of the other. Replaces rows, too.
 *
 * Along an axis, x is [outer, n, inner]:
 *
 *     gather           y[o, k, i] = x[o, indices[k], i]
 *     scatter_add      y = x; y[o, indices[k], i] += updates[o, k, i]
 *     scatter          y = x; y[o, indices[k], i] = updates[o, k, i]
 *     dynamic_update   y = x; y[o, index, i] = update[o, i]
 */
#include <inttypes.h>
#include <string.h>

#include "base/error.h"
#include "ops/costs.h"
#include "ops/op.h"

struct view {
    int64_t outer, n, inner;
};

static struct view view_of(const struct ipu__shape *x, int32_t axis)
{
    return (struct view){ipu__shape_span(x, 0, axis), x->extents[axis],
                         ipu__shape_span(x, axis + 1, x->ndim)};
}

/* Sets y to x's shape with the indices' shape in place of the axis. */
static int gathered(const struct ipu__call *call, struct ipu__shape *y)
{
    const struct ipu__shape *x = &call->inputs[0].shape;
    const struct ipu__shape *indices = &call->inputs[1].shape;
    int32_t axis = call->attributes->axis;

    IPU_TRY(ipu__expect_axis(call));
    *y = (struct ipu__shape){.dtype = x->dtype};
    if (x->ndim - 1 + indices->ndim > IPU_MAX_DIMS)
        return ipu__unfit(call, 0, 1, "the result has too many dimensions");
    for (int32_t i = 0; i < axis; i++)
        y->extents[y->ndim++] = x->extents[i];
    for (int32_t i = 0; i < indices->ndim; i++)
        y->extents[y->ndim++] = indices->extents[i];
    for (int32_t i = axis + 1; i < x->ndim; i++)
        y->extents[y->ndim++] = x->extents[i];
    return IPU_OK;
}

static int check_indices(const struct ipu__call *call, int64_t n)
{
    const int32_t *indices = call->inputs[1].data;
    int64_t count = ipu__shape_count(&call->inputs[1].shape);

    for (int64_t i = 0; i < count; i++)
        if (indices[i] < 0 || indices[i] >= n)
            return ipu__fail(IPU_ERR_DATA,
                             "%s: number %" PRId64 " of %s is %" PRId32
                             ", not one of the %" PRId64 " of %s",
                             call->op->name, i, call->inputs[1].name,
                             indices[i], n, call->inputs[0].name);
    return IPU_OK;
}

/* ------------------------------------------------------------------- gather */

static int gather_shape(const struct ipu__call *call, struct ipu__shape *output)
{
    IPU_TRY(ipu__expect(call, 1, IPU_INT32, -1, "of any shape"));
    return gathered(call, output);
}

static int run_gather(const struct ipu__call *call)
{
    const struct ipu__shape *x = &call->inputs[0].shape;
    struct view v = view_of(x, call->attributes->axis);
    size_t bytes = (size_t)v.inner * ipu__dtype_bytes(x->dtype);
    int64_t count = ipu__shape_count(&call->inputs[1].shape);
    const int32_t *indices = call->inputs[1].data;
    const char *from = call->inputs[0].data;
    char *to = call->output.data;

    IPU_TRY(check_indices(call, v.n));
    if (bytes == 0)
        return IPU_OK;
    for (int64_t o = 0; o < v.outer; o++, from += (size_t)v.n * bytes)
        for (int64_t k = 0; k < count; k++, to += bytes)
            memcpy(to, from + (size_t)indices[k] * bytes, bytes);
    return IPU_OK;
}

static void gather_gradient(ipu_graph *graph, const struct ipu__node *node,
                            ipu_tensor dy, ipu_tensor *dx)
{
    const struct ipu__shape x = graph->tensors[node->inputs[0]].shape;
    const ipu_tensor inputs[] = {ipu__constant(graph, &x, 0),
                                 ipu__input(graph, node, 1), dy};

    dx[0] = ipu__add(graph, &ipu__scatter_add, inputs, &node->attributes);
}

const struct ipu__op ipu__gather = {
    .name = "gather",
    .ninputs = 2,
    .checks = true,
    .raw = true,
    .shape = gather_shape,
    .run = run_gather,
    .cost = ipu__by_number_cost,
    .gradient = gather_gradient,
};

/* -------------------------------------------------------------- scatter_add */

/* Sets the output to x, if input 2 is as what a gather would give. */
static int updated(const struct ipu__call *call, struct ipu__shape *output)
{
    struct ipu__shape updates;

    *output = call->inputs[0].shape;
    IPU_TRY(gathered(call, &updates));
    if (!ipu__shape_equal(&updates, &call->inputs[2].shape))
        return ipu__unfit(call, 0, 2,
                          "the updates must be as what a gather of the indices "
                          "would give");
    return IPU_OK;
}

static int scatter_shape(const struct ipu__call *call,
                         struct ipu__shape *output)
{
    IPU_TRY(ipu__expect(call, 0, IPU_FLOAT32, -1, "of any shape"));
    IPU_TRY(ipu__expect(call, 1, IPU_INT32, -1, "of any shape"));
    return updated(call, output);
}

IPU__WIDE(static, void, add_row, (float *y, const float *x, int64_t count),
          (y, x, count))
{
    IPU__BY_ELEMENT
    for (int64_t i = 0; i < count; i++)
        y[i] += x[i];
}

static int run_scatter(const struct ipu__call *call)
{
    const struct ipu__shape *x = &call->inputs[0].shape;
    struct view v = view_of(x, call->attributes->axis);
    int64_t count = ipu__shape_count(&call->inputs[1].shape);
    const int32_t *indices = call->inputs[1].data;
    const float *updates = call->inputs[2].data;
    float *y = call->output.data;

    IPU_TRY(check_indices(call, v.n));
    if (call->output.data != call->inputs[0].data)
        memcpy(y, call->inputs[0].data, ipu__shape_bytes(x));
    for (int64_t o = 0; o < v.outer; o++, y += v.n * v.inner)
        for (int64_t k = 0; k < count; k++, updates += v.inner)
            add_row(y + indices[k] * v.inner, updates, v.inner);
    return IPU_OK;
}

static void scatter_gradient(ipu_graph *graph, const struct ipu__node *node,
                             ipu_tensor dy, ipu_tensor *dx)
{
    const ipu_tensor inputs[] = {dy, ipu__input(graph, node, 1)};

    dx[0] = dy;
    if (ipu__wanted(dx[2]))
        dx[2] = ipu__add(graph, &ipu__gather, inputs, &node->attributes);
}

const struct ipu__op ipu__scatter_add = {
    .name = "scatter_add",
    .ninputs = 3,
    .in_place = IPU__FIRST,
    .checks = true,
    .shape = scatter_shape,
    .run = run_scatter,
    .cost = ipu__by_number_cost,
    .gradient = scatter_gradient,
};

/* ----------------------------------------------- scatter and dynamic_update */

static int replace_shape(const struct ipu__call *call,
                         struct ipu__shape *output)
{
    IPU_TRY(ipu__expect(call, 1, IPU_INT32, -1, "of any shape"));
    return updated(call, output);
}

static int update_shape(const struct ipu__call *call, struct ipu__shape *output)
{
    IPU_TRY(ipu__expect(call, 1, IPU_INT32, 0, "scalar, the row's number"));
    return updated(call, output);
}

static int run_replace(const struct ipu__call *call)
{
    const struct ipu__shape *x = &call->inputs[0].shape;
    struct view v = view_of(x, call->attributes->axis);
    size_t bytes = (size_t)v.inner * ipu__dtype_bytes(x->dtype);
    int64_t count = ipu__shape_count(&call->inputs[1].shape);
    const int32_t *indices = call->inputs[1].data;
    const char *from = call->inputs[2].data;
    char *y = call->output.data;

    IPU_TRY(check_indices(call, v.n));
    if (bytes == 0)
        return IPU_OK;
    if (call->output.data != call->inputs[0].data)
        memcpy(y, call->inputs[0].data, ipu__shape_bytes(x));
    for (int64_t o = 0; o < v.outer; o++, y += (size_t)v.n * bytes)
        for (int64_t k = 0; k < count; k++, from += bytes)
            memcpy(y + (size_t)indices[k] * bytes, from, bytes);
    return IPU_OK;
}

static void replace_gradient(ipu_graph *graph, const struct ipu__node *node,
                             ipu_tensor dy, ipu_tensor *dx)
{
    const struct ipu__op *op = node->op;
    ipu_tensor inputs[] = {dy, ipu__input(graph, node, 1), {-1}};

    if (ipu__wanted(dx[2]))
        dx[2] = ipu__add(graph, &ipu__gather, inputs, &node->attributes);
    if (!ipu__wanted(dx[0]))
        return;
    inputs[2] = ipu__constant(graph, &graph->tensors[node->inputs[2]].shape, 0);
    dx[0] = ipu__add(graph, op, inputs, &node->attributes);
}

const struct ipu__op ipu__scatter = {
    .name = "scatter",
    .ninputs = 3,
    .in_place = IPU__FIRST,
    .checks = true,
    .raw = true,
    .shape = replace_shape,
    .run = run_replace,
    .cost = ipu__by_number_cost,
    .gradient = replace_gradient,
};

const struct ipu__op ipu__dynamic_update = {
    .name = "dynamic_update",
    .ninputs = 3,
    .in_place = IPU__FIRST,
    .checks = true,
    .raw = true,
    .shape = update_shape,
    .run = run_replace,
    .cost = ipu__by_number_cost,
    .gradient = replace_gradient,
};

/* ----------------------------------------------------------------- builders */

ipu_tensor ipu_gather(ipu_graph *graph, ipu_tensor x, ipu_tensor indices,
                      int32_t axis)
{
    struct ipu__attributes attributes = {0};

    if (ipu__find_axis(graph, &ipu__gather, x, axis, &attributes.axis) < 0)
        return (ipu_tensor){-1};
    return ipu__add(graph, &ipu__gather, (const ipu_tensor[]){x, indices},
                    &attributes);
}

ipu_tensor ipu_embedding(ipu_graph *graph, ipu_tensor table, ipu_tensor indices)
{
    return ipu_gather(graph, table, indices, 0);
}

/* Adds an op that changes rows of x. */
static ipu_tensor add_updates(ipu_graph *graph, const struct ipu__op *op,
                              ipu_tensor x, ipu_tensor indices,
                              ipu_tensor updates, int32_t axis)
{
    struct ipu__attributes attributes = {0};

    if (ipu__find_axis(graph, op, x, axis, &attributes.axis) < 0)
        return (ipu_tensor){-1};
    return ipu__add(graph, op, (const ipu_tensor[]){x, indices, updates},
                    &attributes);
}

ipu_tensor ipu_scatter_add(ipu_graph *graph, ipu_tensor x, ipu_tensor indices,
                           ipu_tensor updates, int32_t axis)
{
    return add_updates(graph, &ipu__scatter_add, x, indices, updates, axis);
}

ipu_tensor ipu_scatter(ipu_graph *graph, ipu_tensor x, ipu_tensor indices,
                       ipu_tensor updates, int32_t axis)
{
    return add_updates(graph, &ipu__scatter, x, indices, updates, axis);
}

ipu_tensor ipu_dynamic_update(ipu_graph *graph, ipu_tensor x, ipu_tensor index,
                              ipu_tensor update, int32_t axis)
{
    return add_updates(graph, &ipu__dynamic_update, x, index, update, axis);
}
