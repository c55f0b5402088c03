/* SPDX-License-Identifier: Apache-2.0 */
/* series.h - all repeats of one measurement. */
#ifndef BENCH_TRAIN_SERIES_H
#define BENCH_TRAIN_SERIES_H

enum { SERIES_MOST = 1000 };

struct series {
    double values[SERIES_MOST];
    int count;
};

void series_add(struct series *s, double value);

/* Sorts in ascending order; the functions below need that. */
void series_sort(struct series *s);
double series_least(const struct series *s);
double series_most(const struct series *s);
double series_middle(const struct series *s);

#endif
