/* SPDX-License-Identifier: Apache-2.0 */
/*
 * convolutions.c - convolutions and transposed convolutions, of sequences,
 * images and volumes.
 *
 * A convolution of volumes is a sum over the planes of its kernel: plane k is a
 * convolution of images, of those planes of the input that it meets. A
 * transposed one puts what plane k makes of plane i of the input to plane
 * i * stride + k * dilation of the result.
 */
#include <inttypes.h>

#include "onnx/operators/window.h"

/* Returns the kernel in the order of the device, [(depth, height,) width, in,
 * out / groups]; of a sequence, its height is 1. */
static ipu_tensor kernel_of(struct ipu__onnx_call *call,
                            struct ipu__onnx_value *k)
{
    int32_t order[IPU_MAX_DIMS];
    ipu_tensor t;

    for (int32_t d = 0; d < k->ndim; d++)
        order[d] = d < k->ndim - 2 ? d + 2 : k->ndim - 1 - d;
    t = onnx__permuted(call, k, order);
    return k->ndim == 3 ? ipu_expand_dims(call->graph, t, 0) : t;
}

/* Returns a plane of a kernel of volumes. */
static ipu_tensor plane_of(ipu_graph *g, ipu_tensor kernel, int64_t k)
{
    return ipu_squeeze(g, onnx__window_rows_of(g, kernel, 0, k, 1, 1), 0);
}

/* Sets the size of the window to that of the kernel. */
static int check_kernel(struct ipu__onnx_call *call, struct ipu__onnx_window *w,
                        int64_t groups)
{
    const struct ipu__onnx_value *x = call->inputs[0], *k = call->inputs[1];
    int64_t size[WINDOW_AXES];

    if (k->ndim != x->ndim || k->type != x->type)
        return onnx__refuse(call, "its kernel does not fit its input");
    IPU_TRY(onnx__window_list(call, "kernel_shape", w->axes, 1, 0, size));
    for (int32_t i = 0; i < WINDOW_AXES; i++) {
        int32_t d = i + k->ndim - WINDOW_AXES;

        w->size[i] = d < 2 ? 1 : k->extents[d];
        if (size[i] != 0 && size[i] != w->size[i])
            return onnx__refuse(call, "kernel_shape is not that of its kernel");
    }
    if (groups < 1 || groups > INT32_MAX || x->extents[1] % groups != 0)
        return onnx__refuse(call, "its kernel, groups and channels do not fit");
    return IPU_OK;
}

static ipu_conv_options conv_options(const struct ipu__onnx_window *w,
                                     int64_t groups)
{
    ipu_conv_options o = {.size = sizeof o, .groups = (int32_t)groups};

    for (int i = 0; i < 2; i++) {
        o.stride[i] = (int32_t)w->stride[i + 1];
        o.dilation[i] = (int32_t)w->dilation[i + 1];
        o.padding[2 * i] = (int32_t)w->before[i + 1];
        o.padding[2 * i + 1] =
            (int32_t)(w->after[i + 1] > 0 ? w->after[i + 1] : 0);
    }
    return o;
}

static int give_biased(struct ipu__onnx_call *call, ipu_tensor y)
{
    struct ipu__onnx_value *bias = onnx__in(call, 2);

    if (bias)
        y = ipu_bias_add(call->graph, y, onnx__tensor(call, bias));
    return onnx__window_give(call, call->inputs[0]->type, y);
}

static int check_bias(struct ipu__onnx_call *call, int64_t channels)
{
    const struct ipu__onnx_value *bias = onnx__in(call, 2);

    if (bias && (bias->ndim != 1 || bias->extents[0] != channels))
        return onnx__refuse(call, "its bias does not fit its kernel");
    return IPU_OK;
}

/* Returns stacks of images, [n, depth, height, width, channels], as images, or
 * images as stacks of that depth. */
static ipu_tensor unstack(ipu_graph *g, ipu_tensor x)
{
    int64_t e[IPU_MAX_DIMS];

    if (ipu_tensor_info(g, x, NULL, e, NULL) != 5)
        return x;
    return ipu_reshape(g, x, 4,
                       (const int64_t[]){e[0] * e[1], e[2], e[3], e[4]});
}

static ipu_tensor stack(ipu_graph *g, ipu_tensor x, int64_t n, int64_t depth)
{
    int64_t e[IPU_MAX_DIMS];

    if (ipu_tensor_info(g, x, NULL, e, NULL) != 4)
        return x;
    return ipu_reshape(g, x, 5, (const int64_t[]){n, depth, e[1], e[2], e[3]});
}

