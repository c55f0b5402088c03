/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The strategy is compared with training done by hand: every rank can compute
 * every rank's gradients, and from them the right variables.
 */
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hvd_strategy.h"
#include "ranks.h"
#include "small_model.h"
#include "small_model_steps.h"

/* Every rank must hold rank 0's bits. */
static void check_same_bits(void)
{
    static float theirs[LARGEST];

    for (int v = 0; v < NVARIABLES; v++) {
        memcpy(theirs, values[v], sizeof theirs);
        ck_hvd(hvd_broadcast(theirs, count_of(v), HVD_FLOAT32, 0));
        ck_assert_mem_eq(theirs, values[v],
                         (size_t)count_of(v) * sizeof(float));
    }
}

static void train(hvd_optimizer optimizer, int serial)
{
    hvd_strategy_options options = options_of(optimizer);
    hvd_strategy *strategy = make(optimizer, serial, NULL, NULL);
    hvd_strategy_stats stats = {.size = sizeof stats};

    expect_start();
    ck_hvd(hvd_strategy_start(strategy));
    check_values(0);
    for (int step = 0; step < NSTEPS; step++) {
        feed(strategy, step);
        ck_hvd(hvd_strategy_step(strategy));
        expect_step(&options, step, ranks_size());
        check_values(2e-6);
    }
    check_same_bits();
    ck_hvd(hvd_strategy_get_stats(strategy, &stats));
    ck_assert_int_eq(stats.variables, NVARIABLES);
    ck_assert_int_eq(stats.steps, NSTEPS);
    ck_assert_int_eq(stats.gradients, NSTEPS * NVARIABLES);
    ck_assert_int_eq(stats.bytes, NSTEPS * 4 * (20000 + 64 + 63 + 1));
    ck_assert(stats.wait_seconds >= 0 && stats.update_seconds > 0);
    hvd_strategy_free(strategy);
}

static void expect_first_step(void)
{
    const hvd_strategy_options sgd = options_of(HVD_SGD);

    expect_step(&sgd, 0, ranks_size());
}

TEST(every_optimizer_is_right)
{
    for (hvd_optimizer o = 0; o < HVD_NUM_OPTIMIZERS; o++)
        train(o, 0);
}

TEST(momentum_may_change_from_step_to_step)
{
    cycles = true;
    for (hvd_optimizer o = 0; o < HVD_NUM_OPTIMIZERS; o++)
        if (has_momentum(o))
            train(o, 0);
    cycles = false;
}

TEST(momentum_that_there_is_none_of_is_refused)
{
    hvd_strategy_options options = options_of(HVD_RMSPROP);
    hvd_strategy *strategy;

    for (hvd_optimizer o = 0; o < HVD_NUM_OPTIMIZERS; o++) {
        strategy = make(o, 0, NULL, NULL);
        if (has_momentum(o)) {
            ck_hvd(hvd_strategy_set_momentum(strategy, 0));
            ck_hvd_fails(hvd_strategy_set_momentum(strategy, 1),
                         HVD_ERR_ARGUMENT);
            ck_error_says("1: give a number of at least 0, less than 1");
            ck_hvd_fails(hvd_strategy_set_momentum(strategy, NAN),
                         HVD_ERR_ARGUMENT);
        } else {
            ck_hvd_fails(hvd_strategy_set_momentum(strategy, 0.9),
                         HVD_ERR_ARGUMENT);
            ck_error_says(hvd_optimizer_name(o));
            ck_error_says("has no momentum");
        }
        hvd_strategy_free(strategy);
    }
    ck_hvd_fails(hvd_strategy_set_momentum(NULL, 0.9), HVD_ERR_ARGUMENT);
    /* RMSprop has one if its options say so. */
    options.momentum = 0.5;
    strategy = make_from(&options);
    ck_hvd(hvd_strategy_set_momentum(strategy, 0.75));
    ck_hvd_fails(hvd_strategy_set_momentum(strategy, 0), HVD_ERR_ARGUMENT);
    hvd_strategy_free(strategy);
}

TEST(gradients_may_be_added_up)
{
    op = HVD_SUM;
    train(HVD_SGD, 0);
    train(HVD_ADAM, 1);
    op = HVD_AVERAGE;
}

