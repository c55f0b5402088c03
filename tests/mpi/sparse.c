/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sparse variables: with all-reduce and with synchronous parameter servers the
 * rows that ranks give move as by hand, and no others; little travels; and
 * what goes wrong on one rank reaches the others. tests/mpi/servers_apart.c
 * has the other modes.
 */
#include <stdbool.h>
#include <stdio.h>

#include "sparse_model.h"

#include "server_training.h"

static hvd_strategy_options options_of(hvd_optimizer optimizer, int servers)
{
    hvd_strategy_options options;

    hvd_strategy_options_init(&options, sizeof options);
    ck_hvd(hvd_strategy_options_set_optimizer(&options, optimizer));
    options.learning_rate = 0.01;
    options.kind =
        servers > 0 ? HVD_STRATEGY_PARAMETER_SERVER : HVD_STRATEGY_ALL_REDUCE;
    options.servers = servers;
    return options;
}

/* -------------------------------------------------------------------- steps */

static void train_with(const hvd_strategy_options *options)
{
    hvd_strategy *strategy = make_from(options);

    expect_start();
    ck_hvd(hvd_strategy_start(strategy));
    if (hvd_strategy_is_server(strategy)) {
        ck_hvd(hvd_strategy_serve(strategy));
    } else {
        ck_assert(hvd_strategy_gradient(strategy, TABLE) == NULL);
        check_values(0);
        make_steps(strategy, options, workers_of(options), 0, NSTEPS);
        ck_hvd(hvd_strategy_check(strategy));
    }
    hvd_strategy_free(strategy);
}

static bool takes_rows(hvd_optimizer o)
{
    return o != HVD_LARS && o != HVD_LAMB && o != HVD_NO_OPTIMIZER;
}

TEST(every_optimizer_moves_the_rows_that_are_given)
{
    for (hvd_optimizer o = 0; o < HVD_NUM_OPTIMIZERS; o++)
        for (int servers = 0; servers < ranks_size() && takes_rows(o);
             servers += ranks_size() > 1 ? ranks_size() / 2 : 1) {
            hvd_strategy_options options = options_of(o, servers);

            options.weight_decay = o % 2 ? 0.1 : 0;
            options.serial = o == HVD_MOMENTUM;
            train_with(&options);
        }
}

TEST(rmsprop_has_all_its_states)
{
    for (int servers = 0; servers < ranks_size() && servers < 3; servers++) {
        hvd_strategy_options options = options_of(HVD_RMSPROP, servers);

        options.momentum = 0.5;
        options.centered = 1;
        train_with(&options);
    }
}

TEST(any_number_of_servers_makes_the_same_steps)
{
    for (int servers = 0; servers < ranks_size(); servers++) {
        hvd_strategy_options options = options_of(HVD_ADAM, servers);

        options.op = servers % 2 ? HVD_SUM : HVD_AVERAGE;
        train_with(&options);
    }
}

/* A row of the table has 24 bytes: parts of a row, of a few, of all but one
 * row, and a whole. */
TEST(sparse_variables_may_lie_in_parts)
{
    static const int64_t sizes[] = {1, 100, 24 * 59, 24 * 60};

    for (int i = 0; i < 4 && ranks_size() > 1; i++) {
        hvd_strategy_options options =
            options_of(HVD_ADAM, (ranks_size() + 1) / 2);

        if (options.servers >= ranks_size())
            options.servers = ranks_size() - 1;
        options.placement = i % 2;
        options.part_bytes = sizes[i];
        train_with(&options);
    }
}

/* ------------------------------------------------------------ what it costs */

static int64_t broadcast_bytes(void)
{
    hvd_metrics metrics = {.size = sizeof metrics};

    ck_hvd(hvd_get_metrics(&metrics));
    return metrics.kinds[HVD_BROADCAST].bytes;
}

/* Bytes of the rows of one variable, each with its index. */
static int64_t rows_bytes(int v, int64_t n)
{
    return n * (8 + 4 * shapes[v][1]);
}

