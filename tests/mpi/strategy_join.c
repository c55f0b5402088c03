/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ranks make different numbers of steps, and joining gives all of them the
 * variables of the last. The reference is a strategy whose ranks all make as
 * many steps as the last, and give gradients of zero instead of joining.
 */
#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "hvd_strategy.h"
#include "ranks.h"
#include "small_model.h"

enum { TOGETHER = 2 }; /* number of steps that all ranks make after the join */

static float at_join[NVARIABLES][LARGEST], at_end[NVARIABLES][LARGEST];

/* Returns how many steps a rank makes: higher ranks make more, or fewer if
 * `lower` is set. */
static int steps_of(int rank, bool lower)
{
    return 2 + (lower ? ranks_size() - 1 - rank : rank);
}

static int most_steps(void)
{
    return 1 + ranks_size();
}

static void feed_zeros(hvd_strategy *strategy)
{
    for (int v = 0; v < NVARIABLES; v++) {
        float *g = hvd_strategy_gradient(strategy, v);

        memset(g, 0, (size_t)count_of(v) * sizeof *g);
        ck_hvd(hvd_strategy_ready(strategy, v));
    }
}

static void step_together(hvd_strategy *strategy)
{
    for (int step = 0; step < TOGETHER; step++) {
        feed(strategy, most_steps() + step);
        ck_hvd(hvd_strategy_step(strategy));
    }
}

/* Computes the variables that all ranks must hold after the join, and after
 * TOGETHER more steps. */
static void make_reference(hvd_optimizer optimizer, int serial, bool lower)
{
    hvd_strategy *strategy = make(optimizer, serial, NULL, NULL);

    ck_hvd(hvd_strategy_start(strategy));
    for (int step = 0; step < most_steps(); step++) {
        if (step < steps_of(ranks_rank(), lower))
            feed(strategy, step);
        else
            feed_zeros(strategy);
        ck_hvd(hvd_strategy_step(strategy));
    }
    memcpy(at_join, values, sizeof at_join);
    step_together(strategy);
    memcpy(at_end, values, sizeof at_end);
    hvd_strategy_free(strategy);
}

static void check_values(const char *when, float (*wanted)[LARGEST])
{
    for (int v = 0; v < NVARIABLES; v++)
        for (int64_t i = 0; i < count_of(v); i++)
            if (values[v][i] != wanted[v][i])
                ck_abort_msg("rank %d, %s: variable %d [%lld] is %.9g, not "
                             "%.9g",
                             ranks_rank(), when, v, (long long)i,
                             (double)values[v][i], (double)wanted[v][i]);
}

static void step_and_join(hvd_strategy *strategy, bool lower)
{
    int last = -1;

    for (int step = 0; step < steps_of(ranks_rank(), lower); step++) {
        feed(strategy, step);
        ck_hvd(hvd_strategy_step(strategy));
    }
    ck_hvd(hvd_strategy_join(strategy, &last));
    ck_assert_int_eq(last, lower ? 0 : ranks_size() - 1);
}

static void train(hvd_optimizer optimizer, int serial, bool lower)
{
    hvd_strategy *strategy;

    make_reference(optimizer, serial, lower);
    strategy = make(optimizer, serial, NULL, NULL);
    ck_hvd(hvd_strategy_start(strategy));
    step_and_join(strategy, lower);
    check_values("after the join", at_join);
    ck_hvd(hvd_strategy_check(strategy));
    step_together(strategy);
    check_values("further on", at_end);
    hvd_strategy_free(strategy);
}

TEST(all_ranks_hold_what_the_last_has)
{
    static const hvd_optimizer with_updates[] = {HVD_SGD, HVD_MOMENTUM,
                                                 HVD_ADAM};

    for (int i = 0; i < 3; i++)
        for (int lower = 0; lower < 2; lower++)
            train(with_updates[i], i == lower, lower);
}

/* The check at the end of each step compares only the ranks that make it. */
TEST(checks_go_on_without_the_joined)
{
    hvd_strategy *strategy;

    ranks_restart_with("HVD_CONSISTENCY_CHECK", "1");
    strategy = make(HVD_ADAM, 0, NULL, NULL);
    ck_hvd(hvd_strategy_start(strategy));
    step_and_join(strategy, false);
    step_together(strategy);
    step_and_join(strategy, true);
    hvd_strategy_free(strategy);
    ranks_restart_with("HVD_CONSISTENCY_CHECK", NULL);
}

