/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Parameter servers whose workers do not go in step: what each mode promises is
 * kept. A gradient of worker r is -1 in column r and 0 elsewhere, the optimiser
 * is SGD with a learning rate of 1: so a value shows how many gradients of each
 * worker are in it.
 */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "hvd_strategy.h"
#include "ranks.h"

enum { MOST_RANKS = 16, ROWS = 6, STEPS = 30 };

static float value[ROWS][MOST_RANKS], bias[1];

static void doze(int milliseconds)
{
    nanosleep(&(struct timespec){0, milliseconds * 1000000L}, NULL);
}

static hvd_strategy_options options_of(hvd_server_mode mode, int servers)
{
    hvd_strategy_options options;

    hvd_strategy_options_init(&options, sizeof options);
    options.optimizer = HVD_SGD;
    options.learning_rate = 1;
    options.op = HVD_SUM;
    options.kind = HVD_STRATEGY_PARAMETER_SERVER;
    options.mode = mode;
    options.servers = servers;
    options.part_bytes = 2 * MOST_RANKS * (int64_t)sizeof(float);
    return options;
}

static hvd_strategy *start(const hvd_strategy_options *options)
{
    static const int64_t shape[] = {ROWS, MOST_RANKS};
    hvd_strategy *strategy;

    memset(value, 0, sizeof value);
    memset(bias, 0, sizeof bias);
    ck_hvd(hvd_strategy_new(options, &strategy));
    ck_hvd(hvd_strategy_add(strategy, "w", value[0], 2, shape));
    ck_hvd(hvd_strategy_add(strategy, "b", bias, 0, NULL));
    ck_hvd(hvd_strategy_start(strategy));
    return strategy;
}

static void push(hvd_strategy *strategy)
{
    float *g = hvd_strategy_gradient(strategy, 0);

    for (int i = 0; i < ROWS * MOST_RANKS; i++)
        g[i] = i % MOST_RANKS == ranks_rank() ? -1 : 0;
    hvd_strategy_gradient(strategy, 1)[0] = -1;
    ck_hvd(hvd_strategy_ready(strategy, 1));
    ck_hvd(hvd_strategy_ready(strategy, 0));
}

/* Serves, and returns what was counted. */
static hvd_strategy_stats serve(hvd_strategy *strategy)
{
    hvd_strategy_stats stats = {.size = sizeof stats};

    ck_hvd(hvd_strategy_serve(strategy));
    ck_hvd(hvd_strategy_get_stats(strategy, &stats));
    return stats;
}

/* Each row is one part or half of one, and parts are updated one by one: but a
 * worker's own steps are in all of them, and no value has a part of a step. */
static void check_own(int steps)
{
    for (int row = 0; row < ROWS; row++)
        ck_assert_float_eq(value[row][ranks_rank()], (float)steps);
}

/* ------------------------------------------------------------- asynchronous */

/* Nobody waits: a worker that makes no step holds up none of the others. */
TEST(asynchronous_workers_do_not_wait)
{
    for (int servers = 1; servers < ranks_size(); servers++) {
        hvd_strategy_options options =
            options_of(HVD_SERVER_ASYNCHRONOUS, servers);
        int nworkers = ranks_size() - servers;
        hvd_strategy *strategy = start(&options);
        int32_t workers = hvd_strategy_workers(strategy);
        hvd_request sum;

        if (hvd_strategy_is_server(strategy)) {
            ck_assert_int_eq(serve(strategy).dropped, 0);
            hvd_strategy_free(strategy);
            continue;
        }
        /* The last worker waits for the others to have made their steps. */
        sum = ranks_sum(HVD_FLOAT32, bias, bias, NULL);
        sum.process_set = workers;
        if (ranks_rank() == nworkers - 1 && nworkers > 1)
            ck_hvd(ranks_run(&sum));
        for (int step = 0; step < STEPS; step++) {
            push(strategy);
            ck_hvd(hvd_strategy_step(strategy));
            check_own(step + 1);
        }
        if (ranks_rank() < nworkers - 1)
            ck_hvd(ranks_run(&sum));
        else
            /* Those of the others came before: nothing is lost. */
            for (int w = 0; w < nworkers; w++)
                ck_assert_float_eq(value[0][w], STEPS);
        hvd_strategy_free(strategy);
    }
}

/* ------------------------------------------------------------------ bounded */

static void check_bound(int step, int staleness, int nworkers)
{
    for (int row = 0; row < ROWS; row++)
        for (int w = 0; w < nworkers; w++)
            ck_assert_msg(value[row][w] >= (float)(step + 1 - staleness),
                          "rank %d has made %d steps and sees %g of worker %d "
                          "in row %d",
                          ranks_rank(), step + 1, (double)value[row][w], w,
                          row);
}

static void stay_within(int staleness, int servers)
{
    hvd_strategy_options options = options_of(HVD_SERVER_BOUNDED, servers);
    int nworkers = ranks_size() - servers;
    hvd_strategy *strategy;

    options.staleness = staleness;
    strategy = start(&options);
    if (hvd_strategy_is_server(strategy)) {
        hvd_strategy_stats stats = serve(strategy);

        ck_assert_int_le(stats.ahead, staleness);
        /* The slow one is caught up with, unless this server has no part. */
        if (nworkers > 1 && stats.updates > 0)
            ck_assert_int_ge(stats.ahead, staleness < 3 ? staleness : 3);
    } else {
        for (int step = 0; step < STEPS; step++) {
            if (ranks_rank() == nworkers - 1)
                doze(3);
            push(strategy);
            ck_hvd(hvd_strategy_step(strategy));
            check_own(step + 1);
            check_bound(step, staleness, nworkers);
        }
    }
    hvd_strategy_free(strategy);
}

