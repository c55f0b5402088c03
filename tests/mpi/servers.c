/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Parameter servers: synchronous training gives the numbers of training by
 * hand, however variables lie on the servers; and what goes wrong on one rank
 * reaches the others. tests/mpi/servers_apart.c has the other modes.
 */
#include <stdbool.h>
#include <stdio.h>

#include "server_training.h"

static hvd_strategy_options with_servers(hvd_optimizer optimizer, int servers)
{
    hvd_strategy_options options = options_of(optimizer);

    options.kind = HVD_STRATEGY_PARAMETER_SERVER;
    options.servers = servers;
    return options;
}

/* Counts parts of one variable, and of all. */
static int64_t parts_of(int64_t part_bytes, int v)
{
    int64_t row = shapes[v][1] * 4, rows = part_bytes / row;

    if (part_bytes == 0 || count_of(v) == 0)
        return count_of(v) > 0;
    if (rows == 0)
        rows = 1;
    return (shapes[v][0] + rows - 1) / rows;
}

/* Between them, the servers have made each part's updates. All ranks call it,
 * when the servers serve no longer. */
static void check_counts(const hvd_strategy_stats *server, int nworkers,
                         int64_t part_bytes)
{
    int64_t sums[] = {server->updates, server->gradients, server->bytes,
                      server->dropped, server->ahead};
    int64_t total = 0;

    for (int v = 0; v < NVARIABLES; v++)
        total += parts_of(part_bytes, v);
    ck_hvd(hvd_allreduce(sums, sums, 5, HVD_INT64, HVD_SUM));
    ck_assert_int_eq(sums[0], NSTEPS * total);
    ck_assert_int_eq(sums[1], NSTEPS * total * nworkers);
    ck_assert_int_eq(sums[2],
                     INT64_C(4) * NSTEPS * nworkers * (20000 + 64 + 63 + 1));
    ck_assert_int_eq(sums[3], 0);
    ck_assert_int_eq(sums[4], 0);
}

static void serve(hvd_strategy *strategy, hvd_strategy_stats *stats)
{
    ck_assert(hvd_strategy_gradient(strategy, 0) == NULL);
    ck_hvd_fails(hvd_strategy_step(strategy), HVD_ERR_ARGUMENT);
    ck_error_says("hvd_strategy_serve");
    ck_hvd(hvd_strategy_serve(strategy));
    ck_hvd(hvd_strategy_get_stats(strategy, stats));
}

static void work(hvd_strategy *strategy, const hvd_strategy_options *options)
{
    hvd_strategy_stats stats = {.size = sizeof stats};

    ck_hvd_fails(hvd_strategy_serve(strategy), HVD_ERR_ARGUMENT);
    check_values(0);
    make_steps(strategy, options, workers_of(options), 0, NSTEPS);
    ck_hvd(hvd_strategy_check(strategy));
    ck_hvd(hvd_strategy_get_stats(strategy, &stats));
    ck_assert_int_eq(stats.steps, NSTEPS);
    ck_assert_int_eq(stats.gradients, NSTEPS * NVARIABLES);
    ck_assert_int_eq(stats.bytes, NSTEPS * 4 * (20000 + 64 + 63 + 1));
    ck_assert_int_eq(stats.updates, 0);
}

static void train_with(const hvd_strategy_options *options)
{
    hvd_strategy *strategy = make_from(options);
    int nworkers = workers_of(options);
    hvd_strategy_stats served = {.size = sizeof served};

    expect_start();
    ck_hvd(hvd_strategy_start(strategy));
    ck_assert_int_eq(hvd_process_set_size(hvd_strategy_workers(strategy)),
                     nworkers);
    ck_assert_int_eq(hvd_strategy_is_server(strategy),
                     ranks_rank() >= nworkers);
    if (hvd_strategy_is_server(strategy))
        serve(strategy, &served);
    else
        work(strategy, options);
    hvd_strategy_free(strategy);
    check_counts(&served, nworkers, options->part_bytes);
}

TEST(synchronous_training_is_that_of_the_workers)
{
    for (int servers = 1; servers < ranks_size(); servers++) {
        hvd_strategy_options options = with_servers(HVD_SGD, servers);

        train_with(&options);
    }
}

TEST(every_optimizer_is_right_on_servers)
{
    for (hvd_optimizer o = 0; o < HVD_NUM_OPTIMIZERS && ranks_size() > 1; o++) {
        hvd_strategy_options options = with_servers(o, ranks_size() / 2);

        if (o == HVD_NO_OPTIMIZER)
            continue;
        options.serial = o == HVD_MOMENTUM;
        train_with(&options);
    }
}

