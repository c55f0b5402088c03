/* SPDX-License-Identifier: Apache-2.0 */
/*
 * valley.h - which units to take next, so that the peak stays small.
 */
#ifndef IPU_COMPILER_ORDER_VALLEY_H
#define IPU_COMPILER_ORDER_VALLEY_H

#include "compiler/order/front.h"

struct ipu__valleys;

/* Returns NULL if there is no memory. The problem is borrowed. */
struct ipu__valleys *ipu__valleys_new(const struct ipu__order_problem *problem);
void ipu__valleys_free(struct ipu__valleys *valleys);

/* Begins an order whose peak may be as high as allowed. Returns its front,
 * borrowed. */
struct ipu__front *ipu__valleys_begin(struct ipu__valleys *valleys,
                                      int64_t allowed);

/* Takes at least one more unit. There must be one left. */
void ipu__valleys_next(struct ipu__valleys *valleys);

/* Returns whether a unit was taken, since the beginning, that need not come
 * next in a best order. */
bool ipu__valleys_gave_up(const struct ipu__valleys *valleys);

#endif
