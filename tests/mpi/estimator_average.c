/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Running averages of the variables follow their formula, are what evaluations
 * and predictions use, and go on from a checkpoint; and a few steps of a
 * training can be profiled.
 */
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lines.h"

enum { TESTS = 71, NUMBERS = FEATURES + 1 };

static hvd_dataset *batches(void)
{
    return hvd_dataset_batch(lines_data(ROWS, 2), 4, 1);
}

static void read_averages(const hvd_estimator *e, double *found)
{
    float now[FEATURES];

    MUST(hvd_estimator_variable(e, "average/line/kernel", now, FEATURES));
    for (int k = 0; k < FEATURES; k++)
        found[k] = (double)now[k];
    MUST(hvd_estimator_variable(e, "average/line/bias", now, 1));
    found[FEATURES] = (double)now[0];
}

/* Makes the updates first to end - 1 of variables and averages. */
static void follow(int batch, int first, int end, double decay, bool warms,
                   double *v, double *averages)
{
    for (int n = first; n < end; n++) {
        double d = warms ? fmin(decay, (1.0 + n) / (10.0 + n)) : decay;

        lines_descend(batch, n, n + 1, 0.1, v, v + FEATURES);
        for (int k = 0; k < NUMBERS; k++)
            averages[k] = d * averages[k] + (1 - d) * v[k];
    }
}

/* The first values are not known: the test goes on from those after a step. */
LOOP_TEST(averages_follow_the_variables, 0, 4)
{
    const int replicas = 1 + _i / 2, batch = 4 * ranks_size() * replicas;
    const hvd_train_spec one = lines_steps(1), more = lines_steps(11);
    double v[NUMBERS], averages[NUMBERS], found[NUMBERS];
    hvd_estimator *e;

    if (ROWS % batch != 0)
        return;
    lines_set_options();
    lines_options.ema_decay = 0.75;
    lines_options.ema_warmup = _i % 2;
    lines_options.replicas = replicas;
    MUST(hvd_estimator_new(&lines_options, &e));
    MUST(hvd_estimator_train(e, batches(), &one, NULL));
    lines_read(e, v, v + FEATURES);
    read_averages(e, averages);
    /* They began with the first values, and not with zeros. */
    ck_assert_double_gt(fabs(averages[0] - v[0]), 1e-6);
    MUST(hvd_estimator_train(e, batches(), &more, NULL));
    follow(batch, 1, 12, 0.75, _i % 2, v, averages);
    read_averages(e, found);
    for (int k = 0; k < NUMBERS; k++)
        ck_assert_double_eq_tol(found[k], averages[k], 1e-5);
    hvd_estimator_free(e);
}

/* Two steps that make one update, average once. */
TEST(an_update_averages_once)
{
    const int batch = 8 * ranks_size();
    const hvd_train_spec two = lines_steps(2), six = lines_steps(6);
    double v[NUMBERS], averages[NUMBERS], found[NUMBERS];
    hvd_estimator *e;

    if (ROWS % batch != 0)
        return;
    lines_set_options();
    lines_options.ema_decay = 0.5;
    lines_options.accumulate = 2;
    MUST(hvd_estimator_new(&lines_options, &e));
    MUST(hvd_estimator_train(e, batches(), &two, NULL));
    lines_read(e, v, v + FEATURES);
    read_averages(e, averages);
    MUST(hvd_estimator_train(e, batches(), &six, NULL));
    follow(batch, 1, 4, 0.5, false, v, averages);
    read_averages(e, found);
    for (int k = 0; k < NUMBERS; k++)
        ck_assert_double_eq_tol(found[k], averages[k], 1e-5);
    hvd_estimator_free(e);
}

static int add_up(void *context, int64_t rows, const void *const *outputs,
                  const float *losses)
{
    double *sum = context;

    (void)losses;
    for (int64_t i = 0; i < rows; i++)
        *sum += (double)((const float *)outputs[0])[i];
    return 0;
}

TEST(evaluations_use_the_averages)
{
    const hvd_train_spec some = lines_steps(6);
    hvd_results results = {.size = sizeof results};
    double v[NUMBERS], averages[NUMBERS], sum = 0, expected = 0;
    hvd_eval_spec spec;
    hvd_estimator *e;

    lines_set_options();
    lines_options.ema_decay = 0.9;
    MUST(hvd_estimator_new(&lines_options, &e));
    MUST(hvd_estimator_train(e, batches(), &some, NULL));
    lines_read(e, v, v + FEATURES);
    read_averages(e, averages);
    hvd_eval_spec_init(&spec, sizeof spec);
    for (int times = 0; times < 4; times++) {
        const double *used = times % 2 ? v : averages;

        spec.trained = times % 2;
        MUST(hvd_estimator_evaluate(
            e, hvd_dataset_batch(lines_data(TESTS, 2), 7, 0), &spec, &results));
        ck_assert_double_eq_tol(results.loss,
                                lines_loss(TESTS, used, used[FEATURES]), 1e-5);
    }
    spec.trained = 0;
    spec.visit = add_up;
    spec.visit_context = &sum;
    MUST(hvd_estimator_predict(e, hvd_dataset_batch(lines_data(TESTS, 1), 7, 0),
                               &spec));
    MUST(hvd_allreduce(&sum, &sum, 1, HVD_FLOAT64, HVD_SUM));
    for (int i = 0; i < TESTS; i++) {
        expected += averages[FEATURES];
        for (int k = 0; k < FEATURES; k++)
            expected += averages[k] * (double)lines_x[i][k];
    }
    ck_assert_double_eq_tol(sum, expected, 1e-4);
    /* The training has gone on with its own variables. */
    lines_read(e, averages, averages + FEATURES);
    ck_assert_mem_eq(averages, v, sizeof v);
    hvd_estimator_free(e);
}

