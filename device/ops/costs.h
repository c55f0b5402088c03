/* SPDX-License-Identifier: Apache-2.0 */
/*
 * costs.h - what ops of a kind ask of the chip, for the rows of ops that are of
 * it. op->slots says how many instructions an element takes, as for ops by
 * element.
 */
#ifndef IPU_OPS_COSTS_H
#define IPU_OPS_COSTS_H

#include "ops/op.h"

/* Instructions for a vector of elements of so many bytes: what takes more than
 * two is computed in float32, two at a time. */
int32_t ipu__instructions(int slots, int32_t element_bytes);

/* Rows of the last dimension of the first input: two passes with a sum each,
 * and one that stores. */
void ipu__rows_cost(const struct ipu__call *call, struct ipu__work *work);

/* Each element of the first input by the statistics and parameters of its
 * group or channel, which are told to where it lies. */
void ipu__normalize_cost(const struct ipu__call *call, struct ipu__work *work);

/* The mean and variance of groups: two sums of each. */
void ipu__statistics_cost(const struct ipu__call *call, struct ipu__work *work);

/* Every element of the first input is read once, for one of the output. */
void ipu__read_once_cost(const struct ipu__call *call, struct ipu__work *work);

/* Rows by their numbers, each from wherever it lies to wherever it is asked
 * for. */
void ipu__by_number_cost(const struct ipu__call *call, struct ipu__work *work);

#endif
