/* SPDX-License-Identifier: Apache-2.0 */
/*
 * conv2d_build.c - builders of convolutions: options, and the layers that are
 * convolutions in disguise.
 *
 *     transpose    the derivative of a convolution, as an op: to a larger
 *                  image, as decoders and generators need it
 *     depthwise    a group for each channel
 */
#include <stddef.h>
#include <string.h>

#include "base/error.h"
#include "ops/products/conv2d.h"

static int check_options(const char *name, const ipu_conv_options *options,
                         size_t size)
{
    if (options->size < size)
        return ipu__fail(IPU_ERR_ARGUMENT,
                         "%s: the options' size is %u, not %zu: set it", name,
                         (unsigned)options->size, sizeof *options);
    for (int i = 0; i < 2; i++) {
        if (options->stride[i] < 1)
            return ipu__fail(IPU_ERR_ARGUMENT,
                             "%s: stride %d, it must be at least 1", name,
                             (int)options->stride[i]);
        if (options->dilation[i] < 0)
            return ipu__fail(IPU_ERR_ARGUMENT,
                             "%s: dilation %d, it must be at least 1", name,
                             (int)options->dilation[i]);
    }
    if (options->groups < 0)
        return ipu__fail(IPU_ERR_ARGUMENT,
                         "%s: %d groups, there must be at least 1", name,
                         (int)options->groups);
    for (int i = 0; i < 4; i++)
        if (options->padding[i] < 0 || (options->same && options->padding[i]))
            return ipu__fail(IPU_ERR_ARGUMENT,
                             options->same
                                 ? "%s: padding %d besides SAME: choose one"
                                 : "%s: padding %d, it must be 0 or more",
                             name, (int)options->padding[i]);
    return IPU_OK;
}

/* Reads the options; NULL: stride 1, VALID. */
static int read_options(const char *name, const ipu_conv_options *options,
                        struct ipu__attributes *a)
{
    const size_t least = offsetof(ipu_conv_options, dilation);
    ipu_conv_options o = {.size = sizeof o, .stride = {1, 1}};

    if (options) /* The options of an older program end earlier. */
        memcpy(&o, options,
               options->size < least      ? least
               : options->size < sizeof o ? options->size
                                          : sizeof o);
    IPU_TRY(check_options(name, &o, least));
    *a = (struct ipu__attributes){.size = o.same,
                                  .groups = o.groups ? o.groups : 1};
    for (int i = 0; i < 2; i++) {
        a->stride[i] = o.stride[i];
        a->dilation[i] = o.dilation[i] ? o.dilation[i] : 1;
        a->pad[i] = o.padding[2 * i];
        a->pad_after[i] = o.padding[2 * i + 1];
    }
    return IPU_OK;
}

/* Zeros before the first row or column of a SAME convolution of an image of
 * that extent. */
static int32_t same_before(int64_t extent, int64_t kernel, int i,
                           const struct ipu__attributes *a)
{
    int64_t span = ipu__conv_span(kernel, a->dilation[i]);

    return (int32_t)(ipu__conv_same_padding(extent, span, a->stride[i]) / 2);
}

/* A tensor's shape; one of a scalar if there is none, which is refused later,
 * with the right words. Copied: in the body of a loop, the next may be imported
 * and tensors move. */
static struct ipu__shape shape_of(const ipu_graph *graph, ipu_tensor tensor)
{
    int32_t index = graph && graph->status == IPU_OK ? ipu__index(graph, tensor)
                                                     : IPU_ERR_ARGUMENT;

    if (index < 0)
        return (struct ipu__shape){.ndim = 0};
    return graph->tensors[index].shape;
}

ipu_tensor ipu_conv2d(ipu_graph *graph, ipu_tensor x, ipu_tensor kernel,
                      const ipu_conv_options *options)
{
    const struct ipu__shape image = shape_of(graph, x);
    const struct ipu__shape window = shape_of(graph, kernel);
    struct ipu__attributes a;
    int status = read_options("conv2d", options, &a);

    if (status < 0)
        return ipu__invalid(graph, status);
    for (int i = 0; i < 2 && a.size && image.ndim == 4 && window.ndim == 4; i++)
        a.pad[i] = same_before(image.extents[1 + i], window.extents[i], i, &a);
    return ipu__add(graph, &ipu__conv2d, (const ipu_tensor[]){x, kernel}, &a);
}

/* ---------------------------------------------------------------- transpose */

