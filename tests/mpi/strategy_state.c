/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The optimiser's state as tensors: it is what the formulas say, wherever the
 * optimiser is; a training goes on from it on any ranks and servers as if it
 * had never stopped; and what is wrong on rank 0 fails on all ranks and changes
 * nothing.
 */
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "hvd_strategy.h"
#include "ranks.h"
#include "small_model.h"
#include "small_model_steps.h"

enum { MOST = NVARIABLES * 4 };

/* What the tests read and write. */
static hvd_strategy_tensor tensors[MOST];
static union {
    float elements[LARGEST];
    int64_t updates;
} state[MOST], before[MOST];
static void *places[MOST];

static int list(const hvd_strategy *strategy)
{
    int count = hvd_strategy_state_count(strategy);

    ck_hvd(count);
    ck_assert_int_le(count, MOST);
    for (int i = 0; i < count; i++) {
        tensors[i].size = sizeof tensors[i];
        ck_hvd(hvd_strategy_state_info(strategy, i, &tensors[i]));
        places[i] = &state[i];
    }
    return count;
}

static void read_state(hvd_strategy *strategy)
{
    list(strategy);
    memset(state, 0xff, sizeof state);
    ck_hvd(hvd_strategy_read_state(strategy, places));
}

static int write_state(hvd_strategy *strategy)
{
    list(strategy);
    return hvd_strategy_write_state(
        strategy, ranks_rank() == 0 ? (const void *const *)places : NULL);
}

static bool is_updates(const hvd_strategy_tensor *t)
{
    return strcmp(strrchr(t->name, '/'), "/updates") == 0;
}

/* Returns what the textbook has in place of a tensor. */
static const double *by_hand(hvd_optimizer optimizer,
                             const hvd_strategy_tensor *t)
{
    const char *slot = strrchr(t->name, '/') + 1;
    int k = slot[0] == 'v'                                              ? 1
            : strcmp(slot, "momentum") == 0 && optimizer == HVD_RMSPROP ? 2
                                                                        : 0;

    return kept[k][t->variable];
}

/* Servers have no part of a variable without elements, and count none of its
 * updates. */
static int64_t updates_of(int variable, int servers, int64_t updates)
{
    return servers > 0 && count_of(variable) == 0 ? 0 : updates;
}

static void check_state(hvd_optimizer optimizer, int servers, int64_t updates)
{
    for (int i = 0; i < MOST && places[i]; i++) {
        const hvd_strategy_tensor *t = &tensors[i];

        if (is_updates(t)) {
            ck_assert_int_eq(state[i].updates,
                             updates_of(t->variable, servers, updates));
            continue;
        }
        for (int64_t k = 0; k < t->count; k++) {
            double want = by_hand(optimizer, t)[k];

            if (!(fabs((double)state[i].elements[k] - want) <=
                  4e-6 * (1 + fabs(want))))
                ck_abort_msg("rank %d: %s [%lld] is %.9g, not %.9g",
                             ranks_rank(), t->name, (long long)k,
                             (double)state[i].elements[k], want);
        }
    }
}

static void set_up(void)
{
    memset(places, 0, sizeof places);
}

/* -------------------------------------------------------------- where it is */

static hvd_strategy_options on_ranks(hvd_optimizer optimizer, int servers)
{
    hvd_strategy_options options = options_of(optimizer);

    if (servers > 0)
        options.kind = HVD_STRATEGY_PARAMETER_SERVER;
    options.servers = servers;
    options.part_bytes =
        servers > 1 && optimizer != HVD_LAMB && optimizer != HVD_LARS ? 7000
                                                                      : 0;
    return options;
}

static hvd_strategy *start(const hvd_strategy_options *options)
{
    hvd_strategy *strategy = make_from(options);

    ck_hvd(hvd_strategy_start(strategy));
    return strategy;
}

static void train(hvd_strategy *strategy, int from, int to)
{
    for (int step = from; step < to; step++) {
        feed(strategy, step);
        ck_hvd(hvd_strategy_step(strategy));
    }
}

/* Serves on a server. Returns whether this rank is a worker. */
static bool works(hvd_strategy *strategy)
{
    if (!hvd_strategy_is_server(strategy))
        return true;
    ck_hvd(hvd_strategy_serve(strategy));
    return false;
}

