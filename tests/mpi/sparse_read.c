/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sparse variables of which workers read the rows that they need: these are the
 * newest, no others come, and what travels is counted to the byte.
 */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "sparse_model.h"

static double known[NVARIABLES][LARGEST]; /* what this worker has got */

static hvd_strategy_options options_of(int servers)
{
    hvd_strategy_options options;

    hvd_strategy_options_init(&options, sizeof options);
    options.learning_rate = 0.01;
    options.kind = HVD_STRATEGY_PARAMETER_SERVER;
    options.servers = servers;
    options.flags = HVD_ROWS_ON_REQUEST;
    return options;
}

static hvd_strategy *start(const hvd_strategy_options *options)
{
    hvd_strategy *strategy = make_from(options);

    expect_start();
    memcpy(known, expected, sizeof known);
    ck_hvd(hvd_strategy_start(strategy));
    return strategy;
}

/* The rows that a rank reads: none in some steps, and some of them twice. */
static int64_t choose(int step, int v, int64_t *indices)
{
    int64_t n = (ranks_rank() + step) % 4 == 3 ? 0 : 1 + (step + v) % 7;

    for (int64_t k = 0; k < n && shapes[v][0] > 0; k++)
        indices[k] = (step * 11 + ranks_rank() * 17 + k * k * 7) % shapes[v][0];
    return shapes[v][0] > 0 ? n : 0;
}

static void read_and_check(hvd_strategy *strategy, int step)
{
    int64_t indices[8];

    for (int v = 0; v < NVARIABLES; v++) {
        int64_t n = choose(step, v, indices), width = shapes[v][1];

        if (v != DENSE)
            ck_hvd(hvd_strategy_read_rows(strategy, v, n ? indices : NULL, n));
        for (int64_t k = 0; k < n && v != DENSE; k++)
            memcpy(known[v] + indices[k] * width,
                   expected[v] + indices[k] * width,
                   (size_t)width * sizeof known[v][0]);
    }
    memcpy(known[DENSE], expected[DENSE], sizeof known[DENSE]);
    for (int v = 0; v < NVARIABLES; v++)
        for (int64_t i = 0; i < count_of(v); i++)
            ck_assert_msg(fabs((double)values[v][i] - known[v][i]) <= 4e-6,
                          "rank %d, step %d: %s [%lld] is %.9g, not %.9g",
                          ranks_rank(), step, names[v], (long long)i,
                          (double)values[v][i], known[v][i]);
}

static void train(int servers, int64_t part_bytes)
{
    hvd_strategy_options options = options_of(servers);
    int nworkers = ranks_size() - servers;
    hvd_strategy *strategy;

    options.part_bytes = part_bytes;
    strategy = start(&options);
    if (hvd_strategy_is_server(strategy))
        ck_hvd(hvd_strategy_serve(strategy));
    for (int step = 0; step < NSTEPS && !hvd_strategy_is_server(strategy);
         step++) {
        read_and_check(strategy, step);
        feed(strategy, step);
        ck_hvd(hvd_strategy_step(strategy));
        expect_step(&options, step, nworkers);
    }
    hvd_strategy_free(strategy);
}

TEST(rows_are_the_newest_and_no_others_come)
{
    static const int64_t sizes[] = {0, 1, 100};

    for (int servers = 1; servers < ranks_size(); servers++)
        for (int i = 0; i < 3; i++)
            train(servers, sizes[i]);
}

/* ------------------------------------------------------------ what it costs */

static int64_t broadcast_bytes(void)
{
    hvd_metrics metrics = {.size = sizeof metrics};

    ck_hvd(hvd_get_metrics(&metrics));
    return metrics.kinds[HVD_BROADCAST].bytes;
}

/* Reading costs a command, a number, and for each row 8 bytes there and the
 * values back; a step brings no row. */
