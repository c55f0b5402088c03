/* SPDX-License-Identifier: Apache-2.0 */
/*
 * optimizer.h - turns a gradient into a new value.
 */
#ifndef HVD_STRATEGY_OPTIMIZER_H
#define HVD_STRATEGY_OPTIMIZER_H

#include <stdbool.h>

#include "hvd_strategy.h"
#include "strategy/rows.h"

/* Checks the options. On HVD_ERR_ARGUMENT the message names the option and its
 * value. */
int hvd__optimizer_check(const hvd_strategy_options *options);
int hvd__optimizer_check_rate(double rate);

/* Returns where the options have the momentum of their optimiser, which is
 * beta1 if it is Adam or one of its kin; NULL: it has none. */
double *hvd__optimizer_momentum(hvd_strategy_options *options);

/* Sets that momentum. On HVD_ERR_ARGUMENT it stays, and the message says why:
 * the optimiser has none, or the value is none. */
int hvd__optimizer_set_momentum(hvd_strategy_options *options, double momentum);

/* Returns how many arrays of a variable's size the optimiser keeps for it. */
int hvd__optimizer_states(const hvd_strategy_options *options);

/* Returns the name of number k of them, "m": what the optimiser of a device
 * calls it (ipu_optimizers.h). */
const char *hvd__optimizer_slot(const hvd_strategy_options *options, int k);

/* Returns whether there are options with which it keeps so many. */
bool hvd__optimizer_may_have(hvd_optimizer optimizer, int nstates);

/* Returns whether the optimiser spares a variable of so many dimensions:
 * weights of biases and of scales do not decay. */
bool hvd__optimizer_spares(int32_t ndim);

/* Returns whether an update needs the whole variable, not only a part. */
bool hvd__optimizer_needs_length(hvd_optimizer optimizer);

/*
 * Makes one step of one variable: value[count] changes by gradient[count].
 * states are its arrays, zero at first; step is the number of this step, from
 * 1. spared: weights do not decay, and LARS has the ratio 1.
 */
void hvd__optimizer_apply(const hvd_strategy_options *options, int64_t step,
                          bool spared, float *value, const float *gradient,
                          float *const *states, int64_t count);

/* Returns whether the optimiser can make a step of some rows alone. */
bool hvd__optimizer_takes_rows(hvd_optimizer optimizer);

/*
 * Makes one step of some rows of a variable, each as if it were a variable of
 * its own, but that step is the number of steps of the whole. value and states
 * begin with the row first. Other rows, and their states, stay as they are.
 */
void hvd__optimizer_apply_rows(const hvd_strategy_options *options,
                               int64_t step, float *value,
                               const struct hvd__rows *rows, int64_t width,
                               int64_t first, float *const *states);

#endif