/* Counts the bytes of a worker's step on their way to the only server and back:
 * a command, the dense variable, and of each sparse one two numbers and the
 * rows. */
static int64_t bytes_of_step(int step, int nworkers, int64_t *given)
{
    static double slope[LARGEST];
    static bool is_there[60];
    int64_t bytes = 24 + 2 * 4 * count_of(DENSE);

    *given = 4 * count_of(DENSE);
    for (int v = 0; v < NVARIABLES; v++) {
        int64_t n = 0;

        if (v == DENSE || v == EMPTY)
            continue;
        memset(is_there, 0, sizeof is_there);
        for (int64_t k = 0; k < nrows(ranks_rank(), step, v); k++) {
            bool *row = &is_there[row_of(ranks_rank(), step, v, k)];

            n += !*row;
            *row = true;
        }
        *given += rows_bytes(v, n);
        bytes += 16 + rows_bytes(v, n) +
                 rows_bytes(v, add_rows(v, step, nworkers, is_there, slope));
    }
    return bytes;
}

TEST(only_rows_travel)
{
    hvd_strategy_options options = options_of(HVD_SGD, 1);
    hvd_strategy_stats stats = {.size = sizeof stats};
    int nworkers = ranks_size() - 1;
    int64_t sums[2] = {0, 0}, all = 0;
    hvd_strategy *strategy;

    if (nworkers < 1)
        return;
    strategy = make_from(&options);
    ck_hvd(hvd_strategy_start(strategy));
    if (hvd_strategy_is_server(strategy)) {
        ck_hvd(hvd_strategy_serve(strategy));
        ck_hvd(hvd_strategy_get_stats(strategy, &stats));
        sums[0] = stats.bytes;
        ck_assert_int_eq(stats.gradients, NSTEPS * nworkers * 3);
        ck_assert_int_eq(stats.updates, NSTEPS * 3);
    }
    for (int step = 0; step < NSTEPS && !hvd_strategy_is_server(strategy);
         step++) {
        int64_t before = broadcast_bytes(), given;
        int64_t bytes = bytes_of_step(step, nworkers, &given);

        feed(strategy, step);
        ck_hvd(hvd_strategy_step(strategy));
        ck_assert_int_eq(broadcast_bytes() - before, bytes);
        all += given;
        ck_hvd(hvd_strategy_get_stats(strategy, &stats));
        ck_assert_int_eq(stats.bytes, all);
    }
    sums[1] = all;
    hvd_strategy_free(strategy);
    ck_hvd(hvd_allreduce(sums, sums, 2, HVD_INT64, HVD_SUM));
    ck_assert_int_eq(sums[0], sums[1]);
}

/* ----------------------------------------------------------------- mistakes */

static void refused(hvd_strategy_options options, int status, const char *text)
{
    hvd_strategy *strategy;

    ck_hvd(hvd_strategy_new(&options, &strategy));
    ck_hvd_fails(
        hvd_strategy_add_sparse(strategy, "words", values[TABLE], 60, 6),
        status);
    ck_error_says("'words'");
    ck_error_says(text);
    hvd_strategy_free(strategy);
}

TEST(what_has_no_rows_is_refused)
{
    hvd_strategy_options options = options_of(HVD_SGD, 0);
    hvd_strategy *strategy;

    refused(options_of(HVD_LARS, 0), HVD_ERR_UNSUPPORTED, "lars");
    refused(options_of(HVD_LAMB, ranks_size() > 1), HVD_ERR_UNSUPPORTED,
            "lamb");
    refused(options_of(HVD_NO_OPTIMIZER, 0), HVD_ERR_UNSUPPORTED, "none");
    options.op = HVD_ADASUM;
    refused(options, HVD_ERR_UNSUPPORTED, "adasum");
    options.op = HVD_SUM;
    ck_hvd(hvd_strategy_new(&options, &strategy));
    ck_hvd_fails(hvd_strategy_add_sparse(strategy, "w", NULL, 3, 4),
                 HVD_ERR_ARGUMENT);
    ck_hvd_fails(hvd_strategy_add_sparse(strategy, "w", values[TABLE], -3, 4),
                 HVD_ERR_ARGUMENT);
    ck_hvd_fails(hvd_strategy_add_sparse(NULL, "w", values[TABLE], 3, 4),
                 HVD_ERR_ARGUMENT);
    hvd_strategy_free(strategy);
}

