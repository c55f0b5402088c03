/* SPDX-License-Identifier: Apache-2.0 */
/*
 * windows.c - pooling of images and of sequences.
 *
 * The device has images, with the channels last. A sequence becomes an image of
 * one row, and its result a sequence again.
 */
#include <inttypes.h>
#include <string.h>

#include "onnx/operators/rows.h"

/* Describes a window by its node's attributes, for height and width. */
struct window {
    int64_t size[2], stride[2], dilation[2];
    int64_t before[2], after[2];
    int32_t axes; /* 1 or 2: the dimensions besides batch and channels */
};

/* Reads a list of `count` numbers, each from `least` on, into the last of two.
 */
static int read_list(struct ipu__onnx_call *call, const char *name,
                     int32_t count, int64_t least, int64_t other, int64_t *to)
{
    const struct ipu__onnx_ints *list = onnx__ints(call, name);

    to[0] = to[1] = other;
    if (!list)
        return IPU_OK;
    if ((int64_t)list->count != count)
        return onnx__refuse(call, "%s has %zu numbers, and its input %d axes",
                            name, list->count, (int)count);
    for (int32_t i = 0; i < count; i++) {
        if (list->at[i] < least || list->at[i] > INT32_MAX)
            return onnx__refuse(call, "%s has %" PRId64, name, list->at[i]);
        to[2 - count + i] = list->at[i];
    }
    return IPU_OK;
}

static int read_pads(struct ipu__onnx_call *call, struct window *w)
{
    const struct ipu__onnx_ints *list = onnx__ints(call, "pads");

    for (int i = 0; i < 2; i++)
        w->before[i] = w->after[i] = 0;
    if (!list)
        return IPU_OK;
    if ((int64_t)list->count != 2 * w->axes)
        return onnx__refuse(call, "pads has %zu numbers, and its input %d axes",
                            list->count, (int)w->axes);
    for (int32_t i = 0; i < w->axes; i++) {
        w->before[2 - w->axes + i] = list->at[i];
        w->after[2 - w->axes + i] = list->at[w->axes + i];
    }
    for (int i = 0; i < 2; i++)
        if (w->before[i] < 0 || w->before[i] > INT32_MAX || w->after[i] < 0 ||
            w->after[i] > INT32_MAX)
            return onnx__refuse(call, "negative or too large pads are not "
                                      "supported");
    return IPU_OK;
}

/* Sets the pads that make the output of ceil(n / stride) elements. */
static void pad_same(struct window *w, const int64_t *image, bool upper)
{
    for (int i = 0; i < 2; i++) {
        int64_t span = (w->size[i] - 1) * w->dilation[i] + 1;
        int64_t count = (image[i] + w->stride[i] - 1) / w->stride[i];
        int64_t pads = (count - 1) * w->stride[i] + span - image[i];

        pads = pads > 0 ? pads : 0;
        w->before[i] = upper ? pads / 2 : pads - pads / 2;
        w->after[i] = pads - w->before[i];
    }
}

static int read_auto_pad(struct ipu__onnx_call *call, struct window *w,
                         const int64_t *image)
{
    if (onnx__text_is(call, "auto_pad", "NOTSET", "NOTSET"))
        return IPU_OK;
    if (onnx__text_is(call, "auto_pad", "VALID", "NOTSET")) {
        memset(w->before, 0, sizeof w->before);
        memset(w->after, 0, sizeof w->after);
        return IPU_OK;
    }
    if (onnx__text_is(call, "auto_pad", "SAME_UPPER", "NOTSET"))
        pad_same(w, image, true);
    else if (onnx__text_is(call, "auto_pad", "SAME_LOWER", "NOTSET"))
        pad_same(w, image, false);
    else
        return onnx__refuse(call, "there is no such auto_pad");
    return IPU_OK;
}

/* Sets height and width of the input; a sequence has the height 1. */
static int read_image(struct ipu__onnx_call *call, struct window *w,
                      int64_t *image)
{
    const struct ipu__onnx_value *x = call->inputs[0];

    IPU_TRY(onnx__want_floats(call, 0));
    if (x->ndim != 3 && x->ndim != 4)
        return onnx__refuse(call,
                            "of %d dimensions it is not supported: an "
                            "image has 4, a sequence 3",
                            (int)x->ndim);
    w->axes = x->ndim - 2;
    image[0] = x->ndim == 4 ? x->extents[2] : 1;
    image[1] = x->extents[x->ndim - 1];
    return IPU_OK;
}

/* Reads everything but the size of the window. */
static int read_window(struct ipu__onnx_call *call, struct window *w,
                       const int64_t *image)
{
    IPU_TRY(read_list(call, "strides", w->axes, 1, 1, w->stride));
    IPU_TRY(read_list(call, "dilations", w->axes, 1, 1, w->dilation));
    IPU_TRY(read_pads(call, w));
    IPU_TRY(read_auto_pad(call, w, image));
    for (int i = 0; i < 2; i++) {
        int64_t span = (w->size[i] - 1) * w->dilation[i] + 1;

        if (w->before[i] > INT32_MAX || w->after[i] > INT32_MAX)
            return onnx__refuse(call, "its pads are too large");
        if (w->size[i] < 1 || image[i] + w->before[i] + w->after[i] < span)
            return onnx__refuse(call, "its window is larger than its input");
    }
    return IPU_OK;
}

