/* SPDX-License-Identifier: Apache-2.0 */
#include "tables/stats.h"

#include <math.h>
#include <stdlib.h>

static int compare_doubles(const void *a, const void *b)
{
    const double *x = a;
    const double *y = b;

    return (*x > *y) - (*x < *y);
}

double stats_median(double *values, size_t n)
{
    if (n == 0) {
        return 0.0;
    }
    qsort(values, n, sizeof(*values), compare_doubles);
    if (n % 2 == 1) {
        return values[n / 2];
    }
    return (values[n / 2 - 1] + values[n / 2]) / 2.0;
}

void stats_median_interval(const double *values, size_t n, double *low,
                           double *high)
{
    double below = floor((double)n / 2 - 0.98 * sqrt((double)n)) - 1;
    size_t at = below > 0 ? (size_t)below : 0;

    *low = n > 0 ? values[at] : 0;
    *high = n > 0 ? values[n - 1 - at] : 0;
}

double stats_percentile(const double *values, size_t n, double percent)
{
    size_t rank = (size_t)ceil(percent / 100.0 * (double)n);

    if (n == 0)
        return 0.0;
    return values[rank > 0 ? rank - 1 : 0];
}

void stats_spread_of(double *values, size_t n, struct stats_spread *spread)
{
    double sum = 0;

    *spread = (struct stats_spread){0};
    if (n == 0)
        return;
    for (size_t i = 0; i < n; i++)
        sum += values[i];
    *spread = (struct stats_spread){
        .mean = sum / (double)n, .median = stats_median(values, n), /* sorts */
    };
    spread->least = values[0];
    spread->p95 = stats_percentile(values, n, 95);
    spread->p99 = stats_percentile(values, n, 99);
    spread->most = values[n - 1];
}

void stats_geomean_add(struct stats_geomean *mean, double ratio)
{
    if (ratio > 0.0 && isfinite(ratio)) {
        mean->sum_of_logs += log(ratio);
        mean->n++;
    }
}

double stats_geomean_value(const struct stats_geomean *mean)
{
    return mean->n == 0 ? 0.0 : exp(mean->sum_of_logs / (double)mean->n);
}
