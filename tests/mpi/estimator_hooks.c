/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Hooks of an estimator: each is called at its moments on all ranks, one rank
 * is enough to stop or to fail all, and what checkpoints keep of them makes a
 * training that is resumed the one that was never interrupted.
 */
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "lines.h"

/* -------------------------------------------------- what a test's hook does */

struct heard {
    char moments[400];      /* a letter for each call */
    int64_t stop_at;        /* step after which the last rank stops; 0: none */
    int64_t fail_at;        /* ... or fails */
    int64_t slow_at;        /* step after which the rate is multiplied */
    double factor;          /* by this on rank 0, and by another elsewhere */
    int64_t evaluate_every; /* steps; 0: never */
    double average;         /* the last train/loss */
};

static bool is_last(void)
{
    return ranks_rank() == ranks_size() - 1;
}

static void note(struct heard *h, char moment)
{
    size_t used = strlen(h->moments);

    if (used + 1 < sizeof h->moments)
        h->moments[used] = moment;
}

static int begin(void *context, hvd_estimator *e, hvd_event *event)
{
    (void)e;
    ck_assert_uint_eq(event->size, sizeof *event);
    note(context, 'b');
    return 0;
}

static int before(void *context, hvd_estimator *e, hvd_event *event)
{
    (void)e;
    ck_assert_double_eq(event->rate, 0.1);
    note(context, '<');
    return 0;
}

static int after(void *context, hvd_estimator *e, hvd_event *event)
{
    struct heard *h = context;

    note(h, '>');
    ck_assert(event->loss >= 0);
    if (event->step == h->slow_at)
        event->rate_factor *= ranks_rank() == 0 ? h->factor : 1000;
    if (h->evaluate_every > 0 && event->step % h->evaluate_every == 0)
        MUST(hvd_estimator_evaluate(
            e, hvd_dataset_batch(lines_data(71, 2), 7, 0), NULL, NULL));
    if (event->step == h->fail_at && is_last()) {
        hvd_metric_new(NULL, &(hvd_metric *){NULL}); /* leaves a text */
        return HVD_ERR_ARGUMENT;
    }
    return event->step == h->stop_at && is_last() ? HVD_HOOK_STOP : 0;
}

static int averaged(void *context, hvd_estimator *e, hvd_event *event)
{
    struct heard *h = context;

    (void)e;
    MUST(hvd_event_value(event, "train/loss", &h->average));
    ck_assert_int_eq(hvd_event_value(event, "eval/loss", &h->average),
                     HVD_ERR_ARGUMENT);
    note(h, 'a');
    return 0;
}

static int evaluated(void *context, hvd_estimator *e, hvd_event *event)
{
    double loss;

    (void)e;
    MUST(hvd_event_value(event, "eval/loss", &loss));
    note(context, 'e');
    return 0;
}

static int saved(void *context, hvd_estimator *e, hvd_event *event)
{
    (void)e, (void)event;
    note(context, 's');
    return 0;
}

static int ended(void *context, hvd_estimator *e, hvd_event *event)
{
    (void)e, (void)event;
    note(context, 'x');
    return 0;
}

static hvd_hook hook_of(struct heard *h)
{
    return (hvd_hook){.size = sizeof(hvd_hook),
                      .context = h,
                      .begin = begin,
                      .before_step = before,
                      .after_step = after,
                      .after_average = averaged,
                      .after_evaluation = evaluated,
                      .after_checkpoint = saved,
                      .end = ended};
}

static hvd_dataset *batches(void)
{
    return hvd_dataset_batch(lines_data(ROWS, 2), 4, 1);
}

static hvd_estimator *made(hvd_hook *const *hooks, int count,
                           const char *model_dir)
{
    hvd_estimator *e;

    lines_set_options();
    lines_options.hooks = hooks;
    lines_options.nhooks = count;
    lines_options.log_step_count_steps = 2;
    lines_options.save_checkpoints_steps = 3;
    lines_options.model_dir = model_dir;
    MUST(hvd_estimator_new(&lines_options, &e));
    return e;
}

TEST(hooks_are_called_at_their_moments)
{
    struct heard h = {.evaluate_every = 5};
    hvd_hook own = hook_of(&h);
    hvd_hook *const hooks[] = {&own};
    hvd_estimator *e = made(hooks, 1, lines_folder());
    const hvd_train_spec five = lines_steps(5), one = lines_steps(1);

    MUST(hvd_estimator_train(e, batches(), &five, NULL));
    ck_assert_str_eq(h.moments, "b<><>a<>s<>a<>eaxs");
    MUST(hvd_estimator_train(e, batches(), &one, NULL));
    ck_assert_str_eq(h.moments, "b<><>a<>s<>a<>eaxsb<>axs");
    hvd_estimator_free(e);
    lines_remove();
}

