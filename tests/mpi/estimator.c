/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Estimators on any number of ranks: a training makes the steps that one rank
 * would, an evaluation counts each row once, whatever the shares, a prediction
 * needs no labels, and mistakes of one rank are failures of all.
 */
#include <hvd_estimator.h>
#include <hvd_model.h>
#include <math.h>
#include <string.h>

#include "ranks.h"

enum { ROWS = 96, FEATURES = 3 };

static float x[ROWS][FEATURES], y[ROWS];
static int32_t numbers[ROWS];
static const float weights[FEATURES] = {1, -2, 0.5F};

#define MUST(call) ck_assert_msg((call) >= 0, "%s", hvd_last_error())

/* Data whose y is a linear function of x. */
static hvd_dataset *data(int rows, int ncomponents)
{
    const hvd_component components[] = {{"x", HVD_FLOAT32, 1, {FEATURES}},
                                        {"y", HVD_FLOAT32, 0, {0}},
                                        {"number", HVD_INT32, 0, {0}}};
    const void *const arrays[] = {x, y, numbers};

    for (int i = 0; i < ROWS; i++) {
        y[i] = 0.25F;
        numbers[i] = i;
        for (int k = 0; k < FEATURES; k++) {
            x[i][k] = (float)sin(i * 1.7 + k);
            y[i] += weights[k] * x[i][k];
        }
    }
    return hvd_dataset_memory(ncomponents, components, arrays, rows, NULL,
                              NULL);
}

static ipu_tensor line(hvd_net *net, ipu_tensor in, void *context)
{
    const int64_t flat[] = {-1};
    ipu_graph *g = hvd_net_graph(net);

    (void)context;
    return ipu_reshape(g, hvd_dense(net, "line", in, 1, HVD_LINEAR), 1, flat);
}

static ipu_tensor squares(hvd_net *net, ipu_tensor out, void *context)
{
    ipu_graph *g = hvd_net_graph(net);

    (void)context;
    return ipu_square(g, ipu_subtract(g, out, hvd_net_input(net, "y")));
}

static hvd_model model;
static hvd_estimator_options options;

static void set_options(void)
{
    hvd_model_init(&model, sizeof model);
    model.build = line;
    model.loss = squares;
    hvd_estimator_options_init(&options, sizeof options);
    options.model = &model;
    options.optimizer = "sgd";
    options.rate.rate = 0.1;
}

static hvd_train_spec steps(int64_t count)
{
    hvd_train_spec spec;

    hvd_train_spec_init(&spec, sizeof spec);
    spec.steps = count;
    return spec;
}

/* ---------------------------------------------------------------- training */

/* Computes steps of gradient descent: batch is that of all ranks. */
static void descend(int batch, int first, int end, double *w, double *b)
{
    for (int step = first; step < end; step++) {
        double dw[FEATURES] = {0}, db = 0;

        for (int i = 0; i < batch; i++) {
            int row = (step * batch + i) % ROWS;
            double error = *b - (double)y[row];

            for (int k = 0; k < FEATURES; k++)
                error += w[k] * (double)x[row][k];
            for (int k = 0; k < FEATURES; k++)
                dw[k] += 2 * error * (double)x[row][k] / batch;
            db += 2 * error / batch;
        }
        for (int k = 0; k < FEATURES; k++)
            w[k] -= 0.1 * dw[k];
        *b -= 0.1 * db;
    }
}

/* The first values are not known: the descent goes on from those after a
 * step. */
LOOP_TEST(steps_are_those_of_one_rank, 1, 3)
{
    const int batch = 4 * ranks_size() * _i;
    const hvd_train_spec one = steps(1), more = steps(11);
    hvd_results results = {.size = sizeof results};
    double w[FEATURES], b, before = 0;
    hvd_estimator *e;
    float now[FEATURES];

    if (ROWS % batch != 0) /* a step would have rows of two epochs */
        return;
    set_options();
    options.replicas = _i;
    MUST(hvd_estimator_new(&options, &e));
    MUST(hvd_estimator_train(e, hvd_dataset_batch(data(ROWS, 2), 4, 1), &one,
                             &results));
    ck_assert_int_eq(results.global_step, 1);
    MUST(hvd_estimator_variable(e, "line/kernel", now, FEATURES));
    for (int k = 0; k < FEATURES; k++)
        w[k] = (double)now[k];
    MUST(hvd_estimator_variable(e, "line/bias", now, 1));
    b = (double)now[0];
    MUST(hvd_estimator_train(e, hvd_dataset_batch(data(ROWS, 2), 4, 1), &more,
                             &results));
    ck_assert_int_eq(results.global_step, 12);
    descend(batch, 1, 12, w, &b);
    MUST(hvd_estimator_variable(e, "line/kernel", now, FEATURES));
    for (int k = 0; k < FEATURES; k++)
        before = fmax(before, fabs((double)now[k] - w[k]));
    ck_assert_double_lt(before, 1e-5);
    hvd_estimator_free(e);
}

/* -------------------------------------------------------------- evaluation */

/* Rows that no number of ranks divides, in batches that are not those of the
 * training. */
