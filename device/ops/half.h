/* SPDX-License-Identifier: Apache-2.0 */
/*
 * half.h - float16 and bfloat16, which are dtypes to store in. Ops compute in
 * float32: inputs are widened for them, and outputs are rounded once, to the
 * nearest, or to the even one of two as near. Op rows need not know of it.
 */
#ifndef IPU_OPS_HALF_H
#define IPU_OPS_HALF_H

#include "ops/op.h"

/* Converts between float32 and dtype, which is one of the two. */
void ipu__widen(ipu_dtype dtype, float *to, const void *from, int64_t count);
void ipu__narrow(ipu_dtype dtype, void *to, const float *from, int64_t count);

/* Scratch that ipu__run_wide takes beside the op's own. */
size_t ipu__wide_scratch(const struct ipu__call *call);

/* Run the op; scratch is of both sizes, the op's first, rounded up to 64. */
int ipu__run_wide(struct ipu__call *call);

#endif
