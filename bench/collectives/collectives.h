/* SPDX-License-Identifier: Apache-2.0 */
/*
 * collectives.h - hvd-bench COLLECTIVE: measures over types, reductions, roots
 * and sizes.
 */
#ifndef BENCH_COLLECTIVES_H
#define BENCH_COLLECTIVES_H

/* Runs the subcommand; returns the exit status. */
int collectives_main(int argc, char **argv);

#endif
