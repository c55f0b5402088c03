/* SPDX-License-Identifier: Apache-2.0 */
/*
 * window.h - the windows of convolutions and pooling, as their nodes describe
 * them.
 *
 * Inputs are sequences, images or volumes: [n, channels, (depth, height,)
 * width]. Numbers of axes that an input does not have are those of an axis of
 * one element.
 */
#ifndef IPU_ONNX_OPERATORS_WINDOW_H
#define IPU_ONNX_OPERATORS_WINDOW_H

#include "onnx/operators/rows.h"

enum { WINDOW_AXES = 3 }; /* depth, height, width */

struct ipu__onnx_window {
    int64_t size[WINDOW_AXES], stride[WINDOW_AXES], dilation[WINDOW_AXES];
    int64_t before[WINDOW_AXES], after[WINDOW_AXES];
    int64_t input[WINDOW_AXES]; /* its extents */
    int32_t axes;               /* 1 to 3: of the input */
};

/* Reads a list of a number for each axis of the input, from least on; other
 * where there is none. */
int onnx__window_list(struct ipu__onnx_call *call, const char *name,
                      int32_t axes, int64_t least, int64_t other, int64_t *to);

/* Sets the extents of input 0. Refuses other than 3 to 5 dimensions. */
int onnx__window_input(struct ipu__onnx_call *call, struct ipu__onnx_window *w);

/* Reads strides, dilations and pads; the size is set. The second does not look
 * at auto_pad, nor whether the window is larger than the input. */
int onnx__window_read(struct ipu__onnx_call *call, struct ipu__onnx_window *w);
int onnx__window_read_lists(struct ipu__onnx_call *call,
                            struct ipu__onnx_window *w);

/* The elements from the first to the last of a window, and the windows. */
int64_t onnx__window_span(const struct ipu__onnx_window *w, int axis);
int64_t onnx__window_count(const struct ipu__onnx_window *w, int axis);

/* Returns value as images, [n, height, width, channels]; a sequence has one
 * row, and of a volume each plane is an image. */
ipu_tensor onnx__window_images(struct ipu__onnx_call *call,
                               struct ipu__onnx_value *value);

/* Gives images as output 0, of a type and with the number of axes of input 0.
 */
int onnx__window_give(struct ipu__onnx_call *call, int32_t type, ipu_tensor y);

/* Sets *y to the images that the convolution of inputs 0 and 1 makes, without a
 * bias; of volumes they are stacked. */
int onnx__convolve(struct ipu__onnx_call *call, ipu_tensor *y);

/* Reads the window of a pooling op; counts_padding: as elements of a mean. */
int onnx__read_pool(struct ipu__onnx_call *call, struct ipu__onnx_window *w,
                    bool counts_padding);

/* Pools input 0 by an op of images; of volumes the result is stacked. */
typedef ipu_tensor onnx__pool_fn(ipu_graph *g, ipu_tensor x,
                                 const ipu_pool_options *options);
ipu_tensor onnx__pool(struct ipu__onnx_call *call,
                      const struct ipu__onnx_window *w, onnx__pool_fn *pool,
                      bool counts_padding);

/* Returns count rows of an axis: first, first + step, ... */
ipu_tensor onnx__window_rows_of(ipu_graph *g, ipu_tensor x, int32_t axis,
                                int64_t first, int64_t step, int64_t count);

#endif
