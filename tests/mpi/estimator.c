/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Estimators on any number of ranks: a training makes the steps that one rank
 * would, an evaluation counts each row once, whatever the shares, a prediction
 * needs no labels, and mistakes of one rank are failures of all.
 */
#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "lines.h"

/* ---------------------------------------------------------------- training */

/* The first values are not known: the descent goes on from those after a
 * step. */
LOOP_TEST(steps_are_those_of_one_rank, 1, 3)
{
    const int batch = 4 * ranks_size() * _i;
    const hvd_train_spec one = lines_steps(1), more = lines_steps(11);
    hvd_results results = {.size = sizeof results};
    double w[FEATURES], b, before = 0;
    hvd_estimator *e;
    float now[FEATURES];

    if (ROWS % batch != 0) /* a step would have rows of two epochs */
        return;
    lines_set_options();
    lines_options.replicas = _i;
    MUST(hvd_estimator_new(&lines_options, &e));
    MUST(hvd_estimator_train(e, hvd_dataset_batch(lines_data(ROWS, 2), 4, 1),
                             &one, &results));
    ck_assert_int_eq(results.global_step, 1);
    lines_read(e, w, &b);
    MUST(hvd_estimator_train(e, hvd_dataset_batch(lines_data(ROWS, 2), 4, 1),
                             &more, &results));
    ck_assert_int_eq(results.global_step, 12);
    lines_descend(batch, 1, 12, 0.1, w, &b);
    MUST(hvd_estimator_variable(e, "line/kernel", now, FEATURES));
    for (int k = 0; k < FEATURES; k++)
        before = fmax(before, fabs((double)now[k] - w[k]));
    ck_assert_double_lt(before, 1e-5);
    hvd_estimator_free(e);
}

/* The line begins at 0, so that a test knows all that the optimiser keeps. */
static ipu_tensor from_zero(hvd_net *net, ipu_tensor in, void *context)
{
    const int64_t flat[] = {-1};
    hvd_layer_options zeros;

    (void)context;
    hvd_layer_options_init(&zeros, sizeof zeros);
    zeros.kernel.kind = HVD_INIT_ZEROS;
    return ipu_reshape(hvd_net_graph(net),
                       hvd_dense_with(net, "line", in, 1, &zeros), 1, flat);
}

/* Half a cosine between two values. */
static double between(double from, double to, double share)
{
    return from + (to - from) * (1 - cos(acos(-1) * share)) / 2;
}

/* Makes the steps of PyTorch's OneCycleLR with SGD and momentum, or Adam, whose
 * beta1 it changes. line: w, and b behind them. */
static void make_a_cycle(bool adam, int batch, int steps, double rate,
                         double *line)
{
    double m[FEATURES + 1] = {0}, v[FEATURES + 1] = {0}, g[FEATURES + 1];

    for (int t = 0; t < steps; t++) {
        const double top = 0.3 * steps - 1, all = steps - 1;
        const bool up = t <= top;
        const double share = up ? t / top : (t - top) / (all - top);
        const double beta = between(up ? 0.95 : 0.85, up ? 0.85 : 0.95, share);
        const double now =
            rate * between(up ? 0.04 : 1, up ? 1 : 0.04 / 1e4, share);

        lines_slopes(batch, t, line, line[FEATURES], g);
        for (int k = 0; k <= FEATURES; k++) {
            m[k] = beta * m[k] + (adam ? 1 - beta : 1) * g[k];
            v[k] = 0.999 * v[k] + 0.001 * g[k] * g[k];
            line[k] -=
                now * (adam ? m[k] / (1 - pow(beta, t + 1)) /
                                  (sqrt(v[k] / (1 - pow(0.999, t + 1))) + 1e-7)
                            : m[k]);
        }
    }
}

LOOP_TEST(one_cycle_changes_the_momentum, 0, 4)
{
    const int replicas = 1 + _i % 2, batch = 4 * ranks_size() * replicas;
    const hvd_train_spec all = lines_steps(12);
    double expected[FEATURES + 1] = {0}, line[FEATURES + 1];
    hvd_estimator *e;

    if (ROWS % batch != 0)
        return;
    lines_set_options();
    lines_model.build = from_zero;
    lines_options.replicas = replicas;
    lines_options.optimizer = _i / 2 ? "adam" : "momentum";
    lines_options.rate.kind = HVD_SCHEDULE_ONE_CYCLE;
    lines_options.rate.steps = 12;
    MUST(hvd_estimator_new(&lines_options, &e));
    MUST(hvd_estimator_train(e, hvd_dataset_batch(lines_data(ROWS, 2), 4, 1),
                             &all, NULL));
    lines_read(e, line, &line[FEATURES]);
    make_a_cycle(_i / 2, batch, 12, 0.1, expected);
    for (int k = 0; k <= FEATURES; k++)
        ck_assert_double_eq_tol(line[k], expected[k], 1e-5);
    hvd_estimator_free(e);
}

/* The loss does not depend on one of the layers: its gradient is a constant. */
static ipu_tensor with_more(hvd_net *net, ipu_tensor in, void *context)
{
    const int64_t flat[] = {-1};

    (void)context;
    hvd_net_output(net, "more", hvd_dense(net, "more", in, 2, HVD_TANH));
    return ipu_reshape(hvd_net_graph(net),
                       hvd_dense(net, "line", in, 1, HVD_LINEAR), 1, flat);
}

