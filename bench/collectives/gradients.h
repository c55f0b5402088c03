/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gradients.h - hvd-bench gradients: sums the gradients of a model by hvd and
 * in other ways, in turn.
 */
#ifndef BENCH_GRADIENTS_H
#define BENCH_GRADIENTS_H

/* Runs the subcommand; returns the exit status. */
int gradients_main(int argc, char **argv);

#endif
