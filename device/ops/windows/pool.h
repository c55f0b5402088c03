/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pool.h - shared by the poolings.
 *
 * There are two of each. The plain one has windows of size x size, stride size,
 * and drops incomplete ones at the edges: every pixel is in one window or in
 * none. The other has any windows, which may overlap, leave gaps and reach over
 * the edges.
 */
#ifndef IPU_OPS_POOL_H
#define IPU_OPS_POOL_H

#include "ops/op.h"

/* ------------------------------------------------------------ plain windows */

/* x: [n, h, w, c] -> [n, h/size, w/size, c] */
int ipu__pooling_shape(const struct ipu__call *call, struct ipu__shape *output);

/* Returns whether a pooling of an x of that shape makes this of it. */
int ipu__pooling_check(const struct ipu__call *call, const struct ipu__shape *x,
                       const struct ipu__shape *y);

/* -------------------------------------------------------------- any windows */

/* The attributes are view (the window's height and width), stride, pad and
 * pad_after. */
struct ipu__pooling {
    int64_t n, h, w, c; /* x */
    int64_t ho, wo;     /* y */
    int64_t window[2], stride[2], pad[2];
};

struct ipu__pooling ipu__pooling_of(const struct ipu__attributes *attributes,
                                    const struct ipu__shape *x,
                                    const struct ipu__shape *y);

/* The pixels of x in the window of pixel (row, column) of y: rows [top,
 * bottom), columns [left, right), at least one. */
struct ipu__window {
    int64_t top, bottom, left, right;
};

struct ipu__window ipu__pooling_window(const struct ipu__pooling *pool,
                                       int64_t row, int64_t column);

int ipu__windows_shape(const struct ipu__call *call, struct ipu__shape *output);
int ipu__windows_check(const struct ipu__call *call, const struct ipu__shape *x,
                       const struct ipu__shape *y);
/* Every pixel of every window is read once. */
void ipu__windows_cost(const struct ipu__call *call, struct ipu__work *work);

/* The gradient of the means, by the row's slope, which gets dy and the shape
 * of x. */
void ipu__pooling_slope(ipu_graph *graph, const struct ipu__node *node,
                        ipu_tensor dy, ipu_tensor *dx);

/* The pooling of x that options ask for: plain, if its windows are, or any. */
ipu_tensor ipu__pooling_with(ipu_graph *graph, const struct ipu__op *plain,
                             const struct ipu__op *any, ipu_tensor x,
                             const ipu_pool_options *options);

#endif
