/* SPDX-License-Identifier: Apache-2.0 */
/*
 * update.h - the arithmetic of optimisers, by element. The first input becomes
 * the output, so that variables are updated in their place.
 */
#ifndef IPU_OPS_UPDATE_H
#define IPU_OPS_UPDATE_H

#include "ops/op.h"

/* a factors[0] + b factors[1] */
extern const struct ipu__op ipu__blend;
/* Inputs a, b, s, a float32 scalar; output
 * a (factors[0] + factors[1] s) + b (factors[2] + factors[3] s). */
extern const struct ipu__op ipu__blend_by;
/* a factors[0] + b^2 factors[1] */
extern const struct ipu__op ipu__blend_square;
/* Inputs w, u, rate; output w - rate u. */
extern const struct ipu__op ipu__descend;
/* Inputs w, m, v, step, rate; output w - rate u, with u as below. */
extern const struct ipu__op ipu__adam_update;
/* Inputs w, m, v, step; output u = m' / (sqrt(v') + epsilon) + decay w, where
 * m' and v' are the moments without their bias towards 0. factors: beta1,
 * beta2, epsilon, decay. */
extern const struct ipu__op ipu__adam_direction;
/* The same with beta1, a float32 scalar, as the last input. */
extern const struct ipu__op ipu__adam_direction_by;
/* Inputs g, v; output g / (sqrt(v) + factors[0]), where a v that rounding has
 * brought below 0 counts as 0. */
extern const struct ipu__op ipu__rms_direction;
/* Inputs g, v, d; output g sqrt((d + factors[0]) / (v + factors[0])). */
extern const struct ipu__op ipu__adadelta_direction;

#endif