TEST(variables_are_sparse_on_all_ranks)
{
    static const int64_t shape[] = {60, 6};
    hvd_strategy_options options = options_of(HVD_SGD, 0);
    hvd_strategy *strategy;

    ck_hvd(hvd_strategy_new(&options, &strategy));
    if (ranks_rank() == 1)
        ck_hvd(hvd_strategy_add(strategy, "w", values[TABLE], 2, shape));
    else
        ck_hvd(hvd_strategy_add_sparse(strategy, "w", values[TABLE], 60, 6));
    if (ranks_size() > 1) {
        ck_hvd_fails(hvd_strategy_start(strategy), HVD_ERR_MISMATCH);
        ck_error_says("sparse");
    }
    hvd_strategy_free(strategy);
    ranks_check_usable();
}

TEST(gradients_are_of_the_kind_of_the_variable)
{
    static const int64_t row = 1;
    hvd_strategy_options options = options_of(HVD_SGD, 0);
    hvd_strategy *strategy = make_from(&options);

    ck_hvd_fails(
        hvd_strategy_ready_rows(strategy, TABLE, &row, values[DENSE], 1, 6),
        HVD_ERR_ARGUMENT); /* not started */
    expect_start();
    ck_hvd(hvd_strategy_start(strategy));
    ck_hvd_fails(hvd_strategy_ready(strategy, TABLE), HVD_ERR_ARGUMENT);
    ck_error_says("'table' is sparse");
    ck_hvd_fails(
        hvd_strategy_ready_rows(strategy, DENSE, &row, values[DENSE], 1, 9),
        HVD_ERR_ARGUMENT);
    ck_error_says("'dense' is dense");
    ck_hvd_fails(
        hvd_strategy_ready_rows(strategy, NVARIABLES, &row, values[0], 1, 9),
        HVD_ERR_ARGUMENT);
    ck_hvd(give_rows(strategy, 0, TABLE));
    ck_hvd_fails(give_rows(strategy, 0, TABLE), HVD_ERR_ARGUMENT);
    ck_error_says("ready before");
    give_dense(strategy, 0);
    ck_hvd(give_rows(strategy, 0, NARROW));
    ck_hvd(give_rows(strategy, 0, EMPTY));
    ck_hvd(hvd_strategy_step(strategy));
    expect_step(&options, 0, ranks_size());
    check_values(4e-6);
    hvd_strategy_free(strategy);
}

/* The ways in which rows can be wrong, and what the texts say of them. */
static int give_wrong(hvd_strategy *strategy, int way)
{
    static const int64_t beyond[] = {3, 60}, negative[] = {-1}, good[] = {0, 1};
    const float *rows = values[TABLE];

    switch (way) {
    case 0: return hvd_strategy_ready_rows(strategy, TABLE, beyond, rows, 2, 6);
    case 1:
        return hvd_strategy_ready_rows(strategy, TABLE, negative, rows, 1, 6);
    case 2: return hvd_strategy_ready_rows(strategy, TABLE, good, rows, 2, 5);
    case 3: return hvd_strategy_ready_rows(strategy, TABLE, NULL, rows, 2, 6);
    case 4: return hvd_strategy_ready_rows(strategy, TABLE, good, NULL, 2, 6);
    case 5: return hvd_strategy_ready_rows(strategy, TABLE, good, rows, -2, 6);
    case 6: return hvd_strategy_abandon(strategy, "no rows") - 1;
    default: return -1; /* nothing is given */
    }
}

static const char *const texts[] = {
    "row 60 of variable 'table'",
    "row -1 of variable 'table'",
    "rows of 5 elements",
    "indices or values are NULL",
    "indices or values are NULL",
    "-2 rows of variable 'table'",
    "no rows",
    "not ready",
};
enum { NWAYS = sizeof texts / sizeof *texts };

