/* SPDX-License-Identifier: Apache-2.0 */
/*
 * reduce.c - sum, mean, largest and smallest element over some axes; NaN is
 * both, if there is one.
 *
 * x is read once, in rows. A row whose axis is reduced becomes one number,
 * others are added to a row of results, element by element. Sums are carried
 * in double, in scratch.
 */
#include <math.h>
#include <string.h>

#include "base/error.h"
#include "ops/costs.h"
#include "ops/reductions/reduce.h"
#include "ops/rows.h"

/* Returns x's shape after the reduction; with keep, reduced axes are extents of
 * 1. */
static struct ipu__shape reduced(const struct ipu__shape *x,
                                 const struct ipu__attributes *attributes,
                                 bool keep)
{
    struct ipu__shape y = {.dtype = x->dtype};

    for (int32_t i = 0; i < x->ndim; i++)
        if (!attributes->axes[i])
            y.extents[y.ndim++] = x->extents[i];
        else if (keep)
            y.extents[y.ndim++] = 1;
    return y;
}

int ipu__reduced_shape(const struct ipu__call *call, struct ipu__shape *output)
{
    IPU_TRY(ipu__expect(call, 0, IPU_FLOAT32, -1, "of any shape"));
    *output = reduced(&call->inputs[0].shape, call->attributes,
                      call->attributes->keep);
    return IPU_OK;
}

void ipu__reduce_start(struct ipu__walk *walk, const struct ipu__call *call)
{
    const struct ipu__shape *x = &call->inputs[0].shape;
    const struct ipu__shape y = reduced(x, call->attributes, true);
    ipu__strides strides[2];

    ipu__strides_of(x, strides[0]);
    ipu__strides_broadcast(&y, x, strides[1]);
    ipu__walk_start(walk, x, 2, strides);
}

/* ------------------------------------------------------------- sum and mean */

static size_t sum_scratch(const struct ipu__call *call)
{
    return (size_t)ipu__shape_count(&call->output.shape) * sizeof(double);
}

static int run_sum(const struct ipu__call *call)
{
    const float *x = call->inputs[0].data;
    int64_t count = ipu__shape_count(&call->output.shape);
    double *sums = call->scratch, scale = call->attributes->scale;
    float *y = call->output.data;
    struct ipu__walk w;

    memset(sums, 0, (size_t)count * sizeof *sums);
    for (ipu__reduce_start(&w, call); !w.done; ipu__walk_next(&w)) {
        if (w.steps[1] == 0)
            sums[w.offsets[1]] += ipu__row_sum(x + w.offsets[0], w.length);
        else
            ipu__row_accumulate(sums + w.offsets[1], x + w.offsets[0],
                                w.length);
    }
    for (int64_t i = 0; i < count; i++)
        y[i] = (float)(sums[i] * scale);
    return IPU_OK;
}

/* Makes a tensor like the node's output, with an extent of 1 wherever x has
 * been reduced. */
static ipu_tensor reduce_keep(ipu_graph *graph, const struct ipu__node *node,
                              ipu_tensor dy)
{
    struct ipu__shape y = reduced(&graph->tensors[node->inputs[0]].shape,
                                  &node->attributes, true);

    return node->attributes.keep ? dy
                                 : ipu_reshape(graph, dy, y.ndim, y.extents);
}

static void sum_gradient(ipu_graph *graph, const struct ipu__node *node,
                         ipu_tensor dy, ipu_tensor *dx)
{
    const struct ipu__shape x = graph->tensors[node->inputs[0]].shape;

    dy = reduce_keep(graph, node, dy);
    if (node->attributes.scale != 1)
        dy = ipu_scale(graph, dy, node->attributes.scale, 0);
    dx[0] = ipu_broadcast(graph, dy, x.ndim, x.extents);
}

const struct ipu__op ipu__sum = {
    .name = "sum",
    .ninputs = 1,
    .shape = ipu__reduced_shape,
    .scratch = sum_scratch,
    .run = run_sum,
    .cost = ipu__axes_sum_cost,
    .gradient = sum_gradient,
};

const struct ipu__op ipu__mean = {
    .name = "mean",
    .ninputs = 1,
    .shape = ipu__reduced_shape,
    .scratch = sum_scratch,
    .run = run_sum,
    .cost = ipu__axes_sum_cost,
    .gradient = sum_gradient,
};

/* ------------------------------------------------------------- max and min */

/* Does the same as ipu__reduced_shape, and fails if an axis has no elements, so
 * that there is no result. */
static int reduced_some(const struct ipu__call *call, struct ipu__shape *output)
{
    const struct ipu__shape *x = &call->inputs[0].shape;

    IPU_TRY(ipu__reduced_shape(call, output));
    for (int32_t i = 0; i < x->ndim; i++)
        if (call->attributes->axes[i] && x->extents[i] == 0)
            return ipu__fail(IPU_ERR_SHAPE,
                             "%s: %s is %s: of no elements along axis %d, "
                             "none is the %s",
                             call->op->name, call->inputs[0].name,
                             ipu__shape_print(x).text, (int)i,
                             call->op == &ipu__max ? "largest" : "smallest");
    return IPU_OK;
}

/* Runs the largest or the smallest: row joins a row with one result, each a row
 * with a row of results. */
