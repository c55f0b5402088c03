/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tests metrics against their definitions, computed row by row or threshold by
 * threshold, and against the examples of Keras's documentation.
 */
#include <hvd.h>

#include "metrics.h"
#include "suite.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

static hvd_metric *metric;

static void tear_down(void)
{
    hvd_metric_free(metric);
}

static double result(void)
{
    return hvd_metric_result(metric);
}

/* --------------------------------------------------------- by definition */

/* Weights of rows by target, of those above a threshold. */
static void count_above(float threshold, double above[2], double all[2])
{
    above[0] = above[1] = all[0] = all[1] = 0;
    for (int64_t row = 0; row < METRIC_ROWS; row++) {
        int target = metric_target(row) > 0;

        all[target] += (double)metric_weight(row);
        if (metric_score(row, 0) > threshold)
            above[target] += (double)metric_weight(row);
    }
}

static double by_thresholds(bool pr)
{
    double area = 0, now[2], all[2], next[2];

    count_above(-1e-7F, now, all);
    for (int i = 1; i < 200; i++) {
        count_above(i == 199 ? 1 + 1e-7F : (float)(i / 199.0), next, all);
        if (!pr) {
            area +=
                (now[0] - next[0]) / all[0] * (now[1] + next[1]) / all[1] / 2;
        } else {
            double more = now[0] - next[0] + now[1] - next[1];
            double slope = more > 0 ? (now[1] - next[1]) / more : 0;
            double at = next[0] + next[1],
                   ratio = at > 0 ? (at + more) / at : 1;

            area += slope *
                    (now[1] - next[1] + (next[1] - slope * at) * log(ratio)) /
                    all[1];
        }
        memcpy(now, next, sizeof now);
    }
    return area;
}

static double by_rows(hvd_metric_kind kind)
{
    double sum = 0, weights = 0, above[2], all[2];

    for (int64_t row = 0; row < METRIC_ROWS; row++) {
        double w = (double)metric_weight(row), x = (double)metric_score(row, 0);
        double y = (double)metric_target(row);
        int before = 0, higher = 0;
        int32_t label = metric_label(row);

        for (int32_t k = 0; k < METRIC_CLASSES; k++) {
            float a = metric_score(row, k), b = metric_score(row, label);

            higher += a > b;
            before += a > b || (a == b && k < label);
        }
        weights += w;
        sum += w * (kind == HVD_METRIC_ACCURACY          ? before == 0
                    : kind == HVD_METRIC_TOP_K           ? higher < 3
                    : kind == HVD_METRIC_BINARY_ACCURACY ? (x > 0.5) == (y > 0)
                    : kind == HVD_METRIC_MEAN_SQUARED_ERROR  ? (x - y) * (x - y)
                    : kind == HVD_METRIC_MEAN_ABSOLUTE_ERROR ? fabs(x - y)
                                                             : x);
    }
    count_above(0.5F, above, all);
    return kind == HVD_METRIC_PERPLEXITY  ? exp(sum / weights)
           : kind == HVD_METRIC_PRECISION ? above[1] / (above[0] + above[1])
           : kind == HVD_METRIC_RECALL    ? above[1] / all[1]
           : kind == HVD_METRIC_AUC       ? by_thresholds(false)
           : kind == HVD_METRIC_AUC_PR    ? by_thresholds(true)
                                          : sum / weights;
}

LOOP_TEST(metrics_are_what_they_are_called, 0, HVD_METRIC_KINDS)
{
    metric = metric_of(_i);
    for (int64_t row = 0; row < METRIC_ROWS; row += 50)
        metric_count(metric, _i, row, row + 50);
    ck_assert_ptr_nonnull(hvd_metric_name(_i));
    ck_assert_msg(fabs(result() - by_rows(_i)) <= 1e-12, "%s: %.15g, not %.15g",
                  hvd_metric_name(_i), result(), by_rows(_i));
    hvd_metric_reset(metric);
    ck_assert_double_eq(result(), _i == HVD_METRIC_PERPLEXITY);
}

LOOP_TEST(parts_merge_into_the_whole, 0, HVD_METRIC_KINDS)
{
    hvd_metric *part = metric_of(_i);

    metric = metric_of(_i);
    for (int64_t row = 0, rows = 1; row < METRIC_ROWS; row += rows) {
        rows = row % 60 + 1;
        if (row + rows > METRIC_ROWS)
            rows = METRIC_ROWS - row;
        hvd_metric_reset(part);
        metric_count(part, _i, row, row + rows);
        ck_assert_int_eq(hvd_metric_merge(metric, part), 0);
    }
    ck_assert_double_eq_tol(result(), by_rows(_i), 1e-12);
    hvd_metric_free(part);
    part = metric_of(_i ? 0 : HVD_METRIC_AUC);
    ck_assert_int_eq(hvd_metric_merge(metric, part), HVD_ERR_MISMATCH);
    hvd_metric_free(part);
    ck_assert_int_eq(hvd_metric_merge(metric, NULL), HVD_ERR_ARGUMENT);
}

/* ---------------------------------------------------- known examples, edges */

