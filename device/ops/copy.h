/* SPDX-License-Identifier: Apache-2.0 */
/*
 * copy.h - moves elements from one place to another that has another layout.
 * transpose, slice, pad, concat and broadcast are made of it.
 */
#ifndef IPU_OPS_COPY_H
#define IPU_OPS_COPY_H

#include "ops/op.h"
#include "ops/walk.h"

/* Copy all elements of a shape, with its dtype's size. Strides are those of
 * each side's memory; strides of from may be 0, which repeats. The two do not
 * overlap. */
void ipu__copy(const struct ipu__shape *shape, void *to,
               const ipu__strides to_strides, const void *from,
               const ipu__strides from_strides);

/* Run an op that only moves elements, input by input, as its moves say. */
int ipu__copy_run(const struct ipu__call *call);

/* The cost of such an op. */
void ipu__copy_cost(const struct ipu__call *call, struct ipu__work *work);

/* Set the output's shape of an op whose output is the input, and run the op, in
 * place or not. */
int ipu__same_shape(const struct ipu__call *call, struct ipu__shape *output);
int ipu__pass_on(const struct ipu__call *call);

#endif