/* Gradients that are equal on all ranks are their own adaptive sum. */
TEST(gradients_may_be_added_adaptively)
{
    hvd_strategy *strategy;

    op = HVD_ADASUM;
    strategy = make(HVD_SGD, 0, NULL, NULL);
    op = HVD_AVERAGE;
    expect_start();
    ck_hvd(hvd_strategy_start(strategy));
    for (int v = 0; v < NVARIABLES; v++) {
        for (int64_t i = 0; i < count_of(v); i++) {
            hvd_strategy_gradient(strategy, v)[i] = (float)gradient(0, 0, v, i);
            expected[v][i] -= 0.01 * gradient(0, 0, v, i);
        }
        ck_hvd(hvd_strategy_ready(strategy, v));
    }
    ck_hvd(hvd_strategy_step(strategy));
    check_values(2e-6);
    hvd_strategy_free(strategy);
}

TEST(serial_gives_the_same_bits)
{
    static float overlapped[NVARIABLES][LARGEST];

    train(HVD_ADAM, 0);
    memcpy(overlapped, values, sizeof values);
    train(HVD_ADAM, 1);
    ck_assert_mem_eq(overlapped, values, sizeof values);
}

/* Nothing is updated, and the averages are where the gradients were. */
TEST(without_an_optimizer_averages_stay)
{
    hvd_strategy *strategy = make(HVD_NO_OPTIMIZER, 0, NULL, NULL);
    int n = ranks_size();

    expect_start();
    ck_hvd(hvd_strategy_start(strategy));
    feed(strategy, 3);
    ck_hvd(hvd_strategy_step(strategy));
    check_values(0);
    for (int v = 0; v < NVARIABLES; v++)
        for (int64_t i = 0; i < count_of(v); i++) {
            double average = 0;

            for (int rank = 0; rank < n; rank++)
                average += gradient(rank, 3, v, i) / n;
            ck_assert_double_eq_tol(
                (double)hvd_strategy_gradient(strategy, v)[i], average, 1e-6);
        }
    hvd_strategy_free(strategy);
}

TEST(gradients_are_neighbours)
{
    hvd_strategy *strategy = make(HVD_SGD, 0, NULL, NULL);

    ck_assert(hvd_strategy_gradient(strategy, 0) == NULL);
    ck_hvd(hvd_strategy_start(strategy));
    for (int v = 1; v < NVARIABLES; v++)
        ck_assert(hvd_strategy_gradient(strategy, v) ==
                  hvd_strategy_gradient(strategy, v - 1) + count_of(v - 1));
    ck_assert(hvd_strategy_gradient(strategy, NVARIABLES) == NULL);
    ck_assert(hvd_strategy_gradient(strategy, -1) == NULL);
    hvd_strategy_free(strategy);
}

TEST(a_learning_rate_of_zero_changes_nothing)
{
    hvd_strategy *strategy = make(HVD_SGD, 0, NULL, NULL);

    expect_start();
    ck_hvd(hvd_strategy_start(strategy));
    ck_hvd(hvd_strategy_set_learning_rate(strategy, 0));
    feed(strategy, 0);
    ck_hvd(hvd_strategy_step(strategy));
    check_values(0);
    ck_hvd_fails(hvd_strategy_set_learning_rate(strategy, -1),
                 HVD_ERR_ARGUMENT);
    ck_hvd_fails(hvd_strategy_set_learning_rate(strategy, NAN),
                 HVD_ERR_ARGUMENT);
    hvd_strategy_free(strategy);
}

/* ---------------------------------------------------------------- callbacks */

struct seen {
    int calls[NVARIABLES];
    int stop_at; /* -1: never */
};

static int note_update(void *context, int32_t variable)
{
    struct seen *seen = context;

    seen->calls[variable]++;
    return variable == seen->stop_at ? -4711 : 0;
}