TEST(one_rank_stops_all_at_the_same_step)
{
    struct heard h = {.stop_at = 7};
    hvd_hook own = hook_of(&h);
    hvd_hook *const hooks[] = {&own};
    hvd_estimator *e = made(hooks, 1, NULL);
    const hvd_train_spec many = lines_steps(50);
    hvd_results results = {.size = sizeof results};

    MUST(hvd_estimator_train(e, batches(), &many, &results));
    ck_assert_int_eq(results.global_step, 7);
    ck_assert_int_eq(results.stopped, 1);
    ck_assert_str_eq(h.moments, "b<><>a<><>a<><>a<>ax");
    /* It goes on when it is asked to. */
    MUST(hvd_estimator_train(e, batches(), &many, &results));
    ck_assert_int_eq(results.global_step, 57);
    ck_assert_int_eq(results.stopped, 0);
    hvd_estimator_free(e);
}

TEST(one_rank_fails_all)
{
    struct heard h = {.fail_at = 3};
    hvd_hook own = hook_of(&h);
    hvd_hook *const hooks[] = {&own};
    hvd_estimator *e = made(hooks, 1, NULL);
    const hvd_train_spec many = lines_steps(50);
    hvd_results results = {.size = sizeof results};

    ck_assert_int_lt(hvd_estimator_train(e, batches(), &many, &results), 0);
    ck_assert_int_eq(results.global_step, 3);
    ck_assert_msg(
        strstr(hvd_last_error(), is_last() ? "a hook: the options of a metric"
                                           : "another rank has failed"),
        "%s", hvd_last_error());
    hvd_estimator_free(e);
}

/* The rate that rank 0 wants is that of all, from the next step on. */
TEST(rank_0_says_the_rate)
{
    struct heard h = {.slow_at = 5, .factor = 0.25};
    hvd_hook own = hook_of(&h);
    hvd_hook *const hooks[] = {&own};
    hvd_estimator *e = made(hooks, 1, NULL);
    const hvd_train_spec first = lines_steps(1), more = lines_steps(9);
    const int batch = 4 * ranks_size();
    double w[FEATURES], b, now[FEATURES], bias;

    MUST(hvd_estimator_train(e, batches(), &first, NULL));
    lines_read(e, w, &b);
    MUST(hvd_estimator_train(e, batches(), &more, NULL));
    if (ROWS % batch == 0) {
        lines_descend(batch, 1, 5, 0.1, w, &b);
        lines_descend(batch, 5, 10, 0.025, w, &b);
        lines_read(e, now, &bias);
        for (int k = 0; k < FEATURES; k++)
            ck_assert_double_eq_tol(now[k], w[k], 1e-5);
        ck_assert_double_eq_tol(bias, b, 1e-5);
    }
    hvd_estimator_free(e);
}

/* ----------------------------------------------------- rules of given hooks */

/* Gives a hook values as if from evaluations, with a rate of 1. Returns after
 * how many it stopped, and sets *factor to that of the rate. */
static int give(hvd_hook *hook, int count, const double *values, double *factor)
{
    hvd_value value = {.name = "eval/loss"};
    hvd_event event = {.size = sizeof event,
                       .rate = 1,
                       .rate_factor = 1,
                       .nvalues = 1,
                       .values = &value};

    for (int i = 0; i < count; i++) {
        int status;

        value.value = values[i];
        event.step = i + 1;
        status = hook->after_evaluation(hook->context, NULL, &event);
        ck_assert_int_ge(status, 0);
        if (status == HVD_HOOK_STOP)
            return i + 1;
    }
    if (factor)
        *factor = event.rate_factor;
    return 0;
}

struct stopping {
    int patience, largest, start;
    double min_delta;
    int count;
    double values[8];
    int stops; /* after so many */
};

static const struct stopping stopping[] = {
    {0, 0, 0, 0, 4, {3, 2, 2, 1}, 3},
    {0, 0, 0, 0, 3, {3, 4, 5}, 2},
    {1, 0, 0, 0, 4, {3, 4, 2, 2}, 2},
    {2, 0, 0, 0, 6, {3, 4, 2, 3, 2, 1}, 5},
    {2, 0, 0, 0, 6, {3, 4, 2, 3, 1, 1}, 0},
    {2, 0, 0, 0.5, 6, {3, 2.8, 2.6, 2.4, 2, 1}, 3},
    {2, 1, 0, 0, 5, {1, 2, 1.5, 2, 3}, 4},
    {1, 0, 4, 0, 6, {1, 2, 3, 4, 4, 1}, 5},
    {2, 0, 0, 0, 4, {(double)NAN, (double)NAN, 1, 1}, 2},
    {3, 0, 0, 0, 5, {(double)NAN, (double)NAN, 1, 2, 3}, 0},
};

