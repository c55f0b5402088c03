/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sparse variables on parameter servers whose workers do not go in step. A
 * gradient of worker r is -1 in column r of the rows that it gives, the
 * optimiser is SGD with a learning rate of 1: so a value shows how many times
 * each worker has given the row. And what a worker sends that is no worker of
 * this library.
 */
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "hvd_strategy.h"
#include "ranks.h"

enum { MOST_RANKS = 16, ROWS = 11, STEPS = 30, GIVEN = 3 };

static float value[ROWS][MOST_RANKS];
static int nstarted; /* strategies of this process */

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

static hvd_strategy *start(const hvd_strategy_options *options)
{
    hvd_strategy *strategy;

    memset(value, 0, sizeof value);
    ck_hvd(hvd_strategy_new(options, &strategy));
    ck_hvd(hvd_strategy_add_sparse(strategy, "w", value[0], ROWS, MOST_RANKS));
    ck_hvd(hvd_strategy_start(strategy));
    nstarted++;
    return strategy;
}

/* Each worker goes through all rows, in its own order, and now and then gives
 * one twice; the third worker gives none in every second step. */
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
        for (int k = 0; k < given_by(worker, step); k++)
            n += row_of(worker, step, k) == row;
    return n;
}

static void push(hvd_strategy *strategy, int step)
{
    float rows[GIVEN][MOST_RANKS] = {{0}};
    int64_t indices[GIVEN];

    for (int k = 0; k < GIVEN; k++) {
        indices[k] = row_of(ranks_rank(), step, k);
        rows[k][ranks_rank()] = -1;
    }
    ck_hvd(hvd_strategy_ready_rows(strategy, 0, indices, rows[0],
                                   given_by(ranks_rank(), step), MOST_RANKS));
}

static void push_nothing(hvd_strategy *strategy)
{
    ck_hvd(hvd_strategy_ready_rows(strategy, 0, NULL, NULL, 0, MOST_RANKS));
    ck_hvd(hvd_strategy_step(strategy));
}

static hvd_strategy_stats serve(hvd_strategy *strategy)
{
    hvd_strategy_stats stats = {.size = sizeof stats};

    ck_hvd(hvd_strategy_serve(strategy));
    ck_hvd(hvd_strategy_get_stats(strategy, &stats));
    return stats;
}

static void check_worker(int worker, int steps)
{
    for (int row = 0; row < ROWS; row++)
        ck_assert_msg(value[row][worker] == (float)times(worker, steps, row),
                      "rank %d: row %d has %g of worker %d, not %d",
                      ranks_rank(), row, (double)value[row][worker], worker,
                      times(worker, steps, row));
}

/* ------------------------------------------------------------- asynchronous */

/* No update is lost, and in the end every worker sees those of all. */
TEST(asynchronous_workers_do_not_wait)
{
    for (int servers = 1; servers < ranks_size(); servers++) {
        hvd_strategy_options options =
            options_of(HVD_SERVER_ASYNCHRONOUS, servers);
        int nworkers = ranks_size() - servers;
        hvd_strategy *strategy = start(&options);
        hvd_request sum;
        float one = 1;

        if (hvd_strategy_is_server(strategy)) {
            ck_assert_int_eq(serve(strategy).dropped, 0);
            hvd_strategy_free(strategy);
            continue;
        }
        /* The last worker waits for the others to have made their steps. */
        sum = ranks_sum(HVD_FLOAT32, &one, &one, NULL);
        sum.process_set = hvd_strategy_workers(strategy);
        if (ranks_rank() == nworkers - 1 && nworkers > 1)
            ck_hvd(ranks_run(&sum));
        for (int step = 0; step < STEPS; step++) {
            push(strategy, step);
            ck_hvd(hvd_strategy_step(strategy));
            check_worker(ranks_rank(), step + 1);
        }
        if (ranks_rank() < nworkers - 1)
            ck_hvd(ranks_run(&sum));
        ck_hvd(ranks_run(&sum)); /* all have made their steps */
        push_nothing(strategy);
        for (int w = 0; w < nworkers; w++)
            check_worker(w, STEPS);
        hvd_strategy_free(strategy);
    }
}

/* ------------------------------------------------------------------ bounded */