TEST(nobody_is_further_ahead_than_allowed)
{
    static const int bounds[] = {0, 1, 3, 1000};

    for (int i = 0; i < 4 && ranks_size() > 1; i++)
        stay_within(bounds[i], 1 + (ranks_size() > 3 ? i % 2 : 0));
}

/* ------------------------------------------------------------------ backups */

/* The slow worker sends its first gradient when the others have made all of
 * their steps: it is dropped, and the worker gets the newest value. */
TEST(late_gradients_are_dropped_and_counted)
{
    hvd_strategy_options options = options_of(HVD_SERVER_SYNCHRONOUS, 1);
    int nworkers = ranks_size() - 1;
    hvd_strategy *strategy;
    hvd_request sum = ranks_sum(HVD_FLOAT32, bias, bias, NULL);

    if (nworkers < 2)
        return;
    options.backups = 1;
    strategy = start(&options);
    sum.process_set = hvd_strategy_workers(strategy);
    if (hvd_strategy_is_server(strategy)) {
        hvd_strategy_stats stats = serve(strategy);

        /* "w" has three parts, "b" is one. */
        ck_assert_int_eq(stats.dropped, 4);
        ck_assert_int_eq(stats.updates, 4 * STEPS);
    } else if (ranks_rank() == nworkers - 1) {
        ck_hvd(ranks_run(&sum)); /* the others have made their steps */
        push(strategy);
        ck_hvd(hvd_strategy_step(strategy));
        for (int w = 0; w < nworkers - 1; w++)
            ck_assert_float_eq(value[ROWS - 1][w], STEPS);
        check_own(0);
        ck_hvd(ranks_run(&sum)); /* this one has made its step */
    } else {
        for (int step = 0; step < STEPS; step++) {
            push(strategy);
            ck_hvd(hvd_strategy_step(strategy));
            check_own(step + 1);
            ck_assert_float_eq(value[0][nworkers - 1], 0);
        }
        ck_hvd(ranks_run(&sum));
        ck_hvd(ranks_run(&sum));
    }
    hvd_strategy_free(strategy);
}

/* Averages are over those that came. */
TEST(a_step_with_backups_is_an_average_of_the_first)
{
    hvd_strategy_options options = options_of(HVD_SERVER_SYNCHRONOUS, 1);
    int nworkers = ranks_size() - 1;
    hvd_strategy *strategy;
    hvd_request sum = ranks_sum(HVD_FLOAT32, bias, bias, NULL);

    if (nworkers < 2)
        return;
    options.backups = nworkers - 1;
    options.op = HVD_AVERAGE;
    strategy = start(&options);
    sum.process_set = hvd_strategy_workers(strategy);
    if (hvd_strategy_is_server(strategy)) {
        serve(strategy);
    } else if (ranks_rank() == 0) {
        push(strategy);
        ck_hvd(hvd_strategy_step(strategy));
        check_own(1);
        ck_hvd(ranks_run(&sum));
    } else {
        ck_hvd(ranks_run(&sum));
    }
    hvd_strategy_free(strategy);
}

/* ------------------------------------------------------------------- giving up
 */

/* A worker that gives a step up holds up nobody, whatever the mode. */
static void give_up_in(hvd_server_mode mode, int backups)
{
    hvd_strategy_options options = options_of(mode, 1);
    int nworkers = ranks_size() - 1;
    hvd_strategy *strategy;

    options.backups = backups;
    strategy = start(&options);
    if (hvd_strategy_is_server(strategy)) {
        serve(strategy);
    } else {
        for (int step = 0; step < 5; step++) {
            if (ranks_rank() == nworkers - 1 && step == 2) {
                ck_hvd(hvd_strategy_ready(strategy, 1));
                ck_hvd(hvd_strategy_abandon(strategy, "tired"));
                continue;
            }
            push(strategy);
            ck_hvd(hvd_strategy_step(strategy));
        }
    }
    hvd_strategy_free(strategy);
    ranks_check_usable();
}

TEST(who_gives_up_holds_up_nobody)
{
    if (ranks_size() < 2)
        return;
    give_up_in(HVD_SERVER_ASYNCHRONOUS, 0);
    give_up_in(HVD_SERVER_BOUNDED, 0);
    if (ranks_size() > 2)
        give_up_in(HVD_SERVER_SYNCHRONOUS, 1);
}

TEST(there_is_nothing_to_check)
{
    hvd_strategy_options options = options_of(HVD_SERVER_ASYNCHRONOUS, 1);
    hvd_strategy *strategy;

    if (ranks_size() < 2)
        return;
    options.check_every = 1;
    strategy = start(&options);
    if (hvd_strategy_is_server(strategy)) {
        serve(strategy);
    } else {
        push(strategy);
        ck_hvd(hvd_strategy_step(strategy));
        ck_hvd_fails(hvd_strategy_check(strategy), HVD_ERR_UNSUPPORTED);
    }
    hvd_strategy_free(strategy);
}

RANKS_TEST_MAIN(HVD_STARTS_MPI, "mpi_servers_apart")
