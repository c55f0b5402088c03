/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rounds.h - the sizes that are measured, and how often. Pure functions.
 */
#ifndef BENCH_CLUSTER_ROUNDS_H
#define BENCH_CLUSTER_ROUNDS_H

#include <stdint.h>

enum { ROUNDS_MOST = 1001 };

struct rounds {
    int64_t least, most; /* bytes */
    int factor;
    int n; /* blocks of sums for each size; the median counts */
};

/* Sums that are timed to find out how many make a block. */
enum { ROUNDS_TRIAL = 3 };

/* Returns the number of sums of a block, given the seconds of one. */
int rounds_iters(double seconds);

#endif
