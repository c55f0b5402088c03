/* SPDX-License-Identifier: Apache-2.0 */
/*
 * small_model.h - a few variables, one of them empty, whose gradients every
 * rank can compute for every rank, for tests of strategies.
 */
#ifndef TESTS_SMALL_MODEL_H
#define TESTS_SMALL_MODEL_H

#include <math.h>
#include <stdbool.h>
#include <stdio.h>

#include "hvd_strategy.h"
#include "ranks.h"

enum { NVARIABLES = 5, LARGEST = 20000, NSTEPS = 12 };

static const int64_t shapes[NVARIABLES][2] = {
    {100, 200}, {1, 64}, {0, 3}, {7, 9}, {1, 1}};

static float values[NVARIABLES][LARGEST];
static hvd_op op = HVD_AVERAGE; /* of what make makes */

static inline int64_t count_of(int variable)
{
    return shapes[variable][0] * shapes[variable][1];
}

static inline double initial(int rank, int variable, int64_t i)
{
    return (double)((i * 3 + variable + rank * 11) % 17) / 16 - 0.5;
}

static inline double gradient(int rank, int step, int variable, int64_t i)
{
    return (double)((i * 5 + variable * 3 + step * 7 + rank * 13) % 23) / 8 -
           1.25;
}

static inline hvd_strategy *make_from(const hvd_strategy_options *options)
{
    hvd_strategy *strategy = NULL;
    char name[32];

    ck_hvd(hvd_strategy_new(options, &strategy));
    for (int v = 0; v < NVARIABLES; v++) {
        for (int64_t i = 0; i < count_of(v); i++)
            values[v][i] = (float)initial(ranks_rank(), v, i);
        sprintf(name, "variable %d", v);
        ck_assert_int_eq(
            hvd_strategy_add(strategy, name, values[v], 2, shapes[v]), v);
    }
    return strategy;
}

static inline hvd_strategy_options options_of(hvd_optimizer optimizer)
{
    hvd_strategy_options options;

    hvd_strategy_options_init(&options, sizeof options);
    ck_hvd(hvd_strategy_options_set_optimizer(&options, optimizer));
    options.learning_rate = 0.01;
    options.op = op;
    return options;
}

static inline hvd_strategy *make(hvd_optimizer optimizer, int serial,
                                 int (*updated)(void *, int32_t), void *context)
{
    hvd_strategy_options options = options_of(optimizer);

    options.serial = serial;
    options.updated = updated;
    options.context = context;
    return make_from(&options);
}

static bool cycles; /* each step has a momentum of its own */

/* Returns a momentum that falls and rises, of each step. */
static inline double momentum_of(int step)
{
    return 0.75 + 0.2 * cos(0.5 * step);
}

static inline bool has_momentum(hvd_optimizer optimizer)
{
    return optimizer == HVD_MOMENTUM || optimizer == HVD_NESTEROV ||
           optimizer == HVD_LARS || optimizer == HVD_ADAM ||
           optimizer == HVD_ADAMW || optimizer == HVD_LAMB ||
           optimizer == HVD_LION;
}

/* Sets the momentum of the step, if each has its own, and feeds the gradients,
 * each rank in another order. */
static inline void feed(hvd_strategy *strategy, int step)
{
    if (cycles)
        ck_hvd(hvd_strategy_set_momentum(strategy, momentum_of(step)));
    for (int k = 0; k < NVARIABLES; k++) {
        int v = (k + ranks_rank() + step) % NVARIABLES;
        float *g = hvd_strategy_gradient(strategy, v);

        ck_assert(g != NULL);
        for (int64_t i = 0; i < count_of(v); i++)
            g[i] = (float)gradient(ranks_rank(), step, v, i);
        ck_hvd(hvd_strategy_ready(strategy, v));
    }
}

#endif
