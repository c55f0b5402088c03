/* SPDX-License-Identifier: Apache-2.0 */
/* Tests loops: their values, their inputs, and their end. */
#include "device.h"
#include "suite.h"

static ipu_tensor plus(ipu_graph *g, ipu_tensor x, double value)
{
    ipu_dtype dtype;

    MUST(ipu_tensor_info(g, x, &dtype, NULL, NULL));
    return ipu_add(g, x, device_scalar(g, dtype, value));
}

static int32_t run_for_int(struct device *d, const char *name)
{
    int32_t n;

    device_connect(d, name, &n, 1);
    MUST(ipu_engine_run(d->engine));
    return n;
}

/* ----------------------------------------------------------- carried values */

static int count_and_double(ipu_graph *g, void *context, int32_t ninputs,
                            const ipu_tensor *in, int32_t noutputs,
                            ipu_tensor *out)
{
    (void)context;
    ck_assert_int_eq(ninputs, 2);
    ck_assert_int_eq(noutputs, 2);
    out[0] = plus(g, in[0], 1);
    out[1] = ipu_scale(g, in[1], 2, 0);
    return 0;
}

/* Carried values have any shape, and loops run any number of times. */
TEST(carried_values)
{
    struct device d = device_new();
    ipu_tensor in[2], out[2];
    float x[3] = {1, -2, 0.5f}, y[3];

    in[0] = device_scalar(d.graph, IPU_INT32, 0);
    in[1] = device_floats(&d, "x", 1, SHAPE(3));
    MUST(ipu_repeat(d.graph, 10, count_and_double, NULL, 2, in, NULL, out));
    MUST(ipu_output(d.graph, "n", out[0]));
    MUST(ipu_output(d.graph, "y", out[1]));
    device_load(&d);
    device_connect(&d, "x", x, 3);
    device_connect(&d, "y", y, 3);
    for (int run = 0; run < 3; run++) {
        ck_assert_int_eq(run_for_int(&d, "n"), 10);
        for (int i = 0; i < 3; i++)
            ck_assert_float_eq(y[i], x[i] * 1024);
    }
    ck_assert_ptr_nonnull(strstr(device_program(&d), "repeat 10 times"));
    device_free(&d);
}

TEST(no_iterations)
{
    struct device d = device_new();
    ipu_tensor in[2], out[2];
    float x = 3, y;

    in[0] = device_scalar(d.graph, IPU_INT32, 7);
    in[1] = device_floats(&d, "x", 0, NULL);
    MUST(ipu_repeat(d.graph, 0, count_and_double, NULL, 2, in, NULL, out));
    MUST(ipu_output(d.graph, "n", out[0]));
    MUST(ipu_output(d.graph, "y", out[1]));
    device_load(&d);
    device_connect(&d, "x", &x, 1);
    device_connect(&d, "y", &y, 1);
    ck_assert_int_eq(run_for_int(&d, "n"), 7);
    ck_assert_float_eq(y, 3);
    device_free(&d);
}

/* These counts are too large to be run, but they are numbers all the same. */
TEST(iterations_without_end_are_counted)
{
    struct device d = device_new();
    ipu_program_cycles cycles = {.size = sizeof cycles};
    ipu_tensor in[2], out[2];

    in[0] = device_scalar(d.graph, IPU_INT32, 0);
    in[1] = device_floats(&d, "x", 1, SHAPE(3));
    MUST(ipu_repeat(d.graph, INT64_MAX, count_and_double, NULL, 2, in, NULL,
                    out));
    MUST(ipu_repeat(d.graph, INT64_MAX, count_and_double, NULL, 2, out, NULL,
                    out));
    MUST(ipu_output(d.graph, "y", out[1]));
    device_load(&d);
    MUST(ipu_executable_cycles(d.executable, &cycles));
    ck_assert_int_gt(cycles.compute, (int64_t)1 << 53);
    ck_assert_int_gt(cycles.total, cycles.compute);
    device_free(&d);
}

/* Fibonacci: carried values become each other. */
static int fibonacci(ipu_graph *g, void *context, int32_t ninputs,
                     const ipu_tensor *in, int32_t noutputs, ipu_tensor *out)
{
    (void)context, (void)ninputs, (void)noutputs;
    out[0] = in[1];
    out[1] = ipu_add(g, in[0], in[1]);
    return 0;
}

TEST(values_become_each_other)
{
    struct device d = device_new();
    ipu_tensor in[2], out[2];

    in[0] = device_scalar(d.graph, IPU_INT32, 0);
    in[1] = device_scalar(d.graph, IPU_INT32, 1);
    MUST(ipu_repeat(d.graph, 30, fibonacci, NULL, 2, in, NULL, out));
    MUST(ipu_output(d.graph, "n", out[0]));
    device_load(&d);
    ck_assert_int_eq(run_for_int(&d, "n"), 832040);
    device_free(&d);
}

/* The initial value is read by others, before and after, and twice. */
TEST(initial_values_stay)
{
    struct device d = device_new();
    ipu_tensor x = device_floats(&d, "x", 1, SHAPE(4)), in[2], out[2], early;
    float data[4] = {1, 2, 3, 4}, y[4], z[4];

    early = ipu_square(d.graph, x);
    in[0] = in[1] = early;
    MUST(ipu_repeat(d.graph, 3, fibonacci, NULL, 2, in, NULL, out));
    MUST(ipu_output(d.graph, "y", ipu_subtract(d.graph, out[1], early)));
    MUST(ipu_output(d.graph, "z", early));
    device_load(&d);
    device_connect(&d, "x", data, 4);
    device_connect(&d, "y", y, 4);
    device_connect(&d, "z", z, 4);
    MUST(ipu_engine_run(d.engine));
    for (int i = 0; i < 4; i++) { /* 1 1 2 3 5 */
        ck_assert_float_eq(y[i], 4 * data[i] * data[i]);
        ck_assert_float_eq(z[i], data[i] * data[i]);
    }
    device_free(&d);
}