TEST(updates_are_told_once_a_step)
{
    struct seen seen = {.stop_at = -1};
    hvd_strategy *strategy = make(HVD_MOMENTUM, 0, note_update, &seen);

    ck_hvd(hvd_strategy_start(strategy));
    for (int step = 0; step < 3; step++) {
        feed(strategy, step);
        ck_hvd(hvd_strategy_step(strategy));
    }
    for (int v = 0; v < NVARIABLES; v++)
        ck_assert_int_eq(seen.calls[v], 3);
    /* If one rank stops, its variables stay those of the others. */
    seen.stop_at = ranks_rank() == ranks_size() - 1 ? 1 : -1;
    feed(strategy, 3);
    if (seen.stop_at == 1)
        ck_assert_int_eq(hvd_strategy_step(strategy), -4711);
    else
        ck_hvd(hvd_strategy_step(strategy));
    ck_assert_int_eq(seen.calls[0], 4);
    ck_assert_int_eq(seen.calls[1], 4);
    ck_assert_int_eq(seen.calls[3], seen.stop_at == 1 ? 3 : 4);
    check_same_bits();
    seen.stop_at = -1;
    feed(strategy, 4);
    ck_hvd(hvd_strategy_step(strategy));
    check_same_bits();
    hvd_strategy_free(strategy);
}

static void *feed_on_a_thread(void *strategy)
{
    feed(strategy, 0);
    return NULL;
}

TEST(gradients_may_come_from_a_thread)
{
    hvd_strategy *strategy = make(HVD_SGD, 0, NULL, NULL);
    pthread_t thread;

    expect_start();
    ck_hvd(hvd_strategy_start(strategy));
    ck_assert(pthread_create(&thread, NULL, feed_on_a_thread, strategy) == 0);
    pthread_join(thread, NULL);
    ck_hvd(hvd_strategy_step(strategy));
    expect_first_step();
    check_values(2e-6);
    hvd_strategy_free(strategy);
}

/* ------------------------------------------------------------------- errors */

TEST(options_are_checked)
{
    hvd_strategy_options options;
    hvd_strategy *strategy = NULL;

#define SPOILED(change, text)                                                  \
    hvd_strategy_options_init(&options, sizeof options);                       \
    change;                                                                    \
    ck_hvd_fails(hvd_strategy_new(&options, &strategy), HVD_ERR_ARGUMENT);     \
    ck_error_says(text);                                                       \
    ck_assert(strategy == NULL)
    SPOILED(options.learning_rate = -0.5, "learning rate -0.5");
    SPOILED(options.learning_rate = INFINITY, "learning rate");
    SPOILED(options.beta1 = 1, "beta1");
    SPOILED(options.beta2 = -0.1, "beta2");
    SPOILED(options.momentum = NAN, "momentum");
    SPOILED(options.epsilon = -1, "epsilon");
    SPOILED(options.optimizer = 12, "optimizer 12");
    SPOILED(options.rho = 1, "rho 1");
    SPOILED(options.weight_decay = -1, "weight_decay -1");
    SPOILED(options.check_every = -1, "check_every -1");
    SPOILED(options.op = HVD_MAX, "op 4, max: gradients are reduced by");
    SPOILED(options.op = -1, "op -1, which is none");
    SPOILED(options.compression = 12345, "compression 12345");
    SPOILED(options.size = 3, "hvd_strategy_options_init");
    hvd_strategy_options_init(&options, sizeof options);
    options.op = HVD_ADASUM;
    options.compression = HVD_COMPRESSION_FP16;
    ck_hvd_fails(hvd_strategy_new(&options, &strategy), HVD_ERR_UNSUPPORTED);
    ck_error_says("not by adasum");
    ck_hvd_fails(hvd_strategy_new(NULL, &strategy), HVD_ERR_ARGUMENT);
    hvd_strategy_free(NULL);
}