static void train_to(int64_t end, const char *folder, double *found)
{
    const hvd_train_spec spec = {.size = sizeof spec, .max_steps = end};
    hvd_estimator *e;

    lines_set_options();
    lines_options.optimizer = "adam";
    lines_options.ema_decay = 0.8;
    lines_options.ema_warmup = 1;
    lines_options.model_dir = folder;
    MUST(hvd_estimator_new(&lines_options, &e));
    MUST(hvd_estimator_train(e, batches(), &spec, NULL));
    read_averages(e, found);
    hvd_estimator_free(e);
}

TEST(averages_go_on_from_a_checkpoint)
{
    const char *folder = lines_folder();
    double whole[NUMBERS], resumed[NUMBERS];

    train_to(12, NULL, whole);
    train_to(5, folder, resumed);
    ck_assert(memcmp(whole, resumed, sizeof whole) != 0);
    train_to(12, folder, resumed);
    ck_assert_mem_eq(whole, resumed, sizeof whole);
    lines_remove();
}

/* The best variables come back with their averages, which are what has been
 * evaluated. */
static int evaluate_each(void *context, hvd_estimator *e, hvd_event *event)
{
    (void)context;
    if (event->step == 5) /* from now on it gets worse */
        event->rate_factor = 40;
    MUST(hvd_estimator_evaluate(
        e, hvd_dataset_batch(lines_data(TESTS, 2), 7, 0), NULL, NULL));
    return 0;
}

TEST(the_best_averages_come_back)
{
    const hvd_train_spec five = lines_steps(5), many = lines_steps(50);
    hvd_hook own = {.size = sizeof own, .after_step = evaluate_each};
    double best[NUMBERS], found[NUMBERS];
    hvd_early_stopping_options o;
    hvd_hook *stop;
    hvd_estimator *e;

    hvd_early_stopping_options_init(&o, sizeof o);
    o.patience = 3;
    o.restore_best = 1;
    MUST(hvd_early_stopping_new(&o, &stop));
    lines_set_options();
    lines_options.ema_decay = 0.1;
    lines_options.hooks = (hvd_hook *const[]){&own, stop};
    lines_options.nhooks = 2;
    MUST(hvd_estimator_new(&lines_options, &e));
    MUST(hvd_estimator_train(e, batches(), &five, NULL));
    read_averages(e, best);
    MUST(hvd_estimator_train(e, batches(), &many, NULL));
    read_averages(e, found);
    ck_assert_mem_eq(best, found, sizeof best);
    hvd_estimator_free(e);
    hvd_hook_free(stop);
}

/* -------------------------------------------------------------- the profile */

TEST(some_steps_are_profiled)
{
    const char *folder = lines_folder();
    const hvd_train_spec nine = lines_steps(9);
    char timeline[300], report[300], path[320], text[4096] = "";
    hvd_profiler_options o;
    struct stat found;
    hvd_hook *hook;
    hvd_estimator *e;

    snprintf(timeline, sizeof timeline, "%s/timeline.json", folder);
    snprintf(report, sizeof report, "%s/report", folder);
    hvd_profiler_options_init(&o, sizeof o);
    ck_assert_int_eq(hvd_profiler_new(&o, &hook), HVD_ERR_ARGUMENT);
    o.timeline = timeline;
    o.report = report;
    o.first = 3;
    o.steps = 2;
    MUST(hvd_profiler_new(&o, &hook));
    lines_set_options();
    lines_options.hooks = &hook;
    lines_options.nhooks = 1;
    MUST(hvd_estimator_new(&lines_options, &e));
    MUST(hvd_estimator_train(e, batches(), &nine, NULL));
    hvd_estimator_free(e);
    hvd_hook_free(hook);
    if (ranks_rank() == 0) {
        FILE *f = fopen(timeline, "r");

        ck_assert_ptr_nonnull(f);
        ck_assert_uint_gt(fread(text, 1, sizeof text - 1, f), 0);
        fclose(f);
        ck_assert_ptr_nonnull(strstr(text, "\"ph\""));
        snprintf(path, sizeof path, "%s/profile.json", report);
        f = fopen(path, "r");
        ck_assert_ptr_nonnull(f);
        ck_assert_uint_gt(fread(text, 1, sizeof text - 1, f), 0);
        fclose(f);
        ck_assert_ptr_nonnull(strstr(text, "steps 3 to 5"));
        unlink(path);
        snprintf(path, sizeof path, "%s/report.html", report);
        ck_assert_int_eq(stat(path, &found), 0);
        unlink(path);
        ck_assert_int_eq(rmdir(report), 0);
    }
    lines_remove();
}

RANKS_TEST_MAIN(HVD_STARTS_MPI, "mpi_estimator_average")
