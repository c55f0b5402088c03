/* SPDX-License-Identifier: Apache-2.0 */
/*
 * small_model_steps.h - the steps of the small model made by hand: every rank
 * can compute every rank's gradients, and from them the right variables.
 */
#ifndef TESTS_SMALL_MODEL_STEPS_H
#define TESTS_SMALL_MODEL_STEPS_H

#include <math.h>
#include <string.h>

#include "small_model.h"
#include "textbook.h"

static double expected[NVARIABLES][LARGEST];
static double kept[3][NVARIABLES][LARGEST]; /* by the optimiser */

/* Makes the same step of n ranks by hand, in double. */
static inline void expect_step(const hvd_strategy_options *options, int step,
                               int n)
{
    static double slope[LARGEST], direction[LARGEST];
    hvd_strategy_options now = *options;

    if (cycles)
        now.momentum = now.beta1 = momentum_of(step);
    for (int v = 0; v < NVARIABLES; v++) {
        const struct textbook book = {expected[v], kept[0][v], kept[1][v],
                                      kept[2][v]};

        for (int64_t i = 0; i < count_of(v); i++) {
            slope[i] = 0;
            for (int rank = 0; rank < n; rank++)
                slope[i] += gradient(rank, step, v, i);
            slope[i] /= options->op == HVD_SUM ? 1 : n;
        }
        textbook_step(&now, step + 1, false, &book, slope, direction,
                      count_of(v));
    }
}

static inline void expect_start(void)
{
    memset(kept, 0, sizeof kept);
    for (int v = 0; v < NVARIABLES; v++)
        for (int64_t i = 0; i < count_of(v); i++)
            expected[v][i] = initial(0, v, i);
}

static inline void check_values(double tolerance)
{
    for (int v = 0; v < NVARIABLES; v++)
        for (int64_t i = 0; i < count_of(v); i++)
            if (!(fabs((double)values[v][i] - expected[v][i]) <= tolerance))
                ck_abort_msg("rank %d: variable %d [%lld] is %.9g, not %.9g",
                             ranks_rank(), v, (long long)i,
                             (double)values[v][i], expected[v][i]);
}

#endif
