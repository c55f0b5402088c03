/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Moves that reshape, slice, concat and broadcast make up.
 */
#include <inttypes.h>

#include "base/error.h"
#include "ops/op.h"

/* The shape of a tensor; a failure, kept in the graph, if it is none. */
static int shape_of(ipu_graph *graph, const struct ipu__op *op,
                    ipu_tensor tensor, struct ipu__shape *shape)
{
    int32_t index = ipu__index_of(graph, op, tensor);

    IPU_TRY(index);
    *shape = graph->tensors[index].shape;
    return IPU_OK;
}

ipu_tensor ipu_expand_dims(ipu_graph *graph, ipu_tensor x, int32_t axis)
{
    struct ipu__shape s;
    int32_t at;

    if (shape_of(graph, &ipu__reshape, x, &s) < 0)
        return (ipu_tensor){-1};
    at = axis < 0 ? axis + s.ndim + 1 : axis;
    if (at < 0 || at > s.ndim || s.ndim == IPU_MAX_DIMS)
        return ipu__invalid(graph,
                            ipu__fail(IPU_ERR_SHAPE,
                                      "expand_dims: no axis %d can be added to "
                                      "%d dimensions",
                                      (int)axis, (int)s.ndim));
    for (int32_t i = s.ndim; i > at; i--)
        s.extents[i] = s.extents[i - 1];
    s.extents[at] = 1;
    return ipu_reshape(graph, x, s.ndim + 1, s.extents);
}

ipu_tensor ipu_squeeze(ipu_graph *graph, ipu_tensor x, int32_t axis)
{
    struct ipu__shape s;
    int32_t at;

    if (ipu__find_axis(graph, &ipu__reshape, x, axis, &at) < 0 ||
        shape_of(graph, &ipu__reshape, x, &s) < 0)
        return (ipu_tensor){-1};
    if (s.extents[at] != 1)
        return ipu__invalid(graph, ipu__fail(IPU_ERR_SHAPE,
                                             "squeeze: axis %d has %" PRId64
                                             " elements, not 1",
                                             (int)axis, s.extents[at]));
    for (int32_t i = at; i + 1 < s.ndim; i++)
        s.extents[i] = s.extents[i + 1];
    return ipu_reshape(graph, x, s.ndim - 1, s.extents);
}

/* Stacks as a tree, like concat: each half is stacked along an axis that all
 * have. */
static ipu_tensor stack(ipu_graph *graph, int32_t count,
                        const ipu_tensor *tensors, int32_t axis, int32_t at)
{
    ipu_tensor halves[2];

    if (count == 1)
        return ipu_expand_dims(graph, tensors[0], axis);
    halves[0] = stack(graph, count / 2, tensors, axis, at);
    halves[1] = stack(graph, count - count / 2, tensors + count / 2, axis, at);
    return ipu_concat(graph, 2, halves, at);
}

ipu_tensor ipu_stack(ipu_graph *graph, int32_t count, const ipu_tensor *tensors,
                     int32_t axis)
{
    struct ipu__shape s;

    if (count < 1 || !tensors)
        return ipu__invalid(graph, ipu__fail(IPU_ERR_ARGUMENT,
                                             "stack: %d tensors: give 1 or "
                                             "more, in an array",
                                             (int)count));
    if (shape_of(graph, &ipu__concat, tensors[0], &s) < 0)
        return (ipu_tensor){-1};
    return stack(graph, count, tensors, axis,
                 axis < 0 ? axis + s.ndim + 1 : axis);
}

/* The parts' sizes, equal ones if none are given, must make up the axis. */
static int check_parts(const struct ipu__shape *s, int32_t axis, int32_t count,
                       const int64_t *sizes)
{
    int64_t sum = 0;

    for (int32_t i = 0; i < count && sizes; i++) {
        if (sizes[i] < 0 || sizes[i] > s->extents[axis] - sum)
            return ipu__fail(IPU_ERR_SHAPE,
                             "split: part %d of %" PRId64
                             " elements is more than axis %d has left",
                             (int)i, sizes[i], (int)axis);
        sum += sizes[i];
    }
    if (sizes ? sum == s->extents[axis] : s->extents[axis] % count == 0)
        return IPU_OK;
    return ipu__fail(IPU_ERR_SHAPE,
                     "split: axis %d has %" PRId64
                     " elements, which are not %d %s",
                     (int)axis, s->extents[axis], (int)count,
                     sizes ? "parts of these sizes" : "equal parts");
}

