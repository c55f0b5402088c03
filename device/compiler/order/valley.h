/* SPDX-License-Identifier: Apache-2.0 */
/*
 * valley.h - which units come next, so that the peak stays small.
 */
#ifndef IPU_COMPILER_ORDER_VALLEY_H
#define IPU_COMPILER_ORDER_VALLEY_H

#include "compiler/order/frontier.h"

struct ipu__valleys;

/* NULL: there is no memory. The problem is borrowed. */
struct ipu__valleys *ipu__valleys_new(const struct ipu__order *order);
void ipu__valleys_free(struct ipu__valleys *valleys);

/* Begin an order that may have a peak as allowed without more ado. Its ends,
 * borrowed. */
struct ipu__ends *ipu__valleys_begin(struct ipu__valleys *valleys,
                                     int64_t allowed);

/* Take more units: at least one. There is one left. */
void ipu__valleys_next(struct ipu__valleys *valleys);

/* Whether, since the beginning, something was taken that need not be in a best
 * order. */
bool ipu__valleys_gave_up(const struct ipu__valleys *valleys);

#endif