/* Returns the input as images with the channels last. */
static ipu_tensor images(struct ipu__onnx_call *call, struct ipu__onnx_value *x)
{
    ipu_tensor t = onnx__last(call, x);

    return x->ndim == 3 ? ipu_expand_dims(call->graph, t, 1) : t;
}

static int give_images(struct ipu__onnx_call *call, ipu_tensor y)
{
    const struct ipu__onnx_value *x = call->inputs[0];

    return onnx__give_last(call, 0, x->type,
                           x->ndim == 3 ? ipu_squeeze(call->graph, y, 1) : y);
}

/* -------------------------------------------------------------------- pooling
 */

/* Adds what makes the last window complete (ceil_mode). */
static int round_up(struct ipu__onnx_call *call, struct window *w,
                    const int64_t *image, bool counts_padding)
{
    for (int i = 0; i < 2; i++) {
        int64_t n = image[i] + w->before[i] + w->after[i] - w->size[i];
        int64_t more = (n + w->stride[i] - 1) / w->stride[i] * w->stride[i] - n;

        if (more > 0 && counts_padding)
            return onnx__refuse(call, "ceil_mode with count_include_pad is not "
                                      "supported");
        w->after[i] += more;
    }
    return IPU_OK;
}

static int read_pool(struct ipu__onnx_call *call, struct window *w,
                     int64_t *image, bool counts_padding)
{
    IPU_TRY(read_image(call, w, image));
    if (!onnx__has_attribute(call, "kernel_shape"))
        return onnx__refuse(call, "its kernel_shape is missing");
    IPU_TRY(read_list(call, "kernel_shape", w->axes, 1, 1, w->size));
    IPU_TRY(read_window(call, w, image));
    if (w->dilation[0] != 1 || w->dilation[1] != 1)
        return onnx__refuse(call, "dilations are not supported");
    if (onnx__int(call, "ceil_mode", 0) != 0)
        IPU_TRY(round_up(call, w, image, counts_padding));
    for (int i = 0; i < 2; i++)
        if (w->before[i] >= w->size[i] || w->after[i] >= w->size[i])
            return onnx__refuse(call, "windows of padding alone are not "
                                      "supported");
    return IPU_OK;
}

static ipu_pool_options pool_options(const struct window *w)
{
    ipu_pool_options o = {.size = sizeof o};

    for (int i = 0; i < 2; i++) {
        o.window[i] = (int32_t)w->size[i];
        o.stride[i] = (int32_t)w->stride[i];
        o.padding[2 * i] = (int32_t)w->before[i];
        o.padding[2 * i + 1] = (int32_t)w->after[i];
    }
    return o;
}

static int build_max_pool(struct ipu__onnx_call *call)
{
    ipu_pool_options options;
    int64_t image[2];
    struct window w;

    onnx__int(call, "storage_order", 0); /* of indices, which are refused */
    IPU_TRY(read_pool(call, &w, image, false));
    options = pool_options(&w);
    return give_images(call, ipu_max_pool2d_with(call->graph,
                                                 images(call, call->inputs[0]),
                                                 &options));
}

static int build_average_pool(struct ipu__onnx_call *call)
{
    bool counts = onnx__int(call, "count_include_pad", 0) != 0;
    ipu_pool_options options;
    int64_t image[2];
    struct window w;

    IPU_TRY(read_pool(call, &w, image, counts));
    options = pool_options(&w);
    options.count_padding = counts;
    return give_images(call, ipu_avg_pool2d_with(call->graph,
                                                 images(call, call->inputs[0]),
                                                 &options));
}

/* Reduces all dimensions but batch and channels. */
static int build_global_pool(struct ipu__onnx_call *call)
{
    ipu_tensor (*const *make)(ipu_graph *, ipu_tensor, int32_t, const int32_t *,
                              int32_t) = call->op->how;
    struct ipu__onnx_value *x = call->inputs[0];
    int32_t axes[IPU_MAX_DIMS];

    IPU_TRY(onnx__want_floats(call, 0));
    if (x->ndim < 3)
        return onnx__refuse(call, "its input has nothing to pool");
    for (int32_t d = 1; d < x->ndim - 1; d++)
        axes[d - 1] = d;
    return onnx__give_last(
        call, 0, x->type,
        (*make)(call->graph, onnx__last(call, x), x->ndim - 2, axes, 1));
}

typedef ipu_tensor pool_fn(ipu_graph *, ipu_tensor, int32_t, const int32_t *,
                           int32_t);
static pool_fn *const how_mean = ipu_mean;
static pool_fn *const how_max = ipu_max;

#define POOL_LIMITS                                                            \
    "other than 3 or 4 dimensions, integers, dilations and windows of "        \
    "padding "                                                                 \
    "alone are refused"

const struct ipu__onnx_operator onnx__window_rows[] = {
    {"AveragePool", 1,
     "auto_pad ceil_mode count_include_pad kernel_shape pads strides", 1, 1,
     build_average_pool, NULL,
     POOL_LIMITS "; so is ceil_mode with "
                 "count_include_pad"},
    {"GlobalAveragePool", 1, "", 1, 1, build_global_pool, &how_mean, NULL},
    {"GlobalMaxPool", 1, "", 1, 1, build_global_pool, &how_max, NULL},
    {"MaxPool", 1,
     "auto_pad ceil_mode dilations kernel_shape pads storage_order strides", 1,
     1, build_max_pool, NULL, POOL_LIMITS "; so is the output Indices"},
    {.name = NULL},
};