int ipu_split(ipu_graph *graph, ipu_tensor x, int32_t axis, int32_t count,
              const int64_t *sizes, ipu_tensor *parts)
{
    int64_t starts[IPU_MAX_DIMS] = {0}, all;
    struct ipu__shape s;
    int32_t at;
    int status;

    IPU_TRY(ipu__find_axis(graph, &ipu__slice, x, axis, &at));
    IPU_TRY(shape_of(graph, &ipu__slice, x, &s));
    if (count < 1 || !parts)
        return ipu__graph_fail(
            graph, ipu__fail(IPU_ERR_ARGUMENT,
                             "split: %d parts: give 1 or more, and an array",
                             (int)count));
    status = check_parts(&s, at, count, sizes);
    if (status < 0)
        return ipu__graph_fail(graph, status);
    all = s.extents[at];
    for (int32_t i = 0; i < count; i++) {
        s.extents[at] = sizes ? sizes[i] : all / count;
        parts[i] = ipu_slice(graph, x, starts, s.extents);
        if (parts[i].id < 0)
            return ipu__graph_status(graph);
        starts[at] += s.extents[at];
    }
    return IPU_OK;
}

/* Along one axis, seen as [outer, n, inner]. */
static ipu_tensor tile_axis(ipu_graph *graph, ipu_tensor x,
                            struct ipu__shape *s, int32_t axis, int64_t times)
{
    int64_t view[4] = {ipu__shape_span(s, 0, axis), 1, s->extents[axis],
                       ipu__shape_span(s, axis + 1, s->ndim)};

    if (times == 1)
        return x;
    x = ipu_reshape(graph, x, 4, view);
    view[1] = times;
    x = ipu_broadcast(graph, x, 4, view);
    if (x.id < 0)
        return x;
    s->extents[axis] *= times;
    return ipu_reshape(graph, x, s->ndim, s->extents);
}

ipu_tensor ipu_tile(ipu_graph *graph, ipu_tensor x, const int32_t *times)
{
    struct ipu__shape s;

    if (shape_of(graph, &ipu__broadcast, x, &s) < 0)
        return (ipu_tensor){-1};
    for (int32_t i = 0; i < s.ndim; i++)
        if (!times || times[i] < 1)
            return ipu__invalid(graph,
                                ipu__fail(IPU_ERR_ARGUMENT,
                                          "tile: axis %d %d times; it "
                                          "must be at least 1",
                                          (int)i, times ? (int)times[i] : 0));
    for (int32_t i = 0; i < s.ndim && x.id >= 0; i++)
        x = tile_axis(graph, x, &s, i, times[i]);
    return x;
}

ipu_tensor ipu_upsample2d(ipu_graph *graph, ipu_tensor x, int32_t factor)
{
    struct ipu__shape s;

    if (shape_of(graph, &ipu__broadcast, x, &s) < 0)
        return (ipu_tensor){-1};
    if (s.ndim != 4 || factor < 1)
        return ipu__invalid(
            graph, ipu__fail(s.ndim == 4 ? IPU_ERR_ARGUMENT : IPU_ERR_SHAPE,
                             "upsample2d: a factor of %d and %d dimensions: it "
                             "must be at least 1, and they [n, h, w, c]",
                             (int)factor, (int)s.ndim));

    int64_t view[] = {s.extents[0], s.extents[1], 1, s.extents[2], 1,
                      s.extents[3]};

    x = ipu_reshape(graph, x, 6, view);
    view[2] = view[4] = factor;
    x = ipu_broadcast(graph, x, 6, view);
    if (x.id < 0)
        return x;
    s.extents[1] *= factor;
    s.extents[2] *= factor;
    return ipu_reshape(graph, x, 4, s.extents);
}