TEST(only_rows_that_are_read_travel)
{
    static const int64_t indices[] = {7, 59, 7, 0};
    hvd_strategy_options options = options_of(1);
    hvd_strategy *strategy;
    int64_t before;

    if (ranks_size() < 2)
        return;
    strategy = start(&options);
    if (hvd_strategy_is_server(strategy)) {
        ck_hvd(hvd_strategy_serve(strategy));
        hvd_strategy_free(strategy);
        return;
    }
    before = broadcast_bytes();
    ck_hvd(hvd_strategy_read_rows(strategy, TABLE, indices, 4));
    ck_assert_int_eq(broadcast_bytes() - before, 24 + 8 + 3 * (8 + 6 * 4));
    before = broadcast_bytes();
    ck_hvd(hvd_strategy_read_rows(strategy, TABLE, indices, 0));
    ck_assert_int_eq(broadcast_bytes() - before, 24 + 8);
    before = broadcast_bytes();
    give_dense(strategy, 0);
    ck_hvd(
        hvd_strategy_ready_rows(strategy, TABLE, indices, values[TABLE], 4, 6));
    ck_hvd(hvd_strategy_ready_rows(strategy, NARROW, NULL, NULL, 0, 1));
    ck_hvd(hvd_strategy_ready_rows(strategy, EMPTY, NULL, NULL, 0, 4));
    ck_hvd(hvd_strategy_step(strategy));
    ck_assert_int_eq(broadcast_bytes() - before,
                     24 + 2 * 4 * count_of(DENSE) + 2 * 16 + 3 * (8 + 6 * 4));
    hvd_strategy_free(strategy);
}

/* ----------------------------------------------- where the whole is needed */

/* A checkpoint has all rows, and who saves or loads it has them, too; so have
 * all who join. */
TEST(checkpoints_and_joins_bring_all_rows)
{
    hvd_strategy_options options = options_of(ranks_size() > 2 ? 2 : 1);
    int nworkers = ranks_size() - options.servers;
    hvd_strategy *strategy;
    char file[300];
    const char *tmp = getenv("TMPDIR");

    if (nworkers < 1)
        return;
    snprintf(file, sizeof file, "%s/sparse_read.%d", tmp ? tmp : "/tmp",
             (int)getpid());
    strategy = start(&options);
    if (hvd_strategy_is_server(strategy)) {
        ck_hvd(hvd_strategy_serve(strategy));
        hvd_strategy_free(strategy);
        return;
    }
    ck_hvd_fails(hvd_strategy_check(strategy), HVD_ERR_UNSUPPORTED);
    for (int step = 0; step < 4; step++) {
        feed(strategy, step);
        ck_hvd(hvd_strategy_step(strategy));
        expect_step(&options, step, nworkers);
    }
    if (ranks_rank() == 0) {
        ck_hvd(hvd_strategy_save(strategy, file));
        check_values(4e-6);
    }
    feed(strategy, 5);
    ck_hvd(hvd_strategy_step(strategy));
    ck_assert_int_eq(hvd_strategy_load(strategy, ranks_rank() ? NULL : file),
                     1);
    check_values(4e-6); /* step 5 is forgotten */
    feed(strategy, 4);
    ck_hvd(hvd_strategy_step(strategy));
    expect_step(&options, 4, nworkers);
    ck_hvd(hvd_strategy_join(strategy, NULL));
    check_values(4e-6);
    hvd_strategy_free(strategy);
    if (ranks_rank() == 0)
        ck_assert_int_eq(unlink(file), 0);
}

/* Whoever reads the optimiser's state has all rows, and so have all when it is
 * written. */
TEST(the_state_is_of_all_rows)
{
    static float slots[NVARIABLES][2][LARGEST];
    int64_t updates[NVARIABLES];
    void *places[3 * NVARIABLES];
    hvd_strategy_options options = options_of(ranks_size() > 2 ? 2 : 1);
    int nworkers = ranks_size() - options.servers;
    hvd_strategy *strategy;

    if (nworkers < 1)
        return;
    options.part_bytes = 100;
    strategy = start(&options);
    if (hvd_strategy_is_server(strategy)) {
        ck_hvd(hvd_strategy_serve(strategy));
        hvd_strategy_free(strategy);
        return;
    }
    for (int v = 0; v < NVARIABLES; v++) {
        places[3 * v] = slots[v][0];
        places[3 * v + 1] = slots[v][1];
        places[3 * v + 2] = &updates[v];
    }
    ck_assert_int_eq(hvd_strategy_state_count(strategy), 3 * NVARIABLES);
    for (int step = 0; step < 4; step++) {
        feed(strategy, step);
        ck_hvd(hvd_strategy_step(strategy));
        expect_step(&options, step, nworkers);
    }
    if (ranks_rank() == 0) {
        ck_hvd(hvd_strategy_read_state(strategy, places));
        check_values(4e-6);
        for (int v = 0; v < NVARIABLES; v++)
            for (int64_t i = 0; i < count_of(v); i++) {
                ck_assert(fabs((double)slots[v][0][i] - kept[0][v][i]) < 1e-6);
                ck_assert(fabs((double)slots[v][1][i] - kept[1][v][i]) < 1e-6);
                ck_assert_int_eq(updates[v], 4);
            }
    }
    feed(strategy, 5);
    ck_hvd(hvd_strategy_step(strategy));
    for (int v = 0; v < NVARIABLES && ranks_rank() == 0; v++)
        for (int64_t i = 0; i < count_of(v); i++)
            values[v][i] = (float)expected[v][i];
    ck_hvd(hvd_strategy_write_state(strategy, (const void *const *)places));
    check_values(4e-6); /* step 5 is forgotten */
    feed(strategy, 4);
    ck_hvd(hvd_strategy_step(strategy));
    expect_step(&options, 4, nworkers);
    ck_hvd(hvd_strategy_join(strategy, NULL));
    check_values(4e-6);
    hvd_strategy_free(strategy);
}

