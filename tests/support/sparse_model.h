/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sparse_model.h - variables of which three are sparse, whose rows every rank
 * can compute for every rank, and the steps of this model made by hand: only
 * the rows that some rank gives move.
 */
#ifndef TESTS_SPARSE_MODEL_H
#define TESTS_SPARSE_MODEL_H

#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "hvd_strategy.h"
#include "ranks.h"
#include "textbook.h"

enum { TABLE, DENSE, NARROW, EMPTY, NVARIABLES };
enum { LARGEST = 60 * 6, MOST_ROWS = 20, NSTEPS = 9 };

static const int64_t shapes[NVARIABLES][2] = {{60, 6}, {7, 9}, {3, 1}, {0, 4}};
static const char *const names[NVARIABLES] = {"table", "dense", "narrow",
                                              "empty"};

static float values[NVARIABLES][LARGEST];
static double expected[NVARIABLES][LARGEST];
static double kept[3][NVARIABLES][LARGEST]; /* by the optimiser */

static inline int64_t count_of(int v)
{
    return shapes[v][0] * shapes[v][1];
}

static inline double initial(int v, int64_t i)
{
    return (double)((i * 3 + v) % 17) / 16 - 0.5;
}

static inline double gradient(int rank, int step, int v, int64_t k, int64_t i)
{
    return (double)((i * 5 + k * 11 + v * 3 + step * 7 + rank * 13) % 23) / 8 -
           1.25;
}

/* How many rows a rank gives: none in some steps, and in step 4 no rank any. */
static inline int64_t nrows(int rank, int step, int v)
{
    if (v == EMPTY || step == 4 || (rank + step) % 3 == 2)
        return 0;
    return v == TABLE ? 4 + (rank * 3 + step) % 12 : 1 + (rank + step) % 5;
}

/* The rows are in no order; some come twice, and different ranks give the same
 * ones. */
static inline int64_t row_of(int rank, int step, int v, int64_t k)
{
    return (step * 7 + rank * 5 + k * k * 13) % shapes[v][0];
}

/* ------------------------------------------------------------------ by hand */

static inline void expect_start(void)
{
    memset(kept, 0, sizeof kept);
    for (int v = 0; v < NVARIABLES; v++)
        for (int64_t i = 0; i < count_of(v); i++)
            expected[v][i] = initial(v, i);
}

/* Marks the rows that n ranks give in a step, and returns how many these are.
 * slope: [LARGEST], their sum. */
static inline int64_t add_rows(int v, int step, int n, bool *given,
                               double *slope)
{
    int64_t width = shapes[v][1], distinct = 0;

    memset(slope, 0, LARGEST * sizeof *slope);
    memset(given, 0, 60 * sizeof *given);
    for (int rank = 0; rank < n; rank++)
        for (int64_t k = 0; k < nrows(rank, step, v); k++) {
            int64_t row = row_of(rank, step, v, k);

            distinct += !given[row];
            given[row] = true;
            for (int64_t i = 0; i < width; i++)
                slope[row * width + i] += gradient(rank, step, v, k, i);
        }
    return distinct;
}

/* Makes the step of n ranks with part [first, first + count) of a variable. */
static inline void expect_some(const hvd_strategy_options *o, int step, int n,
                               int v, double *slope, int64_t first,
                               int64_t count)
{
    static double direction[LARGEST];
    const struct textbook book = {expected[v] + first, kept[0][v] + first,
                                  kept[1][v] + first, kept[2][v] + first};

    for (int64_t i = first; i < first + count && o->op != HVD_SUM; i++)
        slope[i] /= n;
    textbook_step(o, step + 1, false, &book, slope + first, direction, count);
}

static inline void expect_step(const hvd_strategy_options *o, int step, int n)
{
    static double slope[LARGEST];
    bool given[60];

    for (int v = 0; v < NVARIABLES; v++) {
        int64_t width = shapes[v][1];

        if (v == DENSE) {
            memset(slope, 0, sizeof slope);
            for (int rank = 0; rank < n; rank++)
                for (int64_t i = 0; i < count_of(v); i++)
                    slope[i] += gradient(rank, step, v, 0, i);
            expect_some(o, step, n, v, slope, 0, count_of(v));
            continue;
        }
        add_rows(v, step, n, given, slope);
        for (int64_t row = 0; row < shapes[v][0]; row++)
            if (given[row])
                expect_some(o, step, n, v, slope, row * width, width);
    }
}

static inline void check_values(double tolerance)
{
    for (int v = 0; v < NVARIABLES; v++)
        for (int64_t i = 0; i < count_of(v); i++)
            if (!(fabs((double)values[v][i] - expected[v][i]) <= tolerance))
                ck_abort_msg("rank %d: %s [%lld] is %.9g, not %.9g",
                             ranks_rank(), names[v], (long long)i,
                             (double)values[v][i], expected[v][i]);
}

/* ------------------------------------------------------------ by a strategy */

static inline hvd_strategy *make_from(const hvd_strategy_options *options)
{
    hvd_strategy *strategy = NULL;

    ck_hvd(hvd_strategy_new(options, &strategy));
    for (int v = 0; v < NVARIABLES; v++) {
        for (int64_t i = 0; i < count_of(v); i++)
            values[v][i] = (float)initial(v, i) + (float)ranks_rank();
        ck_assert_int_eq(
            v == DENSE
                ? hvd_strategy_add(strategy, names[v], values[v], 2, shapes[v])
                : hvd_strategy_add_sparse(strategy, names[v], values[v],
                                          shapes[v][0], shapes[v][1]),
            v);
    }
    return strategy;
}

static inline int give_rows(hvd_strategy *strategy, int step, int v)
{
    int rank = ranks_rank();
    int64_t n = nrows(rank, step, v), width = shapes[v][1];
    int64_t indices[MOST_ROWS];
    float rows[MOST_ROWS * 6];

    for (int64_t k = 0; k < n; k++) {
        indices[k] = row_of(rank, step, v, k);
        for (int64_t i = 0; i < width; i++)
            rows[k * width + i] = (float)gradient(rank, step, v, k, i);
    }
    return hvd_strategy_ready_rows(strategy, v, n ? indices : NULL,
                                   n ? rows : NULL, n, width);
}

static inline void give_dense(hvd_strategy *strategy, int step)
{
    float *g = hvd_strategy_gradient(strategy, DENSE);

    for (int64_t i = 0; i < count_of(DENSE); i++)
        g[i] = (float)gradient(ranks_rank(), step, DENSE, 0, i);
    ck_hvd(hvd_strategy_ready(strategy, DENSE));
}

/* Each rank hands over in another order. */
static inline void feed(hvd_strategy *strategy, int step)
{
    for (int k = 0; k < NVARIABLES; k++) {
        int v = (k + ranks_rank() + step) % NVARIABLES;

        if (v == DENSE)
            give_dense(strategy, step);
        else
            ck_hvd(give_rows(strategy, step, v));
    }
}

#endif
