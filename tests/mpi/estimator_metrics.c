/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Metrics of an evaluation count every row of all ranks once, whatever the
 * shares, and by the outputs and components that they name. The log has them,
 * and what a training says of itself, as means over all ranks.
 */
#include <hvd_log.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lines.h"

enum { CLASSES = 5, SOME = 71 };

static float x[ROWS][FEATURES], importance[ROWS], halves[ROWS];
static int32_t labels[ROWS];

static hvd_dataset *classes(int rows, int batch)
{
    const hvd_component components[] = {{"x", HVD_FLOAT32, 1, {FEATURES}},
                                        {"labels", HVD_INT32, 0, {0}},
                                        {"importance", HVD_FLOAT32, 0, {0}},
                                        {"half", HVD_FLOAT32, 0, {0}}};
    const void *const arrays[] = {x, labels, importance, halves};

    for (int i = 0; i < ROWS; i++) {
        labels[i] = i * i % CLASSES;
        importance[i] = 0.5F + (float)(i % 3);
        halves[i] = (float)(i % 2);
        for (int k = 0; k < FEATURES; k++)
            x[i][k] = (float)cos(i * 0.9 + k);
    }
    return hvd_dataset_batch(
        hvd_dataset_memory(4, components, arrays, rows, NULL, NULL), batch,
        rows == ROWS);
}

static ipu_tensor scores(hvd_net *net, ipu_tensor in, void *context)
{
    const int64_t flat[] = {-1};
    ipu_graph *g = hvd_net_graph(net);
    ipu_tensor chance = hvd_dense(net, "chance", in, 1, HVD_SIGMOID);

    (void)context;
    hvd_net_output(net, "chance", ipu_reshape(g, chance, 1, flat));
    return ipu_add(g, hvd_dense(net, "scores", in, CLASSES, HVD_LINEAR),
                   hvd_dense(net, "more", chance, CLASSES, HVD_LINEAR));
}

/* What one rank finds that sees all rows: scores and the chance of a row. */
struct row {
    double scores[CLASSES], chance, loss;
};

static void compute(const hvd_estimator *e, int i, struct row *row)
{
    float kernel[FEATURES][CLASSES], bias[CLASSES], more[CLASSES];
    float extra[CLASSES], of[FEATURES], offset;
    double sum = 0;

    MUST(hvd_estimator_variable(e, "scores/kernel", kernel[0],
                                FEATURES * CLASSES));
    MUST(hvd_estimator_variable(e, "scores/bias", bias, CLASSES));
    MUST(hvd_estimator_variable(e, "more/kernel", more, CLASSES));
    MUST(hvd_estimator_variable(e, "more/bias", extra, CLASSES));
    MUST(hvd_estimator_variable(e, "chance/kernel", of, FEATURES));
    MUST(hvd_estimator_variable(e, "chance/bias", &offset, 1));
    row->chance = (double)offset;
    for (int k = 0; k < FEATURES; k++)
        row->chance += (double)of[k] * (double)x[i][k];
    row->chance = 1 / (1 + exp(-row->chance));
    for (int c = 0; c < CLASSES; c++) {
        row->scores[c] =
            (double)bias[c] + (double)extra[c] + (double)more[c] * row->chance;
        for (int k = 0; k < FEATURES; k++)
            row->scores[c] += (double)kernel[k][c] * (double)x[i][k];
        sum += exp(row->scores[c]);
    }
    row->loss = log(sum) - row->scores[labels[i]];
}

/* Returns how many classes have a higher score than the row's own. */
static int higher(const struct row *row, int i)
{
    int count = 0;

    for (int c = 0; c < CLASSES; c++)
        count += row->scores[c] > row->scores[labels[i]];
    return count;
}

static hvd_metric *metric(hvd_metric_kind kind)
{
    hvd_metric_options o;
    hvd_metric *made;

    hvd_metric_options_init(&o, sizeof o, kind);
    o.k = 2;
    MUST(hvd_metric_new(&o, &made));
    return made;
}

static hvd_model model;