static void stay_within(int staleness, int servers)
{
    hvd_strategy_options options = options_of(HVD_SERVER_BOUNDED, servers);
    int nworkers = ranks_size() - servers;
    hvd_strategy *strategy;

    options.staleness = staleness;
    strategy = start(&options);
    if (hvd_strategy_is_server(strategy))
        ck_assert_int_le(serve(strategy).ahead, staleness);
    for (int step = 0; step < STEPS && !hvd_strategy_is_server(strategy);
         step++) {
        if (ranks_rank() == nworkers - 1)
            doze(2);
        push(strategy, step);
        ck_hvd(hvd_strategy_step(strategy));
        check_worker(ranks_rank(), step + 1);
        for (int row = 0; row < ROWS; row++)
            for (int w = 0; w < nworkers; w++)
                ck_assert(value[row][w] >=
                          (float)times(w, step + 1 - staleness, row));
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

/* The slow worker's rows come when the others have made all of their steps:
 * they are dropped, and the worker gets all rows that have changed. */
TEST(late_rows_are_dropped_and_counted)
{
    hvd_strategy_options options = options_of(HVD_SERVER_SYNCHRONOUS, 1);
    int nworkers = ranks_size() - 1;
    hvd_strategy *strategy;
    hvd_request sum;
    float one = 1;

    if (nworkers < 2)
        return;
    options.backups = 1;
    strategy = start(&options);
    sum = ranks_sum(HVD_FLOAT32, &one, &one, NULL);
    sum.process_set = hvd_strategy_workers(strategy);
    if (hvd_strategy_is_server(strategy)) {
        hvd_strategy_stats stats = serve(strategy);

        ck_assert_int_eq(stats.dropped, 3); /* parts */
        ck_assert_int_eq(stats.updates, 3 * STEPS);
    } else if (ranks_rank() == nworkers - 1) {
        ck_hvd(ranks_run(&sum)); /* the others have made their steps */
        push(strategy, 0);
        ck_hvd(hvd_strategy_step(strategy));
        for (int w = 0; w < nworkers - 1; w++)
            check_worker(w, STEPS);
        check_worker(nworkers - 1, 0);
        ck_hvd(ranks_run(&sum));
    } else {
        for (int step = 0; step < STEPS; step++) {
            push(strategy, step);
            ck_hvd(hvd_strategy_step(strategy));
            for (int w = 0; w < nworkers - 1; w++)
                check_worker(w, step + 1);
        }
        ck_hvd(ranks_run(&sum));
        ck_hvd(ranks_run(&sum));
    }
    hvd_strategy_free(strategy);
}

/* ------------------------------------------------------------------- giving up
 */

/* A worker whose rows are wrong holds up nobody, whatever the mode. */
static void give_up_in(hvd_server_mode mode, int backups)
{
    static const int64_t wrong[] = {ROWS};
    hvd_strategy_options options = options_of(mode, 1);
    int nworkers = ranks_size() - 1;
    hvd_strategy *strategy;

    options.backups = backups;
    strategy = start(&options);
    if (hvd_strategy_is_server(strategy))
        serve(strategy);
    for (int step = 0; step < 5 && !hvd_strategy_is_server(strategy); step++) {
        if (ranks_rank() == nworkers - 1 && step == 2) {
            ck_hvd_fails(hvd_strategy_ready_rows(strategy, 0, wrong, value[0],
                                                 1, MOST_RANKS),
                         HVD_ERR_ARGUMENT);
            ck_hvd_fails(hvd_strategy_step(strategy), HVD_ERR_ARGUMENT);
            ck_error_says("row 11 of variable 'w'");
            continue;
        }
        push(strategy, step);
        ck_hvd(hvd_strategy_step(strategy));
    }
    hvd_strategy_free(strategy);
    ranks_check_usable();
}

TEST(whose_rows_are_wrong_holds_up_nobody)
{
    if (ranks_size() < 2)
        return;
    give_up_in(HVD_SERVER_ASYNCHRONOUS, 0);
    give_up_in(HVD_SERVER_BOUNDED, 0);
    if (ranks_size() > 2)
        give_up_in(HVD_SERVER_SYNCHRONOUS, 1);
}

/* ------------------------------------------------------------------- forgery
 */

static int32_t pair_with(int server)
{
    int32_t ids[64], ranks[64];
    int n = hvd_process_set_ids(ids, 64);

    for (int i = 0; i < n; i++)
        if (hvd_process_set_ranks(ids[i], ranks, 64) == 2 && ranks[0] == 0 &&
            ranks[1] == server)
            return ids[i];
    ck_abort_msg("there is no set of worker 0 and server %d", server);
    return 0;
}

/* Sends what the library would not send, under a name that it would use. */
static void send_to_server(const char *word, const char *of, void *data,
                           int64_t count, hvd_dtype dtype)
{
    char name[64];
    hvd_request request;

    hvd_request_init(&request, sizeof request);
    request.kind = HVD_BROADCAST;
    snprintf(name, sizeof name, "%s %s", word, of);
    request.name = name;
    request.dtype = dtype;
    request.ndim = 1;
    request.shape = &count;
    request.output = data;
    request.process_set = pair_with(ranks_size() - 1);
    ck_hvd(ranks_run(&request));
}

struct forgery {
    int32_t command;    /* 0: a step; 6: to read */
    int64_t n;          /* the number of rows that is announced */
    int64_t indices[2]; /* of these, if they are sent */
    bool sends;
    const char *text; /* what the server says */
};

static const struct forgery forgeries[] = {
    {0, INT64_MAX, {0}, false, "announced 9223372036854775807 rows"},
    {0, ROWS + 1, {0}, false, "announced 12 rows of a part of variable 'w'"},
    {0, -1, {0}, false, "announced -1 rows"},
    {0, 2, {5, ROWS}, true, "none of rows 0 to 10"},
    {0, 2, {-1, 5}, true, "none of rows 0 to 10"},
    {0, 2, {5, 5}, true, "not in order"},
    {6, ROWS + 1, {0}, false, "announced 12 rows"},
    {6, INT64_MIN, {0}, false, "rows of a part of variable 'w'"},
    {6, 2, {7, 3}, true, "not in order"},
    {6, 2, {0, INT64_MAX}, true, "none of rows 0 to 10"},
    {99, 0, {0}, false, "command 99"},
};

/* id: the number of the strategy, which is in the names. */
static void forge(const struct forgery *f, int id)
{
    unsigned char message[2 * (8 + 4 * MOST_RANKS)] = {0};
    struct {
        int32_t code, variable;
        double learning_rate;
    } command = {f->command, 0, 1};
    char name[64], of[16];
    int64_t n = f->n;

    snprintf(of, sizeof of, "%d", id);
    snprintf(name, sizeof name, "%d: w", id);
    memcpy(message, f->indices, sizeof f->indices);
    send_to_server("command", of, &command, sizeof command, HVD_UINT8);
    if (f->command == 99)
        return;
    send_to_server(f->command ? "ask" : "push", name, &n, 1, HVD_INT64);
    if (!f->sends)
        return;
    if (f->command)
        send_to_server("which", name, message, 2, HVD_INT64);
    else
        send_to_server("rows", name, message, sizeof message, HVD_UINT8);
}

/* Such a server ends its service, and tells what came from whom. It keeps
 * nothing of it. */
TEST(servers_do_not_believe_numbers)
{
    for (size_t i = 0; i < sizeof forgeries / sizeof *forgeries; i++) {
        hvd_strategy_options options = options_of(HVD_SERVER_ASYNCHRONOUS, 1);
        hvd_strategy *strategy;

        if (ranks_size() < 2)
            return;
        options.part_bytes = 0;
        strategy = start(&options);
        if (hvd_strategy_is_server(strategy)) {
            ck_hvd_fails(hvd_strategy_serve(strategy), HVD_ERR_MISMATCH);
            ck_error_says("rank 0");
            ck_error_says(forgeries[i].text);
            for (int row = 0; row < ROWS; row++)
                ck_assert_float_eq(value[row][0], 0);
        } else if (ranks_rank() == 0) {
            forge(&forgeries[i], nstarted - 1);
        }
        ck_hvd(hvd_barrier()); /* the service is over */
        ck_hvd(hvd_shutdown());
        hvd_strategy_free(strategy);
        ck_hvd(hvd_init());
    }
}

RANKS_TEST_MAIN(HVD_STARTS_MPI, "mpi_sparse_apart")