/* Waits for all workers, which in some modes the strategy itself does not. */
static void meet(hvd_strategy *strategy)
{
    float x = 1;
    hvd_request sum = ranks_sum(HVD_FLOAT32, &x, &x, NULL);

    sum.process_set = hvd_strategy_workers(strategy);
    ck_hvd(ranks_run(&sum));
}

/* Calls a test for all-reduce and for any number of servers. */
#define EVERYWHERE(servers)                                                    \
    for (int servers = 0; servers < ranks_size(); (servers)++)

/* ----------------------------------------------------------------- the list */

static void expect_names(const hvd_strategy_options *options,
                         const char *const *slots)
{
    hvd_strategy *strategy = start(options);
    int count = list(strategy), i = 0;
    char name[64];

    for (int v = 0; v < NVARIABLES && slots[0]; v++)
        for (int k = 0; k < 4 && slots[k]; k++, i++) {
            bool counts = !strcmp(slots[k], "updates");

            snprintf(name, sizeof name, "variable %d/%s", v, slots[k]);
            ck_assert_int_lt(i, count);
            ck_assert_str_eq(tensors[i].name, name);
            ck_assert_int_eq(tensors[i].variable, v);
            ck_assert_int_eq(tensors[i].dtype,
                             counts ? HVD_INT64 : HVD_FLOAT32);
            ck_assert_int_eq(tensors[i].ndim, counts ? 0 : 2);
            ck_assert_int_eq(tensors[i].count, counts ? 1 : count_of(v));
            if (!counts)
                ck_assert_mem_eq(tensors[i].shape, shapes[v], sizeof shapes[v]);
        }
    ck_assert_int_eq(count, i);
    works(strategy);
    hvd_strategy_free(strategy);
}

TEST(the_list_names_what_the_optimizer_keeps)
{
    static const char *const slots[HVD_NUM_OPTIMIZERS][4] = {
        [HVD_SGD] = {"updates"},
        [HVD_MOMENTUM] = {"momentum", "updates"},
        [HVD_ADAM] = {"m", "v", "updates"},
        [HVD_NESTEROV] = {"momentum", "updates"},
        [HVD_ADAMW] = {"m", "v", "updates"},
        [HVD_LAMB] = {"m", "v", "updates"},
        [HVD_LION] = {"m", "updates"},
        [HVD_RMSPROP] = {"v", "updates"},
        [HVD_ADAGRAD] = {"v", "updates"},
        [HVD_ADADELTA] = {"v", "d", "updates"},
        [HVD_LARS] = {"momentum", "updates"},
    };
    static const char *const centered[] = {"v", "m", "updates", NULL};
    static const char *const all[] = {"v", "momentum", "m", "updates"};
    hvd_strategy_options options = options_of(HVD_RMSPROP);

    for (hvd_optimizer o = 0; o < HVD_NUM_OPTIMIZERS; o++) {
        hvd_strategy_options of =
            on_ranks(o, o == HVD_NO_OPTIMIZER ? 0 : ranks_size() / 2);

        expect_names(&of, slots[o]);
    }
    options.centered = 1;
    expect_names(&options, centered);
    options.momentum = 0.5;
    expect_names(&options, all);
}

/* ------------------------------------------------------------------ reading */

TEST(the_state_is_what_the_formulas_say)
{
    for (hvd_optimizer o = 0; o < HVD_NUM_OPTIMIZERS; o++) {
        int servers = o % ranks_size();
        hvd_strategy_options options =
            on_ranks(o, o == HVD_NO_OPTIMIZER ? 0 : servers);
        hvd_strategy *strategy = start(&options);

        memset(places, 0, sizeof places);
        if (works(strategy)) {
            expect_start();
            read_state(strategy);
            check_state(o, options.servers, 0);
            train(strategy, 0, 5);
            for (int step = 0; step < 5; step++)
                expect_step(&options, step, ranks_size() - options.servers);
            read_state(strategy);
            check_state(o, options.servers, 5);
        }
        hvd_strategy_free(strategy);
    }
}