LOOP_TEST(early_stopping_waits, 0, sizeof stopping / sizeof *stopping)
{
    const struct stopping *s = &stopping[_i];
    hvd_early_stopping_options o;
    hvd_hook *hook;

    hvd_early_stopping_options_init(&o, sizeof o);
    o.patience = s->patience;
    o.largest = s->largest;
    o.start = s->start;
    o.min_delta = s->min_delta;
    MUST(hvd_early_stopping_new(&o, &hook));
    ck_assert_int_eq(give(hook, s->count, s->values, NULL), s->stops);
    hvd_hook_free(hook);
}

struct plateau {
    int patience, cooldown;
    double min_delta, min_rate;
    int count;
    double values[10];
    double factor;
};

static const struct plateau plateaus[] = {
    {2, 0, 0, 0, 4, {3, 2, 2, 1}, 1},
    {2, 0, 0, 0, 4, {3, 2, 2, 2}, 0.5},
    {2, 0, 0, 0, 6, {3, 2, 2, 2, 2, 2}, 0.25},
    {1, 2, 0, 0, 5, {3, 3, 3, 3, 3}, 0.25},
    {1, 4, 0, 0, 5, {3, 3, 3, 3, 3}, 0.5},
    {1, 0, 0, 0.3, 4, {3, 3, 3, 3}, 0.3},
    {2, 0, 0.5, 0, 3, {3, 2.7, 2.6}, 0.5},
};

LOOP_TEST(the_rate_falls_on_a_plateau, 0, sizeof plateaus / sizeof *plateaus)
{
    const struct plateau *p = &plateaus[_i];
    hvd_plateau_options o;
    double factor;
    hvd_hook *hook;

    hvd_plateau_options_init(&o, sizeof o);
    o.factor = 0.5;
    o.patience = p->patience;
    o.cooldown = p->cooldown;
    o.min_delta = p->min_delta;
    o.min_rate = p->min_rate;
    MUST(hvd_plateau_new(&o, &hook));
    ck_assert_int_eq(give(hook, p->count, p->values, &factor), 0);
    ck_assert_double_eq_tol(factor, p->factor, 1e-12);
    hvd_hook_free(hook);
}

/* ------------------------------------------------------------ in a training */

/* The rate becomes too large at step 6: what has been best until then comes
 * back in the end. */
TEST(the_best_variables_come_back)
{
    struct heard h = {.slow_at = 6, .factor = 40, .evaluate_every = 2};
    hvd_early_stopping_options o;
    hvd_hook own = hook_of(&h), *stop;
    double w[FEATURES], b, now[FEATURES], bias;
    const hvd_train_spec six = lines_steps(6), many = lines_steps(60);
    hvd_results results = {.size = sizeof results};
    hvd_estimator *e;

    own.before_step = NULL;
    hvd_early_stopping_options_init(&o, sizeof o);
    o.patience = 2;
    o.restore_best = 1;
    MUST(hvd_early_stopping_new(&o, &stop));
    e = made((hvd_hook *const[]){&own, stop}, 2, NULL);
    MUST(hvd_estimator_train(e, batches(), &six, NULL));
    lines_read(e, w, &b);
    MUST(hvd_estimator_train(e, batches(), &many, &results));
    ck_assert_int_eq(results.stopped, 1);
    ck_assert_int_eq(results.global_step, 10);
    lines_read(e, now, &bias);
    ck_assert_mem_eq(now, w, sizeof w);
    ck_assert_double_eq(bias, b);
    /* What has stopped stays so. */
    MUST(hvd_estimator_train(e, batches(), &many, &results));
    ck_assert_int_eq(results.global_step, 10);
    hvd_estimator_free(e);
    hvd_hook_free(stop);
}

/* The files of a checkpoint in the folder of rank 0. */
static void remove_checkpoint(const char *folder, int step)
{
    static const char *const ends[] = {"safetensors", "json"};
    char path[400];

    for (int i = 0; i < 2 && ranks_rank() == 0; i++) {
        snprintf(path, sizeof path, "%s/ckpt-%d.%s", folder, step, ends[i]);
        ck_assert_int_eq(unlink(path), 0);
    }
}