/* A difference between ranks of which one has joined is found by the others,
 * who do not name it. */
TEST(differences_are_told_without_the_joined)
{
    int n = ranks_size();
    hvd_strategy *strategy;

    if (n < 3)
        return;
    strategy = make(HVD_SGD, 0, NULL, NULL);
    ck_hvd(hvd_strategy_start(strategy));
    if (ranks_rank() != 0) {
        if (ranks_rank() == n - 1)
            values[3][5] += 1;
        ck_hvd_fails(hvd_strategy_check(strategy), HVD_ERR_INCONSISTENT);
        ck_error_says("variable 'variable 3' is not the same");
        ck_assert(!strstr(hvd_last_error(), "0"));
        if (ranks_rank() == n - 1)
            values[3][5] -= 1;
    }
    ck_hvd(hvd_strategy_join(strategy, NULL));
    ck_hvd(hvd_strategy_check(strategy));
    hvd_strategy_free(strategy);
}

/* Averages are over the ranks that give a gradient, not over all. */
TEST(averages_over_contributors)
{
    hvd_strategy_options options;
    hvd_strategy *strategy = NULL;
    float w = 1;
    double want = 1;

    hvd_strategy_options_init(&options, sizeof options);
    options.optimizer = HVD_SGD;
    options.learning_rate = 0.5;
    options.flags = HVD_AVERAGE_CONTRIBUTORS;
    ck_hvd(hvd_strategy_new(&options, &strategy));
    ck_hvd(hvd_strategy_add(strategy, "w", &w, 0, NULL));
    ck_hvd(hvd_strategy_start(strategy));
    for (int step = 0; step < steps_of(ranks_rank(), false); step++) {
        *hvd_strategy_gradient(strategy, 0) = (float)ranks_rank() + 1;
        ck_hvd(hvd_strategy_ready(strategy, 0));
        ck_hvd(hvd_strategy_step(strategy));
    }
    ck_hvd(hvd_strategy_join(strategy, NULL));
    for (int step = 0; step < most_steps(); step++) {
        double sum = 0, contributors = 0;

        for (int rank = 0; rank < ranks_size(); rank++)
            if (step < steps_of(rank, false)) {
                sum += rank + 1;
                contributors++;
            }
        want -= 0.5 * sum / contributors;
    }
    ck_assert_msg(fabs((double)w - want) < 1e-5, "%g, not %g", (double)w, want);
    hvd_strategy_free(strategy);
    options.op = HVD_SUM;
    ck_hvd_fails(hvd_strategy_new(&options, &strategy), HVD_ERR_ARGUMENT);
    ck_error_says("gradients are reduced by sum");
    options.op = HVD_AVERAGE;
    options.flags = 1 << 18;
    ck_hvd_fails(hvd_strategy_new(&options, &strategy), HVD_ERR_UNSUPPORTED);
    ck_error_says("0x40000");
}

/* A change that one rank made alone before it joined reaches all ranks, or
 * none. */
TEST(the_rate_and_the_momentum_are_the_lasts)
{
    hvd_strategy *strategy = make(HVD_MOMENTUM, 0, NULL, NULL);
    int me = ranks_rank();

    ck_hvd(hvd_strategy_start(strategy));
    for (int step = 0; step < steps_of(me, false); step++) {
        /* Both are halved from step to step, so the last to join has the
         * smallest. */
        ck_hvd(hvd_strategy_set_learning_rate(strategy, ldexp(0.01, -step)));
        ck_hvd(hvd_strategy_set_momentum(strategy, ldexp(0.5, -step)));
        feed(strategy, step);
        ck_hvd(hvd_strategy_step(strategy));
    }
    ck_hvd(hvd_strategy_join(strategy, NULL));
    step_together(strategy);
    ck_hvd(hvd_strategy_check(strategy));
    hvd_strategy_free(strategy);
}