TEST(momentum_travels_with_each_step)
{
    cycles = true;
    for (hvd_optimizer o = 0; o < HVD_NUM_OPTIMIZERS && ranks_size() > 1; o++) {
        hvd_strategy_options options = with_servers(o, ranks_size() / 2);

        if (has_momentum(o))
            train_with(&options);
    }
    cycles = false;
}

TEST(gradients_may_be_added_up_on_servers)
{
    hvd_strategy_options options;

    op = HVD_SUM;
    options = with_servers(HVD_SGD, 1);
    if (ranks_size() > 1)
        train_with(&options);
    op = HVD_AVERAGE;
}

/* A row of variable 0 has 800 bytes: parts of a row, of a few, of all but one
 * row, and a whole. */
TEST(variables_may_lie_in_parts)
{
    static const int64_t sizes[] = {1, 800, 3000, 799 * 100, 80000};

    for (int i = 0; i < 5 && ranks_size() > 1; i++) {
        hvd_strategy_options options =
            with_servers(HVD_ADAM, (ranks_size() + 1) / 3 + (i == 1));

        if (options.servers >= ranks_size())
            options.servers = ranks_size() - 1;
        options.placement = i % 2;
        options.part_bytes = sizes[i];
        train_with(&options);
    }
}

/* ----------------------------------------------------------------- refusals */

static void refused(hvd_strategy_options options, int status, const char *text)
{
    hvd_strategy *strategy = NULL;

    ck_hvd_fails(hvd_strategy_new(&options, &strategy), status);
    ck_error_says(text);
    ck_assert(strategy == NULL);
}

#define REFUSED(servers, change, status, text)                                 \
    do {                                                                       \
        hvd_strategy_options o = with_servers(HVD_SGD, (servers));             \
        change;                                                                \
        refused(o, (status), (text));                                          \
    } while (0)

TEST(wrong_options_are_refused)
{
    int n = ranks_size();

    REFUSED(0, , HVD_ERR_ARGUMENT, "0 parameter servers");
    REFUSED(-1, , HVD_ERR_ARGUMENT, "-1 parameter servers");
    REFUSED(n, , HVD_ERR_ARGUMENT, "one server and one worker");
    REFUSED(1, o.kind = 2, HVD_ERR_ARGUMENT, "kind 2 is none");
    REFUSED(1, o.kind = 0, HVD_ERR_ARGUMENT, "1 servers");
    REFUSED(0, (o.kind = 0, o.staleness = 3), HVD_ERR_ARGUMENT, "staleness 3");
    if (n == 1)
        return;
    REFUSED(1, o.mode = 3, HVD_ERR_ARGUMENT, "mode 3 is none");
    REFUSED(1, o.backups = n - 1, HVD_ERR_ARGUMENT, "backups");
    REFUSED(1, o.backups = -1, HVD_ERR_ARGUMENT, "-1 backups");
    REFUSED(1, o.staleness = -1, HVD_ERR_ARGUMENT, "staleness -1");
    REFUSED(1, o.staleness = 1, HVD_ERR_ARGUMENT, "HVD_SERVER_BOUNDED");
    REFUSED(1, o.placement = 2, HVD_ERR_ARGUMENT, "placement 2");
    REFUSED(1, o.part_bytes = -4, HVD_ERR_ARGUMENT, "part_bytes -4");
    REFUSED(1, o.optimizer = HVD_NO_OPTIMIZER, HVD_ERR_UNSUPPORTED,
            "need an optimizer");
    REFUSED(1, (o.optimizer = HVD_LARS, o.part_bytes = 64), HVD_ERR_UNSUPPORTED,
            "lars needs the length of whole variables");
    REFUSED(1, o.op = HVD_ADASUM, HVD_ERR_UNSUPPORTED, "adasum");
    REFUSED(1, o.compression = HVD_COMPRESSION_FP16, HVD_ERR_UNSUPPORTED,
            "fp16");
}

TEST(servers_are_agreed_on)
{
    hvd_strategy_options options = with_servers(HVD_SGD, 1);
    hvd_strategy *strategy;

    if (ranks_size() < 3)
        return;
    options.servers += ranks_rank() == 1;
    strategy = make_from(&options);
    ck_hvd_fails(hvd_strategy_start(strategy), HVD_ERR_MISMATCH);
    ck_error_says("2 parameter servers");
    hvd_strategy_free(strategy);
    ranks_check_usable();
}

