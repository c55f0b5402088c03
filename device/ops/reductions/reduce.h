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
/* Does the same, and fails if an axis has no elements, so that there is no
 * result. */
int ipu__reduced_some(const struct ipu__call *call, struct ipu__shape *output);

/* Walk x, operand 0, with the results, operand 1. */
void ipu__reduce_start(struct ipu__walk *walk, const struct ipu__call *call);

/* A tensor like the node's output, with an extent of 1 wherever x has been
 * reduced. */
ipu_tensor ipu__reduce_keep(ipu_graph *graph, const struct ipu__node *node,
                            ipu_tensor tensor);

/* Shares dy evenly among those elements of x that equal the result. */
ipu_tensor ipu__reduce_share(ipu_graph *graph, const struct ipu__node *node,
                             ipu_tensor dy);

/* The builders'. */
ipu_tensor ipu__reduce(ipu_graph *graph, const struct ipu__op *op, ipu_tensor x,
                       int32_t naxes, const int32_t *axes, int32_t keepdims);

#endif