/* Two strategies, stepped in turns: joining with one is joining with both. */
TEST(all_strategies_get_the_lasts)
{
    float w[2] = {(float)ranks_rank(), 0};
    hvd_strategy_options options;
    hvd_strategy *strategies[2], *never_started = NULL;

    hvd_strategy_options_init(&options, sizeof options);
    ck_hvd(hvd_strategy_new(&options, &never_started));
    for (int i = 0; i < 2; i++) {
        ck_hvd(hvd_strategy_new(&options, &strategies[i]));
        ck_hvd(hvd_strategy_add(strategies[i], "w", &w[i], 0, NULL));
        ck_hvd(hvd_strategy_start(strategies[i]));
    }
    ck_hvd_fails(hvd_strategy_join(never_started, NULL), HVD_ERR_ARGUMENT);
    ck_hvd_fails(hvd_strategy_join(NULL, NULL), HVD_ERR_ARGUMENT);
    for (int step = 0; step < 2 * steps_of(ranks_rank(), true); step++) {
        hvd_strategy *s = strategies[step % 2];

        *hvd_strategy_gradient(s, 0) = (float)(step + 1);
        ck_hvd(hvd_strategy_ready(s, 0));
        ck_hvd_fails(hvd_strategy_join(strategies[0], NULL), HVD_ERR_ARGUMENT);
        ck_error_says("between two steps");
        ck_hvd(hvd_strategy_step(s));
    }
    ck_hvd(hvd_strategy_join(strategies[0], NULL));
    for (int i = 0; i < 2; i++) {
        float same = w[i];

        ck_hvd(hvd_broadcast(&same, 1, HVD_FLOAT32, 0));
        ck_assert(same == w[i] && w[i] < 0);
        ck_hvd(hvd_strategy_check(strategies[i]));
    }
    /* A rank with another list gets an error, and so do all others. */
    if (ranks_size() > 1) {
        if (ranks_rank() == 1) {
            hvd_strategy_free(strategies[1]);
            strategies[1] = NULL;
        }
        ck_hvd_fails(hvd_strategy_join(strategies[0], NULL), HVD_ERR_MISMATCH);
        ck_error_says("start and free the same ones");
    }
    hvd_strategy_free(strategies[0]);
    hvd_strategy_free(strategies[1]);
    hvd_strategy_free(never_started);
}

/* After a plain hvd_join there are no more gradients: the others' steps must
 * fail. */
TEST(steps_do_not_go_on_after_a_plain_join)
{
    hvd_strategy *strategy = make(HVD_ADAM, 0, NULL, NULL);
    int32_t one = 1;

    ck_hvd(hvd_strategy_start(strategy));
    feed(strategy, 0);
    ck_hvd(hvd_strategy_step(strategy));
    memcpy(at_join, values, sizeof at_join);
    if (ranks_rank() > 0) {
        feed(strategy, 1);
        ck_hvd_fails(hvd_strategy_step(strategy), HVD_ERR_JOINED);
        ck_error_says("rank 0 joined by hvd_join");
        ck_error_says("hvd_strategy_join");
        check_values("after a step that failed", at_join);
        /* Reductions of the program's own do without it, as ever. */
        ck_hvd(hvd_allreduce(&one, &one, 1, HVD_INT32, HVD_SUM));
        ck_assert_int_eq(one, ranks_size() - 1);
    }
    ck_hvd(hvd_join(NULL));
    check_values("after the join", at_join);
    step_together(strategy);
    ck_hvd(hvd_strategy_check(strategy));
    hvd_strategy_free(strategy);
}

/* All ranks load a checkpoint together, so loading changes nothing while a rank
 * has joined. */
TEST(nothing_is_loaded_while_a_rank_has_joined)
{
    hvd_strategy *strategy = make(HVD_SGD, 0, NULL, NULL);

    ck_hvd(hvd_strategy_start(strategy));
    memcpy(at_join, values, sizeof at_join);
    if (ranks_rank() != ranks_size() - 1)
        ck_hvd_fails(hvd_strategy_load(strategy, "/nowhere"), HVD_ERR_JOINED);
    ck_hvd(hvd_strategy_join(strategy, NULL));
    check_values("after the join", at_join);
    hvd_strategy_free(strategy);
}

RANKS_TEST_MAIN(HVD_STARTS_MPI, "mpi_strategy_join")
