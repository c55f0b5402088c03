/* SPDX-License-Identifier: Apache-2.0 */
/*
 * run_bench.h - how long a model takes: on this machine's processor, measured,
 * and on the chip, by its model.
 */
#ifndef MODELS_RUN_BENCH_H
#define MODELS_RUN_BENCH_H

#include "run/run_model.h"

/* Runs a model, which has run once, that many times more, and prints both
 * times, and the steps that take most of the measured one. The text of what is
 * wrong is left to ipu_last_error. */
int run_print_bench(struct run_model *run, const ipu_target *target, int count);

#endif
