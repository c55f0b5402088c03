/* SPDX-License-Identifier: Apache-2.0 */
/*
 * metric.c - metrics as sums: what each kind adds for a row, and what it makes
 * of the sums. Rows are checked before any is counted.
 */
#include "metric/metric.h"

#include "output/problem.h"

#include <hvd.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_THRESHOLDS = 1000000 };

const char *hvd_metric_name(hvd_metric_kind kind)
{
    static const char *const names[] = {"mean",
                                        "perplexity",
                                        "accuracy",
                                        "top_k",
                                        "binary_accuracy",
                                        "precision",
                                        "recall",
                                        "auc",
                                        "auc_pr",
                                        "mean_squared_error",
                                        "mean_absolute_error"};

    return kind >= 0 && kind < HVD_METRIC_KINDS ? names[kind] : NULL;
}

static bool is_of_classes(hvd_metric_kind kind)
{
    return kind == HVD_METRIC_ACCURACY || kind == HVD_METRIC_TOP_K;
}

static bool is_of_values(hvd_metric_kind kind)
{
    return kind == HVD_METRIC_MEAN || kind == HVD_METRIC_PERPLEXITY;
}

static bool is_area(hvd_metric_kind kind)
{
    return kind == HVD_METRIC_AUC || kind == HVD_METRIC_AUC_PR;
}

/* ------------------------------------------------------------------ metrics */

void hvd_metric_options_init(hvd_metric_options *options, size_t size,
                             hvd_metric_kind kind)
{
    const hvd_metric_options usual = {.size = (uint32_t)size,
                                      .kind = kind,
                                      .k = 5,
                                      .thresholds = 200,
                                      .threshold = 0.5};

    if (!options)
        return;
    memset(options, 0, size);
    memcpy(options, &usual, size < sizeof usual ? size : sizeof usual);
}

static int check_options(const hvd_metric_options *o)
{
    if (!o || o->size < sizeof *o)
        return problem_fail(HVD_ERR_ARGUMENT,
                            "the options of a metric %s: fill them with "
                            "hvd_metric_options_init",
                            o ? "have another size" : "are NULL");
    if (!hvd_metric_name(o->kind))
        return problem_fail(HVD_ERR_ARGUMENT,
                            "the kind of a metric is %d: there are 0 to %d",
                            (int)o->kind, HVD_METRIC_KINDS - 1);
    if (o->kind == HVD_METRIC_TOP_K && o->k < 1)
        return problem_fail(HVD_ERR_ARGUMENT,
                            "metric top_k: k is %d, it must be 1 or more",
                            (int)o->k);
    if (is_area(o->kind) &&
        (o->thresholds < 2 || o->thresholds > MOST_THRESHOLDS))
        return problem_fail(
            HVD_ERR_ARGUMENT, "metric %s: %d thresholds, from 2 to %d can be",
            hvd_metric_name(o->kind), (int)o->thresholds, MOST_THRESHOLDS);
    if (!isfinite(o->threshold))
        return problem_fail(HVD_ERR_ARGUMENT,
                            "metric %s: the threshold is %g, it must be finite",
                            hvd_metric_name(o->kind), o->threshold);
    return 0;
}

int hvd_metric_new(const hvd_metric_options *options, hvd_metric **metric)
{
    struct hvd_metric *m;
    int status = check_options(options);

    if (status == 0 && !metric)
        status =
            problem_fail(HVD_ERR_ARGUMENT, "the place for a metric is NULL");
    if (status < 0)
        return status;
    m = calloc(1, sizeof *m);
    if (m) {
        m->options = *options;
        m->count =
            is_area(options->kind) ? 2 * ((int64_t)options->thresholds + 1) : 2;
        m->sums = calloc((size_t)m->count, sizeof *m->sums);
    }
    if (!m || !m->sums) {
        free(m);
        return problem_fail(HVD_ERR_MEMORY, "no memory for a metric");
    }
    *metric = m;
    return 0;
}

void hvd_metric_free(hvd_metric *metric)
{
    if (metric)
        free(metric->sums);
    free(metric);
}

void hvd_metric_reset(hvd_metric *metric)
{
    if (metric)
        memset(metric->sums, 0, (size_t)metric->count * sizeof *metric->sums);
}

double *hvd_metric_sums(hvd_metric *metric, int64_t *count)
{
    if (!metric)
        return NULL;
    if (count)
        *count = metric->count;
    return metric->sums;
}

/* ------------------------------------------------------------------- checks */

/* Checks what both kinds of updates are given. */
static int check_rows(const struct hvd_metric *m, bool classes,
                      const void *predictions, const void *targets,
                      const float *weights, int64_t rows, int64_t columns)
{
    const char *name = m ? hvd_metric_name(m->options.kind) : NULL;

    if (!m)
        return problem_fail(HVD_ERR_ARGUMENT, "the metric is NULL");
    if (is_of_classes(m->options.kind) != classes)
        return problem_fail(HVD_ERR_ARGUMENT,
                            "metric %s is updated by hvd_metric_update%s", name,
                            classes ? "" : "_classes");
    if (rows < 0 || columns < 1 || rows > INT64_MAX / columns)
        return problem_fail(HVD_ERR_ARGUMENT,
                            "metric %s: %lld rows of %lld columns", name,
                            (long long)rows, (long long)columns);
    if (rows > 0 &&
        (!predictions || (!targets && !is_of_values(m->options.kind))))
        return problem_fail(HVD_ERR_ARGUMENT, "metric %s: the %s are NULL",
                            name, predictions ? "labels" : "predictions");
    for (int64_t i = 0; weights && i < rows; i++)
        if (!(weights[i] >= 0) || !isfinite(weights[i]))
            return problem_fail(HVD_ERR_ARGUMENT,
                                "metric %s: the weight of row %lld is %g, it "
                                "must be 0 or more",
                                name, (long long)i, (double)weights[i]);
    return 0;
}

