/* SPDX-License-Identifier: Apache-2.0 */
/*
 * area.c - the areas under curves, from the weights between thresholds. A
 * prediction that is above n thresholds is positive at the first n of them. So
 * the four counts of a threshold are sums of the weights behind it and before
 * it, and the curve is followed from the highest threshold, where nothing is
 * positive, to the lowest, where everything is.
 */
#include "metric/metric.h"

#include <math.h>

float metric_threshold(const struct hvd_metric *metric, int32_t number)
{
    const int32_t last = metric->options.thresholds - 1;
    const double outside = 1e-7;

    return (float)(number == 0      ? -outside
                   : number == last ? 1 + outside
                                    : (double)number / last);
}

static double share(double part, double all)
{
    return all > 0 ? part / all : 0;
}

/* The area between two thresholds, with true and false positives t and f at the
 * higher one, and dt and df more at the lower one. */
static double precision_by_recall(double t, double f, double dt, double df,
                                  double targets)
{
    const double slope = share(dt, dt + df), at = t + f;
    const double intercept = t - slope * at;
    const double ratio = at > 0 ? (at + dt + df) / at : 1;

    return share(slope * (dt + intercept * log(ratio)), targets);
}

double metric_area(const struct hvd_metric *metric)
{
    const int32_t n = metric->options.thresholds;
    const double *yes = metric->sums, *no = metric->sums + n + 1;
    double targets = 0, others = 0, area = 0, t = yes[n], f = no[n];

    for (int32_t i = 0; i <= n; i++) {
        targets += yes[i];
        others += no[i];
    }
    /* Threshold i counts what is above i + 1 thresholds at least. */
    for (int32_t i = n - 2; i >= 0; i--) {
        const double dt = yes[i + 1], df = no[i + 1];

        if (metric->options.kind == HVD_METRIC_AUC_PR)
            area += precision_by_recall(t, f, dt, df, targets);
        else
            area += share(df, others) * share(2 * t + dt, targets) / 2;
        t += dt;
        f += df;
    }
    return area;
}
