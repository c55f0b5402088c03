/* SPDX-License-Identifier: Apache-2.0 */
/*
 * overlap.h - hvd-bench overlap: how much of the communication a given amount
 * of computing hides.
 */
#ifndef BENCH_OVERLAP_H
#define BENCH_OVERLAP_H

/* The whole run; returns the exit status. */
int overlap_main(int argc, char **argv);

#endif
