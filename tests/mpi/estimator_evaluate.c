/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Trainings with evaluations between the steps: when they come, what hooks make
 * of them, and that a training which is interrupted goes on as it would have;
 * and an evaluator of its own, which is a fork of rank 0, and no rank.
 */
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lines.h"

enum { TESTS = 71 };

static hvd_dataset *training_data(void *context)
{
    (void)context;
    return hvd_dataset_batch(lines_data(ROWS, 2), 4, 1);
}

static hvd_dataset *test_data(void *context)
{
    (void)context;
    return hvd_dataset_batch(lines_data(TESTS, 2), 7, 0);
}

static hvd_train_spec training(int64_t max_steps)
{
    hvd_train_spec spec;

    hvd_train_spec_init(&spec, sizeof spec);
    spec.max_steps = max_steps;
    spec.data = training_data;
    return spec;
}

static hvd_eval_spec evaluation(double start, double throttle)
{
    hvd_eval_spec spec;

    hvd_eval_spec_init(&spec, sizeof spec);
    spec.data = test_data;
    spec.start_delay_secs = start;
    spec.throttle_secs = throttle;
    spec.wait_secs = 60;
    return spec;
}

struct heard {
    int64_t steps[40]; /* of the evaluations */
    double losses[40];
    int count;
    bool checks; /* the variables are those that were evaluated */
};

static int evaluated(void *context, hvd_estimator *e, hvd_event *event)
{
    struct heard *h = context;
    double w[FEATURES], b;

    ck_assert_int_lt(h->count, 40);
    h->steps[h->count] = event->evaluated;
    MUST(hvd_event_value(event, "eval/loss", &h->losses[h->count]));
    if (h->checks) {
        ck_assert_int_eq(event->evaluated, event->step);
        lines_read(e, w, &b);
        ck_assert_double_eq_tol(h->losses[h->count], lines_loss(TESTS, w, b),
                                1e-5);
    }
    h->count++;
    return 0;
}

static void set_options(const char *folder, hvd_hook *const *hooks, int count)
{
    lines_set_options();
    lines_options.model_dir = folder;
    lines_options.save_checkpoints_steps = 4;
    lines_options.log_step_count_steps = 2;
    lines_options.keep_checkpoint_max = 0;
    lines_options.hooks = hooks;
    lines_options.nhooks = count;
}

/* With no throttle, before each checkpoint, and at the last step. */
TEST(each_checkpoint_is_evaluated)
{
    struct heard h = {.checks = true};
    hvd_hook own = {
        .size = sizeof own, .context = &h, .after_evaluation = evaluated};
    hvd_hook *const hooks[] = {&own};
    const hvd_train_spec train = training(10);
    const hvd_eval_spec eval = evaluation(0, 0);
    hvd_results trained = {.size = sizeof trained}, found = trained;
    hvd_estimator *e;

    set_options(lines_folder(), hooks, 1);
    MUST(hvd_estimator_new(&lines_options, &e));
    MUST(hvd_estimator_train_and_evaluate(e, &train, &eval, &trained, &found));
    ck_assert_int_eq(trained.global_step, 10);
    ck_assert_int_eq(h.count, 3);
    ck_assert_int_eq(h.steps[0], 4);
    ck_assert_int_eq(h.steps[1], 8);
    ck_assert_int_eq(h.steps[2], 10);
    ck_assert_int_eq(found.global_step, 10);
    ck_assert_int_eq(found.rows, TESTS);
    ck_assert_double_eq(found.loss, h.losses[2]);
    hvd_estimator_free(e);
    lines_remove();
}

/* A throttle that does not pass leaves the first and the last; a delay that
 * does not pass, the last. */
LOOP_TEST(evaluations_are_throttled, 0, 2)
{
    struct heard h = {.checks = true};
    hvd_hook own = {
        .size = sizeof own, .context = &h, .after_evaluation = evaluated};
    hvd_hook *const hooks[] = {&own};
    const hvd_train_spec train = training(16);
    const hvd_eval_spec eval = evaluation(_i ? 1000 : 0, 1000);
    hvd_estimator *e;

    set_options(lines_folder(), hooks, 1);
    MUST(hvd_estimator_new(&lines_options, &e));
    MUST(hvd_estimator_train_and_evaluate(e, &train, &eval, NULL, NULL));
    ck_assert_int_eq(h.count, _i ? 1 : 2);
    ck_assert_int_eq(h.steps[0], _i ? 16 : 4);
    ck_assert_int_eq(h.steps[h.count - 1], 16);
    hvd_estimator_free(e);
    lines_remove();
}

/* --------------------------------------------------------- stop, and go on */

/* Trains with early stopping to the end, from what the folder has. Returns the
 * step at which it stopped. */
