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

/* The smallest value that at least percent of the values do not exceed; 0 if
 * n is 0. values are sorted. */
double stats_percentile(const double *values, size_t n, double percent);

/* What is said of a list of times. */
struct stats_spread {
    double mean, least, median, p95, p99, most;
};

/* Sorts values; zeros if n is 0. */
void stats_spread_of(double *values, size_t n, struct stats_spread *spread);

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
