/* SPDX-License-Identifier: Apache-2.0 */
/* hvd_strategy_check compares the variables of all ranks. If they differ, every
 * rank gets an error that names the rank and the variable. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "small_model.h"

static void step_once(hvd_strategy *strategy, int step, int want)
{
    feed(strategy, step);
    ck_hvd_fails(hvd_strategy_step(strategy), want);
}

/* Changes one bit, as faulty memory does. */
static void flip_a_bit(int variable, int64_t element, unsigned bit)
{
    uint32_t bits;

    memcpy(&bits, &values[variable][element], sizeof bits);
    bits ^= UINT32_C(1) << bit;
    memcpy(&values[variable][element], &bits, sizeof bits);
}

TEST(equal_variables_pass_the_check)
{
    hvd_strategy *strategy = make(HVD_ADAM, 0, NULL, NULL);

    ck_hvd_fails(hvd_strategy_check(strategy), HVD_ERR_ARGUMENT);
    ck_error_says("hvd_strategy_start");
    ck_hvd_fails(hvd_strategy_check(NULL), HVD_ERR_ARGUMENT);
    ck_hvd(hvd_strategy_start(strategy));
    ck_hvd(hvd_strategy_check(strategy));
    for (int step = 0; step < 3; step++) {
        step_once(strategy, step, HVD_OK);
        ck_hvd(hvd_strategy_check(strategy));
    }
    /* NaN is no difference if all ranks have it. */
    values[0][77] = NAN;
    values[4][0] = INFINITY;
    ck_hvd(hvd_strategy_check(strategy));
    hvd_strategy_free(strategy);
}

/* Every rank in turn has one other bit, in every variable in turn. */
TEST(a_flipped_bit_is_found)
{
    hvd_strategy *strategy = make(HVD_SGD, 0, NULL, NULL);
    int n = ranks_size();
    char text[64];

    ck_hvd(hvd_strategy_start(strategy));
    for (int rank = 0; rank < n && n > 1; rank++)
        for (int v = 0; v < NVARIABLES; v++) {
            int64_t last = count_of(v) - 1;

            if (last < 0)
                continue;
            if (ranks_rank() == rank)
                flip_a_bit(v, last, (unsigned)(7 * v) % 32);
            ck_hvd_fails(hvd_strategy_check(strategy), HVD_ERR_INCONSISTENT);
            sprintf(text, "'variable %d' is not the same", v);
            ck_error_says(text);
            /* Two ranks cannot tell which of them has the right value. */
            sprintf(text, "other bits on rank %d than on ", n == 2 ? 1 : rank);
            ck_error_says(text);
            if (ranks_rank() == rank)
                flip_a_bit(v, last, (unsigned)(7 * v) % 32);
            ck_hvd(hvd_strategy_check(strategy));
        }
    hvd_strategy_free(strategy);
}

TEST(the_first_variable_and_all_ranks_are_named)
{
    hvd_strategy *strategy = make(HVD_SGD, 0, NULL, NULL);

    ck_hvd(hvd_strategy_start(strategy));
    if (ranks_size() >= 5) {
        if (ranks_rank() == 1 || ranks_rank() == 3)
            flip_a_bit(1, 5, 31); /* the sign of a zero counts */
        if (ranks_rank() == 0)
            flip_a_bit(3, 0, 0);
        ck_hvd_fails(hvd_strategy_check(strategy), HVD_ERR_INCONSISTENT);
        ck_error_says("'variable 1'");
        ck_error_says("other bits on ranks 1,3 than on ranks 0,2,4");
    }
    ck_hvd(hvd_barrier());
    hvd_strategy_free(strategy);
}

static hvd_strategy *make_checked(int32_t every)
{
    hvd_strategy_options options;
    hvd_strategy *strategy = NULL;

    hvd_strategy_options_init(&options, sizeof options);
    options.optimizer = HVD_SGD;
    options.learning_rate = 0.01;
    options.check_every = every;
    ck_hvd(hvd_strategy_new(&options, &strategy));
    for (int v = 0; v < NVARIABLES; v++) {
        char name[32];

        sprintf(name, "variable %d", v);
        ck_hvd(hvd_strategy_add(strategy, name, values[v], 2, shapes[v]));
    }
    return strategy;
}

/* A rank that learns at a rate of its own drifts away. */
TEST(steps_check_by_themselves)
{
    hvd_strategy *strategy = make_checked(3);
    int last = ranks_size() - 1;

    ck_hvd(hvd_strategy_start(strategy));
    for (int step = 0; step < 3; step++)
        step_once(strategy, step, HVD_OK);
    if (last > 0 && ranks_rank() == last)
        ck_hvd(hvd_strategy_set_learning_rate(strategy, 0.02));
    step_once(strategy, 3, HVD_OK);
    step_once(strategy, 4, HVD_OK);
    step_once(strategy, 5, last > 0 ? HVD_ERR_INCONSISTENT : HVD_OK);
    if (last > 0)
        ck_error_says("'variable 0' is not the same on all ranks");
    hvd_strategy_free(strategy);
}

TEST(a_failing_step_takes_part_in_the_check)
{
    hvd_strategy *strategy = make_checked(2);
    int last = ranks_size() - 1;

    memset(values, 0, sizeof values);
    ck_hvd(hvd_strategy_start(strategy));
    step_once(strategy, 0, HVD_OK);
    for (int v = ranks_rank() == last; v < NVARIABLES; v++)
        ck_hvd(hvd_strategy_ready(strategy, v));
    ck_hvd_fails(hvd_strategy_step(strategy),
                 ranks_rank() == last ? HVD_ERR_ARGUMENT : HVD_ERR_PEER);
    ck_error_says("'variable 0' was not ready");
    step_once(strategy, 2, HVD_OK);
    /* If a rank abandons a step, the others' step fails, too. */
    if (ranks_rank() == last)
        ck_hvd(hvd_strategy_abandon(strategy, NULL));
    else
        step_once(strategy, 3, HVD_ERR_PEER);
    step_once(strategy, 4, HVD_OK);
    step_once(strategy, 5, HVD_OK);
    hvd_strategy_free(strategy);
}

TEST(ranks_check_alike)
{
    hvd_strategy *strategy;

    if (ranks_size() == 1)
        return;
    strategy = make_checked(ranks_rank() ? 5 : 0);
    ck_hvd_fails(hvd_strategy_start(strategy), HVD_ERR_MISMATCH);
    ck_error_says("a check every 0 steps");
    ck_error_says("a check every 5 steps");
    hvd_strategy_free(strategy);
}

TEST(the_environment_asks_for_checks)
{
    hvd_strategy *strategy;
    int last = ranks_size() - 1;

    ranks_restart_with("HVD_CONSISTENCY_CHECK", "1");
    strategy = make_checked(0);
    ck_hvd(hvd_strategy_start(strategy));
    step_once(strategy, 0, HVD_OK);
    if (last > 0 && ranks_rank() == last)
        flip_a_bit(3, 1, 4);
    step_once(strategy, 1, last > 0 ? HVD_ERR_INCONSISTENT : HVD_OK);
    if (last > 0)
        ck_error_says("'variable 3'");
    hvd_strategy_free(strategy);
    ranks_restart_with("HVD_CONSISTENCY_CHECK", NULL);
}

RANKS_TEST_MAIN(HVD_STARTS_MPI, "mpi_strategy_check")