/* ------------------------------------------------------- captures, nesting */

static int add_captured(ipu_graph *g, void *context, int32_t ninputs,
                        const ipu_tensor *in, int32_t noutputs, ipu_tensor *out)
{
    const ipu_tensor *captured = context;

    (void)ninputs, (void)noutputs;
    out[0] = ipu_add(g, in[0], ipu_add(g, captured[0], captured[1]));
    return 0;
}

/* A body uses a result from outside, an input, a large and a small constant. */
TEST(bodies_use_what_is_around)
{
    struct device d = device_new();
    ipu_tensor x = device_floats(&d, "x", 1, SHAPE(2000)), captured[2], out;
    static float large[2000], data[2000], y[2000];

    device_fill(large, 2000, 1);
    device_fill(data, 2000, 2);
    captured[0] = ipu_constant(d.graph, IPU_FLOAT32, 1, SHAPE(2000), large);
    captured[1] =
        ipu_multiply(d.graph, x, device_scalar(d.graph, IPU_FLOAT32, 4));
    MUST(ipu_repeat(d.graph, 5, add_captured, captured, 1, &x, NULL, &out));
    MUST(ipu_output(d.graph, "y", out));
    device_load(&d);
    device_connect(&d, "x", data, 2000);
    device_connect(&d, "y", y, 2000);
    for (int run = 0; run < 2; run++) {
        MUST(ipu_engine_run(d.engine));
        for (int i = 0; i < 2000; i++) {
            float want = data[i];
            for (int k = 0; k < 5; k++)
                want += large[i] + 4 * data[i];
            ck_assert_float_eq(y[i], want);
        }
    }
    device_free(&d);
}

/* The inner loop computes x = x * 2 + captured, 3 times. */
static int inner_body(ipu_graph *g, void *context, int32_t ninputs,
                      const ipu_tensor *in, int32_t noutputs, ipu_tensor *out)
{
    const ipu_tensor *captured = context;

    (void)ninputs, (void)noutputs;
    out[0] = ipu_add(g, ipu_scale(g, in[0], 2, 0), *captured);
    return 0;
}

static int outer_body(ipu_graph *g, void *context, int32_t ninputs,
                      const ipu_tensor *in, int32_t noutputs, ipu_tensor *out)
{
    ipu_tensor first;

    (void)ninputs, (void)noutputs;
    MUST(ipu_repeat(g, 3, inner_body, context, 1, in, NULL, &first));
    first = plus(g, first, 1);
    return ipu_repeat(g, 1, inner_body, context, 1, &first, NULL, out);
}

TEST(loops_in_loops)
{
    struct device d = device_new();
    ipu_tensor x = device_floats(&d, "x", 0, NULL), out;
    ipu_tensor c = device_floats(&d, "c", 0, NULL);
    float data = 1, y, offset = 3, want = 1;

    MUST(ipu_repeat(d.graph, 4, outer_body, &c, 1, &x, NULL, &out));
    MUST(ipu_output(d.graph, "y", out));
    device_load(&d);
    device_connect(&d, "x", &data, 1);
    device_connect(&d, "c", &offset, 1);
    device_connect(&d, "y", &y, 1);
    MUST(ipu_engine_run(d.engine));
    for (int i = 0; i < 4; i++) {
        for (int k = 0; k < 3; k++)
            want = want * 2 + offset;
        want = (want + 1) * 2 + offset;
    }
    ck_assert_float_eq(y, want);
    device_free(&d);
}

/* ------------------------------------------------------------------ whiles */

static int below_hundred(ipu_graph *g, void *context, int32_t ninputs,
                         const ipu_tensor *in, int32_t noutputs,
                         ipu_tensor *out)
{
    (void)context, (void)noutputs;
    ck_assert_int_eq(ninputs, 2);
    out[0] = ipu_less(g, in[1], device_scalar(g, IPU_FLOAT32, 100));
    return 0;
}

static void check_while(int64_t most, int32_t n, float x)
{
    struct device d = device_new();
    ipu_tensor in[2], out[2];
    float y;

    in[0] = device_scalar(d.graph, IPU_INT32, 0);
    in[1] = device_scalar(d.graph, IPU_FLOAT32, 1);
    MUST(ipu_while(d.graph, most, below_hundred, count_and_double, NULL, 2, in,
                   NULL, out));
    MUST(ipu_output(d.graph, "n", out[0]));
    MUST(ipu_output(d.graph, "y", out[1]));
    device_load(&d);
    device_connect(&d, "y", &y, 1);
    for (int run = 0; run < 2; run++) {
        ck_assert_int_eq(run_for_int(&d, "n"), n);
        ck_assert_float_eq(y, x);
    }
    device_free(&d);
}

TEST(whiles_end_by_their_condition)
{
    check_while(0, 7, 128);
    check_while(5, 5, 32);
    check_while(100, 7, 128);
}

TEST_MAIN("device_loops")