/* The image of which a convolution makes one of that extent: the smallest, if
 * none is given. */
static int64_t image_side(int64_t given, int64_t extent, int64_t kernel, int i,
                          const struct ipu__attributes *a)
{
    int64_t span = ipu__conv_span(kernel, a->dilation[i]);
    int64_t side = a->size ? extent * a->stride[i]
                           : (extent - 1) * a->stride[i] + span - a->pad[i] -
                                 a->pad_after[i];

    return given > 0 ? given : side;
}

static int check_transpose(const struct ipu__shape *x,
                           const struct ipu__shape *kernel, int32_t height,
                           int32_t width)
{
    if (x->ndim != 4 || kernel->ndim != 4)
        return ipu__fail(IPU_ERR_SHAPE,
                         "conv2d_transpose: %s and a kernel of %s: they must "
                         "be [n, h, w, in] and [h, w, out, in]",
                         ipu__shape_print(x).text,
                         ipu__shape_print(kernel).text);
    if (height < 0 || width < 0)
        return ipu__fail(IPU_ERR_ARGUMENT,
                         "conv2d_transpose: an image of %d x %d is none",
                         (int)height, (int)width);
    for (int i = 1; i < 4; i++)
        if (x->extents[i] > INT32_MAX || kernel->extents[i - 1] > INT32_MAX)
            return ipu__fail(IPU_ERR_SHAPE,
                             "conv2d_transpose: %s and a kernel of %s: these "
                             "are too large",
                             ipu__shape_print(x).text,
                             ipu__shape_print(kernel).text);
    return IPU_OK;
}

ipu_tensor ipu_conv2d_transpose(ipu_graph *graph, ipu_tensor x,
                                ipu_tensor kernel, int32_t height,
                                int32_t width, const ipu_conv_options *options)
{
    const int32_t given[] = {height, width};
    const struct ipu__op *op = &ipu__conv2d_input_grad;
    struct ipu__shape small, window;
    struct ipu__attributes a;
    int status;

    if (ipu__index_of(graph, op, x) < 0 || ipu__index_of(graph, op, kernel) < 0)
        return (ipu_tensor){-1};
    small = shape_of(graph, x);
    window = shape_of(graph, kernel);
    status = read_options("conv2d_transpose", options, &a);
    if (status == IPU_OK)
        status = check_transpose(&small, &window, height, width);
    if (status < 0)
        return ipu__invalid(graph, status);
    a.shape = small;
    a.shape.extents[3] = window.extents[2] * a.groups;
    for (int i = 0; i < 2; i++) {
        int64_t *side = &a.shape.extents[1 + i];

        *side = image_side(given[i], *side, window.extents[i], i, &a);
        if (a.size)
            a.pad[i] = same_before(*side, window.extents[i], i, &a);
    }
    return ipu__add(graph, op, (const ipu_tensor[]){x, kernel}, &a);
}

/* ---------------------------------------------------------------- depthwise */

ipu_tensor ipu_depthwise_conv2d(ipu_graph *graph, ipu_tensor x,
                                ipu_tensor kernel,
                                const ipu_conv_options *options)
{
    ipu_conv_options o = {.size = sizeof o, .stride = {1, 1}};
    struct ipu__attributes a;
    struct ipu__shape k;
    int32_t index = ipu__index_of(graph, &ipu__conv2d, kernel);
    int status;

    if (index < 0)
        return (ipu_tensor){-1};
    k = graph->tensors[index].shape;
    status = read_options("depthwise_conv2d", options, &a);
    if (status == IPU_OK && (k.ndim != 4 || k.extents[2] > INT32_MAX))
        status = ipu__fail(IPU_ERR_SHAPE,
                           "depthwise_conv2d: %s must be [h, w, channels, "
                           "multiplier]",
                           graph->tensors[index].name);
    if (status == IPU_OK && options && a.groups != 1)
        status = ipu__fail(IPU_ERR_ARGUMENT,
                           "depthwise_conv2d: %d groups: there is one for each "
                           "channel",
                           (int)a.groups);
    if (status < 0)
        return ipu__invalid(graph, status);
    if (options)
        memcpy(&o, options,
               options->size < sizeof o ? options->size : sizeof o);
    o.groups = (int32_t)k.extents[2];
    kernel = ipu_reshape(graph, kernel, 4,
                         (const int64_t[]){k.extents[0], k.extents[1], 1,
                                           k.extents[2] * k.extents[3]});
    return ipu_conv2d(graph, x, kernel, &o);
}
