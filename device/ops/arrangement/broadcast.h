/* SPDX-License-Identifier: Apache-2.0 */
/*
 * broadcast.h - shapes that are made equal by repeating. Dimensions are aligned
 * at the last; a dimension that is missing or 1 is repeated.
 */
#ifndef IPU_OPS_BROADCAST_H
#define IPU_OPS_BROADCAST_H

#include "ops/op.h"

/* Widens output so that shape can be broadcast to it; false if that cannot be.
 */
bool ipu__shape_widen(struct ipu__shape *output,
                      const struct ipu__shape *shape);

/* The shape to which the first count inputs are broadcast, with the dtype of
 * the last; IPU_ERR_SHAPE if they do not fit. */
int ipu__broadcast_shape(const struct ipu__call *call, int count,
                         struct ipu__shape *output);

/* The derivative of a broadcast: sum dy over what was repeated of the
 * tensor's shape, its node input i. */
ipu_tensor ipu__unbroadcast(ipu_graph *graph, const struct ipu__node *node,
                            int i, ipu_tensor dy);

/* Passes dy on as a condition says: to the node's input number first, or else
 * to the one after it. */
void ipu__select_gradient(ipu_graph *graph, const struct ipu__node *node,
                          int first, ipu_tensor condition, ipu_tensor dy,
                          ipu_tensor *dx);

#endif
