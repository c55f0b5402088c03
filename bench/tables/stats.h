/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stats.h - statistics of short lists of numbers. Pure functions.
 */
#ifndef BENCH_STATS_H
#define BENCH_STATS_H

#include <stddef.h>

/* Returns the middle value, or the mean of the two middle ones if n is even; 0
 * if n is 0. Sorts values. */
double stats_median(double *values, size_t n);

/* Finds the interval that contains the median of what the values were drawn
 * from with a probability of 95 % or more, if n is 6 or more, whatever its
 * distribution is: from the binomial distribution, as one normal. values must
 * be sorted. */
void stats_median_interval(const double *values, size_t n, double *low,
                           double *high);

/* Returns the smallest value that at least percent of the values do not exceed;
 * 0 if n is 0. values must be sorted. */
double stats_percentile(const double *values, size_t n, double percent);

/* The figures that describe a list of times. */
struct stats_spread {
    double mean, least, median, p95, p99, most;
};

/* Fills spread; with zeros if n is 0. Sorts values. */
void stats_spread_of(double *values, size_t n, struct stats_spread *spread);

/* A running geometric mean of ratios; it starts as a zeroed struct. */
struct stats_geomean {
    double sum_of_logs;
    size_t n;
};

/* Adds a ratio; ignores one that is not positive and finite. */
void stats_geomean_add(struct stats_geomean *mean, double ratio);

/* Returns the mean; 0 if nothing was added. */
double stats_geomean_value(const struct stats_geomean *mean);

#endif
