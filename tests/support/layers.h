/* SPDX-License-Identifier: Apache-2.0 */
/*
 * layers.h - one input, x, and the result in y, for tests of layers.
 */
#ifndef HVD_TESTS_LAYERS_H
#define HVD_TESTS_LAYERS_H

#include "values.h"

static float x[MOST];

/* Runs the graph with x as input "x" of count elements, and result to y. */
static inline void compute(ipu_tensor result, int64_t count)
{
    MUST(ipu_output(d.graph, "y", result));
    device_load(&d);
    device_connect(&d, "x", x, count);
    device_connect(&d, "y", y, device_count(&d, result));
    MUST(ipu_engine_run(d.engine));
}

static inline void refused(ipu_tensor result, int status, const char *words)
{
    ipu_executable *executable = NULL;

    ck_assert_int_lt(result.id, 0);
    MUST_FAIL(ipu_compile(d.graph, NULL, &executable), status, words);
}

static inline ipu_tensor input(int32_t ndim, const int64_t *shape)
{
    return device_floats(&d, "x", ndim, shape);
}

#endif