TEST(an_evaluation_counts_each_row_once)
{
    const hvd_train_spec some = steps(5);
    hvd_results results = {.size = sizeof results};
    hvd_estimator *e;
    float w[FEATURES], b;
    double expected = 0;

    set_options();
    MUST(hvd_estimator_new(&options, &e));
    MUST(hvd_estimator_train(e, hvd_dataset_batch(data(ROWS, 2), 4, 1), &some,
                             NULL));
    MUST(hvd_estimator_variable(e, "line/kernel", w, FEATURES));
    MUST(hvd_estimator_variable(e, "line/bias", &b, 1));
    MUST(hvd_estimator_evaluate(e, hvd_dataset_batch(data(71, 2), 7, 0), NULL,
                                &results));
    for (int i = 0; i < 71; i++) {
        double error = (double)b - (double)y[i];

        for (int k = 0; k < FEATURES; k++)
            error += (double)w[k] * (double)x[i][k];
        expected += error * error / 71;
    }
    ck_assert_int_eq(results.rows, 71);
    ck_assert_double_eq_tol(results.loss, expected, 1e-5);
    ck_assert(isnan(results.accuracy));
    hvd_estimator_free(e);
}

/* Fewer rows than ranks: some have none at all. */
TEST(ranks_without_rows_take_part)
{
    const hvd_train_spec some = steps(1);
    hvd_results results = {.size = sizeof results};
    hvd_estimator *e;

    set_options();
    MUST(hvd_estimator_new(&options, &e));
    MUST(hvd_estimator_train(e, hvd_dataset_batch(data(ROWS, 2), 4, 1), &some,
                             NULL));
    MUST(hvd_estimator_evaluate(e, hvd_dataset_batch(data(1, 2), 1, 0), NULL,
                                &results));
    ck_assert_int_eq(results.rows, 1);
    hvd_estimator_free(e);
}

struct seen {
    float sum;
    int64_t rows;
};

static int look(void *context, int64_t rows, const void *const *outputs,
                const float *losses)
{
    struct seen *seen = context;

    ck_assert_ptr_null(losses);
    for (int64_t i = 0; i < rows; i++)
        seen->sum += ((const float *)outputs[0])[i];
    seen->rows += rows;
    return 0;
}

TEST(a_prediction_needs_no_labels)
{
    const hvd_train_spec some = steps(2);
    hvd_eval_spec spec;
    hvd_estimator *e;
    struct seen seen = {0, 0};
    float w[FEATURES], b;
    double sums[2], expected = 0;

    set_options();
    MUST(hvd_estimator_new(&options, &e));
    MUST(hvd_estimator_train(e, hvd_dataset_batch(data(ROWS, 2), 4, 1), &some,
                             NULL));
    hvd_eval_spec_init(&spec, sizeof spec);
    spec.visit = look;
    spec.visit_context = &seen;
    MUST(hvd_estimator_predict(e, hvd_dataset_batch(data(50, 1), 5, 0), &spec));
    MUST(hvd_estimator_variable(e, "line/kernel", w, FEATURES));
    MUST(hvd_estimator_variable(e, "line/bias", &b, 1));
    for (int i = 0; i < 50; i++) {
        expected += (double)b;
        for (int k = 0; k < FEATURES; k++)
            expected += (double)w[k] * (double)x[i][k];
    }
    sums[0] = (double)seen.sum;
    sums[1] = (double)seen.rows;
    MUST(hvd_allreduce(sums, sums, 2, HVD_FLOAT64, HVD_SUM));
    ck_assert_double_eq_tol(sums[0], expected, 1e-4);
    ck_assert_double_eq(sums[1], 50);
    hvd_estimator_free(e);
}

/* ---------------------------------------------------------------- mistakes */

static void refuse(hvd_dataset *set, const hvd_train_spec *spec,
                   const char *text)
{
    hvd_estimator *e;

    MUST(hvd_estimator_new(&options, &e));
    ck_assert_int_lt(hvd_estimator_train(e, set, spec, NULL), 0);
    ck_assert_msg(strstr(hvd_last_error(), text) ||
                      strstr(hvd_last_error(), "another rank"),
                  "%s", hvd_last_error());
    hvd_estimator_free(e);
}

TEST(mistakes_are_refused)
{
    const hvd_train_spec some = steps(100), none = steps(0);
    hvd_estimator *e;

    set_options();
    refuse(NULL, &some, "there is no data");
    refuse(data(ROWS, 2), &some, "hvd_dataset_batch");
    refuse(hvd_dataset_batch(data(ROWS, 1), 4, 1), &some, "'y'");
    refuse(hvd_dataset_batch(data(ROWS, 2), 4, 1), &none, "steps");
    refuse(hvd_dataset_batch(data(9, 2), 2, 0), &some, "full");
    refuse(hvd_dataset_batch(
               hvd_dataset_cast(data(ROWS, 2), "y", HVD_FLOAT64, 1), 4, 1),
           &some, "float64");
    /* Only the last rank has no data. */
    refuse(ranks_rank() == ranks_size() - 1
               ? NULL
               : hvd_dataset_batch(data(ROWS, 2), 4, 1),
           &some, "there is no data");
    options.rate.rate = 1e30;
    refuse(hvd_dataset_batch(data(ROWS, 2), 4, 1), &some, "no longer a number");
    set_options();
    options.optimizer = "best";
    ck_assert_int_eq(hvd_estimator_new(&options, &e), HVD_ERR_ARGUMENT);
    ck_assert_ptr_nonnull(strstr(hvd_last_error(), "no optimiser 'best'"));
    set_options();
    options.replicas = 0;
    ck_assert_int_eq(hvd_estimator_new(&options, &e), HVD_ERR_ARGUMENT);
    ck_assert_ptr_nonnull(strstr(hvd_last_error(), "replicas is 0"));
}

RANKS_TEST_MAIN(HVD_STARTS_MPI, "mpi_estimator")
