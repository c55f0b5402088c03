/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A part of a tensor, and its reverse, a tensor within a larger one: each is
 * the derivative of the other.
 */
#include <inttypes.h>
#include <string.h>

#include "base/error.h"
#include "ops/copy.h"
#include "ops/op.h"

/* Returns the offset of the element at starts, in elements. */
static int64_t offset_of(const struct ipu__shape *shape, const int64_t *starts)
{
    ipu__strides strides;
    int64_t offset = 0;

    ipu__strides_of(shape, strides);
    for (int32_t i = 0; i < shape->ndim; i++)
        offset += starts[i] * strides[i];
    return offset;
}

/* -------------------------------------------------------------------- slice */

static int slice_shape(const struct ipu__call *call, struct ipu__shape *output)
{
    const struct ipu__shape *x = &call->inputs[0].shape;
    const int64_t *starts = call->attributes->starts;

    *output = call->attributes->shape;
    output->dtype = x->dtype;
    IPU_TRY(ipu__expect_true(call, output->ndim == x->ndim));
    for (int32_t i = 0; i < x->ndim; i++)
        if (starts[i] < 0 || output->extents[i] < 0 ||
            starts[i] > x->extents[i] ||
            output->extents[i] > x->extents[i] - starts[i])
            return ipu__fail(IPU_ERR_SHAPE,
                             "slice: %s is %s: %" PRId64 " elements from "
                             "number %" PRId64 " on are not within axis %d",
                             call->inputs[0].name, ipu__shape_print(x).text,
                             output->extents[i], starts[i], (int)i);
    return IPU_OK;
}

static void slice_moves(const struct ipu__call *call, int i,
                        struct ipu__moves *m)
{
    const struct ipu__shape *x = &call->inputs[i].shape;

    m->shape = call->output.shape;
    ipu__strides_of(&m->shape, m->to);
    ipu__strides_of(x, m->from);
    m->from_offset = offset_of(x, call->attributes->starts);
}

static void slice_gradient(ipu_graph *graph, const struct ipu__node *node,
                           ipu_tensor dy, ipu_tensor *dx)
{
    struct ipu__attributes attributes = node->attributes;

    attributes.shape = graph->tensors[node->inputs[0]].shape;
    attributes.scale = 0;
    dx[0] = ipu__add(graph, &ipu__pad, &dy, &attributes);
}

const struct ipu__op ipu__slice = {
    .name = "slice",
    .ninputs = 1,
    .raw = true,
    .shape = slice_shape,
    .run = ipu__copy_run,
    .cost = ipu__copy_cost,
    .moves = slice_moves,
    .gradient = slice_gradient,
};

/* ---------------------------------------------------------------------- pad */

static int pad_shape(const struct ipu__call *call, struct ipu__shape *output)
{
    const struct ipu__shape *x = &call->inputs[0].shape;
    const int64_t *starts = call->attributes->starts;

    *output = call->attributes->shape;
    output->dtype = x->dtype;
    IPU_TRY(ipu__expect(call, 0, IPU_FLOAT32, -1, "of any shape"));
    IPU_TRY(ipu__expect_true(call, output->ndim == x->ndim));
    for (int32_t i = 0; i < x->ndim; i++)
        IPU_TRY(ipu__expect_true(
            call, starts[i] >= 0 && output->extents[i] >= x->extents[i] &&
                      starts[i] <= output->extents[i] - x->extents[i]));
    return IPU_OK;
}

static void pad_moves(const struct ipu__call *call, int i, struct ipu__moves *m)
{
    const struct ipu__shape *y = &call->output.shape;

    m->shape = call->inputs[i].shape;
    ipu__strides_of(y, m->to);
    ipu__strides_of(&m->shape, m->from);
    m->to_offset = offset_of(y, call->attributes->starts);
}

static int run_pad(const struct ipu__call *call)
{
    int64_t count = ipu__shape_count(&call->output.shape);
    float *y = call->output.data, value = (float)call->attributes->scale;

    for (int64_t i = 0; i < count; i++)
        y[i] = value;
    return ipu__copy_run(call);
}

static void pad_gradient(ipu_graph *graph, const struct ipu__node *node,
                         ipu_tensor dy, ipu_tensor *dx)
{
    struct ipu__attributes attributes = node->attributes;

    attributes.shape = graph->tensors[node->inputs[0]].shape;
    dx[0] = ipu__add(graph, &ipu__slice, &dy, &attributes);
}

const struct ipu__op ipu__pad = {
    .name = "pad",
    .ninputs = 1,
    .shape = pad_shape,
    .run = run_pad,
    .cost = ipu__copy_cost,
    .moves = pad_moves,
    .gradient = pad_gradient,
};

/* ----------------------------------------------------------------- builders */

static int check_arrays(const char *name, int32_t ndim, const int64_t *first,
                        const int64_t *second)
{
    if (ndim == 0 || (first && second))
        return IPU_OK;
    return ipu__fail(IPU_ERR_ARGUMENT, "%s: an array is NULL", name);
}

ipu_tensor ipu_slice(ipu_graph *graph, ipu_tensor x, const int64_t *starts,
                     const int64_t *sizes)
{
    struct ipu__attributes attributes = {0};
    int status, index = ipu__index_of(graph, &ipu__slice, x);
    const struct ipu__shape *of;

    if (index < 0)
        return (ipu_tensor){-1};
    of = &graph->tensors[index].shape;
    status = check_arrays("slice", of->ndim, starts, sizes);
    if (status < 0)
        return ipu__invalid(graph, status);
    attributes.shape.ndim = of->ndim;
    for (int32_t i = 0; i < of->ndim; i++) {
        attributes.starts[i] = starts[i];
        attributes.shape.extents[i] = sizes[i] == -1 && starts[i] >= 0
                                          ? of->extents[i] - starts[i]
                                          : sizes[i];
    }
    return ipu__add(graph, &ipu__slice, &x, &attributes);
}

ipu_tensor ipu_pad(ipu_graph *graph, ipu_tensor x, const int64_t *before,
                   const int64_t *after, double value)
{
    struct ipu__attributes attributes = {.scale = value};
    int status, index = ipu__index_of(graph, &ipu__pad, x);
    const struct ipu__shape *of;

    if (index < 0)
        return (ipu_tensor){-1};
    of = &graph->tensors[index].shape;
    status = check_arrays("pad", of->ndim, before, after);
    attributes.shape.ndim = of->ndim;
    for (int32_t i = 0; i < of->ndim && status == IPU_OK; i++) {
        int64_t *extent = &attributes.shape.extents[i];

        attributes.starts[i] = before[i];
        if (before[i] < 0 || after[i] < 0 ||
            __builtin_add_overflow(of->extents[i], before[i], extent) ||
            __builtin_add_overflow(*extent, after[i], extent))
            status = ipu__fail(IPU_ERR_ARGUMENT,
                               "pad: %" PRId64 " before and %" PRId64
                               " after axis %d: they must be 0 or more, and "
                               "fit into memory",
                               before[i], after[i], (int)i);
    }
    if (status < 0)
        return ipu__invalid(graph, status);
    return ipu__add(graph, &ipu__pad, &x, &attributes);
}
