/* SPDX-License-Identifier: Apache-2.0 */
/*
 * histogram.c - counts values in TensorFlow's buckets. Their upper limits are
 * 0, 1e-12 times the powers of 1.1 below 1e20, the same negative, and the
 * largest numbers. Bucket i has limit[i - 1] <= x < limit[i]. Of adjacent empty
 * buckets only the last is kept.
 */
#include "log/sink.h"

#include "output/problem.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>

enum { MOST = 2000 };

static int make_limits(double *limits)
{
    double positive[MOST / 2];
    int half = 0, count = 0;

    for (double x = 1e-12; x < 1e20; x *= 1.1)
        positive[half++] = x;
    limits[count++] = -DBL_MAX;
    for (int i = half - 1; i >= 0; i--)
        limits[count++] = -positive[i];
    limits[count++] = 0;
    for (int i = 0; i < half; i++)
        limits[count++] = positive[i];
    limits[count++] = DBL_MAX;
    return count;
}

/* Returns the first bucket whose limit is above x. */
static int find_bucket(const double *limits, int count, double x)
{
    int low = 0, high = count - 1;

    while (low < high) {
        int middle = (low + high) / 2;

        if (limits[middle] > x)
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

static void count_values(struct log_histogram *h, const double *limits,
                         int nlimits, int64_t *found, const float *values,
                         size_t count)
{
    for (size_t i = 0; i < count; i++) {
        double x = values[i];

        if (!isfinite(x))
            continue;
        if (h->count == 0 || x < h->min)
            h->min = x;
        if (h->count == 0 || x > h->max)
            h->max = x;
        h->count++;
        h->sum += x;
        h->sum_squares += x * x;
        found[find_bucket(limits, nlimits, x)]++;
    }
}

int log_histogram_init(struct log_histogram *histogram, const float *values,
                       size_t count)
{
    double limits[MOST];
    int64_t found[MOST] = {0};
    int nlimits = make_limits(limits);

    *histogram = (struct log_histogram){0};
    histogram->limits = malloc((size_t)nlimits * sizeof(double));
    histogram->counts = malloc((size_t)nlimits * sizeof(double));
    if (!histogram->limits || !histogram->counts) {
        log_histogram_fini(histogram);
        return log_no_memory();
    }
    count_values(histogram, limits, nlimits, found, values, count);
    for (int i = 0; i < nlimits; i++) {
        if (found[i] == 0 && i + 1 < nlimits && found[i + 1] == 0)
            continue;
        histogram->limits[histogram->buckets] = limits[i];
        histogram->counts[histogram->buckets++] = (double)found[i];
    }
    return 0;
}

void log_histogram_fini(struct log_histogram *histogram)
{
    free(histogram->limits);
    free(histogram->counts);
    *histogram = (struct log_histogram){0};
}
