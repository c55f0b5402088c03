/* SPDX-License-Identifier: Apache-2.0 */
/*
 * metrics.h - rows for tests of metrics: scores, labels and weights that depend
 * on the number of the row alone, and all metrics updated with some of them.
 */
#ifndef TESTS_METRICS_H
#define TESTS_METRICS_H

#include <hvd_metric.h>

#include "checks.h"

enum { METRIC_ROWS = 400, METRIC_CLASSES = 7 };

static inline float metric_score(int64_t row, int64_t column)
{
    return (float)((row * 7 + column * 11 + row * column) % 23) / 22;
}

static inline int32_t metric_label(int64_t row)
{
    return (int32_t)((row * 5 + row / 3) % METRIC_CLASSES);
}

static inline float metric_target(int64_t row)
{
    return (row * row + row / 5) % 3 == 0 ? 1.0F : 0.0F;
}

static inline float metric_weight(int64_t row)
{
    return (float)(row % 4) / 2;
}

static inline hvd_metric *metric_of(hvd_metric_kind kind)
{
    hvd_metric_options o;
    hvd_metric *metric = NULL;

    hvd_metric_options_init(&o, sizeof o, kind);
    o.k = 3;
    ck_assert_int_eq(hvd_metric_new(&o, &metric), 0);
    return metric;
}

/* Updates a metric of any kind with rows [from, to), at most 64. */
static inline void metric_count(hvd_metric *metric, hvd_metric_kind kind,
                                int64_t from, int64_t to)
{
    float scores[64 * METRIC_CLASSES], targets[64], weights[64];
    int32_t labels[64];
    const int64_t rows = to - from;

    for (int64_t i = 0; i < rows; i++) {
        for (int64_t k = 0; k < METRIC_CLASSES; k++)
            scores[i * METRIC_CLASSES + k] = metric_score(from + i, k);
        labels[i] = metric_label(from + i);
        targets[i] = metric_target(from + i);
        weights[i] = metric_weight(from + i);
    }
    if (kind == HVD_METRIC_ACCURACY || kind == HVD_METRIC_TOP_K) {
        ck_assert_int_eq(hvd_metric_update_classes(metric, scores, labels,
                                                   weights, rows,
                                                   METRIC_CLASSES),
                         0);
        return;
    }
    for (int64_t i = 0; i < rows; i++)
        scores[i] = metric_score(from + i, 0);
    ck_assert_int_eq(hvd_metric_update(metric, scores,
                                       kind == HVD_METRIC_MEAN ||
                                               kind == HVD_METRIC_PERPLEXITY
                                           ? NULL
                                           : targets,
                                       weights, rows, 1),
                     0);
}

#endif