/* ------------------------------------------------------------------ updates */

/* Returns true if the label's score is among the k highest; equal ones are. */
static bool is_among(const float *scores, int64_t classes, int32_t label,
                     int32_t k)
{
    int32_t higher = 0;

    if (!isfinite(scores[label]))
        return false;
    for (int64_t i = 0; i < classes && higher < k; i++)
        higher += scores[i] > scores[label];
    return higher < k;
}

/* Returns true if it is the highest, and of equal ones the first. */
static bool is_highest(const float *scores, int64_t classes, int32_t label)
{
    int64_t best = 0;

    for (int64_t i = 1; i < classes; i++)
        if (scores[i] > scores[best])
            best = i;
    return best == label && !isnan(scores[label]);
}

int hvd_metric_update_classes(hvd_metric *metric, const float *scores,
                              const int32_t *labels, const float *weights,
                              int64_t rows, int64_t classes)
{
    int status =
        check_rows(metric, true, scores, labels, weights, rows, classes);

    if (status < 0)
        return status;
    for (int64_t i = 0; i < rows; i++)
        if (labels[i] < 0 || labels[i] >= classes)
            return problem_fail(HVD_ERR_ARGUMENT,
                                "metric %s: the label of row %lld is %d, and "
                                "there are classes 0 to %lld",
                                hvd_metric_name(metric->options.kind),
                                (long long)i, (int)labels[i],
                                (long long)classes - 1);
    for (int64_t i = 0; i < rows; i++, scores += classes) {
        bool right =
            metric->options.kind == HVD_METRIC_TOP_K
                ? is_among(scores, classes, labels[i], metric->options.k)
                : is_highest(scores, classes, labels[i]);
        double weight = weights ? (double)weights[i] : 1;

        metric->sums[0] += right ? weight : 0;
        metric->sums[1] += weight;
    }
    return 0;
}

/* Returns how many thresholds are below p, which is in [0, 1]. Rounding may
 * make the guess wrong by one. */
static int32_t thresholds_below(const struct hvd_metric *m, float p)
{
    const int32_t n = m->options.thresholds;
    int32_t below = (int32_t)((double)p * (n - 1));

    while (below < n && p > metric_threshold(m, below))
        below++;
    while (below > 0 && !(p > metric_threshold(m, below - 1)))
        below--;
    return below;
}

static void count_element(struct hvd_metric *m, float p, bool target,
                          double weight)
{
    const bool positive = (double)p > m->options.threshold;

    switch (m->options.kind) {
    case HVD_METRIC_BINARY_ACCURACY:
        m->sums[0] += positive == target ? weight : 0;
        m->sums[1] += weight;
        break;
    case HVD_METRIC_PRECISION:
        if (positive)
            m->sums[target ? 0 : 1] += weight;
        break;
    case HVD_METRIC_RECALL:
        if (target)
            m->sums[positive ? 0 : 1] += weight;
        break;
    default:
        m->sums[thresholds_below(m, p) +
                (target ? 0 : m->options.thresholds + 1)] += weight;
    }
}

static void count_number(struct hvd_metric *m, double x, double weight)
{
    m->sums[0] += weight * x;
    m->sums[1] += weight;
}

int hvd_metric_update(hvd_metric *metric, const float *predictions,
                      const float *targets, const float *weights, int64_t rows,
                      int64_t columns)
{
    int status =
        check_rows(metric, false, predictions, targets, weights, rows, columns);

    if (status < 0)
        return status;
    for (int64_t i = 0; is_area(metric->options.kind) && i < rows * columns;
         i++)
        if (!(predictions[i] >= 0 && predictions[i] <= 1))
            return problem_fail(HVD_ERR_ARGUMENT,
                                "metric %s: prediction %lld is %g, it must be "
                                "a probability, from 0 to 1",
                                hvd_metric_name(metric->options.kind),
                                (long long)i, (double)predictions[i]);
    for (int64_t i = 0; i < rows * columns; i++) {
        const double p = (double)predictions[i];
        double weight = weights ? (double)weights[i / columns] : 1;

        switch (metric->options.kind) {
        case HVD_METRIC_MEAN:
        case HVD_METRIC_PERPLEXITY: count_number(metric, p, weight); break;
        case HVD_METRIC_MEAN_SQUARED_ERROR:
            count_number(metric, pow(p - (double)targets[i], 2), weight);
            break;
        case HVD_METRIC_MEAN_ABSOLUTE_ERROR:
            count_number(metric, fabs(p - (double)targets[i]), weight);
            break;
        default:
            count_element(metric, predictions[i], targets[i] > 0.5F, weight);
        }
    }
    return 0;
}

/* ------------------------------------------------------------------ results */

double hvd_metric_result(const hvd_metric *metric)
{
    const double *s = metric ? metric->sums : NULL;
    double below, share;

    if (!s)
        return NAN;
    if (is_area(metric->options.kind))
        return metric_area(metric);
    below = metric->options.kind == HVD_METRIC_PRECISION ||
                    metric->options.kind == HVD_METRIC_RECALL
                ? s[0] + s[1]
                : s[1];
    share = below != 0 ? s[0] / below : 0;
    return metric->options.kind == HVD_METRIC_PERPLEXITY ? exp(share) : share;
}
