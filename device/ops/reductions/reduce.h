/* SPDX-License-Identifier: Apache-2.0 */
/*
 * reduce.h - what reductions over axes share.
 */
#ifndef IPU_OPS_REDUCE_H
#define IPU_OPS_REDUCE_H

#include "ops/op.h"
#include "ops/walk.h"

/* Sets the shape of x without the axes; IPU_ERR_SHAPE if x is not of floats. */
int ipu__reduced_shape(const struct ipu__call *call, struct ipu__shape *output);

/* Walk x, operand 0, with the results, operand 1. */
void ipu__reduce_start(struct ipu__walk *walk, const struct ipu__call *call);

/* The builders'. */
ipu_tensor ipu__reduce(ipu_graph *graph, const struct ipu__op *op, ipu_tensor x,
                       int32_t naxes, const int32_t *axes, int32_t keepdims);

#endif
