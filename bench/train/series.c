/* SPDX-License-Identifier: Apache-2.0 */
#include "train/series.h"

#include <stdlib.h>

static int compare_doubles(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

void series_add(struct series *s, double value)
{
    if (s->count < SERIES_MOST)
        s->values[s->count++] = value;
}

void series_sort(struct series *s)
{
    qsort(s->values, (size_t)s->count, sizeof *s->values, compare_doubles);
}

double series_least(const struct series *s)
{
    return s->values[0];
}

double series_most(const struct series *s)
{
    return s->values[s->count - 1];
}

double series_middle(const struct series *s)
{
    return s->values[s->count / 2];
}