/* -------------------------------------------------------------- convolution */

static ipu_tensor convolve_volume(struct ipu__onnx_call *call,
                                  const struct ipu__onnx_window *w,
                                  const ipu_conv_options *options)
{
    const int64_t before[5] = {0, w->before[0]}, after[5] = {0, w->after[0]};
    ipu_tensor kernel = kernel_of(call, call->inputs[1]), y = {-1};
    int64_t depth = onnx__window_count(w, 0);
    ipu_graph *g = call->graph;
    ipu_tensor x = onnx__last(call, call->inputs[0]);

    if (w->before[0] > 0 || w->after[0] > 0)
        x = ipu_pad(g, x, before, after, 0);
    for (int64_t k = 0; k < w->size[0]; k++) {
        ipu_tensor rows = onnx__window_rows_of(g, x, 1, k * w->dilation[0],
                                               w->stride[0], depth);
        ipu_tensor part =
            ipu_conv2d(g, unstack(g, rows), plane_of(g, kernel, k), options);

        y = k == 0 ? part : ipu_add(g, y, part);
    }
    return y;
}

int onnx__convolve(struct ipu__onnx_call *call, ipu_tensor *y)
{
    struct ipu__onnx_value *const *in = call->inputs;
    int64_t groups = onnx__int(call, "group", 1);
    struct ipu__onnx_window w;
    ipu_conv_options options;

    IPU_TRY(onnx__window_input(call, &w));
    IPU_TRY(check_kernel(call, &w, groups));
    if (in[1]->extents[0] % groups != 0 ||
        in[1]->extents[1] != in[0]->extents[1] / groups)
        return onnx__refuse(call, "its kernel, groups and channels do not fit");
    IPU_TRY(onnx__window_read(call, &w));
    options = conv_options(&w, groups);
    *y = w.axes == 3 ? convolve_volume(call, &w, &options)
                     : ipu_conv2d(call->graph, onnx__window_images(call, in[0]),
                                  kernel_of(call, in[1]), &options);
    return IPU_OK;
}

static int build_conv(struct ipu__onnx_call *call)
{
    ipu_tensor y;

    IPU_TRY(onnx__want_floats(call, 0));
    IPU_TRY(check_bias(
        call, call->inputs[1]->ndim > 0 ? call->inputs[1]->extents[0] : 0));
    IPU_TRY(onnx__convolve(call, &y));
    return give_biased(call, y);
}

/* --------------------------------------------------- transposed convolution */

/* Sets the pads so that the result has this extent: what is missing is added
 * after it. */
static void pad_to(struct ipu__onnx_window *w, int i, int64_t extent,
                   bool upper)
{
    int64_t pads =
        (w->input[i] - 1) * w->stride[i] + onnx__window_span(w, i) - extent;

    w->before[i] = pads <= 0 ? 0 : upper ? pads / 2 : pads - pads / 2;
    w->after[i] = pads - w->before[i];
}

/* Reads which elements of the whole result are cut off before and after; after
 * is negative where zeros are added. */
static int read_cuts(struct ipu__onnx_call *call, struct ipu__onnx_window *w)
{
    bool upper = onnx__text_is(call, "auto_pad", "SAME_UPPER", "NOTSET");
    bool same =
        upper || onnx__text_is(call, "auto_pad", "SAME_LOWER", "NOTSET");
    bool given = onnx__has_attribute(call, "output_shape");
    int64_t more[WINDOW_AXES], extents[WINDOW_AXES];

    IPU_TRY(onnx__window_read_lists(call, w));
    IPU_TRY(onnx__window_list(call, "output_padding", w->axes, 0, 0, more));
    IPU_TRY(onnx__window_list(call, "output_shape", w->axes, 1, 1, extents));
    if (onnx__text_is(call, "auto_pad", "VALID", "NOTSET"))
        for (int i = 0; i < WINDOW_AXES; i++)
            w->before[i] = w->after[i] = 0;
    else if (!same && !onnx__text_is(call, "auto_pad", "NOTSET", "NOTSET"))
        return onnx__refuse(call, "there is no such auto_pad");
    for (int i = 0; i < WINDOW_AXES; i++) {
        if (given || same)
            pad_to(w, i, given ? extents[i] : w->input[i] * w->stride[i],
                   upper);
        else
            w->after[i] -= more[i];
        if ((w->input[i] - 1) * w->stride[i] + onnx__window_span(w, i) -
                    w->before[i] - w->after[i] <
                1 ||
            w->input[i] < 1 || w->size[i] < 1)
            return onnx__refuse(call, "its result would be empty");
    }
    return IPU_OK;
}