TEST(variables_are_checked)
{
    static const int64_t bad[] = {3, -1}, huge[] = {INT64_MAX / 2, 16};
    hvd_strategy *strategy = make(HVD_SGD, 0, NULL, NULL);

    ck_hvd_fails(
        hvd_strategy_add(strategy, "variable 1", values[1], 2, shapes[1]),
        HVD_ERR_ARGUMENT);
    ck_error_says("'variable 1'");
    ck_hvd_fails(hvd_strategy_add(strategy, NULL, values[1], 2, shapes[1]),
                 HVD_ERR_ARGUMENT);
    ck_hvd_fails(hvd_strategy_add(strategy, "a\nb", values[1], 2, shapes[1]),
                 HVD_ERR_ARGUMENT);
    ck_error_says("control character 0x0a");
    ck_hvd_fails(hvd_strategy_add(strategy, "x", NULL, 2, shapes[1]),
                 HVD_ERR_ARGUMENT);
    ck_hvd_fails(hvd_strategy_add(strategy, "x", values[1], 2, bad),
                 HVD_ERR_ARGUMENT);
    ck_hvd_fails(hvd_strategy_add(strategy, "x", values[1], 2, huge),
                 HVD_ERR_ARGUMENT);
    ck_hvd_fails(hvd_strategy_add(strategy, "x", values[1], 99, shapes[1]),
                 HVD_ERR_ARGUMENT);
    ck_hvd_fails(hvd_strategy_step(strategy), HVD_ERR_ARGUMENT);
    ck_error_says("hvd_strategy_start");
    ck_hvd(hvd_strategy_start(strategy));
    ck_hvd_fails(hvd_strategy_start(strategy), HVD_ERR_ARGUMENT);
    ck_hvd_fails(hvd_strategy_add(strategy, "late", values[1], 2, shapes[1]),
                 HVD_ERR_ARGUMENT);
    ck_hvd_fails(hvd_strategy_ready(strategy, 77), HVD_ERR_ARGUMENT);
    ck_error_says("77");
    hvd_strategy_free(strategy);
}

/* If one rank forgets a gradient, the step fails on all ranks with a text that
 * names that rank, and the next step is right. */
TEST(a_missing_gradient_fails_everywhere)
{
    hvd_strategy *strategy = make(HVD_SGD, 0, NULL, NULL);
    int last = ranks_size() - 1, mine = ranks_rank() == last;
    char who[32];

    expect_start();
    ck_hvd(hvd_strategy_start(strategy));
    for (int v = 0; v < NVARIABLES; v++) {
        memset(hvd_strategy_gradient(strategy, v), 0,
               (size_t)count_of(v) * sizeof(float));
        if (!mine || v != 3)
            ck_hvd(hvd_strategy_ready(strategy, v));
    }
    ck_hvd_fails(hvd_strategy_step(strategy),
                 mine ? HVD_ERR_ARGUMENT : HVD_ERR_PEER);
    ck_error_says("'variable 3'");
    sprintf(who, "rank %d", last);
    if (!mine)
        ck_error_says(who);
    check_values(0);
    feed(strategy, 0);
    ck_hvd(hvd_strategy_step(strategy));
    expect_first_step();
    check_values(2e-6);
    hvd_strategy_free(strategy);
}

/* Feeds count of the variables. */
static void feed_some(hvd_strategy *strategy, int step, int count)
{
    for (int v = 0; v < NVARIABLES; v++) {
        float *g = hvd_strategy_gradient(strategy, v);

        for (int64_t i = 0; i < count_of(v); i++)
            g[i] = (float)gradient(ranks_rank(), step, v, i);
        if (v < count)
            ck_hvd(hvd_strategy_ready(strategy, v));
    }
}

/* _i is the number of gradients that the last rank has by then, overlapped and
 * serial. All ranks have averages of these, and all update their variables. */
LOOP_TEST(a_step_given_up_fails_elsewhere, 0, 2 * (NVARIABLES + 1))
{
    int given = _i % (NVARIABLES + 1), last = ranks_size() - 1;
    hvd_strategy *strategy = make(HVD_ADAM, _i > NVARIABLES, NULL, NULL);
    char who[32];

    ck_hvd_fails(hvd_strategy_abandon(NULL, NULL), HVD_ERR_ARGUMENT);
    ck_hvd_fails(hvd_strategy_abandon(strategy, NULL), HVD_ERR_ARGUMENT);
    ck_error_says("hvd_strategy_start");
    ck_hvd(hvd_strategy_start(strategy));
    feed_some(strategy, 0, ranks_rank() == last ? given : NVARIABLES);
    if (ranks_rank() == last) {
        ck_hvd(hvd_strategy_abandon(strategy, "the data has ended"));
    } else {
        /* If all gradients were given, the others notice nothing until the next
         * step. */
        if (given == NVARIABLES && _i <= NVARIABLES) {
            ck_hvd(hvd_strategy_step(strategy));
            feed_some(strategy, 1, NVARIABLES);
        }
        ck_hvd_fails(hvd_strategy_step(strategy), HVD_ERR_PEER);
        sprintf(who, "rank %d", last);
        ck_error_says(who);
        ck_error_says("will not come: the data has ended");
    }
    check_same_bits();
    feed(strategy, 2);
    ck_hvd(hvd_strategy_step(strategy));
    check_same_bits();
    hvd_strategy_free(strategy);
}