/* ----------------------------------------------------------------- mistakes */

TEST(wrong_reads_are_refused)
{
    static const int64_t beyond[] = {3, 60}, negative[] = {-1}, good[] = {4};
    hvd_strategy_options options = options_of(1);
    hvd_strategy *strategy;

    options.kind = HVD_STRATEGY_ALL_REDUCE;
    options.servers = 0;
    ck_hvd_fails(hvd_strategy_new(&options, &strategy), HVD_ERR_ARGUMENT);
    ck_error_says("HVD_ROWS_ON_REQUEST");
    options = options_of(ranks_size() > 1);
    options.flags = 0;
    options.kind = ranks_size() > 1;
    strategy = make_from(&options);
    ck_hvd_fails(hvd_strategy_read_rows(strategy, TABLE, good, 1),
                 HVD_ERR_ARGUMENT);
    ck_hvd(hvd_strategy_start(strategy));
    if (hvd_strategy_is_server(strategy)) {
        ck_hvd_fails(hvd_strategy_read_rows(strategy, TABLE, good, 1),
                     HVD_ERR_ARGUMENT);
        ck_hvd(hvd_strategy_serve(strategy));
        hvd_strategy_free(strategy);
        return;
    }
    ck_hvd_fails(hvd_strategy_read_rows(strategy, TABLE, beyond, 2),
                 HVD_ERR_ARGUMENT);
    ck_error_says("reads row 60 of variable 'table'");
    ck_hvd_fails(hvd_strategy_read_rows(strategy, TABLE, negative, 1),
                 HVD_ERR_ARGUMENT);
    ck_error_says("row -1");
    ck_hvd_fails(hvd_strategy_read_rows(strategy, TABLE, NULL, 1),
                 HVD_ERR_ARGUMENT);
    ck_hvd_fails(hvd_strategy_read_rows(strategy, TABLE, good, -1),
                 HVD_ERR_ARGUMENT);
    ck_hvd_fails(hvd_strategy_read_rows(strategy, DENSE, good, 1),
                 HVD_ERR_ARGUMENT);
    ck_error_says("'dense' is dense");
    ck_hvd_fails(hvd_strategy_read_rows(strategy, 9, good, 1),
                 HVD_ERR_ARGUMENT);
    ck_hvd(hvd_strategy_read_rows(strategy, TABLE, good, 1));
    feed(strategy, 0);
    ck_hvd_fails(hvd_strategy_read_rows(strategy, TABLE, good, 1),
                 HVD_ERR_ARGUMENT);
    ck_error_says("between two steps");
    ck_hvd(hvd_strategy_step(strategy));
    hvd_strategy_free(strategy);
}

TEST(all_ranks_choose_alike)
{
    hvd_strategy_options options = options_of(1);
    hvd_strategy *strategy;

    if (ranks_size() < 2)
        return;
    options.flags = ranks_rank() == 1 ? 0 : HVD_ROWS_ON_REQUEST;
    strategy = make_from(&options);
    ck_hvd_fails(hvd_strategy_start(strategy), HVD_ERR_MISMATCH);
    ck_error_says("rows on request");
    hvd_strategy_free(strategy);
    ranks_check_usable();
}

RANKS_TEST_MAIN(HVD_STARTS_MPI, "mpi_sparse_read")
