/* SPDX-License-Identifier: Apache-2.0 */
/*
 * window.c - reads the windows of convolutions and pooling (window.h).
 *
 * The device has images, with the channels last. A sequence becomes an image of
 * one row, and its result a sequence again. A volume is a stack of images.
 */
#include "onnx/operators/window.h"

#include <inttypes.h>
#include <string.h>

/* Reads into the last of WINDOW_AXES numbers. */
int onnx__window_list(struct ipu__onnx_call *call, const char *name,
                      int32_t axes, int64_t least, int64_t other, int64_t *to)
{
    const struct ipu__onnx_ints *list = onnx__ints(call, name);

    for (int i = 0; i < WINDOW_AXES; i++)
        to[i] = other;
    if (!list)
        return IPU_OK;
    if ((int64_t)list->count != axes)
        return onnx__refuse(call, "%s has %zu numbers, and its input %d axes",
                            name, list->count, (int)axes);
    for (int32_t i = 0; i < axes; i++) {
        if (list->at[i] < least || list->at[i] > INT32_MAX)
            return onnx__refuse(call, "%s has %" PRId64, name, list->at[i]);
        to[WINDOW_AXES - axes + i] = list->at[i];
    }
    return IPU_OK;
}

static int read_pads(struct ipu__onnx_call *call, struct ipu__onnx_window *w)
{
    const struct ipu__onnx_ints *list = onnx__ints(call, "pads");

    for (int i = 0; i < WINDOW_AXES; i++)
        w->before[i] = w->after[i] = 0;
    if (!list)
        return IPU_OK;
    if ((int64_t)list->count != 2 * w->axes)
        return onnx__refuse(call, "pads has %zu numbers, and its input %d axes",
                            list->count, (int)w->axes);
    for (int32_t i = 0; i < w->axes; i++) {
        w->before[WINDOW_AXES - w->axes + i] = list->at[i];
        w->after[WINDOW_AXES - w->axes + i] = list->at[w->axes + i];
    }
    for (int i = 0; i < WINDOW_AXES; i++)
        if (w->before[i] < 0 || w->before[i] > INT32_MAX || w->after[i] < 0 ||
            w->after[i] > INT32_MAX)
            return onnx__refuse(call, "negative or too large pads are not "
                                      "supported");
    return IPU_OK;
}

int64_t onnx__window_span(const struct ipu__onnx_window *w, int axis)
{
    return (w->size[axis] - 1) * w->dilation[axis] + 1;
}

int64_t onnx__window_count(const struct ipu__onnx_window *w, int axis)
{
    int64_t n = w->input[axis] + w->before[axis] + w->after[axis];

    return (n - onnx__window_span(w, axis)) / w->stride[axis] + 1;
}

/* Sets the pads that make the output of ceil(n / stride) elements. */
static void pad_same(struct ipu__onnx_window *w, bool upper)
{
    for (int i = 0; i < WINDOW_AXES; i++) {
        int64_t count = (w->input[i] + w->stride[i] - 1) / w->stride[i];
        int64_t pads =
            (count - 1) * w->stride[i] + onnx__window_span(w, i) - w->input[i];

        pads = pads > 0 ? pads : 0;
        w->before[i] = upper ? pads / 2 : pads - pads / 2;
        w->after[i] = pads - w->before[i];
    }
}

static int read_auto_pad(struct ipu__onnx_call *call,
                         struct ipu__onnx_window *w)
{
    if (onnx__text_is(call, "auto_pad", "NOTSET", "NOTSET"))
        return IPU_OK;
    if (onnx__text_is(call, "auto_pad", "VALID", "NOTSET")) {
        memset(w->before, 0, sizeof w->before);
        memset(w->after, 0, sizeof w->after);
        return IPU_OK;
    }
    if (onnx__text_is(call, "auto_pad", "SAME_UPPER", "NOTSET"))
        pad_same(w, true);
    else if (onnx__text_is(call, "auto_pad", "SAME_LOWER", "NOTSET"))
        pad_same(w, false);
    else
        return onnx__refuse(call, "there is no such auto_pad");
    return IPU_OK;
}

int onnx__window_input(struct ipu__onnx_call *call, struct ipu__onnx_window *w)
{
    const struct ipu__onnx_value *x = call->inputs[0];

    if (x->ndim < 3 || x->ndim > 2 + WINDOW_AXES)
        return onnx__refuse(call,
                            "of %d dimensions it is not supported: a volume "
                            "has 5, an image 4, a sequence 3",
                            (int)x->ndim);
    w->axes = x->ndim - 2;
    for (int32_t i = 0; i < WINDOW_AXES; i++) {
        int32_t d = i + x->ndim - WINDOW_AXES;

        w->input[i] = d < 2 ? 1 : x->extents[d];
    }
    return IPU_OK;
}

int onnx__window_read_lists(struct ipu__onnx_call *call,
                            struct ipu__onnx_window *w)
{
    IPU_TRY(onnx__window_list(call, "strides", w->axes, 1, 1, w->stride));
    IPU_TRY(onnx__window_list(call, "dilations", w->axes, 1, 1, w->dilation));
    return read_pads(call, w);
}

int onnx__window_read(struct ipu__onnx_call *call, struct ipu__onnx_window *w)
{
    IPU_TRY(onnx__window_read_lists(call, w));
    IPU_TRY(read_auto_pad(call, w));
    for (int i = 0; i < WINDOW_AXES; i++) {
        if (w->before[i] > INT32_MAX || w->after[i] > INT32_MAX)
            return onnx__refuse(call, "its pads are too large");
        if (w->size[i] < 1 ||
            w->input[i] + w->before[i] + w->after[i] < onnx__window_span(w, i))
            return onnx__refuse(call, "its window is larger than its input");
    }
    return IPU_OK;
}

/* ------------------------------------------------------------------ tensors */

ipu_tensor onnx__window_images(struct ipu__onnx_call *call,
                               struct ipu__onnx_value *value)
{
    const int64_t *e = value->extents;
    ipu_tensor t = onnx__last(call, value);

    if (value->ndim == 3)
        return ipu_expand_dims(call->graph, t, 1);
    if (value->ndim == 4)
        return t;
    return ipu_reshape(call->graph, t, 4,
                       (const int64_t[]){e[0] * e[2], e[3], e[4], e[1]});
}

int onnx__window_give(struct ipu__onnx_call *call, int32_t type, ipu_tensor y)
{
    const struct ipu__onnx_value *x = call->inputs[0];
    int64_t e[IPU_MAX_DIMS];

    if (x->ndim == 3)
        y = ipu_squeeze(call->graph, y, 1);
    if (x->ndim == 5 && ipu_tensor_info(call->graph, y, NULL, e, NULL) == 4)
        y = ipu_reshape(
            call->graph, y, 5,
            (const int64_t[]){x->extents[0],
                              x->extents[0] ? e[0] / x->extents[0] : 0, e[1],
                              e[2], e[3]});
    return onnx__give_last(call, 0, type, y);
}

ipu_tensor onnx__window_rows_of(ipu_graph *g, ipu_tensor x, int32_t axis,
                                int64_t first, int64_t step, int64_t count)
{
    int64_t starts[IPU_MAX_DIMS] = {0}, sizes[IPU_MAX_DIMS];

    if (step != 1)
        return ipu_gather(
            g, x, ipu_range(g, IPU_INT32, count, (double)first, (double)step),
            axis);
    if (ipu_tensor_info(g, x, NULL, sizes, NULL) <= axis)
        return x; /* a failure, which the graph keeps */
    starts[axis] = first;
    sizes[axis] = count;
    return ipu_slice(g, x, starts, sizes);
}
