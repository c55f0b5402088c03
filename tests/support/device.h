/* SPDX-License-Identifier: Apache-2.0 */
/*
 * device.h - a graph and the engine that runs it, made and freed in one call,
 * and numbers to feed it, for the tests of the device.
 *
 *     struct device d = device_new();
 *     ... build on d.graph ...
 *     device_load(&d);
 *     ... ipu_engine_*(d.engine) ...
 *     device_free(&d);
 *
 * If the device fails, so does the test, with the device's own text.
 */
#ifndef HVD_TESTS_DEVICE_H
#define HVD_TESTS_DEVICE_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "checks.h"
#include "ipu.h"

struct device {
    ipu_graph *graph;
    ipu_executable *executable;
    ipu_engine *engine;
};

#define SHAPE(...) ((const int64_t[]){__VA_ARGS__})

/* Checks that a call succeeds. */
#define MUST(call) ck_assert_msg((call) >= 0, "%s: %s", #call, ipu_last_error())

/* Checks that a call fails with this status, and with these words in the
 * text. */
#define MUST_FAIL(call, status, words)                                         \
    do {                                                                       \
        ck_assert_int_eq((call), (status));                                    \
        ck_assert_msg(strstr(ipu_last_error(), (words)) != NULL,               \
                      "'%s' is not in: %s", (words), ipu_last_error());        \
    } while (0)

static inline struct device device_new(void)
{
    struct device d = {0};

    MUST(ipu_graph_new(&d.graph));
    return d;
}

static inline void device_load(struct device *d)
{
    MUST(ipu_compile(d->graph, NULL, &d->executable));
    MUST(ipu_engine_new(d->executable, &d->engine));
}

static inline void device_free(struct device *d)
{
    ipu_engine_free(d->engine);
    ipu_executable_free(d->executable);
    ipu_graph_free(d->graph);
}

static inline ipu_tensor device_floats(struct device *d, const char *name,
                                       int32_t ndim, const int64_t *shape)
{
    return ipu_input(d->graph, name, IPU_FLOAT32, ndim, shape);
}

/* The op has failed, and compiling says how. */
static inline void device_refused(const struct device *d, ipu_tensor result,
                                  int status, const char *words)
{
    ipu_executable *executable = NULL;

    ck_assert_int_lt(result.id, 0);
    MUST_FAIL(ipu_compile(d->graph, NULL, &executable), status, words);
    ck_assert_ptr_null(executable);
}

/* Checks that compiling fails with these words, with any status. */
static inline void device_says(const struct device *d, const char *words)
{
    ipu_executable *executable = NULL;

    ck_assert_int_lt(ipu_compile(d->graph, NULL, &executable), 0);
    ck_assert_ptr_null(executable);
    ck_assert_msg(strstr(ipu_last_error(), words) != NULL, "'%s' is not in: %s",
                  words, ipu_last_error());
}

/* A host call that accepts everything. */
static inline int device_no_call(void *context, const char *name, void *data,
                                 int64_t count)
{
    (void)context, (void)name, (void)data, (void)count;
    return 0;
}

/* Returns the memory of the compiled program. */
static inline ipu_memory_info device_memory(const struct device *d)
{
    ipu_memory_info memory = {.size = sizeof memory};

    MUST(ipu_executable_memory(d->executable, &memory));
    return memory;
}

static inline ipu_program_cycles device_cycles(const struct device *d)
{
    ipu_program_cycles cycles = {.size = sizeof cycles};

    MUST(ipu_executable_cycles(d->executable, &cycles));
    return cycles;
}

static inline ipu_step_info device_step(const struct device *d, int32_t i)
{
    ipu_step_info step = {.size = sizeof step};

    MUST(ipu_executable_step(d->executable, i, &step));
    return step;
}

/* Returns the program's text, which is valid until the next call. */
static inline const char *device_program(const struct device *d)
{
    static char text[16384];

    ck_assert_int_lt(ipu_executable_print(d->executable, text, sizeof text),
                     (int64_t)sizeof text);
    return text;
}

static inline ipu_tensor device_scalar(ipu_graph *graph, ipu_dtype dtype,
                                       double value)
{
    return ipu_fill(graph, dtype, 0, NULL, value);
}

/* Returns the number of elements of a tensor. */
static inline int64_t device_count(const struct device *d, ipu_tensor tensor)
{
    int64_t shape[IPU_MAX_DIMS], count = 1;
    int ndim = ipu_tensor_info(d->graph, tensor, NULL, shape, NULL);

    MUST(ndim);
    for (int i = 0; i < ndim; i++)
        count *= shape[i];
    return count;
}

/* Returns a new file with this text, where tests may write; the caller unlinks
 * it. */
static inline const char *device_file(const char *text)
{
    static char path[512];
    const char *base = getenv("TMPDIR");
    size_t length = strlen(text);
    int file;

    snprintf(path, sizeof path, "%s/device-XXXXXX", base ? base : "/tmp");
    file = mkstemp(path);
    ck_assert_int_ge(file, 0);
    ck_assert_int_eq(write(file, text, length), (ssize_t)length);
    close(file);
    return path;
}

static inline void device_connect(struct device *d, const char *name,
                                  void *data, int64_t count)
{
    MUST(ipu_engine_connect(d->engine, name, data, (size_t)count * 4));
}

/* ------------------------------------------------------------------ numbers */

/* Returns the next number of a sequence that its state determines
 * (splitmix64). */
static inline uint64_t device_random(uint64_t *state)
{
    uint64_t z = *state += 0x9e3779b97f4a7c15u;

    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

/* Returns a number in [-1, 1). */
static inline float device_random_float(uint64_t *state)
{
    return (float)(int32_t)(device_random(state) >> 40) / 8388608.0f - 1.0f;
}

static inline void device_fill(float *x, int64_t count, uint64_t seed)
{
    for (int64_t i = 0; i < count; i++)
        x[i] = device_random_float(&seed);
}

/* Fills x with distinct multiples of step in random order, none nearer to 0
 * than half a step, so that no small difference crosses a kink. */
static inline void device_fill_apart(float *x, int64_t count, float step,
                                     uint64_t seed)
{
    for (int64_t i = 0; i < count; i++) {
        int64_t k = (int64_t)(device_random(&seed) % (uint64_t)(i + 1));

        x[i] = x[k];
        x[k] = step * ((float)(i - count / 2) + 0.5f);
    }
}

#endif
