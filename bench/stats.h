/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stats.h - what a few numbers say together. Pure functions.
 */
#ifndef BENCH_STATS_H
#define BENCH_STATS_H

#include <stddef.h>

/* The middle value, the mean of the two middle ones if n is even; 0 if n is
 * 0. Sorts values. */
double stats_median(double *values, size_t n);

/* A running mean of ratios; start with a zeroed struct. */
struct stats_geomean {
    double sum_of_logs;
    size_t n;
};

/* Ratios that are not positive and finite are left out. */
void stats_geomean_add(struct stats_geomean *mean, double ratio);

/* 0 if nothing was added. */
double stats_geomean_value(const struct stats_geomean *mean);

#endif
