/* SPDX-License-Identifier: Apache-2.0 */
/* metric.h - what the files of this room share: a metric and its sums. */
#ifndef MODELS_METRIC_H
#define MODELS_METRIC_H

#include <hvd_metric.h>

struct hvd_metric {
    hvd_metric_options options;
    /* Means: of what counts times its weight, and of the weights. Precision:
     * true and false positives; recall: true positives and what was missed.
     * Both AUC: of each number of thresholds that a prediction is above, from 0
     * to all, the weights where the target is true; then where it is false. */
    double *sums; /* owned, [count] */
    int64_t count;
};

/* Returns the area under one of the two curves. */
double metric_area(const struct hvd_metric *metric);

/* Returns the threshold of that number. */
float metric_threshold(const struct hvd_metric *metric, int32_t number);

#endif
