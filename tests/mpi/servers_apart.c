/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Parameter servers whose workers do not go in step, with a dense variable and
 * with a sparse one: what each mode promises is kept. A gradient of worker r is
 * -1 in column r of the rows that it gives, which are all rows of a dense
 * variable, and 0 elsewhere; the optimiser is SGD with a learning rate of 1. So
 * a value shows how many times each worker has given the row.
 */
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "hvd_strategy.h"
#include "ranks.h"

enum { MOST_RANKS = 16, ROWS = 11, STEPS = 30, GIVEN = 3 };
enum { DENSE, SPARSE, KINDS };

static int kind; /* of the variable */
static float value[ROWS][MOST_RANKS];
static float bias[1]; /* beside a dense variable */

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
    options.part_bytes = 4 * MOST_RANKS * (int64_t)sizeof(float);
    return options;
}

/* Parts of all variables on servers. */
static int parts(void)
{
    return (ROWS + 3) / 4 + (kind == DENSE);
}

static hvd_strategy *start(const hvd_strategy_options *options)
{
    static const int64_t shape[] = {ROWS, MOST_RANKS};
    hvd_strategy *strategy;

    memset(value, 0, sizeof value);
    ck_hvd(hvd_strategy_new(options, &strategy));
    if (kind == SPARSE) {
        ck_hvd(
            hvd_strategy_add_sparse(strategy, "w", value[0], ROWS, MOST_RANKS));
    } else {
        ck_hvd(hvd_strategy_add(strategy, "w", value[0], 2, shape));
        ck_hvd(hvd_strategy_add(strategy, "b", bias, 0, NULL));
    }
    ck_hvd(hvd_strategy_start(strategy));
    return strategy;
}

/* Each worker goes through all rows of a sparse variable, in its own order, and
 * now and then gives one twice; the third worker gives none in every second
 * step. */
static int64_t given_by(int worker, int step)
{
    return worker == 2 && step % 2 ? 0 : GIVEN;
}

static int64_t row_of(int worker, int step, int k)
{
    return (step * 3 + worker * 2 + k * k * 4) % ROWS;
}

/* How many times a worker gives a row in its first steps. */
static int times(int worker, int steps, int row)
{
    int n = 0;

    for (int step = 0; step < steps; step++)
        for (int k = 0; k < given_by(worker, step) && kind == SPARSE; k++)
            n += row_of(worker, step, k) == row;
    return kind == SPARSE || steps < 0 ? n : steps;
}

static void push_rows(hvd_strategy *strategy, int step, int64_t n)
{
    float rows[GIVEN][MOST_RANKS] = {{0}};
    int64_t indices[GIVEN];

    for (int k = 0; k < n; k++) {
        indices[k] = row_of(ranks_rank(), step, k);
        rows[k][ranks_rank()] = -1;
    }
    ck_hvd(hvd_strategy_ready_rows(strategy, 0, n ? indices : NULL,
                                   n ? rows[0] : NULL, n, MOST_RANKS));
}

static void push_all(hvd_strategy *strategy, float slope)
{
    float *g = hvd_strategy_gradient(strategy, 0);

    for (int i = 0; i < ROWS * MOST_RANKS; i++)
        g[i] = i % MOST_RANKS == ranks_rank() ? slope : 0;
    hvd_strategy_gradient(strategy, 1)[0] = slope;
    ck_hvd(hvd_strategy_ready(strategy, 1));
    ck_hvd(hvd_strategy_ready(strategy, 0));
}

static void make_step(hvd_strategy *strategy, int step)
{
    if (kind == SPARSE)
        push_rows(strategy, step, given_by(ranks_rank(), step));
    else
        push_all(strategy, -1);
    ck_hvd(hvd_strategy_step(strategy));
}

/* Makes a step that changes nothing, but brings the newest values. */
static void make_empty_step(hvd_strategy *strategy)
{
    if (kind == SPARSE)
        push_rows(strategy, 0, 0);
    else
        push_all(strategy, 0);
    ck_hvd(hvd_strategy_step(strategy));
}

/* Serves, and returns what was counted. */
static hvd_strategy_stats serve(hvd_strategy *strategy)
{
    hvd_strategy_stats stats = {.size = sizeof stats};

    ck_hvd(hvd_strategy_serve(strategy));
    ck_hvd(hvd_strategy_get_stats(strategy, &stats));
    return stats;
}

/* Waits for all workers. */
static void meet(hvd_strategy *strategy)
{
    float one = 1;
    hvd_request sum = ranks_sum(HVD_FLOAT32, &one, &one, NULL);

    sum.process_set = hvd_strategy_workers(strategy);
    ck_hvd(ranks_run(&sum));
}