/* Makes a step in which the last worker's rows are wrong. */
static void step_with_failure(hvd_strategy *strategy, int last, int way)
{
    char rank[32];

    snprintf(rank, sizeof rank, "rank %d", last);
    give_dense(strategy, 0);
    ck_hvd(give_rows(strategy, 0, NARROW));
    ck_hvd(give_rows(strategy, 0, EMPTY));
    if (ranks_rank() == last) {
        ck_assert_int_lt(give_wrong(strategy, way), 0);
        if (way == 6)
            return;
        if (way < 6)
            ck_error_says(texts[way]);
        ck_hvd_fails(hvd_strategy_step(strategy), HVD_ERR_ARGUMENT);
    } else {
        ck_hvd(give_rows(strategy, 0, TABLE));
        ck_hvd_fails(hvd_strategy_step(strategy), HVD_ERR_PEER);
        ck_error_says(rank);
    }
    ck_error_says(texts[way]);
    ck_error_says("table");
}

static void fail_and_go_on(int servers, int way, int serial)
{
    hvd_strategy_options options = options_of(HVD_SGD, servers);
    int nworkers = workers_of(&options);
    hvd_strategy *strategy;

    options.serial = serial;
    options.part_bytes = servers > 1 ? 500 : 0;
    strategy = make_from(&options);
    expect_start();
    ck_hvd(hvd_strategy_start(strategy));
    if (hvd_strategy_is_server(strategy)) {
        ck_hvd(hvd_strategy_serve(strategy));
    } else {
        step_with_failure(strategy, nworkers - 1, way);
        expect_step(&options, 0, nworkers);
        if (way == 6 && serial) /* it had not sent anything */
            expect_start();
        for (int64_t i = 0; i < count_of(TABLE); i++)
            expected[TABLE][i] = initial(TABLE, i);
        check_values(4e-6);
        make_steps(strategy, &options, nworkers, 1, 4);
    }
    hvd_strategy_free(strategy);
    ranks_check_usable();
}

TEST(wrong_rows_fail_the_step_of_all_and_no_more)
{
    for (int servers = 0; servers < ranks_size(); servers++)
        for (int way = 0; way < NWAYS; way++)
            fail_and_go_on(servers, way, 0);
    for (int way = 0; way < NWAYS; way++)
        fail_and_go_on(ranks_size() > 1, way, 1);
}

/* ------------------------------------------------------ joins, checkpoints */

TEST(workers_of_servers_may_join)
{
    hvd_strategy_options options = options_of(HVD_ADAM, 1);

    if (ranks_size() > 1)
        join_and_go_on(&options);
}

TEST(all_reduce_of_rows_needs_all_ranks)
{
    hvd_strategy_options options = options_of(HVD_ADAM, 0);
    hvd_strategy *strategy = make_from(&options);

    expect_start();
    ck_hvd(hvd_strategy_start(strategy));
    ck_hvd_fails(hvd_strategy_join(strategy, NULL), HVD_ERR_UNSUPPORTED);
    ck_error_says("'table' is sparse");
    make_steps(strategy, &options, ranks_size(), 0, 2);
    hvd_strategy_free(strategy);
}

static void continue_with(hvd_optimizer optimizer, int servers, int later)
{
    hvd_strategy_options first = options_of(optimizer, servers);
    hvd_strategy_options second = options_of(optimizer, later);

    first.part_bytes = servers > 0 ? 300 : 0;
    save_and_continue(&first, &second);
}

TEST(checkpoints_are_of_either_kind)
{
    int n = ranks_size();

    continue_with(HVD_ADAM, 0, 0);
    if (n < 2)
        return;
    continue_with(HVD_ADAM, 1, n - 1);
    continue_with(HVD_MOMENTUM, n - 1, 0);
    continue_with(HVD_ADAGRAD, 0, n / 2);
}

RANKS_TEST_MAIN(HVD_STARTS_MPI, "mpi_sparse")
