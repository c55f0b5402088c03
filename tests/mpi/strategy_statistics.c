/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Statistics of a strategy: each rank changes them by itself, and the mean over
 * the ranks is what is read, with the same bits everywhere, with and without
 * parameter servers; checkpoints keep the means.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "hvd_strategy.h"
#include "ranks.h"
#include "small_model.h"

enum { NSTATISTICS = 3, MOST = 70 };

static const char *const statistic_names[] = {"norm/mean", "norm/variance",
                                              "nothing"};
static const int64_t lengths[NSTATISTICS] = {MOST, 33, 0};
static float own[NSTATISTICS][MOST], means[NSTATISTICS][MOST];

/* What a rank computes for itself after a step. */
static float statistic(int rank, int step, int which, int64_t i)
{
    return (float)((i * 5 + which * 3 + step * 7 + rank * 13) % 31) / 7 -
           (float)rank;
}

static void change(int step)
{
    for (int k = 0; k < NSTATISTICS; k++)
        for (int64_t i = 0; i < lengths[k]; i++)
            own[k][i] = statistic(ranks_rank(), step, k, i);
}

static void add_statistics(hvd_strategy *strategy)
{
    change(-1);
    memset(means, 0, sizeof means);
    for (int k = 0; k < NSTATISTICS; k++)
        ck_assert_int_eq(hvd_strategy_add_statistic(strategy,
                                                    statistic_names[k], own[k],
                                                    means[k], 1, &lengths[k]),
                         k);
}

/* Checks that the means are those of ranks first to last, who made that step,
 * and that own values are still this rank's. */
static void check_means(int first, int last, int step, int own_step)
{
    for (int k = 0; k < NSTATISTICS; k++)
        for (int64_t i = 0; i < lengths[k]; i++) {
            double mean = 0;

            for (int rank = first; rank <= last; rank++)
                mean +=
                    (double)statistic(rank, step, k, i) / (last - first + 1);
            ck_assert_double_eq_tol((double)means[k][i], mean, 2e-6);
            ck_assert_float_eq(own[k][i],
                               statistic(ranks_rank(), own_step, k, i));
        }
}

/* All ranks of the world must hold rank 0's bits. */
static void check_same_means(void)
{
    float theirs[NSTATISTICS][MOST];

    memcpy(theirs, means, sizeof theirs);
    ck_hvd(hvd_broadcast(theirs, NSTATISTICS * MOST, HVD_FLOAT32, 0));
    ck_assert_mem_eq(theirs, means, sizeof theirs);
}

static void check_shared(int step)
{
    for (int k = 0; k < NSTATISTICS; k++)
        for (int64_t i = 0; i < lengths[k]; i++) {
            ck_assert_float_eq(own[k][i], statistic(0, step, k, i));
            ck_assert_float_eq(means[k][i], statistic(0, step, k, i));
        }
}

TEST(a_read_gives_the_mean_of_all_ranks)
{
    hvd_strategy *strategy = make(HVD_ADAM, 0, NULL, NULL);

    add_statistics(strategy);
    ck_hvd(hvd_strategy_start(strategy));
    check_shared(-1);
    for (int step = 0; step < NSTEPS; step++) {
        feed(strategy, step);
        change(step);
        ck_hvd(hvd_strategy_step(strategy));
        if (step % 3)
            continue;
        ck_hvd(hvd_strategy_read_statistics(strategy));
        check_means(0, ranks_size() - 1, step, step);
        check_same_means();
    }
    ck_hvd(hvd_strategy_check(strategy)); /* says nothing of statistics */
    hvd_strategy_free(strategy);
}

TEST(a_read_in_the_middle_of_a_step_waits_for_no_gradient)
{
    hvd_strategy *strategy = make(HVD_SGD, 0, NULL, NULL);

    add_statistics(strategy);
    ck_hvd(hvd_strategy_start(strategy));
    change(5);
    if (ranks_rank() == 0)
        feed(strategy, 0);
    ck_hvd(hvd_strategy_read_statistics(strategy));
    check_means(0, ranks_size() - 1, 5, 5);
    if (ranks_rank() != 0)
        feed(strategy, 0);
    ck_hvd(hvd_strategy_step(strategy));
    hvd_strategy_free(strategy);
}

TEST(ranks_that_joined_do_not_count)
{
    hvd_strategy *strategy = make(HVD_SGD, 0, NULL, NULL);
    int last = -1;

    add_statistics(strategy);
    ck_hvd(hvd_strategy_start(strategy));
    change(1);
    if (ranks_size() > 1 && ranks_rank() > 0) {
        feed(strategy, 1);
        ck_hvd(hvd_strategy_step(strategy));
        ck_hvd(hvd_strategy_read_statistics(strategy));
        change(2);
    }
    ck_hvd(hvd_strategy_join(strategy, &last));
    for (int64_t i = 0; i < lengths[0]; i++)
        ck_assert_float_eq(
            own[0][i], statistic(ranks_rank(), ranks_rank() > 0 ? 2 : 1, 0, i));
    if (ranks_size() > 1 && ranks_rank() > 0)
        check_means(1, ranks_size() - 1, 1, 2);
    hvd_strategy_free(strategy);
}