LOOP_TEST(areas_of_keras, 0, 2)
{
    static const float p[] = {0, 0.5F, 0.3F, 0.9F}, y[] = {0, 0, 1, 1};
    static const float weights[] = {1, 0, 0, 1};
    hvd_metric_options o;

    hvd_metric_options_init(&o, sizeof o, HVD_METRIC_AUC);
    o.thresholds = 3;
    ck_assert_int_eq(hvd_metric_new(&o, &metric), 0);
    ck_assert_int_eq(hvd_metric_update(metric, p, y, _i ? weights : NULL, 4, 1),
                     0);
    ck_assert_double_eq_tol(result(), _i ? 1.0 : 0.75, 1e-12);
}

TEST(top_1_of_keras)
{
    static const float scores[] = {0.1F, 0.9F, 0.8F, 0.05F, 0.95F, 0};
    static const int32_t labels[] = {2, 1};
    hvd_metric_options o;

    hvd_metric_options_init(&o, sizeof o, HVD_METRIC_TOP_K);
    ck_assert_int_eq(o.k, 5);
    o.k = 1;
    ck_assert_int_eq(hvd_metric_new(&o, &metric), 0);
    hvd_metric_update_classes(metric, scores, labels, NULL, 2, 3);
    ck_assert_double_eq(result(), 0.5);
}

/* _i: the metric is of the first, or of the k highest scores. */
LOOP_TEST(scores_that_are_equal_or_none, 0, 2)
{
    const float scores[] = {1, 1, 1, NAN, 0, 1, INFINITY, 2, 0};
    const int32_t labels[] = {1, 0, 0};

    metric = metric_of(_i ? HVD_METRIC_TOP_K : HVD_METRIC_ACCURACY);
    hvd_metric_update_classes(metric, scores, labels, NULL, 3, 3);
    /* Equal ones are among the highest. NaN and infinity are not finite. */
    ck_assert_double_eq_tol(result(), 1.0 / 3, 1e-15);
}

TEST(each_threshold_counts_what_is_above_it)
{
    const float yes = 1, no = 0;

    metric = metric_of(HVD_METRIC_AUC);
    for (int i = 0; i < 200; i++) {
        float p = (float)(i / 199.0), above = nextafterf(p, 2);
        double *sums;
        int64_t count;

        hvd_metric_reset(metric);
        hvd_metric_update(metric, &p, &yes, NULL, 1, 1);
        if (i < 199)
            hvd_metric_update(metric, &above, &no, NULL, 1, 1);
        sums = hvd_metric_sums(metric, &count);
        ck_assert_int_eq(count, 402);
        /* 0 and 1 have thresholds just outside. */
        ck_assert_double_eq(sums[i == 0 ? 1 : i], 1);
        if (i > 0 && i < 199)
            ck_assert_double_eq(sums[201 + i + 1], 1);
    }
}

LOOP_TEST(metrics_refuse, 0, 14)
{
    static const char *const words[] = {
        "kind of a metric is 11",
        "k is 0",
        "1 thresholds",
        "the threshold is nan",
        "have another size",
        "the metric is NULL",
        "metric auc is updated by hvd_metric_update",
        "metric accuracy is updated by hvd_metric_update_classes",
        "label of row 1 is 7, and there are classes 0 to 6",
        "the weight of row 0 is -1",
        "prediction 1 is 1.5",
        "the labels are NULL",
        "-1 rows of 1 columns",
        "the predictions are NULL",
    };
    const float p[] = {0.5F, 1.5F}, scores[2 * METRIC_CLASSES] = {0};
    const float negative[] = {-1, 1};
    const int32_t labels[] = {0, 7};
    hvd_metric_options o;
    hvd_metric *area = metric_of(HVD_METRIC_AUC), *none = NULL;
    int status;

    metric = metric_of(HVD_METRIC_ACCURACY);
    hvd_metric_options_init(&o, sizeof o,
                            _i == 1 ? HVD_METRIC_TOP_K : HVD_METRIC_AUC);
    switch (_i) {
    case 0: o.kind = HVD_METRIC_KINDS; break;
    case 1: o.k = 0; break;
    case 2: o.thresholds = 1; break;
    case 3: o.threshold = NAN; break;
    case 4: o.size = 4; break;
    default: break;
    }
    status = _i < 5    ? hvd_metric_new(&o, &none)
             : _i == 5 ? hvd_metric_update(NULL, p, p, NULL, 1, 1)
             : _i == 6 ? hvd_metric_update_classes(area, p, labels, NULL, 1, 1)
             : _i == 7 ? hvd_metric_update(metric, p, p, NULL, 1, 1)
             : _i == 8 ? hvd_metric_update_classes(metric, scores, labels, NULL,
                                                   2, METRIC_CLASSES)
             : _i == 9 ? hvd_metric_update(area, p, p, negative, 1, 1)
             : _i == 10 ? hvd_metric_update(area, p, p, NULL, 2, 1)
             : _i == 11 ? hvd_metric_update(area, p, NULL, NULL, 1, 1)
             : _i == 12 ? hvd_metric_update(area, p, p, NULL, -1, 1)
                        : hvd_metric_update(area, NULL, p, NULL, 1, 1);
    ck_assert_int_eq(status, HVD_ERR_ARGUMENT);
    ck_assert_msg(strstr(hvd_last_error(), words[_i]), "%s", hvd_last_error());
    ck_assert_ptr_null(none);
    ck_assert_double_eq(result(), 0);
    ck_assert_double_eq(hvd_metric_result(area), 0);
    ck_assert(isnan(hvd_metric_result(NULL)));
    hvd_metric_free(area);
    hvd_metric_free(NULL);
}

TEST_MAIN("train_metric", .tear_down = tear_down)
