/* SPDX-License-Identifier: Apache-2.0 */
/*
 * convolutions.c - convolutions of sequences, images and volumes.
 *
 * A convolution of volumes is a sum over the planes of its kernel: plane k is a
 * convolution of images, of those planes of the input that it meets.
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

/* Returns stacks of images, [n, depth, height, width, channels], as images. */
static ipu_tensor unstack(ipu_graph *g, ipu_tensor x)
{
    int64_t e[IPU_MAX_DIMS];

    if (ipu_tensor_info(g, x, NULL, e, NULL) != 5)
        return x;
    return ipu_reshape(g, x, 4,
                       (const int64_t[]){e[0] * e[1], e[2], e[3], e[4]});
}

/* --------------------------------------------------------------- convolution
 */

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

const struct ipu__onnx_operator onnx__convolution_rows[] = {
    {"Conv", 1, "auto_pad dilations group kernel_shape pads strides", 2, 3,
     build_conv, NULL,
     "other than 3 to 5 dimensions and negative pads are refused"},
    {.name = NULL},
};