/* Checks how many steps of a worker this rank sees. Parts are updated one by
 * one, but no value has a part of a step. */
static void check_worker(int worker, int steps)
{
    for (int row = 0; row < ROWS; row++)
        ck_assert_msg(value[row][worker] == (float)times(worker, steps, row),
                      "rank %d: row %d has %g of worker %d, not %d",
                      ranks_rank(), row, (double)value[row][worker], worker,
                      times(worker, steps, row));
}

/* ------------------------------------------------------------- asynchronous */

/* Nobody waits: a worker that makes no step holds up none of the others. No
 * update is lost, and in the end every worker sees those of all. */
LOOP_TEST(asynchronous_workers_do_not_wait, 0, KINDS)
{
    kind = _i;
    for (int servers = 1; servers < ranks_size(); servers++) {
        hvd_strategy_options options =
            options_of(HVD_SERVER_ASYNCHRONOUS, servers);
        int nworkers = ranks_size() - servers;
        hvd_strategy *strategy = start(&options);
        bool is_last = ranks_rank() == nworkers - 1;

        if (hvd_strategy_is_server(strategy)) {
            ck_assert_int_eq(serve(strategy).dropped, 0);
            hvd_strategy_free(strategy);
            continue;
        }
        if (is_last && nworkers > 1)
            meet(strategy); /* the others have made their steps */
        for (int step = 0; step < STEPS; step++) {
            make_step(strategy, step);
            check_worker(ranks_rank(), step + 1);
        }
        for (int w = 0; w < nworkers && is_last; w++)
            check_worker(w, STEPS);
        if (!is_last)
            meet(strategy);
        meet(strategy); /* all have made their steps */
        make_empty_step(strategy);
        for (int w = 0; w < nworkers; w++)
            check_worker(w, STEPS);
        hvd_strategy_free(strategy);
    }
}

/* ------------------------------------------------------------------ bounded */

static void check_bound(int step, int staleness, int nworkers)
{
    for (int row = 0; row < ROWS; row++)
        for (int w = 0; w < nworkers; w++)
            ck_assert_msg(
                value[row][w] >= (float)times(w, step + 1 - staleness, row),
                "rank %d has made %d steps and sees %g of worker %d "
                "in row %d",
                ranks_rank(), step + 1, (double)value[row][w], w, row);
}

/* Trains with a worker that dozes so many ms before each step. Returns whether
 * it was caught up with on all servers that have a part. */
static bool stay_within(int staleness, int servers, int ms)
{
    hvd_strategy_options options = options_of(HVD_SERVER_BOUNDED, servers);
    int nworkers = ranks_size() - servers;
    int32_t missed = 0;
    hvd_strategy *strategy;

    options.staleness = staleness;
    strategy = start(&options);
    if (hvd_strategy_is_server(strategy)) {
        hvd_strategy_stats stats = serve(strategy);

        ck_assert_int_le(stats.ahead, staleness);
        missed = nworkers > 1 && stats.updates > 0 &&
                 stats.ahead < (staleness < 3 ? staleness : 3);
    } else {
        for (int step = 0; step < STEPS; step++) {
            if (ranks_rank() == nworkers - 1)
                doze(ms);
            make_step(strategy, step);
            check_worker(ranks_rank(), step + 1);
            check_bound(step, staleness, nworkers);
        }
    }
    hvd_strategy_free(strategy);
    ck_hvd(hvd_allreduce(&missed, &missed, 1, HVD_INT32, HVD_MAX));
    return missed == 0;
}

/* On a busy machine a fast worker may be the slower one, so the other dozes
 * longer and longer. */
LOOP_TEST(nobody_is_further_ahead_than_allowed, 0, KINDS)
{
    static const int bounds[] = {0, 1, 3, 1000};

    kind = _i;
    for (int i = 0; i < 4 && ranks_size() > 1; i++) {
        bool caught_up = false;

        for (int ms = 3; ms < 250 && !caught_up; ms *= 3)
            caught_up =
                stay_within(bounds[i], 1 + (ranks_size() > 3 ? i % 2 : 0), ms);
        ck_assert(caught_up);
    }
}

/* ------------------------------------------------------------------ backups */

/* The slow worker sends its first gradient when the others have made all of
 * their steps: it is dropped, and the worker gets the newest value. */