TEST(only_what_is_wanted_is_read)
{
    EVERYWHERE(servers)
    {
        hvd_strategy_options options = on_ranks(HVD_ADAM, servers);
        hvd_strategy *strategy = start(&options);

        if (works(strategy)) {
            int count = list(strategy);
            int64_t updates = -1;

            train(strategy, 0, 3);
            memset(places, 0, sizeof places);
            places[count - 1] = &updates;
            ck_hvd(hvd_strategy_read_state(strategy, places));
            ck_assert_int_eq(updates, 3);
        }
        hvd_strategy_free(strategy);
    }
}

/* Workers that do not wait for each other make updates of their own, and one
 * of them sees those of all. */
TEST(updates_are_those_of_all_workers_that_do_not_wait)
{
    for (int servers = 1; servers < ranks_size(); servers++) {
        hvd_strategy_options options = on_ranks(HVD_MOMENTUM, servers);
        int nworkers = ranks_size() - servers;
        hvd_strategy *strategy;

        options.mode = HVD_SERVER_ASYNCHRONOUS;
        options.part_bytes = 900;
        strategy = start(&options);
        if (works(strategy)) {
            train(strategy, 0, ranks_rank() + 1);
            meet(strategy);
            read_state(strategy);
            for (int i = 0; i < MOST && places[i]; i++)
                if (is_updates(&tensors[i]))
                    ck_assert_int_eq(state[i].updates,
                                     updates_of(tensors[i].variable, servers,
                                                nworkers * (nworkers + 1) / 2));
        }
        hvd_strategy_free(strategy);
    }
}

/* ------------------------------------------------------------------ writing */

/* Trains with some servers, and goes on with others from what rank 0 has read.
 * The bits are those of a training that never stopped if nothing else has
 * changed. */
static void stop_and_go_on(hvd_optimizer optimizer, int servers, int later)
{
    static float saved[NVARIABLES][LARGEST], whole[NVARIABLES][LARGEST];
    hvd_strategy_options options = on_ranks(optimizer, servers);
    hvd_strategy *strategy = start(&options);

    memset(places, 0, sizeof places);
    if (works(strategy)) {
        train(strategy, 0, 4);
        read_state(strategy);
        memcpy(saved, values, sizeof saved);
        train(strategy, 4, 8);
        memcpy(whole, values, sizeof whole);
    }
    hvd_strategy_free(strategy);

    options = on_ranks(optimizer, later);
    options.placement = later > 0 ? HVD_PLACE_BY_BYTES : 0;
    strategy = start(&options);
    if (works(strategy)) {
        train(strategy, 9, 11); /* of no consequence */
        memset(values, ranks_rank(), sizeof values);
        if (ranks_rank() == 0)
            memcpy(values, saved, sizeof saved);
        ck_hvd(write_state(strategy));
        ck_hvd(hvd_strategy_check(strategy));
        train(strategy, 4, 8);
        expect_start();
        for (int step = 0; step < 4; step++)
            expect_step(&options, step, ranks_size() - servers);
        for (int step = 4; step < 8; step++)
            expect_step(&options, step, ranks_size() - later);
        check_values(2e-5);
        for (int v = 0; v < NVARIABLES && servers == later; v++)
            ck_assert_mem_eq(values[v], whole[v],
                             (size_t)count_of(v) * sizeof(float));
    }
    hvd_strategy_free(strategy);
}

TEST(training_goes_on_anywhere)
{
    int n = ranks_size();

    for (hvd_optimizer o = 0; o < HVD_NUM_OPTIMIZERS; o++)
        if (o != HVD_NO_OPTIMIZER)
            stop_and_go_on(o, 0, 0);
    for (hvd_optimizer o = 0; o < HVD_NUM_OPTIMIZERS && n > 1; o++)
        if (o != HVD_NO_OPTIMIZER)
            stop_and_go_on(o, 1 + o % (n - 1), 1 + o % (n - 1));
    if (n > 1) {
        stop_and_go_on(HVD_ADAM, 0, 1);
        stop_and_go_on(HVD_ADAM, n - 1, 0);
        stop_and_go_on(HVD_ADAGRAD, 1, n - 1);
        stop_and_go_on(HVD_ADADELTA, n - 1, n / 2);
    }
}

