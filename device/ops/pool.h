/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pool.h - what the poolings share: windows of size x size, stride size, of
 * which incomplete ones at the edges are dropped.
 */
#ifndef IPU_OPS_POOL_H
#define IPU_OPS_POOL_H

#include "ops/op.h"

/* x: [n, h, w, c] -> [n, h/size, w/size, c] */
int ipu__pool_shape(const struct ipu__call *call, struct ipu__shape *output);

#endif
