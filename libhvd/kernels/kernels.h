/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kernels.h - arithmetic on buffers: the door of this room.
 */
#ifndef HVD_KERNELS_KERNELS_H
#define HVD_KERNELS_KERNELS_H

#include "base/dtype.h"

/* What to compute: postscale * op over sources of (prescale * source). */
struct hvd__reduction {
    hvd_dtype dtype;
    hvd_op op;
    double prescale;
    double postscale;
};

/*
 * out[i] = reduction of sources[0..nsources-1][i], for count elements, always
 * combined in the order of the sources, so that the result depends on
 * nothing but the values and their order. HVD_AVERAGE divides by nsources.
 *
 * out may be one of the sources; no other overlap. No alignment is needed.
 * nsources >= 1 and the reduction is valid: the caller has checked it.
 */
void hvd__reduce(const struct hvd__reduction *reduction, void *out,
                 const void *const *sources, int nsources, int64_t count);

#endif