LOOP_TEST(variables_may_have_no_effect, 1, 3)
{
    const hvd_train_spec one = lines_steps(1), more = lines_steps(3);
    float before[2 * FEATURES], now[2 * FEATURES];
    double w[FEATURES], b, v[FEATURES], c;
    hvd_estimator *e;

    lines_set_options();
    lines_model.build = with_more;
    lines_options.replicas = _i;
    MUST(hvd_estimator_new(&lines_options, &e));
    MUST(hvd_estimator_train(e, hvd_dataset_batch(lines_data(ROWS, 2), 4, 1),
                             &one, NULL));
    lines_read(e, w, &b);
    MUST(hvd_estimator_variable(e, "more/kernel", before, 2 * FEATURES));
    MUST(hvd_estimator_train(e, hvd_dataset_batch(lines_data(ROWS, 2), 4, 1),
                             &more, NULL));
    lines_read(e, v, &c);
    ck_assert_double_ne(b, c);
    MUST(hvd_estimator_variable(e, "more/kernel", now, 2 * FEATURES));
    ck_assert_mem_eq(before, now, sizeof now);
    hvd_estimator_free(e);
}

/* -------------------------------------------------------------- evaluation */

/* Rows that no number of ranks divides, in batches that are not those of the
 * training. */
TEST(an_evaluation_counts_each_row_once)
{
    const hvd_train_spec some = lines_steps(5);
    hvd_results results = {.size = sizeof results};
    hvd_estimator *e;
    double w[FEATURES], b;

    lines_set_options();
    MUST(hvd_estimator_new(&lines_options, &e));
    MUST(hvd_estimator_train(e, hvd_dataset_batch(lines_data(ROWS, 2), 4, 1),
                             &some, NULL));
    lines_read(e, w, &b);
    MUST(hvd_estimator_evaluate(e, hvd_dataset_batch(lines_data(71, 2), 7, 0),
                                NULL, &results));
    ck_assert_int_eq(results.rows, 71);
    ck_assert_double_eq_tol(results.loss, lines_loss(71, w, b), 1e-5);
    ck_assert(isnan(results.accuracy));
    hvd_estimator_free(e);
}

/* Fewer rows than ranks: some have none at all. */
TEST(ranks_without_rows_take_part)
{
    const hvd_train_spec some = lines_steps(1);
    hvd_results results = {.size = sizeof results};
    hvd_estimator *e;

    lines_set_options();
    MUST(hvd_estimator_new(&lines_options, &e));
    MUST(hvd_estimator_train(e, hvd_dataset_batch(lines_data(ROWS, 2), 4, 1),
                             &some, NULL));
    MUST(hvd_estimator_evaluate(e, hvd_dataset_batch(lines_data(1, 2), 1, 0),
                                NULL, &results));
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
    const hvd_train_spec some = lines_steps(2);
    hvd_eval_spec spec;
    hvd_estimator *e;
    struct seen seen = {0, 0};
    double w[FEATURES], b, sums[2], expected = 0;

    lines_set_options();
    MUST(hvd_estimator_new(&lines_options, &e));
    MUST(hvd_estimator_train(e, hvd_dataset_batch(lines_data(ROWS, 2), 4, 1),
                             &some, NULL));
    hvd_eval_spec_init(&spec, sizeof spec);
    spec.visit = look;
    spec.visit_context = &seen;
    MUST(hvd_estimator_predict(e, hvd_dataset_batch(lines_data(50, 1), 5, 0),
                               &spec));
    lines_read(e, w, &b);
    for (int i = 0; i < 50; i++) {
        expected += b;
        for (int k = 0; k < FEATURES; k++)
            expected += w[k] * (double)lines_x[i][k];
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

    MUST(hvd_estimator_new(&lines_options, &e));
    ck_assert_int_lt(hvd_estimator_train(e, set, spec, NULL), 0);
    ck_assert_msg(strstr(hvd_last_error(), text) ||
                      strstr(hvd_last_error(), "another rank"),
                  "%s", hvd_last_error());
    hvd_estimator_free(e);
}

TEST(mistakes_are_refused)
{
    const hvd_train_spec some = lines_steps(100), none = lines_steps(0);
    hvd_estimator *e;

    lines_set_options();
    refuse(NULL, &some, "there is no data");
    refuse(lines_data(ROWS, 2), &some, "hvd_dataset_batch");
    refuse(hvd_dataset_batch(lines_data(ROWS, 1), 4, 1), &some, "'y'");
    refuse(hvd_dataset_batch(lines_data(ROWS, 2), 4, 1), &none, "steps");
    refuse(hvd_dataset_batch(lines_data(9, 2), 2, 0), &some, "full");
    refuse(
        hvd_dataset_batch(
            hvd_dataset_cast(lines_data(ROWS, 2), "y", HVD_FLOAT64, 1), 4, 1),
        &some, "float64");
    /* Only the last rank has no data. */
    refuse(ranks_rank() == ranks_size() - 1
               ? NULL
               : hvd_dataset_batch(lines_data(ROWS, 2), 4, 1),
           &some, "there is no data");
    lines_options.rate.rate = 1e30;
    refuse(hvd_dataset_batch(lines_data(ROWS, 2), 4, 1), &some,
           "no longer a number");
    lines_set_options();
    lines_options.optimizer = "best";
    ck_assert_int_eq(hvd_estimator_new(&lines_options, &e), HVD_ERR_ARGUMENT);
    ck_assert_ptr_nonnull(strstr(hvd_last_error(), "no optimiser 'best'"));
    lines_set_options();
    lines_options.replicas = 0;
    ck_assert_int_eq(hvd_estimator_new(&lines_options, &e), HVD_ERR_ARGUMENT);
    ck_assert_ptr_nonnull(strstr(hvd_last_error(), "replicas is 0"));
}

RANKS_TEST_MAIN(HVD_STARTS_MPI, "mpi_estimator")
