/* SPDX-License-Identifier: Apache-2.0 */
/*
 * overlap.h - hvd-bench overlap: measures how much of the communication a given
 * amount of computing hides.
 */
#ifndef BENCH_OVERLAP_H
#define BENCH_OVERLAP_H

/* Runs the subcommand; returns the exit status. */
int overlap_main(int argc, char **argv);

#endif