/* In every mode the servers keep what they are given, part by part. */
TEST(servers_of_every_mode_keep_what_they_get)
{
    for (hvd_server_mode mode = 0; mode < 4 && ranks_size() > 1; mode++) {
        hvd_strategy_options options =
            on_ranks(HVD_ADAM, (ranks_size() + 1) / 2);
        hvd_strategy *strategy;

        options.mode = mode % 3;
        options.backups = mode == 3 && ranks_size() - options.servers > 1;
        options.part_bytes = 800;
        strategy = start(&options);
        if (works(strategy)) {
            int count = list(strategy);

            train(strategy, 0, 2);
            for (int i = 0; i < count; i++)
                if (is_updates(&tensors[i]))
                    state[i].updates =
                        updates_of(tensors[i].variable, 1, 70 + i);
                else
                    for (int64_t k = 0; k < LARGEST; k++)
                        state[i].elements[k] = (float)((k * 7 + i) % 1013);
            if (ranks_rank() == 0)
                for (int k = 0; k < LARGEST; k++)
                    values[0][k] = (float)k;
            ck_hvd(write_state(strategy));
            for (int k = 0; k < LARGEST; k++)
                ck_assert_float_eq(values[0][k], (float)k);
            memcpy(before, state, sizeof state);
            read_state(strategy);
            for (int i = 0; i < count; i++)
                ck_assert_mem_eq(&state[i], &before[i],
                                 (size_t)tensors[i].count *
                                     (size_t)hvd_dtype_size(tensors[i].dtype));
            meet(strategy);
            train(strategy, 2, 3);
        }
        hvd_strategy_free(strategy);
    }
}

/* Without tensors the optimiser is as new, and the variables are rank 0's. */
TEST(without_tensors_the_optimizer_begins_anew)
{
    EVERYWHERE(servers)
    {
        hvd_strategy_options options = on_ranks(HVD_ADAM, servers);
        hvd_strategy *strategy = start(&options);

        if (works(strategy)) {
            train(strategy, 5, 8);
            for (int v = 0; v < NVARIABLES; v++)
                for (int64_t i = 0; i < count_of(v); i++)
                    values[v][i] = (float)initial(ranks_rank(), v, i);
            ck_hvd(hvd_strategy_write_state(strategy, NULL));
            expect_start();
            check_values(0);
            train(strategy, 0, 3);
            for (int step = 0; step < 3; step++)
                expect_step(&options, step, ranks_size() - servers);
            check_values(2e-6);
        }
        hvd_strategy_free(strategy);
    }
}

TEST(statistics_become_those_of_rank_0)
{
    EVERYWHERE(servers)
    {
        static const int64_t shape[] = {3};
        hvd_strategy_options options = on_ranks(HVD_SGD, servers);
        hvd_strategy *strategy = make_from(&options);
        float own[3] = {0}, mean[3] = {0};

        ck_hvd(
            hvd_strategy_add_statistic(strategy, "mean", own, mean, 1, shape));
        ck_hvd(hvd_strategy_start(strategy));
        if (works(strategy)) {
            own[1] = (float)ranks_rank() + 4;
            ck_hvd(hvd_strategy_write_state(strategy, NULL));
            ck_assert_float_eq(own[1], 4);
            ck_assert_float_eq(mean[1], 4);
        }
        hvd_strategy_free(strategy);
    }
}

/* ------------------------------------------------------------ what is wrong */

/* Rank 0 gives something wrong: that fails on all ranks, and nothing changes.
 */
static void refuse(hvd_strategy *strategy, const char *words)
{
    static float saved[NVARIABLES][LARGEST];

    memcpy(saved, values, sizeof saved);
    ck_hvd_fails(
        hvd_strategy_write_state(
            strategy, ranks_rank() == 0 ? (const void *const *)places : NULL),
        HVD_ERR_ARGUMENT);
    ck_error_says(words);
    ck_error_says("rank 0: ");
    ck_assert_mem_eq(values, saved, sizeof saved);
}

TEST(wrong_tensors_are_refused_by_all)
{
    EVERYWHERE(servers)
    {
        hvd_strategy_options options = on_ranks(HVD_ADAM, servers);
        hvd_strategy *strategy = start(&options);

        if (works(strategy)) {
            train(strategy, 0, 2);
            read_state(strategy);
            places[1] = NULL;
            refuse(strategy, "tensor 'variable 0/v' of the optimizer's state "
                             "is NULL");
            places[1] = &state[1];
            places[5] = NULL;
            refuse(strategy, "tensor 'variable 1/updates'");
            places[5] = &state[5];
            state[5].updates = -3;
            refuse(strategy, "'variable 1/updates' is -3");
            /* Nothing has changed, and it works as before. */
            read_state(strategy);
            train(strategy, 2, 4);
            expect_start();
            for (int step = 0; step < 4; step++)
                expect_step(&options, step, ranks_size() - servers);
            check_values(2e-6);
        }
        hvd_strategy_free(strategy);
    }
}

