/* SPDX-License-Identifier: Apache-2.0 */
/*
 * elements.h - up to two inputs, a and b, and the result in y, for tests of
 * ops by element.
 */
#ifndef HVD_TESTS_ELEMENTS_H
#define HVD_TESTS_ELEMENTS_H

#include "values.h"

static float a[MOST], b[MOST];

/* Runs the graph with a and b as inputs, if they are used; writes the result to
 * y. */
static inline void compute(ipu_tensor result, int64_t counta, int64_t countb)
{
    MUST(ipu_output(d.graph, "y", result));
    device_load(&d);
    if (counta >= 0)
        device_connect(&d, "a", a, counta);
    if (countb >= 0)
        device_connect(&d, "b", b, countb);
    device_connect(&d, "y", y, device_count(&d, result));
    MUST(ipu_engine_run(d.engine));
}

#endif
