/* SPDX-License-Identifier: Apache-2.0 */
/*
 * differences.h - compares derivatives with central differences, for the tests
 * of the device. It has a graph d, variables on it, and check_gradients(y).
 *
 * Take L = sum(w y) with random weights w, so that every element of the
 * Jacobian counts. The device differentiates reduce_sum(y * w); the difference
 * quotient is taken of L summed in double from the device's y, so that only
 * the rounding of single elements is in it.
 *
 *     rounding     6e-8 |y| / DELTA per element that moves     about 1e-5
 *     curvature    DELTA^2 / 6 |y'''|                           below 1e-4
 *
 * Variables keep away from kinks (relu at 0, equal elements in a window).
 */
#ifndef HVD_TESTS_DIFFERENCES_H
#define HVD_TESTS_DIFFERENCES_H

#include <math.h>
#include <stdio.h>

#include "one_device.h"

static const float DELTA = 1.0f / 64;
static const double TOLERANCE = 5e-4;

enum { MOST_VARIABLES = 6, MOST = 4096 };

static ipu_tensor variables[MOST_VARIABLES];
static char names[MOST_VARIABLES][16];
static int nvariables;
/* Values of variables lie in [center - spread, center + spread]. */
static float center, spread;
/* Distance of the values, over as wide a range as that takes, if not 0. */
static float spacing;

static inline void set_up(void)
{
    d = device_new();
    nvariables = 0;
    center = 0;
    spread = 2;
    spacing = 0;
}

static inline void tear_down(void)
{
    device_free(&d);
}

static inline ipu_tensor variable(int32_t ndim, const int64_t *shape)
{
    snprintf(names[nvariables], sizeof *names, "v%d", nvariables);
    variables[nvariables] =
        ipu_variable(d.graph, names[nvariables], IPU_FLOAT32, ndim, shape);
    return variables[nvariables++];
}

/* ----------------------------------------------------------------- checking */

/* Returns L of the variables as they are on the device. */
static inline double evaluate(const float *y, const float *weights,
                              int64_t count)
{
    double sum = 0;

    MUST(ipu_engine_run(d.engine));
    for (int64_t i = 0; i < count; i++)
        sum += (double)y[i] * (double)weights[i];
    return sum;
}

static inline void check_variable(int v, const float *slopes, const float *y,
                                  const float *weights, int64_t count)
{
    int64_t n = device_count(&d, variables[v]);
    size_t bytes = (size_t)n * sizeof(float);
    float x[MOST];

    MUST(ipu_engine_read(d.engine, names[v], x, bytes));
    for (int64_t i = 0; i < n; i++) {
        float kept = x[i], above = kept + DELTA, below = kept - DELTA;
        double difference;

        x[i] = above;
        MUST(ipu_engine_write(d.engine, names[v], x, bytes));
        difference = evaluate(y, weights, count);
        x[i] = below;
        MUST(ipu_engine_write(d.engine, names[v], x, bytes));
        difference -= evaluate(y, weights, count);
        x[i] = kept;
        MUST(ipu_engine_write(d.engine, names[v], x, bytes));
        difference /= (double)above - (double)below;
        ck_assert_msg(fabs(difference - (double)slopes[i]) <=
                          TOLERANCE * (1 + fabs(difference)),
                      "variable %d, element %d: the derivative is %g, the "
                      "difference quotient %g",
                      v, (int)i, (double)slopes[i], difference);
    }
}

/* The slopes are copied first, as each evaluation overwrites their output. */
static inline void check_gradients(ipu_tensor y)
{
    static float out[MOST], weights[MOST], got[MOST_VARIABLES][MOST];
    static float kept[MOST_VARIABLES][MOST], values[MOST];
    int64_t count = device_count(&d, y), shape[IPU_MAX_DIMS];
    int ndim = ipu_tensor_info(d.graph, y, NULL, shape, NULL);
    ipu_tensor w = device_floats(&d, "weights", ndim, shape);
    ipu_tensor gradients[MOST_VARIABLES];
    char stream[16];

    MUST(ipu_gradients(d.graph,
                       ipu_reduce_sum(d.graph, ipu_multiply(d.graph, y, w), 1),
                       nvariables, variables, gradients));
    MUST(ipu_output(d.graph, "y", y));
    for (int v = 0; v < nvariables; v++) {
        snprintf(stream, sizeof stream, "d%d", v);
        MUST(ipu_output(d.graph, stream, gradients[v]));
    }
    device_load(&d);
    device_fill(weights, count, 99);
    device_connect(&d, "weights", weights, count);
    device_connect(&d, "y", out, count);
    for (int v = 0; v < nvariables; v++) {
        int64_t n = device_count(&d, variables[v]);

        ck_assert_int_le(n, MOST);
        snprintf(stream, sizeof stream, "d%d", v);
        device_connect(&d, stream, got[v], n);
        device_fill_apart(values, n,
                          spacing > 0 ? spacing : 2 * spread / (float)n,
                          (uint64_t)(v + 1));
        for (int64_t i = 0; i < n; i++)
            values[i] += center;
        MUST(ipu_engine_write(d.engine, names[v], values, (size_t)n * 4));
    }
    MUST(ipu_engine_run(d.engine));
    memcpy(kept, got, sizeof kept);
    for (int v = 0; v < nvariables; v++)
        check_variable(v, kept[v], out, weights, count);
}

#endif