TEST(wrong_calls_are_refused_here)
{
    hvd_strategy_tensor info = {.size = sizeof info};
    hvd_strategy_options options = on_ranks(HVD_ADAM, ranks_size() > 1);
    hvd_strategy *strategy = make_from(&options);

    ck_hvd_fails(hvd_strategy_state_count(NULL), HVD_ERR_ARGUMENT);
    ck_hvd_fails(hvd_strategy_read_state(NULL, places), HVD_ERR_ARGUMENT);
    ck_hvd_fails(hvd_strategy_write_state(NULL, NULL), HVD_ERR_ARGUMENT);
    ck_hvd_fails(hvd_strategy_state_count(strategy), HVD_ERR_ARGUMENT);
    ck_error_says("hvd_strategy_start");
    ck_hvd_fails(hvd_strategy_read_state(strategy, places), HVD_ERR_ARGUMENT);
    ck_hvd_fails(hvd_strategy_write_state(strategy, NULL), HVD_ERR_ARGUMENT);
    ck_hvd(hvd_strategy_start(strategy));
    ck_hvd_fails(hvd_strategy_state_info(strategy, -1, &info),
                 HVD_ERR_ARGUMENT);
    ck_hvd_fails(hvd_strategy_state_info(strategy, 3 * NVARIABLES, &info),
                 HVD_ERR_ARGUMENT);
    ck_error_says("no tensor 15 of the optimizer's state: it has 15");
    ck_hvd_fails(hvd_strategy_state_info(strategy, 0, NULL), HVD_ERR_ARGUMENT);
    info.size = 8;
    ck_hvd_fails(hvd_strategy_state_info(strategy, 0, &info), HVD_ERR_ARGUMENT);
    ck_error_says("too small");
    if (hvd_strategy_is_server(strategy)) {
        ck_hvd_fails(hvd_strategy_read_state(strategy, places),
                     HVD_ERR_ARGUMENT);
        ck_hvd_fails(hvd_strategy_write_state(strategy, NULL),
                     HVD_ERR_ARGUMENT);
        ck_error_says("is a parameter server");
        ck_hvd(hvd_strategy_serve(strategy));
    } else {
        ck_hvd_fails(hvd_strategy_read_state(strategy, NULL), HVD_ERR_ARGUMENT);
        ck_error_says("NULL");
    }
    hvd_strategy_free(strategy);
}

/* While one rank is in the middle of a step, it cannot read, and no rank can
 * write. That rank can finish its step. */
TEST(not_in_the_middle_of_a_step)
{
    EVERYWHERE(servers)
    {
        hvd_strategy_options options = on_ranks(HVD_SGD, servers);
        hvd_strategy *strategy = start(&options);
        int last = ranks_size() - servers - 1;

        if (works(strategy)) {
            list(strategy);
            if (ranks_rank() == last) {
                memset(hvd_strategy_gradient(strategy, 1), 0,
                       64 * sizeof(float));
                ck_hvd(hvd_strategy_ready(strategy, 1));
                ck_hvd_fails(hvd_strategy_read_state(strategy, places),
                             HVD_ERR_ARGUMENT);
                ck_error_says("the gradient of 'variable 1' is under way");
            }
            ck_hvd_fails(write_state(strategy), HVD_ERR_ARGUMENT);
            ck_error_says("the gradient of 'variable 1' is under way");
            for (int v = 0; v < NVARIABLES; v++) {
                memset(hvd_strategy_gradient(strategy, v), 0,
                       (size_t)count_of(v) * sizeof(float));
                if (v != 1 || ranks_rank() != last)
                    ck_hvd(hvd_strategy_ready(strategy, v));
            }
            ck_hvd(hvd_strategy_step(strategy));
        }
        hvd_strategy_free(strategy);
    }
}

RANKS_TEST_MAIN(HVD_STARTS_MPI, "mpi_strategy_state", .set_up = set_up)