/* Adds zeros after height and width, where the window says so. */
static ipu_tensor add_after(ipu_graph *g, const struct ipu__onnx_window *w,
                            ipu_tensor y)
{
    int64_t none[4] = {0}, after[4] = {0};

    for (int i = 1; i < WINDOW_AXES; i++)
        after[i] = w->after[i] < 0 ? -w->after[i] : 0;
    return after[1] + after[2] > 0 ? ipu_pad(g, y, none, after, 0) : y;
}

/* Returns x, [n, depth, ...], with planes of zeros between its own, before and
 * after: plane i is at first + i * step of count. */
static ipu_tensor spread(ipu_graph *g, ipu_tensor x, int64_t first,
                         int64_t step, int64_t count)
{
    int64_t e[IPU_MAX_DIMS], none[6] = {0}, after[6] = {0}, before[5] = {0};
    int64_t last;

    if (ipu_tensor_info(g, x, NULL, e, NULL) != 5)
        return x;
    last = (e[1] - 1) * step + 1;
    if (step > 1) {
        after[2] = step - 1;
        x = ipu_pad(g, ipu_expand_dims(g, x, 2), none, after, 0);
        x = ipu_reshape(g, x, 5,
                        (const int64_t[]){e[0], e[1] * step, e[2], e[3], e[4]});
        x = onnx__window_rows_of(g, x, 1, 0, 1, last);
        after[2] = 0;
    }
    before[1] = first;
    after[1] = count - first - last;
    return ipu_pad(g, x, before, after, 0);
}

static ipu_tensor transpose_volume(struct ipu__onnx_call *call,
                                   const struct ipu__onnx_window *w,
                                   const ipu_conv_options *options)
{
    ipu_tensor kernel = kernel_of(call, call->inputs[1]), y = {-1};
    ipu_tensor x = onnx__window_images(call, call->inputs[0]);
    int64_t n = call->inputs[0]->extents[0];
    int64_t whole = (w->input[0] - 1) * w->stride[0] + onnx__window_span(w, 0);
    int64_t none[5] = {0}, after[5] = {0};
    ipu_graph *g = call->graph;

    for (int64_t k = 0; k < w->size[0]; k++) {
        ipu_tensor part =
            ipu_conv2d_transpose(g, x, plane_of(g, kernel, k), 0, 0, options);

        part = spread(g, stack(g, add_after(g, w, part), n, w->input[0]),
                      k * w->dilation[0], w->stride[0], whole);
        y = k == 0 ? part : ipu_add(g, y, part);
    }
    if (w->after[0] < 0) {
        after[1] = -w->after[0];
        y = ipu_pad(g, y, none, after, 0);
        whole -= w->after[0];
    }
    return onnx__window_rows_of(g, y, 1, w->before[0], 1,
                                whole - w->before[0] -
                                    (w->after[0] > 0 ? w->after[0] : 0));
}

static int build_conv_transpose(struct ipu__onnx_call *call)
{
    struct ipu__onnx_value *const *in = call->inputs;
    int64_t groups = onnx__int(call, "group", 1);
    struct ipu__onnx_window w;
    ipu_conv_options options;
    ipu_tensor y;

    IPU_TRY(onnx__want_floats(call, 0));
    IPU_TRY(onnx__window_input(call, &w));
    IPU_TRY(check_kernel(call, &w, groups));
    if (in[1]->extents[0] != in[0]->extents[1])
        return onnx__refuse(call, "its kernel, groups and channels do not fit");
    IPU_TRY(read_cuts(call, &w));
    IPU_TRY(check_bias(call, in[1]->extents[1] * groups));
    options = conv_options(&w, groups);
    if (w.axes == 3)
        return give_biased(call, transpose_volume(call, &w, &options));
    y = ipu_conv2d_transpose(call->graph, onnx__window_images(call, in[0]),
                             kernel_of(call, in[1]), 0, 0, &options);
    return give_biased(call, add_after(call->graph, &w, y));
}

const struct ipu__onnx_operator onnx__convolution_rows[] = {
    {"Conv", 1, "auto_pad dilations group kernel_shape pads strides", 2, 3,
     build_conv, NULL,
     "other than 3 to 5 dimensions and negative pads are refused"},
    {"ConvTranspose", 1,
     "auto_pad dilations group kernel_shape output_padding output_shape pads "
     "strides",
     2, 3, build_conv_transpose, NULL,
     "other than 3 to 5 dimensions and negative pads are refused"},
    {.name = NULL},
};