/* One training with all hooks, from what the folder has, to step 24. */
static int64_t train_to_end(const char *folder, double *variables)
{
    struct heard h = {.evaluate_every = 2};
    hvd_early_stopping_options stopping_options;
    hvd_plateau_options plateau_options;
    const hvd_train_spec spec = {.size = sizeof spec, .max_steps = 24};
    hvd_hook own = hook_of(&h), *hooks[4] = {&own};
    hvd_results results = {.size = sizeof results};
    hvd_estimator *e;

    hvd_early_stopping_options_init(&stopping_options, sizeof stopping_options);
    stopping_options.patience = 3;
    stopping_options.min_delta = 1e-3;
    stopping_options.restore_best = 1;
    hvd_plateau_options_init(&plateau_options, sizeof plateau_options);
    plateau_options.patience = 1;
    plateau_options.min_delta = 0.5;
    plateau_options.factor = 0.75;
    MUST(hvd_early_stopping_new(&stopping_options, &hooks[1]));
    MUST(hvd_plateau_new(&plateau_options, &hooks[2]));
    plateau_options.monitor = "train/loss";
    MUST(hvd_plateau_new(&plateau_options, &hooks[3]));
    own.before_step = NULL;
    lines_set_options();
    lines_options.optimizer = "momentum";
    lines_options.rate.rate = 0.02;
    lines_options.hooks = hooks;
    lines_options.nhooks = 4;
    lines_options.log_step_count_steps = 5; /* 7 is within 5 steps */
    lines_options.save_checkpoints_steps = 7;
    lines_options.keep_checkpoint_max = 0;
    lines_options.model_dir = folder;
    MUST(hvd_estimator_new(&lines_options, &e));
    MUST(hvd_estimator_train(e, batches(), &spec, &results));
    lines_read(e, variables, variables + FEATURES);
    variables[FEATURES + 1] = h.average;
    hvd_estimator_free(e);
    for (int i = 1; i < 4; i++)
        hvd_hook_free(hooks[i]);
    return results.global_step;
}

TEST(a_resumed_training_has_the_same_hooks)
{
    const char *folder = lines_folder();
    double whole[FEATURES + 2], resumed[FEATURES + 2];
    int64_t end = train_to_end(folder, whole);

    ck_assert_int_gt(end, 14);
    remove_checkpoint(folder, (int)end);
    remove_checkpoint(folder, 14);
    if (end > 21)
        remove_checkpoint(folder, 21);
    ck_assert_int_eq(train_to_end(folder, resumed), end);
    ck_assert_mem_eq(whole, resumed, sizeof whole);
    lines_remove();
}

TEST(bad_hooks_are_refused)
{
    const hvd_train_spec one = lines_steps(1);
    struct heard h = {.stop_at = 0};
    hvd_hook own = hook_of(&h), other = own;
    hvd_hook *hooks[] = {&own, &other};
    hvd_early_stopping_options o;
    hvd_plateau_options p;
    hvd_estimator *e;
    hvd_hook *stop;

    own.name = other.name = "same";
    lines_set_options();
    lines_options.hooks = hooks;
    lines_options.nhooks = 2;
    ck_assert_int_eq(hvd_estimator_new(&lines_options, &e), HVD_ERR_ARGUMENT);
    ck_assert_ptr_nonnull(strstr(hvd_last_error(), "the name 'same'"));
    hooks[1] = NULL;
    ck_assert_int_eq(hvd_estimator_new(&lines_options, &e), HVD_ERR_ARGUMENT);
    ck_assert_ptr_nonnull(strstr(hvd_last_error(), "hook 1 is NULL"));
    hvd_early_stopping_options_init(&o, sizeof o);
    o.monitor = "loss";
    ck_assert_int_eq(hvd_early_stopping_new(&o, &stop), HVD_ERR_ARGUMENT);
    ck_assert_ptr_nonnull(strstr(hvd_last_error(), "monitor is 'loss'"));
    hvd_plateau_options_init(&p, sizeof p);
    p.factor = 1;
    ck_assert_int_eq(hvd_plateau_new(&p, &stop), HVD_ERR_ARGUMENT);
    ck_assert_ptr_nonnull(strstr(hvd_last_error(), "factor is 1"));
    /* A value that there should be, and is not. */
    o.monitor = "eval/los";
    MUST(hvd_early_stopping_new(&o, &stop));
    e = made(&stop, 1, NULL);
    MUST(hvd_estimator_train(e, batches(), &one, NULL));
    ck_assert_int_lt(
        hvd_estimator_evaluate(e, hvd_dataset_batch(lines_data(71, 2), 7, 0),
                               NULL, NULL),
        0);
    ck_assert_ptr_nonnull(strstr(
        hvd_last_error(), ranks_rank() == 0 ? "but eval/loss" : "another"));
    hvd_estimator_free(e);
    hvd_hook_free(stop);
}

RANKS_TEST_MAIN(HVD_STARTS_MPI, "mpi_estimator_hooks")
