/* SPDX-License-Identifier: Apache-2.0 */
/*
 * max_pool.h - shared by the maxima of plain windows and of any windows: pixels
 * of c channels, of which NaN is the largest, and the pixel that takes a
 * derivative.
 */
#ifndef IPU_OPS_MAX_POOL_H
#define IPU_OPS_MAX_POOL_H

#include "ops/windows/pool.h"

/* Computes y = max(y, x), where NaN wins. */
void ipu__max_pixel(float *y, const float *x, int64_t channels);

/*
 * Gives one pixel of a window the rest of the window's derivative, left, where
 * x is the window's maximum y. dx becomes that, or grows by it if windows
 * overlap. dx may be x.
 */
void ipu__max_take(float *dx, float *left, const float *x, const float *y,
                   int64_t channels);
void ipu__max_take_more(float *dx, float *left, const float *x, const float *y,
                        int64_t channels);

/* Returns the scratch that an op on x, y and dy needs for the rest of dy: a
 * pixel. */
size_t ipu__max_left_scratch(const struct ipu__call *call);

/* The gradient of the maxima, by the row's slope, which is such an op. */
void ipu__max_slope(ipu_graph *graph, const struct ipu__node *node,
                    ipu_tensor dy, ipu_tensor *dx);

#endif