static hvd_estimator *trained(const char *log_dir)
{
    const hvd_train_spec some = lines_steps(6);
    hvd_estimator *e;

    lines_set_options();
    hvd_model_init(&model, sizeof model);
    model.build = scores;
    lines_options.model = &model;
    lines_options.log_dir = log_dir;
    lines_options.log_step_count_steps = 3;
    MUST(hvd_estimator_new(&lines_options, &e));
    MUST(hvd_estimator_train(e, classes(ROWS, 4), &some, NULL));
    return e;
}

enum { ACCURACY, TOP_2, WEIGHTED, LOSS, BINARY, SQUARED, METRICS };

static void make(hvd_eval_metric *metrics)
{
    memset(metrics, 0, METRICS * sizeof *metrics);
    metrics[ACCURACY].metric = metric(HVD_METRIC_ACCURACY);
    metrics[TOP_2].metric = metric(HVD_METRIC_TOP_K);
    metrics[WEIGHTED] = (hvd_eval_metric){.name = "weighted",
                                          .metric = metric(HVD_METRIC_ACCURACY),
                                          .labels = "labels",
                                          .weights = "importance"};
    metrics[LOSS].metric = metric(HVD_METRIC_MEAN);
    metrics[BINARY] =
        (hvd_eval_metric){.metric = metric(HVD_METRIC_BINARY_ACCURACY),
                          .outputs = "chance",
                          .labels = "half"};
    /* Labels that are int32 count as numbers. */
    metrics[SQUARED] =
        (hvd_eval_metric){.metric = metric(HVD_METRIC_MEAN_SQUARED_ERROR),
                          .outputs = "chance",
                          .labels = "labels",
                          .weights = "importance"};
}

static void check(const hvd_estimator *e, const hvd_eval_metric *metrics)
{
    double expected[METRICS] = {0}, weights = 0;

    for (int i = 0; i < SOME; i++) {
        const double w = (double)importance[i];
        double error;
        struct row row;

        compute(e, i, &row);
        error = row.chance - labels[i];
        weights += w;
        expected[ACCURACY] += (higher(&row, i) == 0) / (double)SOME;
        expected[TOP_2] += (higher(&row, i) < 2) / (double)SOME;
        expected[WEIGHTED] += w * (higher(&row, i) == 0);
        expected[LOSS] += row.loss / SOME;
        expected[BINARY] += ((row.chance > 0.5) == (i % 2 == 1)) / (double)SOME;
        expected[SQUARED] += w * error * error;
    }
    expected[WEIGHTED] /= weights;
    expected[SQUARED] /= weights;
    for (int k = 0; k < METRICS; k++)
        ck_assert_double_eq_tol(hvd_metric_result(metrics[k].metric),
                                expected[k], 1e-4);
}

/* Twice, since an evaluation forgets the rows of the one before. */
TEST(metrics_count_the_rows_of_all_ranks)
{
    hvd_results results = {.size = sizeof results};
    hvd_eval_metric metrics[METRICS];
    hvd_estimator *e = trained(NULL);
    hvd_eval_spec spec;

    make(metrics);
    hvd_eval_spec_init(&spec, sizeof spec);
    spec.metrics = metrics;
    spec.nmetrics = METRICS;
    for (int times = 0; times < 2; times++) {
        MUST(hvd_estimator_evaluate(e, classes(SOME, 7), &spec, &results));
        check(e, metrics);
        ck_assert_double_eq_tol(results.accuracy,
                                hvd_metric_result(metrics[ACCURACY].metric),
                                1e-12);
    }
    for (int k = 0; k < METRICS; k++)
        hvd_metric_free(metrics[k].metric);
    hvd_estimator_free(e);
}

/* Some ranks have no row, and give zeros to the sums. */
TEST(ranks_without_rows_have_metrics)
{
    hvd_eval_metric metrics[METRICS];
    hvd_estimator *e = trained(NULL);
    hvd_eval_spec spec;
    struct row row;

    make(metrics);
    hvd_eval_spec_init(&spec, sizeof spec);
    spec.metrics = metrics;
    spec.nmetrics = METRICS;
    MUST(hvd_estimator_evaluate(e, classes(1, 1), &spec, NULL));
    compute(e, 0, &row);
    ck_assert_double_eq_tol(hvd_metric_result(metrics[LOSS].metric), row.loss,
                            1e-4);
    for (int k = 0; k < METRICS; k++)
        hvd_metric_free(metrics[k].metric);
    hvd_estimator_free(e);
}