static int64_t train_to_end(const char *folder, double *variables)
{
    const hvd_train_spec train = training(400);
    const hvd_eval_spec eval = evaluation(0, 0);
    hvd_results trained = {.size = sizeof trained};
    hvd_early_stopping_options o;
    hvd_hook *stop;
    hvd_estimator *e;

    hvd_early_stopping_options_init(&o, sizeof o);
    o.patience = 2;
    o.min_delta = 1e-4;
    o.restore_best = 1;
    MUST(hvd_early_stopping_new(&o, &stop));
    set_options(folder, &stop, 1);
    MUST(hvd_estimator_new(&lines_options, &e));
    MUST(hvd_estimator_train_and_evaluate(e, &train, &eval, &trained, NULL));
    lines_read(e, variables, variables + FEATURES);
    hvd_estimator_free(e);
    hvd_hook_free(stop);
    return trained.global_step;
}

TEST(an_interrupted_training_stops_where_it_would_have)
{
    const char *folder = lines_folder();
    double whole[FEATURES + 1], resumed[FEATURES + 1];
    int64_t end = train_to_end(folder, whole);
    char path[400];

    ck_assert_int_lt(end, 400);
    ck_assert_int_gt(end, 12);
    /* What has ended stays so. */
    ck_assert_int_eq(train_to_end(folder, resumed), end);
    ck_assert_mem_eq(whole, resumed, sizeof whole);
    for (int64_t step = 8; step <= end && ranks_rank() == 0; step++)
        for (int k = 0; k < 2; k++) {
            snprintf(path, sizeof path, "%s/ckpt-%d.%s", folder, (int)step,
                     k ? "json" : "safetensors");
            unlink(path);
        }
    ck_assert_int_eq(train_to_end(folder, resumed), end);
    ck_assert_mem_eq(whole, resumed, sizeof whole);
    lines_remove();
}

/* -------------------------------------------------- evaluators of their own */

static const char with_evaluator[] =
    "{\"cluster\":{\"worker\":[\"localhost:1\"],\"evaluator\":"
    "[\"localhost:2\"]},\"task\":{\"type\":\"worker\",\"index\":0}}";

/* An evaluator in a child of rank 0, before there is a world: it runs this
 * program again. */
static pid_t start_evaluator(const char *folder)
{
    pid_t child = fork();

    if (child != 0)
        return child;
    for (char **one = environ; *one;)
        if (strncmp(*one, "OMPI_", 5) == 0 || strncmp(*one, "PMI", 3) == 0) {
            char name[200];

            snprintf(name, sizeof name, "%.*s", (int)strcspn(*one, "="), *one);
            unsetenv(name);
            one = environ;
        } else {
            one++;
        }
    setenv("TF_CONFIG",
           "{\"cluster\":{\"worker\":[\"localhost:1\"],\"evaluator\":"
           "[\"localhost:2\"]},\"task\":{\"type\":\"evaluator\",\"index\":0}}",
           1);
    execl("/proc/self/exe", "evaluator", folder, (char *)NULL);
    _exit(127);
}

/* The main of such a child. Its exit status says what went wrong. */
static int evaluate_there(const char *folder)
{
    const hvd_train_spec train = training(20);
    const hvd_eval_spec eval = evaluation(0, 0);
    hvd_results found = {.size = sizeof found};
    hvd_estimator *e;

    if (hvd_estimator_init() < 0)
        return 2;
    set_options(folder, NULL, 0);
    if (hvd_estimator_new(&lines_options, &e) < 0)
        return 3;
    if (hvd_estimator_train_and_evaluate(e, &train, &eval, NULL, &found) < 0) {
        fprintf(stderr, "evaluator: %s\n", hvd_last_error());
        return 4;
    }
    hvd_estimator_free(e);
    hvd_shutdown();
    return found.global_step == 20 && found.rows == TESTS ? 0 : 5;
}

/* After step 13, of which the checkpoints 4, 8 and 12 come before, rank 0 waits
 * until the evaluator has written of one; the others wait for rank 0. */
static int wait_for_it(void *context, hvd_estimator *e, hvd_event *event)
{
    char path[400];

    (void)context, (void)e;
    snprintf(path, sizeof path, "%s/evaluations.jsonl",
             lines_options.model_dir);
    for (int i = 0; event->step == 13 && ranks_rank() == 0 && i < 6000; i++)
        if (access(path, R_OK) != 0)
            usleep(10000);
    return 0;
}