LOOP_TEST(late_gradients_are_dropped_and_counted, 0, KINDS)
{
    hvd_strategy_options options = options_of(HVD_SERVER_SYNCHRONOUS, 1);
    int nworkers = ranks_size() - 1, slow = nworkers - 1;
    hvd_strategy *strategy;

    kind = _i;
    if (nworkers < 2)
        return;
    options.backups = 1;
    strategy = start(&options);
    if (hvd_strategy_is_server(strategy)) {
        hvd_strategy_stats stats = serve(strategy);

        ck_assert_int_eq(stats.dropped, parts());
        ck_assert_int_eq(stats.updates, parts() * STEPS);
        hvd_strategy_free(strategy);
        return;
    }
    if (ranks_rank() == slow) {
        meet(strategy); /* the others have made their steps */
        make_step(strategy, 0);
    }
    for (int step = 0; step < STEPS && ranks_rank() != slow; step++) {
        make_step(strategy, step);
        for (int w = 0; w < slow; w++)
            check_worker(w, step + 1);
    }
    for (int w = 0; w < slow; w++)
        check_worker(w, STEPS);
    check_worker(slow, 0);
    if (ranks_rank() != slow)
        meet(strategy);
    meet(strategy); /* the slow one has made its step */
    hvd_strategy_free(strategy);
}

/* Averages are over those that came. */
LOOP_TEST(a_step_with_backups_is_an_average_of_the_first, 0, KINDS)
{
    hvd_strategy_options options = options_of(HVD_SERVER_SYNCHRONOUS, 1);
    int nworkers = ranks_size() - 1;
    hvd_strategy *strategy;

    kind = _i;
    if (nworkers < 2)
        return;
    options.backups = nworkers - 1;
    options.op = HVD_AVERAGE;
    strategy = start(&options);
    if (hvd_strategy_is_server(strategy)) {
        serve(strategy);
    } else {
        if (ranks_rank() == 0) {
            make_step(strategy, 0);
            check_worker(0, 1);
        }
        meet(strategy);
    }
    hvd_strategy_free(strategy);
}

/* ---------------------------------------------------------------- giving up */

static void give_up(hvd_strategy *strategy)
{
    static const int64_t wrong[] = {ROWS};

    if (kind == DENSE) {
        ck_hvd(hvd_strategy_ready(strategy, 1));
        ck_hvd(hvd_strategy_abandon(strategy, "tired"));
        return;
    }
    ck_hvd_fails(
        hvd_strategy_ready_rows(strategy, 0, wrong, value[0], 1, MOST_RANKS),
        HVD_ERR_ARGUMENT);
    ck_hvd_fails(hvd_strategy_step(strategy), HVD_ERR_ARGUMENT);
    ck_error_says("row 11 of variable 'w'");
}

/* A worker that gives a step up, or whose rows are wrong, holds up nobody,
 * whatever the mode. */
static void give_up_in(hvd_server_mode mode, int backups)
{
    hvd_strategy_options options = options_of(mode, 1);
    int nworkers = ranks_size() - 1;
    hvd_strategy *strategy;

    options.backups = backups;
    strategy = start(&options);
    if (hvd_strategy_is_server(strategy))
        serve(strategy);
    for (int step = 0; step < 5 && !hvd_strategy_is_server(strategy); step++)
        if (ranks_rank() == nworkers - 1 && step == 2)
            give_up(strategy);
        else
            make_step(strategy, step);
    hvd_strategy_free(strategy);
    ranks_check_usable();
}

LOOP_TEST(who_gives_up_holds_up_nobody, 0, KINDS)
{
    kind = _i;
    if (ranks_size() < 2)
        return;
    give_up_in(HVD_SERVER_ASYNCHRONOUS, 0);
    give_up_in(HVD_SERVER_BOUNDED, 0);
    if (ranks_size() > 2)
        give_up_in(HVD_SERVER_SYNCHRONOUS, 1);
}

LOOP_TEST(there_is_nothing_to_check, 0, KINDS)
{
    hvd_strategy_options options = options_of(HVD_SERVER_ASYNCHRONOUS, 1);
    hvd_strategy *strategy;

    kind = _i;
    if (ranks_size() < 2)
        return;
    options.check_every = 1;
    strategy = start(&options);
    if (hvd_strategy_is_server(strategy)) {
        serve(strategy);
    } else {
        make_step(strategy, 0);
        ck_hvd_fails(hvd_strategy_check(strategy), HVD_ERR_UNSUPPORTED);
    }
    hvd_strategy_free(strategy);
}

RANKS_TEST_MAIN(HVD_STARTS_MPI, "mpi_servers_apart")