/* Workers that wait for nobody meet to read, and servers take no part. */
TEST(workers_of_servers_read_their_mean)
{
    hvd_strategy_options options;
    hvd_strategy *strategy;
    int workers = ranks_size() - 1;

    if (workers == 0)
        return;
    hvd_strategy_options_init(&options, sizeof options);
    options.kind = HVD_STRATEGY_PARAMETER_SERVER;
    options.servers = 1;
    options.mode = HVD_SERVER_ASYNCHRONOUS;
    strategy = make_from(&options);
    add_statistics(strategy);
    ck_hvd(hvd_strategy_start(strategy));
    if (hvd_strategy_is_server(strategy)) {
        ck_hvd_fails(hvd_strategy_read_statistics(strategy), HVD_ERR_ARGUMENT);
        ck_hvd(hvd_strategy_serve(strategy));
    }
    for (int step = 0; step < 6 && ranks_rank() < workers; step++) {
        feed(strategy, step);
        change(step);
        ck_hvd(hvd_strategy_step(strategy));
        if (step % 2 == 0)
            continue;
        ck_hvd(hvd_strategy_read_statistics(strategy));
        check_means(0, workers - 1, step, step);
    }
    hvd_strategy_free(strategy);
}

TEST(checkpoints_keep_the_means)
{
    const char *tmp = getenv("TMPDIR");
    hvd_strategy *strategy = make(HVD_ADAM, 0, NULL, NULL);
    float kept[NSTATISTICS][MOST];
    char file[256];

    snprintf(file, sizeof file, "%s/statistics.%d", tmp ? tmp : "/tmp",
             (int)getppid());
    add_statistics(strategy);
    ck_hvd(hvd_strategy_start(strategy));
    change(4);
    ck_hvd(hvd_strategy_read_statistics(strategy));
    memcpy(kept, means, sizeof kept);
    if (ranks_rank() == 0)
        ck_hvd(hvd_strategy_save(strategy, file));
    change(9);
    ck_hvd(hvd_strategy_load(strategy, file));
    ck_assert_mem_eq(means, kept, sizeof kept);
    ck_assert_mem_eq(own, kept, sizeof kept);
    hvd_strategy_free(strategy);

    strategy = make(HVD_ADAM, 0, NULL, NULL);
    ck_hvd(hvd_strategy_start(strategy));
    ck_hvd_fails(hvd_strategy_load(strategy, file), HVD_ERR_FILE);
    ck_error_says("'norm/mean'");
    if (ranks_rank() == 0)
        ck_hvd(hvd_strategy_save(strategy, file));
    hvd_strategy_free(strategy);

    strategy = make(HVD_ADAM, 0, NULL, NULL);
    add_statistics(strategy);
    ck_hvd(hvd_strategy_start(strategy));
    ck_hvd_fails(hvd_strategy_load(strategy, file), HVD_ERR_FILE);
    ck_error_says("no variable 'norm/mean'");
    hvd_strategy_free(strategy);
    ck_hvd(hvd_barrier());
    if (ranks_rank() == 0)
        unlink(file);
}

TEST(wrong_statistics_are_refused)
{
    hvd_strategy *strategy = make(HVD_SGD, 0, NULL, NULL);
    const int64_t length = 2 + (ranks_rank() == ranks_size() - 1);

    ck_hvd_fails(hvd_strategy_add_statistic(strategy, "variable 1", own[0],
                                            means[0], 1, &length),
                 HVD_ERR_ARGUMENT);
    ck_error_says("was added before, as number 1");
    ck_hvd_fails(
        hvd_strategy_add_statistic(strategy, "s", own[0], NULL, 1, &length),
        HVD_ERR_ARGUMENT);
    ck_error_says("the mean of statistic 's' is NULL");
    ck_hvd_fails(
        hvd_strategy_add_statistic(strategy, "s", NULL, means[0], 1, &length),
        HVD_ERR_ARGUMENT);
    ck_hvd_fails(hvd_strategy_read_statistics(strategy), HVD_ERR_ARGUMENT);
    ck_error_says("hvd_strategy_start has not been called");
    ck_hvd(hvd_strategy_add_statistic(strategy, "s", own[0], means[0], 1,
                                      &length));
    ck_hvd_fails(hvd_strategy_add(strategy, "s", own[1], 1, &length),
                 HVD_ERR_ARGUMENT);
    ck_error_says("as statistic 0");
    if (ranks_size() > 1) {
        ck_hvd_fails(hvd_strategy_start(strategy), HVD_ERR_MISMATCH);
        ck_error_says("added the statistic 's' [3]");
    }
    hvd_strategy_free(strategy);
}

RANKS_TEST_MAIN(HVD_STARTS_MPI, "mpi_strategy_statistics")