TEST(an_evaluator_takes_no_part)
{
    const char *folder = lines_folder();
    struct heard h = {.checks = false};
    hvd_hook own = {.size = sizeof own,
                    .context = &h,
                    .after_evaluation = evaluated,
                    .after_step = wait_for_it};
    hvd_hook *const hooks[] = {&own};
    const hvd_train_spec train = training(20);
    const hvd_eval_spec eval = evaluation(0, 0);
    hvd_results trained = {.size = sizeof trained};
    pid_t child = ranks_rank() == 0 ? start_evaluator(folder) : 0;
    hvd_estimator *e;
    int status = 0;

    set_options(folder, hooks, 1);
    MUST(hvd_estimator_new(&lines_options, &e));
    setenv("TF_CONFIG", with_evaluator, 1);
    MUST(hvd_estimator_train_and_evaluate(e, &train, &eval, &trained, NULL));
    unsetenv("TF_CONFIG");
    ck_assert_int_eq(trained.global_step, 20);
    ck_assert_int_ge(h.count, 1);
    ck_assert_int_eq(h.steps[0] % 4, 0);
    ck_assert_int_le(h.steps[0], 12);
    hvd_estimator_free(e);
    if (child > 0) {
        ck_assert_int_eq(waitpid(child, &status, 0), child);
        ck_assert_msg(WIFEXITED(status) && WEXITSTATUS(status) == 0,
                      "the evaluator ended with status %#x", status);
    }
    lines_remove();
}

/* ------------------------------------------------- the file of an evaluator */

/* Rank 0 adds a text to the evaluations in its folder. */
static void tell(const char *folder, const char *text)
{
    char path[400];
    FILE *f;

    if (ranks_rank() != 0)
        return;
    snprintf(path, sizeof path, "%s/evaluations.jsonl", folder);
    f = fopen(path, "a");
    ck_assert_ptr_nonnull(f);
    ck_assert_int_ge(fputs(text, f), 0);
    ck_assert_int_eq(fclose(f), 0);
}

/* Trains to a step. Only rank 0 need be told of the evaluator. */
static void train_listening(const char *folder, int64_t step, struct heard *h)
{
    hvd_hook own = {
        .size = sizeof own, .context = h, .after_evaluation = evaluated};
    const hvd_train_spec train = training(step);
    const hvd_eval_spec eval = evaluation(0, 0);
    hvd_estimator *e;

    h->count = 0;
    set_options(folder, (hvd_hook *const[]){&own}, 1);
    MUST(hvd_estimator_new(&lines_options, &e));
    if (ranks_rank() == 0)
        setenv("TF_CONFIG", with_evaluator, 1);
    MUST(hvd_estimator_train_and_evaluate(e, &train, &eval, NULL, NULL));
    unsetenv("TF_CONFIG");
    hvd_estimator_free(e);
}

/* Each line is heard once, when it is complete, also by a training that goes
 * on; those of an earlier training are not. */
TEST(what_the_evaluator_writes_is_heard_once)
{
    const char *folder = lines_folder();
    struct heard h = {.checks = false};

    tell(folder, "{\"step\":900,\"eval/loss\":9}\n");
    train_listening(folder, 4, &h);
    ck_assert_int_eq(h.count, 0);
    tell(folder, "{\"step\":4,\"eval/loss\":0.25,\"eval/accuracy\":1}\n"
                 "no object\n"
                 "{\"step\":5,\"eval/loss\":null}\n{\"step\":6,\"eval/lo");
    train_listening(folder, 8, &h);
    ck_assert_int_eq(h.count, 2);
    ck_assert_int_eq(h.steps[0], 4);
    ck_assert_double_eq(h.losses[0], 0.25);
    ck_assert_int_eq(h.steps[1], 5);
    ck_assert(isnan(h.losses[1]));
    tell(folder, "ss\":0.125}\n");
    train_listening(folder, 12, &h);
    ck_assert_int_eq(h.count, 1);
    ck_assert_int_eq(h.steps[0], 6);
    ck_assert_double_eq(h.losses[0], 0.125);
    lines_remove();
}

TEST(specs_without_data_are_refused)
{
    hvd_train_spec train = training(4);
    hvd_eval_spec eval = evaluation(0, 0);
    hvd_estimator *e;

    set_options(NULL, NULL, 0);
    MUST(hvd_estimator_new(&lines_options, &e));
    ck_assert_int_lt(
        hvd_estimator_train_and_evaluate(e, &train, &eval, NULL, NULL), 0);
    ck_assert_ptr_nonnull(
        strstr(hvd_last_error(), ranks_rank() == 0 ? "model_dir" : "another"));
    eval.throttle_secs = -1;
    ck_assert_int_lt(
        hvd_estimator_train_and_evaluate(e, &train, &eval, NULL, NULL), 0);
    eval.data = NULL;
    ck_assert_int_lt(
        hvd_estimator_train_and_evaluate(e, &train, &eval, NULL, NULL), 0);
    ck_assert_ptr_nonnull(strstr(
        hvd_last_error(), ranks_rank() == 0 ? "makes the data" : "another"));
    hvd_estimator_free(e);
}

int main(int argc, char **argv)
{
    static const struct suite suite = {.name = "mpi_estimator_evaluate"};

    return argc > 1 ? evaluate_there(argv[1])
                    : ranks_test_main(HVD_STARTS_MPI, &suite);
}
