/* SPDX-License-Identifier: Apache-2.0 */
/*
 * max_pools.c - maxima of windows, and back.
 *
 * Where the device's op does not pool - with dilations, or integers - the
 * maximum is taken axis by axis, over one part of the input for each element of
 * the window. Only if the positions of the maxima are wanted all windows are
 * gathered.
 */
#include <math.h>
#include <stdlib.h>

#include "onnx/operators/window.h"

/* ------------------------------------------------------------------ maximum */

/* Takes the maximum over the windows of one axis, which is dimension d of x. */
static ipu_tensor max_axis(struct ipu__onnx_call *call,
                           const struct ipu__onnx_window *w, int i,
                           ipu_tensor x, int32_t d)
{
    int32_t type = call->inputs[0]->type;
    int64_t before[IPU_MAX_DIMS] = {0}, after[IPU_MAX_DIMS] = {0};
    ipu_graph *g = call->graph;
    ipu_tensor y = {-1};

    if (w->size[i] == 1 && w->stride[i] == 1)
        return x;
    before[d] = w->before[i];
    after[d] = w->after[i];
    x = onnx__pad(g, x, before, after,
                  onnx__is_whole(type) ? (double)INT32_MIN : -INFINITY);
    for (int64_t k = 0; k < w->size[i]; k++) {
        ipu_tensor part =
            onnx__window_rows_of(g, x, d, k * w->dilation[i], w->stride[i],
                                 onnx__window_count(w, i));

        y = k == 0 ? part : ipu_maximum(g, y, part);
    }
    return y;
}

static int give_max_by_axis(struct ipu__onnx_call *call,
                            const struct ipu__onnx_window *w)
{
    struct ipu__onnx_value *x = call->inputs[0];
    ipu_tensor y = onnx__last(call, x);

    for (int32_t i = 0; i < w->axes; i++)
        y = max_axis(call, w, WINDOW_AXES - w->axes + i, y, 1 + i);
    return onnx__give_last(call, 0, x->type, y);
}

/* Elements of all windows of a plane; a few bytes can ask for any number. */
enum { MOST_ELEMENTS = 1 << 22 };

/* The elements of the windows of one channel: of window o they are
 * at[o * taps] to at[o * taps + taps - 1], numbers in the input; named has what
 * the output Indices calls them. An element of the padding is the one behind
 * the last of the input. */
struct elements {
    int64_t outputs, taps, inputs;
    int32_t *at, *named; /* owned */
};

static int64_t product(const int64_t *numbers)
{
    return numbers[0] * numbers[1] * numbers[2];
}

/* Splits a number into those of three axes, the last of which varies first. */
static void split(int64_t number, const int64_t *extents, int64_t *parts)
{
    for (int i = WINDOW_AXES - 1; i >= 0; i--) {
        parts[i] = number % extents[i];
        number /= extents[i];
    }
}

static void fill_elements(const struct ipu__onnx_window *w,
                          const int64_t *counts, bool by_column,
                          struct elements *e)
{
    int64_t out[WINDOW_AXES], tap[WINDOW_AXES];
    const int64_t *n = w->input;

    for (int64_t j = 0; j < e->outputs * e->taps; j++) {
        int64_t at = 0, named = 0, place[WINDOW_AXES];
        bool inside = true;

        split(j / e->taps, counts, out);
        split(j % e->taps, w->size, tap);
        for (int i = 0; i < WINDOW_AXES; i++) {
            place[i] =
                out[i] * w->stride[i] + tap[i] * w->dilation[i] - w->before[i];
            inside &= place[i] >= 0 && place[i] < n[i];
            at = at * n[i] + place[i];
        }
        for (int i = WINDOW_AXES - 1; i >= 0; i--)
            named = named * n[i] + place[i];
        e->at[j] = (int32_t)(inside ? at : e->inputs);
        e->named[j] = (int32_t)(inside ? (by_column ? named : at) : 0);
    }
}

