/* SPDX-License-Identifier: Apache-2.0 */
/*
 * accumulated.h - fixtures for tests of accumulated gradients: a variable w of
 * COUNT equal elements, its gradient g, which is an input, and a rate. The
 * tests check the variable after N mini-batches of an optimiser.
 */
#ifndef HVD_TESTS_ACCUMULATED_H
#define HVD_TESTS_ACCUMULATED_H

#include "one_device.h"

enum { N = 4, COUNT = 5 };

static ipu_tensor w, g, rate;

static inline void set_up(void)
{
    d = device_new();
    w = ipu_variable(d.graph, "w", IPU_FLOAT32, 1, SHAPE(COUNT));
    g = device_floats(&d, "g", 1, SHAPE(COUNT));
    rate = ipu_fill(d.graph, IPU_FLOAT32, 0, NULL, 0.5);
}

static inline void tear_down(void)
{
    device_free(&d);
}

/* Returns the value that all elements of a variable have. */
static inline float read_first(const char *name)
{
    float values[COUNT];

    MUST(ipu_engine_read(d.engine, name, values, sizeof values));
    for (int i = 1; i < COUNT; i++)
        ck_assert_float_eq(values[i], values[0]);
    return values[0];
}

/* Runs once with this value of the gradient. */
static inline void run_with(float slope)
{
    float slopes[COUNT];

    for (int i = 0; i < COUNT; i++)
        slopes[i] = slope;
    device_connect(&d, "g", slopes, COUNT);
    MUST(ipu_engine_run(d.engine));
}

#endif
