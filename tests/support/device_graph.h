/* SPDX-License-Identifier: Apache-2.0 */
/*
 * device_graph.h - what tests of the device build again and again.
 */
#ifndef HVD_TESTS_DEVICE_GRAPH_H
#define HVD_TESTS_DEVICE_GRAPH_H

#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "ipu.h"

#define ck_ipu(expression)                                                     \
    do {                                                                       \
        int ck_status_ = (expression);                                         \
        ck_assert_msg(ck_status_ >= 0, "%s: %s (%s)", #expression,             \
                      ipu_strerror(ck_status_), ipu_last_error());             \
    } while (0)

#define ck_ipu_fails(expression, status, text)                                 \
    do {                                                                       \
        int ck_status_ = (expression);                                         \
        ck_assert_msg(ck_status_ == (status), "%s gave %d, not %d: %s",        \
                      #expression, ck_status_, (status), ipu_last_error());    \
        ck_assert_msg(strstr(ipu_last_error(), (text)) != NULL,                \
                      "'%s' is not in: %s", (text), ipu_last_error());         \
    } while (0)

#define SHAPE(...)                                                             \
    (int32_t)(sizeof((const int64_t[]){__VA_ARGS__}) / sizeof(int64_t)),       \
        (const int64_t[])                                                      \
    {                                                                          \
        __VA_ARGS__                                                            \
    }

/* A number in [-1, 1) that depends on both. */
static inline float device_value(int seed, int64_t i)
{
    uint32_t h = (uint32_t)i * 2654435761u + (uint32_t)seed * 40503u + 12345u;

    h ^= h >> 15;
    h *= 2246822519u;
    h ^= h >> 13;
    return (float)((double)(h >> 8) * 0x1p-23 - 1.0);
}

static inline float *device_values(int seed, int64_t count)
{
    float *values = malloc((size_t)(count ? count : 1) * sizeof *values);

    ck_assert(values != NULL);
    for (int64_t i = 0; i < count; i++)
        values[i] = device_value(seed, i);
    return values;
}

static inline int64_t device_count(const ipu_graph *graph, ipu_tensor tensor)
{
    int64_t shape[IPU_MAX_DIMS], count = 1;
    int ndim = ipu_tensor_info(graph, tensor, NULL, shape, NULL);

    ck_assert_msg(ndim >= 0, "%s", ipu_last_error());
    for (int i = 0; i < ndim; i++)
        count *= shape[i];
    return count;
}

/* Compile and load; the executable is the caller's to free after the engine. */
static inline ipu_engine *device_load(const ipu_graph *graph,
                                      ipu_executable **executable)
{
    ipu_engine *engine = NULL;

    ck_ipu(ipu_compile(graph, NULL, executable));
    ck_ipu(ipu_engine_new(*executable, &engine));
    return engine;
}

#endif