/* Gives the maxima and their positions, by a gather of all windows. */
static int give_gathered(struct ipu__onnx_call *call, const struct elements *e,
                         const int64_t *shape)
{
    struct ipu__onnx_value *x = call->inputs[0];
    int64_t rows = x->extents[0] * x->extents[1], all = e->outputs * e->taps;
    int64_t flat[2] = {rows, e->inputs}, none[2] = {0, 0}, more[2] = {0, 1};
    int64_t windows[2] = {e->outputs, e->taps}, column[2] = {rows, 1};
    const int32_t axis = 2;
    ipu_graph *g = call->graph;
    ipu_tensor t, at, most;

    t = ipu_reshape(g, onnx__tensor(call, x), 2, flat);
    t = ipu_pad(g, t, none, more, -INFINITY);
    at = ipu_constant(g, IPU_INT32, 2, windows, e->at);
    t = ipu_gather(g, t, at, 1); /* [rows, outputs, taps] */
    most = ipu_argmax(g, t, axis);
    t = ipu_max(g, t, 1, &axis, 0);
    IPU_TRY(onnx__give(call, 0, x->type, ipu_reshape(g, t, x->ndim, shape)));
    at = ipu_range(g, IPU_INT32, e->outputs, 0, (double)e->taps);
    at = ipu_gather(g, ipu_constant(g, IPU_INT32, 1, &all, e->named),
                    ipu_add(g, at, most), 0);
    most = ipu_range(g, IPU_INT32, rows, 0, (double)e->inputs);
    at = ipu_add(g, at, ipu_reshape(g, most, 2, column));
    return onnx__give(call, 1, IPU_ONNX_INT64,
                      ipu_reshape(g, at, x->ndim, shape));
}

static int give_max_and_indices(struct ipu__onnx_call *call,
                                const struct ipu__onnx_window *w)
{
    struct ipu__onnx_value *x = call->inputs[0];
    bool by_column = onnx__int(call, "storage_order", 0) != 0;
    int64_t counts[WINDOW_AXES], shape[IPU_MAX_DIMS];
    struct elements e = {.inputs = product(w->input)};
    int status = IPU_OK;

    IPU_TRY(onnx__want_floats(call, 0));
    shape[0] = x->extents[0];
    shape[1] = x->extents[1];
    for (int i = 0; i < WINDOW_AXES; i++) {
        counts[i] = onnx__window_count(w, i);
        if (counts[i] > MOST_ELEMENTS || w->size[i] > MOST_ELEMENTS)
            return onnx__refuse(call, "its windows are too many");
        if (i >= WINDOW_AXES - w->axes)
            shape[2 + i - (WINDOW_AXES - w->axes)] = counts[i];
    }
    e.outputs = counts[0] * counts[1];
    e.taps = w->size[0] * w->size[1];
    if (e.outputs > MOST_ELEMENTS || e.taps > MOST_ELEMENTS ||
        e.outputs * counts[2] > MOST_ELEMENTS ||
        e.taps * w->size[2] > MOST_ELEMENTS ||
        e.outputs * counts[2] * e.taps * w->size[2] > MOST_ELEMENTS ||
        onnx__size(x) > INT32_MAX)
        return onnx__refuse(call, "its windows are too many");
    e.outputs *= counts[2];
    e.taps *= w->size[2];
    if (ipu__new_array(&e.at, (size_t)(e.outputs * e.taps), sizeof *e.at) < 0 ||
        ipu__new_array(&e.named, (size_t)(e.outputs * e.taps),
                       sizeof *e.named) < 0)
        status = IPU_ERR_MEMORY;
    if (status == IPU_OK) {
        fill_elements(w, counts, by_column, &e);
        status = give_gathered(call, &e, shape);
    }
    free(e.at);
    free(e.named);
    return status;
}

