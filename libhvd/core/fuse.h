/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuse.h - which requests go together in one collective: pure.
 */
#ifndef HVD_CORE_FUSE_H
#define HVD_CORE_FUSE_H

#include "core/signature.h"

/* Whether two allreduces may share one buffer and one pass: the same dtype,
 * op and scales. Nothing else is fused. */
bool hvd__fusible(const struct hvd__signature *a,
                  const struct hvd__signature *b);

/*
 * Choose a batch from n requests that are ready, in the order in which they
 * became so. The first is always taken; each later one that is fusible with
 * it is taken if the sum stays within threshold bytes. One that does not fit
 * does not keep smaller ones behind it from being taken: order means nothing
 * between different tensors.
 *
 * taken, n flags, is written. Returns how many are taken; 0 only if n is 0.
 */
int hvd__fuse(const struct hvd__signature *const *ready, int n,
              size_t threshold, bool *taken);

#endif
