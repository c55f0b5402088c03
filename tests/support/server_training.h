/* SPDX-License-Identifier: Apache-2.0 */
/*
 * server_training.h - trainings with parameter servers or without
 * (options->servers is 0), whose steps are compared with those made by hand.
 * The model is that of sparse_model.h, if this is included before, else that of
 * small_model.h.
 */
#ifndef TESTS_SERVER_TRAINING_H
#define TESTS_SERVER_TRAINING_H

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#ifndef TESTS_SPARSE_MODEL_H
#include "small_model_steps.h"
#endif

static inline int workers_of(const hvd_strategy_options *options)
{
    return ranks_size() - options->servers;
}

/* Makes the steps of n workers. */
static inline void make_steps(hvd_strategy *strategy,
                              const hvd_strategy_options *options, int n,
                              int from, int to)
{
    for (int step = from; step < to; step++) {
        feed(strategy, step);
        ck_hvd(hvd_strategy_step(strategy));
        expect_step(options, step, n);
        check_values(4e-6);
    }
}

/* Worker r makes 1 + r steps and joins; in the end all have what the last has,
 * and go on together. */
static inline void join_and_go_on(const hvd_strategy_options *options)
{
    hvd_strategy *strategy = make_from(options);
    int last = -1;

    ck_hvd(hvd_strategy_start(strategy));
    if (hvd_strategy_is_server(strategy)) {
        ck_hvd(hvd_strategy_serve(strategy));
        hvd_strategy_free(strategy);
        return;
    }
    for (int step = 0; step <= ranks_rank(); step++) {
        feed(strategy, step);
        ck_hvd(hvd_strategy_step(strategy));
    }
    ck_hvd(hvd_strategy_join(strategy, &last));
    ck_assert_int_eq(last, workers_of(options) - 1);
    ck_hvd(hvd_strategy_check(strategy));
    for (int step = 20; step < 23; step++) {
        feed(strategy, step);
        ck_hvd(hvd_strategy_step(strategy));
    }
    ck_hvd(hvd_strategy_check(strategy));
    hvd_strategy_free(strategy);
}

/* Makes four steps and saves on rank 0. */
static inline void save_after_steps(const hvd_strategy_options *options,
                                    const char *file)
{
    hvd_strategy *strategy = make_from(options);

    expect_start();
    ck_hvd(hvd_strategy_start(strategy));
    if (hvd_strategy_is_server(strategy)) {
        ck_hvd_fails(hvd_strategy_save(strategy, file), HVD_ERR_ARGUMENT);
        ck_hvd(hvd_strategy_serve(strategy));
        for (int step = 0; step < 4; step++)
            expect_step(options, step, workers_of(options));
    } else {
        make_steps(strategy, options, workers_of(options), 0, 4);
        if (ranks_rank() == 0)
            ck_hvd(hvd_strategy_save(strategy, file));
    }
    hvd_strategy_free(strategy);
}

/* Continues from the checkpoint of rank 0 with other options, among them
 * another number of servers, and comes to the values of a training that was
 * never stopped. */
static inline void save_and_continue(const hvd_strategy_options *first,
                                     const hvd_strategy_options *later)
{
    const char *tmp = getenv("TMPDIR");
    hvd_strategy *strategy;
    char file[300];

    snprintf(file, sizeof file, "%s/strategy.%d", tmp ? tmp : "/tmp",
             (int)getpid());
    save_after_steps(first, file);
    ck_hvd(hvd_barrier());
    strategy = make_from(later);
    ck_hvd(hvd_strategy_start(strategy));
    if (hvd_strategy_is_server(strategy)) {
        ck_hvd(hvd_strategy_serve(strategy));
    } else {
        ck_hvd_fails(hvd_strategy_load(strategy, "/nowhere"), HVD_ERR_FILE);
        ck_assert_int_eq(
            hvd_strategy_load(strategy, ranks_rank() ? NULL : file), 1);
        check_values(4e-6);
        make_steps(strategy, later, workers_of(later), 4, 8);
    }
    hvd_strategy_free(strategy);
    if (ranks_rank() == 0)
        ck_assert_int_eq(unlink(file), 0);
}

#endif