static int build_max_pool(struct ipu__onnx_call *call)
{
    struct ipu__onnx_window w;
    bool plain;

    IPU_TRY(onnx__read_pool(call, &w, false));
    if (onnx__wants(call, 1))
        return give_max_and_indices(call, &w);
    onnx__int(call, "storage_order", 0); /* of indices alone */
    plain = !onnx__is_whole(call->inputs[0]->type);
    for (int i = 0; i < WINDOW_AXES; i++)
        plain &= w.dilation[i] == 1;
    if (!plain)
        return give_max_by_axis(call, &w);
    return onnx__window_give(call, call->inputs[0]->type,
                             onnx__pool(call, &w, ipu_max_pool2d_with, false));
}

/* ---------------------------------------------------------------- unpooling */

/* Sets the extents that MaxPool with these windows had, and those of the
 * result, which may have zeros after them. */
static int read_unpooled(struct ipu__onnx_call *call, int64_t *pooled,
                         int64_t *result)
{
    const struct ipu__onnx_value *x = call->inputs[0], *at = call->inputs[1];
    struct ipu__onnx_window w;
    const int64_t *given;
    int64_t count;

    IPU_TRY(onnx__window_input(call, &w));
    IPU_TRY(onnx__window_list(call, "kernel_shape", w.axes, 1, 1, w.size));
    IPU_TRY(onnx__window_read_lists(call, &w));
    IPU_TRY(onnx__numbers(call, 2, "output_shape", &given, &count));
    if (at->ndim != x->ndim || onnx__size(at) != onnx__size(x) ||
        !onnx__is_whole(at->type) || (given && count != x->ndim))
        return onnx__refuse(call, "its indices or its shape do not fit");
    for (int32_t d = 0; d < x->ndim; d++) {
        int i = d + WINDOW_AXES - x->ndim;

        pooled[d] = d < 2 ? x->extents[d]
                          : (w.input[i] - 1) * w.stride[i] + w.size[i] -
                                w.before[i] - w.after[i];
        result[d] = given ? given[d] : pooled[d];
        if (pooled[d] < 0 || result[d] < pooled[d])
            return onnx__refuse(call, "its output would be too small");
    }
    IPU_TRY(onnx__check_shape(call, x->ndim, pooled));
    return onnx__check_shape(call, x->ndim, result);
}

/* Each element goes back to the place that Indices has; the others are 0. */
static int build_unpool(struct ipu__onnx_call *call)
{
    struct ipu__onnx_value *x = call->inputs[0];
    int64_t pooled[IPU_MAX_DIMS] = {0}, result[IPU_MAX_DIMS] = {0};
    int64_t size, count;
    int64_t none[IPU_MAX_DIMS] = {0}, after[IPU_MAX_DIMS] = {0};
    ipu_graph *g = call->graph;
    ipu_tensor y, at, updates;

    IPU_TRY(onnx__want_floats(call, 0));
    IPU_TRY(read_unpooled(call, pooled, result));
    size = ipu__onnx_count(x->ndim, pooled);
    count = onnx__size(x);
    y = ipu_fill(g, ipu__onnx_kind(x->type)->dtype, 1, &size, 0);
    at = ipu_reshape(g, onnx__tensor(call, call->inputs[1]), 1, &count);
    updates = ipu_reshape(g, onnx__tensor(call, x), 1, &count);
    y = ipu_scatter(g, y, at, updates, 0);
    y = ipu_reshape(g, y, x->ndim, pooled);
    for (int32_t d = 0; d < x->ndim; d++)
        after[d] = result[d] - pooled[d];
    return onnx__give(call, 0, x->type, ipu_pad(g, y, none, after, 0));
}

#define POOL_LIMITS                                                            \
    "other than 3 to 5 dimensions and windows of padding alone are refused"

const struct ipu__onnx_operator onnx__max_pool_rows[] = {
    {"MaxPool", 1,
     "auto_pad ceil_mode dilations kernel_shape pads storage_order strides", 1,
     1, build_max_pool, NULL, POOL_LIMITS "; so are Indices of integers"},
    {"MaxUnpool", 9, "kernel_shape pads strides", 2, 3, build_unpool, NULL,
     "other than 3 to 5 dimensions are refused; output_shape must be known"},
    {.name = NULL},
};
