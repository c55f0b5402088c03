/* SPDX-License-Identifier: Apache-2.0 */
/*
 * wide.h - reductions of averaged or scaled integers, which need more than the
 * width of their type. It is private to this room.
 */
#ifndef HVD_KERNELS_WIDE_H
#define HVD_KERNELS_WIDE_H

#include "kernels/variant.h"

/* Writes postscale / divisor * op over sources of (prescale * source) to every
 * out. The finish of the pass is ignored. */
void hvd__reduce_wide(const struct hvd__pass *pass, hvd_dtype dtype,
                      int divisor, double postscale);

#endif
