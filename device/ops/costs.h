/* SPDX-License-Identifier: Apache-2.0 */
/*
 * costs.h - the work that ops of a kind ask of the chip, for the rows of these
 * ops. op->slots is the number of instructions for an element, as for ops by
 * element.
 */
#ifndef IPU_OPS_COSTS_H
#define IPU_OPS_COSTS_H

#include "ops/op.h"

/*
 * Slots of the library's loops for a vector, as Graphcore's estimates have them
 * (poplibs, lib/popops/popopsCycleEstimators.hpp): what reading, writing and
 * counting take beside a function, whose loops are compiled; and all of an
 * addition or product of two tensors, or of a tensor and one value for each
 * row, which are written by hand.
 */
enum {
    IPU__FUNCTION_LOOP_SLOTS = 4,
    IPU__TWO_SLOTS = 3,
    IPU__BY_ROW_SLOTS = 2
};

/*
 * A softmax is not one loop but five, each over all elements (lib/popnn/
 * NonLinearity.cpp): the largest of a row, subtracting it, exp (counted as a
 * function), the sum, and the product with its inverse. Its derivative is four:
 * the product, its sum, the product with that, and the difference. Sums of
 * halves are float32, an instruction for two.
 */
enum {
    IPU__SOFTMAX_SLOTS = 1 + IPU__BY_ROW_SLOTS + IPU__FUNCTION_LOOP_SLOTS + 1 +
                         IPU__BY_ROW_SLOTS,
    IPU__SOFTMAX_HALVES = IPU__SOFTMAX_SLOTS + 1,
    IPU__SOFTMAX_GRAD_SLOTS = 2 * IPU__TWO_SLOTS + 1 + IPU__BY_ROW_SLOTS,
    IPU__SOFTMAX_GRAD_HALVES = 2 * IPU__TWO_SLOTS + 2 + IPU__BY_ROW_SLOTS,
    IPU__SOFTMAX_LOOPS = 5,
    IPU__SOFTMAX_GRAD_LOOPS = 4
};

/*
 * A norm is several loops, too (lib/poplin/Norms.cpp). Its statistics are a
 * sum, a sum of squares, and the deviation's inverse, of statistics only.
 * Normalising takes the mean off, and multiplies by that inverse and by the
 * scale, and adds the offset, each by row. The derivative is the input
 * normalised again (two loops), dy times the scale, times the input, two sums,
 * a copy of dy, the input times one of them, that scaled and added, the other
 * added, times the inverse; and the sums scaled, which are few. The scale's
 * derivative is dy times the input, and its sum.
 */
enum {
    IPU__SUM_SLOTS = 1,
    IPU__SUM_HALVES = 2,
    IPU__COPY_SLOTS = 1,
    IPU__STATISTICS_SLOTS = 2 * IPU__SUM_SLOTS,
    IPU__STATISTICS_HALVES = 2 * IPU__SUM_HALVES,
    IPU__STATISTICS_LOOPS = 3,
    IPU__NORM_SLOTS = 4 * IPU__BY_ROW_SLOTS,
    IPU__NORM_LOOPS = 4,
    IPU__NORM_GRAD_MOVES =
        6 * IPU__BY_ROW_SLOTS + 2 * IPU__TWO_SLOTS + IPU__COPY_SLOTS,
    IPU__NORM_GRAD_SLOTS = IPU__NORM_GRAD_MOVES + 2 * IPU__SUM_SLOTS,
    IPU__NORM_GRAD_HALVES = IPU__NORM_GRAD_MOVES + 2 * IPU__SUM_HALVES,
    IPU__NORM_GRAD_LOOPS = 12,
    IPU__SCALE_GRAD_SLOTS = IPU__TWO_SLOTS + IPU__SUM_SLOTS,
    IPU__SCALE_GRAD_HALVES = IPU__TWO_SLOTS + IPU__SUM_HALVES,
    IPU__SCALE_GRAD_LOOPS = 2
};

#define IPU__WINDOW_ESTIMATE "what windows take from other tiles is not counted"

#define IPU__FUNCTION_ESTIMATE                                                 \
    "how many cycles the chip's functions take depends on their data: these "  \
    "are averages of Graphcore's"

/* Returns whether the row says how many slots the op takes. */
bool ipu__knows_slots(const struct ipu__op *op);

/* Slots of arithmetic for a vector of elements of so many bytes. */
int32_t ipu__slots(const struct ipu__op *op, int32_t element_bytes);

/* Rows of the last dimension of the first input: two passes with a sum each,
 * and one that stores. */
void ipu__rows_cost(const struct ipu__call *call, struct ipu__work *work);

/* Sets the work of a normalisation: each element of the first input by the
 * statistics and parameters of its group or channel, which are sent to where it
 * lies. */
void ipu__normalize_cost(const struct ipu__call *call, struct ipu__work *work);

/* Derivatives of that: two sums of each group, and one element after the
 * other. */
void ipu__norm_grad_cost(const struct ipu__call *call, struct ipu__work *work);

/* Sets the work of the scale's derivative: elements as slots has them, and
 * their sums. */
void ipu__scale_grad_cost(const struct ipu__call *call, struct ipu__work *work);

/* The mean and variance of groups: two sums of each. */
void ipu__statistics_cost(const struct ipu__call *call, struct ipu__work *work);

/* Every element of the first input is read once, for one of the output. */
void ipu__read_once_cost(const struct ipu__call *call, struct ipu__work *work);

/* Sets the work of sums, or of the largest or smallest: all elements of the
 * first input, to fewer of the output, an instruction each. */
void ipu__sum_cost(const struct ipu__call *call, struct ipu__work *work);

/* Sets the work of sums over the axes that are marked. */
void ipu__axes_sum_cost(const struct ipu__call *call, struct ipu__work *work);

/* Sets the work of rows by their numbers, each from wherever it lies to
 * wherever it is needed. */
void ipu__by_number_cost(const struct ipu__call *call, struct ipu__work *work);

#endif