TEST(a_gradient_is_ready_once)
{
    hvd_strategy *strategy = make(HVD_SGD, 0, NULL, NULL);

    ck_hvd(hvd_strategy_start(strategy));
    feed(strategy, 0);
    ck_hvd_fails(hvd_strategy_ready(strategy, 1), HVD_ERR_ARGUMENT);
    ck_error_says("'variable 1'");
    ck_hvd(hvd_strategy_step(strategy));
    hvd_strategy_free(strategy);
}

TEST(different_models_are_told_apart)
{
    hvd_strategy *strategy = make(HVD_SGD, 0, NULL, NULL);
    int last = ranks_size() - 1;
    char who[32];

    if (last > 0) {
        const char *name = ranks_rank() == last ? "odd" : "even";

        ck_hvd(hvd_strategy_add(strategy, name, values[1], 2, shapes[1]));
        ck_hvd_fails(hvd_strategy_start(strategy), HVD_ERR_MISMATCH);
        ck_error_says("variable 5");
        ck_error_says("'odd' [1,64]");
        ck_error_says("'even' [1,64]");
        sprintf(who, "rank %d", last);
        ck_error_says(who);
    }
    hvd_strategy_free(strategy);
    strategy = make(ranks_rank() == last ? HVD_ADAM : HVD_SGD, 0, NULL, NULL);
    if (last > 0) {
        ck_hvd_fails(hvd_strategy_start(strategy), HVD_ERR_MISMATCH);
        ck_error_says("optimizer adam");
        ck_error_says("optimizer sgd");
    }
    hvd_strategy_free(strategy);
    op = ranks_rank() == last ? HVD_SUM : HVD_AVERAGE;
    strategy = make(HVD_SGD, 0, NULL, NULL);
    op = HVD_AVERAGE;
    if (last > 0) {
        ck_hvd_fails(hvd_strategy_start(strategy), HVD_ERR_MISMATCH);
        ck_error_says("rank 0 has gradients by average");
        ck_error_says("has gradients by sum");
    }
    hvd_strategy_free(strategy);
    strategy = make(HVD_SGD, 0, NULL, NULL);
    if (last > 0) {
        if (ranks_rank() == last)
            ck_hvd(hvd_strategy_add(strategy, "more", values[1], 2, shapes[1]));
        ck_hvd_fails(hvd_strategy_start(strategy), HVD_ERR_MISMATCH);
        ck_error_says("nothing");
        ck_error_says("'more'");
    }
    hvd_strategy_free(strategy);
}

TEST(two_strategies_at_once)
{
    hvd_strategy *one = make(HVD_SGD, 0, NULL, NULL);
    hvd_strategy *two = make(HVD_SGD, 0, NULL, NULL);

    expect_start();
    ck_hvd(hvd_strategy_start(one));
    ck_hvd(hvd_strategy_start(two));
    /* Requests of equal names are in flight together, in different orders. */
    feed(ranks_rank() % 2 ? one : two, 0);
    feed(ranks_rank() % 2 ? two : one, 0);
    ck_hvd(hvd_strategy_step(one));
    expect_first_step();
    check_values(2e-6);
    ck_hvd(hvd_strategy_step(two));
    expect_first_step();
    check_values(4e-6);
    hvd_strategy_free(one);
    hvd_strategy_free(two);
}

TEST(no_variables_is_legal)
{
    hvd_strategy_options options;
    hvd_strategy *strategy;

    hvd_strategy_options_init(&options, sizeof options);
    ck_hvd(hvd_strategy_new(&options, &strategy));
    ck_hvd(hvd_strategy_start(strategy));
    ck_hvd(hvd_strategy_step(strategy));
    hvd_strategy_free(strategy);
}

RANKS_TEST_MAIN(HVD_STARTS_MPI, "mpi_strategy")