/* -------------------------------------------------------------------- a log */

TEST(the_log_has_means_of_all_ranks)
{
    const char *folder = lines_folder();
    hvd_results results = {.size = sizeof results};
    hvd_estimator *e = trained(folder);
    hvd_eval_metric one = {.metric = metric(HVD_METRIC_TOP_K)};
    hvd_train_spec three = lines_steps(3);
    hvd_eval_spec spec;

    hvd_eval_spec_init(&spec, sizeof spec);
    spec.metrics = &one;
    spec.nmetrics = 1;
    spec.name = "some";
    MUST(hvd_estimator_evaluate(e, classes(SOME, 7), &spec, &results));
    if (ranks_rank() == 0) {
        ck_assert_double_eq(lines_logged(folder, "eval_some/loss", 6),
                            results.loss);
        ck_assert_double_eq(lines_logged(folder, "eval_some/accuracy", 6),
                            results.accuracy);
        ck_assert_double_eq(lines_logged(folder, "eval_some/top_2", 6),
                            hvd_metric_result(one.metric));
        ck_assert_double_eq(lines_logged(folder, "train/learning_rate", 3),
                            0.1);
        ck_assert_double_eq_tol(
            lines_logged(folder, "train/rows_per_second", 6),
            lines_logged(folder, "train/steps_per_second", 6) * 4 *
                ranks_size(),
            1e-6 * lines_logged(folder, "train/rows_per_second", 6));
    }
    /* The mean of these steps is that of the call. */
    MUST(hvd_estimator_train(e, classes(ROWS, 4), &three, &results));
    hvd_estimator_free(e);
    if (ranks_rank() == 0)
        ck_assert_double_eq_tol(lines_logged(folder, "train/loss", 9),
                                results.loss, 1e-12);
    hvd_metric_free(one.metric);
    lines_remove();
}

/* ---------------------------------------------------------------- mistakes */

static void refuse(hvd_estimator *e, hvd_eval_metric one, const char *text)
{
    hvd_eval_spec spec;

    hvd_eval_spec_init(&spec, sizeof spec);
    spec.metrics = &one;
    spec.nmetrics = 1;
    ck_assert_int_lt(hvd_estimator_evaluate(e, classes(SOME, 7), &spec, NULL),
                     0);
    ck_assert_msg(strstr(hvd_last_error(), text) ||
                      strstr(hvd_last_error(), "another rank"),
                  "%s", hvd_last_error());
    hvd_metric_free(one.metric);
}

TEST(metrics_that_do_not_fit_are_refused)
{
    hvd_estimator *e = trained(NULL);
    hvd_metric *squared = metric(HVD_METRIC_MEAN_SQUARED_ERROR);

    refuse(e, (hvd_eval_metric){.metric = NULL}, "is NULL");
    refuse(e,
           (hvd_eval_metric){.metric = metric(HVD_METRIC_ACCURACY),
                             .labels = "half"},
           "int32 labels");
    refuse(e,
           (hvd_eval_metric){.metric = metric(HVD_METRIC_ACCURACY),
                             .outputs = "chance"},
           "a score for each class");
    refuse(e,
           (hvd_eval_metric){.metric = metric(HVD_METRIC_ACCURACY),
                             .outputs = "guess"},
           "no output 'guess'");
    refuse(e,
           (hvd_eval_metric){.metric = metric(HVD_METRIC_MEAN),
                             .weights = "weight"},
           "without a component 'weight'");
    refuse(e,
           (hvd_eval_metric){.metric = metric(HVD_METRIC_MEAN), .weights = "x"},
           "one for each row");
    refuse(e, (hvd_eval_metric){.metric = squared}, "as many of both");
    /* It can be used after that. */
    MUST(hvd_estimator_evaluate(e, classes(SOME, 7), NULL, NULL));
    hvd_estimator_free(e);
}

RANKS_TEST_MAIN(HVD_STARTS_MPI, "mpi_estimator_metrics")