static int run_extreme(const struct ipu__call *call, float first,
                       float (*row)(float, const float *, int64_t),
                       void (*each)(float *, const float *, int64_t))
{
    const float *x = call->inputs[0].data;
    int64_t count = ipu__shape_count(&call->output.shape);
    float *y = call->output.data;
    struct ipu__walk w;

    for (int64_t i = 0; i < count; i++)
        y[i] = first;
    for (ipu__reduce_start(&w, call); !w.done; ipu__walk_next(&w)) {
        float *most = y + w.offsets[1];

        if (w.steps[1] == 0)
            *most = row(*most, x + w.offsets[0], w.length);
        else
            each(most, x + w.offsets[0], w.length);
    }
    return IPU_OK;
}

static int run_max(const struct ipu__call *call)
{
    return run_extreme(call, -INFINITY, ipu__row_max, ipu__row_raise);
}

static int run_min(const struct ipu__call *call)
{
    return run_extreme(call, INFINITY, ipu__row_min, ipu__row_lower);
}

/* Shares dy evenly among those elements of x that equal the result. */
static void share_gradient(ipu_graph *graph, const struct ipu__node *node,
                           ipu_tensor dy, ipu_tensor *dx)
{
    ipu_tensor x = ipu__input(graph, node, 0);
    ipu_tensor y = reduce_keep(graph, node, ipu__handle(graph, node->output));
    ipu_tensor zero = ipu__scalar_like(graph, dy, 0);
    ipu_tensor one = ipu__scalar_like(graph, dy, 1);
    ipu_tensor found = ipu_equal(graph, x, y);
    struct ipu__attributes attributes = node->attributes;
    ipu_tensor ones = ipu_select(graph, found, one, zero);

    attributes.keep = true;
    attributes.scale = 1;
    dy = ipu_divide(graph, reduce_keep(graph, node, dy),
                    ipu__add(graph, &ipu__sum, &ones, &attributes));
    dx[0] = ipu_select(graph, found, dy, zero);
}

const struct ipu__op ipu__max = {
    .name = "max",
    .ninputs = 1,
    .shape = reduced_some,
    .run = run_max,
    .cost = ipu__axes_sum_cost,
    .gradient = share_gradient,
};

const struct ipu__op ipu__min = {
    .name = "min",
    .ninputs = 1,
    .shape = reduced_some,
    .run = run_min,
    .cost = ipu__axes_sum_cost,
    .gradient = share_gradient,
};

/* ----------------------------------------------------------------- the axes */

static int mark_axes(const char *name, int32_t ndim, int32_t naxes,
                     const int32_t *axes, bool *marked)
{
    if (naxes < 0 || (naxes > 0 && !axes))
        return ipu__fail(IPU_ERR_ARGUMENT, "%s: %s", name,
                         naxes < 0 ? "the number of axes is less than 0"
                                   : "the axes are NULL");
    for (int32_t i = 0; i < naxes; i++) {
        int32_t axis = axes[i] < 0 ? axes[i] + ndim : axes[i];

        if (axis < 0 || axis >= ndim)
            return ipu__fail(IPU_ERR_SHAPE,
                             "%s: there is no axis %d in %d dimensions", name,
                             (int)axes[i], (int)ndim);
        if (marked[axis])
            return ipu__fail(IPU_ERR_ARGUMENT, "%s: axis %d is given twice",
                             name, (int)axes[i]);
        marked[axis] = true;
    }
    return IPU_OK;
}

ipu_tensor ipu__reduce(ipu_graph *graph, const struct ipu__op *op, ipu_tensor x,
                       int32_t naxes, const int32_t *axes, int32_t keepdims)
{
    struct ipu__attributes attributes = {.keep = keepdims != 0, .scale = 1};
    const struct ipu__shape *of;
    int status, index = ipu__index_of(graph, op, x);
    int64_t count = 1;

    if (index < 0)
        return (ipu_tensor){-1};
    of = &graph->tensors[index].shape;
    status = mark_axes(op->name, of->ndim, naxes, axes, attributes.axes);
    if (status < 0)
        return ipu__invalid(graph, status);
    for (int32_t i = 0; i < of->ndim; i++)
        if (attributes.axes[i])
            count *= of->extents[i];
    /* The mean of nothing is 0 / 0. */
    if (op == &ipu__mean)
        attributes.scale = count ? 1.0 / (double)count : NAN;
    return ipu__add(graph, op, &x, &attributes);
}

ipu_tensor ipu_sum(ipu_graph *graph, ipu_tensor x, int32_t naxes,
                   const int32_t *axes, int32_t keepdims)
{
    return ipu__reduce(graph, &ipu__sum, x, naxes, axes, keepdims);
}

ipu_tensor ipu_mean(ipu_graph *graph, ipu_tensor x, int32_t naxes,
                    const int32_t *axes, int32_t keepdims)
{
    return ipu__reduce(graph, &ipu__mean, x, naxes, axes, keepdims);
}

ipu_tensor ipu_max(ipu_graph *graph, ipu_tensor x, int32_t naxes,
                   const int32_t *axes, int32_t keepdims)
{
    return ipu__reduce(graph, &ipu__max, x, naxes, axes, keepdims);
}

ipu_tensor ipu_min(ipu_graph *graph, ipu_tensor x, int32_t naxes,
                   const int32_t *axes, int32_t keepdims)
{
    return ipu__reduce(graph, &ipu__min, x, naxes, axes, keepdims);
}