/* ---------------------------------------------------------------- giving up */

/* Makes steps in which the last worker lacks a gradient, or gives up. */
static void step_with_failure(hvd_strategy *strategy, int nworkers,
                              bool abandons)
{
    bool fails = ranks_rank() == nworkers - 1;
    int v = 1;
    char rank[32];

    for (int k = 0; k < NVARIABLES; k++)
        if (!fails || k != v) {
            for (int64_t i = 0; i < count_of(k); i++)
                hvd_strategy_gradient(strategy, k)[i] =
                    (float)gradient(ranks_rank(), 0, k, i);
            ck_hvd(hvd_strategy_ready(strategy, k));
        }
    if (fails && abandons) {
        ck_hvd(hvd_strategy_abandon(strategy, "the coffee is out"));
    } else if (fails) {
        ck_hvd_fails(hvd_strategy_step(strategy), HVD_ERR_ARGUMENT);
        ck_error_says("variable 1");
    } else {
        ck_hvd_fails(hvd_strategy_step(strategy), HVD_ERR_PEER);
        ck_error_says("variable 1");
        ck_error_says(abandons ? "the coffee is out" : "was not ready");
        snprintf(rank, sizeof rank, "rank %d", nworkers - 1);
        ck_error_says(rank);
    }
}

static void fail_and_go_on(int servers, bool abandons)
{
    hvd_strategy_options options = with_servers(HVD_SGD, servers);
    hvd_strategy *strategy = make_from(&options);
    int nworkers = ranks_size() - servers;

    expect_start();
    ck_hvd(hvd_strategy_start(strategy));
    if (hvd_strategy_is_server(strategy)) {
        ck_hvd(hvd_strategy_serve(strategy));
    } else {
        step_with_failure(strategy, nworkers, abandons);
        /* All but one variable have made the step. */
        expect_step(&options, 0, nworkers);
        for (int64_t i = 0; i < count_of(1); i++)
            expected[1][i] = initial(0, 1, i);
        check_values(2e-6);
        make_steps(strategy, &options, nworkers, 1, 4);
    }
    hvd_strategy_free(strategy);
    ranks_check_usable();
}

TEST(a_missing_gradient_fails_the_step_and_no_more)
{
    for (int servers = 1; servers < ranks_size(); servers++)
        fail_and_go_on(servers, false);
}

TEST(a_worker_may_abandon_a_step)
{
    for (int servers = 1; servers < ranks_size(); servers++)
        fail_and_go_on(servers, true);
}

/* The others go on without a worker that has freed its strategy; averages are
 * still over all. */
TEST(a_worker_may_end_early)
{
    hvd_strategy_options options = with_servers(HVD_SGD, 1);
    int nworkers = ranks_size() - 1;
    hvd_strategy *strategy;

    if (nworkers < 2)
        return;
    options.flags = HVD_AVERAGE_CONTRIBUTORS;
    strategy = make_from(&options);
    expect_start();
    ck_hvd(hvd_strategy_start(strategy));
    if (hvd_strategy_is_server(strategy)) {
        ck_hvd(hvd_strategy_serve(strategy));
    } else {
        make_steps(strategy, &options, nworkers, 0, 2);
        if (ranks_rank() < nworkers - 1)
            make_steps(strategy, &options, nworkers - 1, 2, 5);
    }
    hvd_strategy_free(strategy);
}

/* ------------------------------------------------------ joins, checkpoints */

TEST(workers_may_join)
{
    hvd_strategy_options options = with_servers(HVD_ADAM, 1);

    if (ranks_size() > 1)
        join_and_go_on(&options);
}

static void continue_with(hvd_optimizer optimizer, int servers, int later)
{
    hvd_strategy_options first = with_servers(optimizer, servers);
    hvd_strategy_options second = with_servers(optimizer, later);

    first.part_bytes = 7000;
    second.placement = HVD_PLACE_BY_BYTES;
    save_and_continue(&first, &second);
}

TEST(checkpoints_hold_what_the_servers_have)
{
    int n = ranks_size();

    if (n < 2)
        return;
    continue_with(HVD_ADAM, 1, n - 1);
    continue_with(HVD_MOMENTUM, n - 1, 1);
    continue_with(HVD_SGD, n / 2, n / 2);
}

RANKS_TEST_MAIN(HVD_STARTS_MPI, "mpi_servers")
