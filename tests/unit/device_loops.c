/* SPDX-License-Identifier: Apache-2.0 */
/* Loops: what they compute, what they change, what they cost. */
#include "check_main.h"
#include "device.h"

/* Text of the program, so that tests can look at it. */
static const char *program_text(const struct device *d)
{
    static char text[8192];

    ck_assert_int_lt(ipu_executable_print(d->executable, text, sizeof text),
                     (int64_t)sizeof text);
    return text;
}

static ipu_tensor scalar(ipu_graph *g, ipu_dtype dtype, double value)
{
    return ipu_fill(g, dtype, 0, NULL, value);
}

static ipu_tensor plus(ipu_graph *g, ipu_tensor x, double value)
{
    ipu_dtype dtype;

    MUST(ipu_tensor_info(g, x, &dtype, NULL, NULL));
    return ipu_add(g, x, scalar(g, dtype, value));
}

static int32_t run_for_int(struct device *d, const char *name)
{
    int32_t n;

    device_connect(d, name, &n, 1);
    MUST(ipu_engine_run(d->engine));
    return n;
}

static float variable(struct device *d, const char *name)
{
    float x;

    MUST(ipu_engine_read(d->engine, name, &x, sizeof x));
    return x;
}

static void set_variable(struct device *d, const char *name, float x)
{
    MUST(ipu_engine_write(d->engine, name, &x, sizeof x));
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

/* Of any shape, in any number of runs. */
START_TEST(carried_values)
{
    struct device d = device_new();
    ipu_tensor in[2], out[2];
    float x[3] = {1, -2, 0.5f}, y[3];

    in[0] = scalar(d.graph, IPU_INT32, 0);
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
    ck_assert_ptr_nonnull(strstr(program_text(&d), "repeat 10 times"));
    device_free(&d);
}
END_TEST

START_TEST(no_iterations)
{
    struct device d = device_new();
    ipu_tensor in[2], out[2];
    float x = 3, y;

    in[0] = scalar(d.graph, IPU_INT32, 7);
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
END_TEST

/* Many are too many to be counted, but a number all the same. */
START_TEST(iterations_without_end_are_counted)
{
    struct device d = device_new();
    ipu_program_cycles cycles = {.size = sizeof cycles};
    ipu_tensor in[2], out[2];

    in[0] = scalar(d.graph, IPU_INT32, 0);
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
END_TEST

/* Fibonacci: carried values become each other. */
static int fibonacci(ipu_graph *g, void *context, int32_t ninputs,
                     const ipu_tensor *in, int32_t noutputs, ipu_tensor *out)
{
    (void)context, (void)ninputs, (void)noutputs;
    out[0] = in[1];
    out[1] = ipu_add(g, in[0], in[1]);
    return 0;
}

START_TEST(values_become_each_other)
{
    struct device d = device_new();
    ipu_tensor in[2], out[2];

    in[0] = scalar(d.graph, IPU_INT32, 0);
    in[1] = scalar(d.graph, IPU_INT32, 1);
    MUST(ipu_repeat(d.graph, 30, fibonacci, NULL, 2, in, NULL, out));
    MUST(ipu_output(d.graph, "n", out[0]));
    device_load(&d);
    ck_assert_int_eq(run_for_int(&d, "n"), 832040);
    device_free(&d);
}
END_TEST

/* The initial value is read by others, before and after, and twice. */
START_TEST(initial_values_stay)
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
END_TEST

/* ------------------------------------------------------- captures, nesting */

static int add_captured(ipu_graph *g, void *context, int32_t ninputs,
                        const ipu_tensor *in, int32_t noutputs, ipu_tensor *out)
{
    const ipu_tensor *captured = context;

    (void)ninputs, (void)noutputs;
    out[0] = ipu_add(g, in[0], ipu_add(g, captured[0], captured[1]));
    return 0;
}

/* What has been computed outside, an input, a large and a small constant. */
START_TEST(bodies_use_what_is_around)
{
    struct device d = device_new();
    ipu_tensor x = device_floats(&d, "x", 1, SHAPE(2000)), captured[2], out;
    static float large[2000], data[2000], y[2000];

    device_fill(large, 2000, 1);
    device_fill(data, 2000, 2);
    captured[0] = ipu_constant(d.graph, IPU_FLOAT32, 1, SHAPE(2000), large);
    captured[1] = ipu_multiply(d.graph, x, scalar(d.graph, IPU_FLOAT32, 4));
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
END_TEST

/* x = x * 2 + captured, 3 times */
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

START_TEST(loops_in_loops)
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
END_TEST

/* ---------------------------------------------------------------- variables */

/* w = w * 2 + 1; the carried value adds up what w was. */
static int double_variable(ipu_graph *g, void *context, int32_t ninputs,
                           const ipu_tensor *in, int32_t noutputs,
                           ipu_tensor *out)
{
    const ipu_tensor *w = context;

    (void)ninputs;
    if (noutputs > 0)
        out[0] = ipu_add(g, in[0], *w);
    return ipu_assign(g, *w, ipu_scale(g, *w, 2, 1));
}

/* Before a loop a variable is what it was, after it what it has become. */
START_TEST(variables_change_with_iterations)
{
    struct device d = device_new();
    ipu_tensor w = ipu_variable(d.graph, "w", IPU_FLOAT32, 0, NULL);
    ipu_tensor zero = scalar(d.graph, IPU_FLOAT32, 0), sum, before, after;
    float y[3];

    before = ipu_scale(d.graph, w, 10, 0);
    MUST(ipu_repeat(d.graph, 4, double_variable, &w, 1, &zero, NULL, &sum));
    after = ipu_scale(d.graph, w, 10, 0);
    MUST(ipu_output(d.graph, "after", after));
    MUST(ipu_output(d.graph, "before", before));
    MUST(ipu_output(d.graph, "sum", sum));
    device_load(&d);
    device_connect(&d, "before", &y[0], 1);
    device_connect(&d, "after", &y[1], 1);
    device_connect(&d, "sum", &y[2], 1);
    set_variable(&d, "w", 1);
    MUST(ipu_engine_run(d.engine));
    ck_assert_float_eq(y[0], 10);
    ck_assert_float_eq(y[1], 310); /* 1 3 7 15 31 */
    ck_assert_float_eq(y[2], 26);
    ck_assert_float_eq(variable(&d, "w"), 31);
    MUST(ipu_engine_run(d.engine));
    ck_assert_float_eq(variable(&d, "w"), 511);
    device_free(&d);
}
END_TEST

/* A view made before the loop shows what was, although it is read after it. */
START_TEST(views_of_variables_stay)
{
    struct device d = device_new();
    ipu_tensor w = ipu_variable(d.graph, "w", IPU_FLOAT32, 0, NULL);
    ipu_tensor view = ipu_reshape(d.graph, w, 1, SHAPE(1));
    float seen;

    MUST(ipu_repeat(d.graph, 3, double_variable, &w, 0, NULL, NULL, NULL));
    MUST(ipu_output(d.graph, "view", view));
    device_load(&d);
    device_connect(&d, "view", &seen, 1);
    set_variable(&d, "w", 1);
    MUST(ipu_engine_run(d.engine));
    ck_assert_float_eq(seen, 1);
    ck_assert_float_eq(variable(&d, "w"), 15);
    device_free(&d);
}
END_TEST

/* Two loops, a nested one, and an assignment at the end, of one variable. */
static int nested_double(ipu_graph *g, void *context, int32_t ninputs,
                         const ipu_tensor *in, int32_t noutputs,
                         ipu_tensor *out)
{
    const ipu_tensor *w = context;

    (void)ninputs, (void)noutputs, (void)in, (void)out;
    MUST(ipu_repeat(g, 2, double_variable, context, 0, NULL, NULL, NULL));
    return ipu_assign(g, *w, plus(g, *w, 100));
}

START_TEST(loops_follow_each_other)
{
    struct device d = device_new();
    ipu_tensor w = ipu_variable(d.graph, "w", IPU_FLOAT32, 0, NULL);
    ipu_tensor view = ipu_reshape(d.graph, w, 1, SHAPE(1)), between;
    float seen[3], x = 1;

    MUST(ipu_repeat(d.graph, 1, double_variable, &w, 0, NULL, NULL, NULL));
    between = ipu_reshape(d.graph, w, 1, SHAPE(1));
    MUST(ipu_repeat(d.graph, 3, nested_double, &w, 0, NULL, NULL, NULL));
    MUST(ipu_output(d.graph, "view", view));
    MUST(ipu_output(d.graph, "between", between));
    MUST(ipu_output(d.graph, "last", w));
    MUST(ipu_assign(d.graph, w, ipu_negate(d.graph, w)));
    device_load(&d);
    device_connect(&d, "view", &seen[0], 1);
    device_connect(&d, "between", &seen[1], 1);
    device_connect(&d, "last", &seen[2], 1);
    set_variable(&d, "w", x);
    MUST(ipu_engine_run(d.engine));
    ck_assert_float_eq(seen[0], 1);
    ck_assert_float_eq(seen[1], x = 2 * x + 1);
    for (int i = 0; i < 3; i++)
        x = 2 * (2 * x + 1) + 1 + 100;
    ck_assert_float_eq(seen[2], -x);
    ck_assert_float_eq(variable(&d, "w"), -x);
    device_free(&d);
}
END_TEST

/* A counter and a slot made in the body are the program's. */
static int train(ipu_graph *g, void *context, int32_t ninputs,
                 const ipu_tensor *in, int32_t noutputs, ipu_tensor *out)
{
    const ipu_tensor *x = context; /* x, y, w */
    ipu_tensor w = x[2], loss, dw, step = ipu_counter(g, "step");

    (void)ninputs, (void)noutputs, (void)in;
    loss = ipu_mean_squared_error(g, ipu_matmul(g, x[0], w), x[1]);
    MUST(ipu_gradients(g, loss, 1, &w, &dw));
    MUST(ipu_adam(g, w, dw, scalar(g, IPU_FLOAT32, 0.05), step, NULL));
    if (noutputs > 0)
        out[0] = loss;
    return 0;
}

static void feed_problem(struct device *d, float *x, float *y)
{
    float w[5] = {0.3f, -0.2f, 0.1f, 0.9f, -0.5f};

    MUST(ipu_engine_write(d->engine, "w", w, sizeof w));
    device_connect(d, "x", x, 40);
    device_connect(d, "y", y, 8);
}

static void build_problem(struct device *d, ipu_tensor *x)
{
    x[0] = device_floats(d, "x", 2, SHAPE(8, 5));
    x[1] = device_floats(d, "y", 2, SHAPE(8, 1));
    x[2] = ipu_variable(d->graph, "w", IPU_FLOAT32, 2, SHAPE(5, 1));
}

/* n iterations are the bits of n runs. */
START_TEST(training_is_that_of_as_many_runs)
{
    struct device looped = device_new(), plain = device_new();
    ipu_tensor x[3], loss, zero = scalar(looped.graph, IPU_FLOAT32, 0);
    float data[40], target[8], a[5], b[5], last[2];
    int32_t steps;

    device_fill(data, 40, 1);
    device_fill(target, 8, 2);
    build_problem(&looped, x);
    MUST(ipu_repeat(looped.graph, 50, train, x, 1, &zero, NULL, &loss));
    MUST(ipu_output(looped.graph, "loss", loss));
    device_load(&looped);
    feed_problem(&looped, data, target);
    device_connect(&looped, "loss", &last[0], 1);
    MUST(ipu_engine_run(looped.engine));
    MUST(ipu_engine_run(looped.engine));

    build_problem(&plain, x);
    MUST(train(plain.graph, x, 0, NULL, 1, &loss));
    MUST(ipu_output(plain.graph, "loss", loss));
    device_load(&plain);
    feed_problem(&plain, data, target);
    device_connect(&plain, "loss", &last[1], 1);
    for (int i = 0; i < 100; i++)
        MUST(ipu_engine_run(plain.engine));

    MUST(ipu_engine_read(looped.engine, "w", a, sizeof a));
    MUST(ipu_engine_read(plain.engine, "w", b, sizeof b));
    ck_assert_mem_eq(a, b, sizeof a);
    ck_assert_mem_eq(&last[0], &last[1], sizeof *last);
    MUST(ipu_engine_read(looped.engine, "step", &steps, sizeof steps));
    ck_assert_int_eq(steps, 100);
    device_free(&looped);
    device_free(&plain);
}
END_TEST

/* ------------------------------------------------------------------ whiles */

static int below_hundred(ipu_graph *g, void *context, int32_t ninputs,
                         const ipu_tensor *in, int32_t noutputs,
                         ipu_tensor *out)
{
    (void)context, (void)noutputs;
    ck_assert_int_eq(ninputs, 2);
    out[0] = ipu_less(g, in[1], scalar(g, IPU_FLOAT32, 100));
    return 0;
}

static void check_while(int64_t most, int32_t n, float x)
{
    struct device d = device_new();
    ipu_tensor in[2], out[2];
    float y;

    in[0] = scalar(d.graph, IPU_INT32, 0);
    in[1] = scalar(d.graph, IPU_FLOAT32, 1);
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

START_TEST(whiles_end_by_their_condition)
{
    check_while(0, 7, 128);
    check_while(5, 5, 32);
    check_while(100, 7, 128);
}
END_TEST

/* -------------------------------------------------------------- host calls */

struct log {
    int calls, fail_at;
    float seen[32];
};

static int note(void *context, const char *name, void *data, int64_t count)
{
    struct log *log = context;

    (void)name;
    ck_assert_int_eq(count, 1);
    log->seen[log->calls] = *(const float *)data;
    return ++log->calls == log->fail_at ? -77 : 0;
}

struct called {
    ipu_tensor w;
    struct log *log;
};

static int call_and_double(ipu_graph *g, void *context, int32_t ninputs,
                           const ipu_tensor *in, int32_t noutputs,
                           ipu_tensor *out)
{
    const struct called *c = context;

    (void)ninputs, (void)noutputs, (void)in, (void)out;
    MUST(ipu_host_call(g, "w_is", c->w, note, c->log));
    return ipu_assign(g, c->w, ipu_scale(g, c->w, 2, 0));
}

/* Once an iteration; a failure ends the loop, and the variable is as the
 * iteration before has left it. */
START_TEST(host_calls_in_bodies)
{
    struct device d = device_new();
    struct log log = {.fail_at = 0};
    struct called c = {ipu_variable(d.graph, "w", IPU_FLOAT32, 0, NULL), &log};
    float copy;

    MUST(ipu_repeat(d.graph, 5, call_and_double, &c, 0, NULL, NULL, NULL));
    device_load(&d);
    set_variable(&d, "w", 1);
    MUST(ipu_engine_run(d.engine));
    ck_assert_int_eq(log.calls, 5);
    for (int i = 0; i < 5; i++)
        ck_assert_float_eq(log.seen[i], (float)(1 << i));
    log.fail_at = 5 + 3;
    MUST_FAIL(ipu_engine_run(d.engine), IPU_ERR_CALLBACK,
              "repeat: iteration 2: host call 'w_is' returned -77");
    ck_assert_int_eq(ipu_engine_callback_status(d.engine), -77);
    ck_assert_float_eq(variable(&d, "w"), 32 * 4);
    log.fail_at = 0;
    device_connect(&d, "w_is", &copy, 1);
    MUST(ipu_engine_run(d.engine));
    ck_assert_float_eq(copy, 32 * 4 * 16);
    ck_assert_int_eq(ipu_engine_callback_status(d.engine), 0);
    device_free(&d);
}
END_TEST

/* A host call shows a variable as it is before the loop that is built after. */
START_TEST(host_calls_before_loops)
{
    struct device d = device_new();
    struct log log = {.fail_at = 0};
    ipu_tensor w = ipu_variable(d.graph, "w", IPU_FLOAT32, 0, NULL);

    MUST(ipu_host_call(d.graph, "before", w, note, &log));
    MUST(ipu_repeat(d.graph, 3, double_variable, &w, 0, NULL, NULL, NULL));
    MUST(ipu_host_call(d.graph, "after", ipu_square(d.graph, w), note, &log));
    device_load(&d);
    set_variable(&d, "w", 1);
    MUST(ipu_engine_run(d.engine));
    ck_assert_int_eq(log.calls, 2);
    ck_assert_float_eq(log.seen[0], 1);
    ck_assert_float_eq(log.seen[1], 15 * 15);
    device_free(&d);
}
END_TEST

/* ------------------------------------------------------------------- costs */

static int multiply_body(ipu_graph *g, void *context, int32_t ninputs,
                         const ipu_tensor *in, int32_t noutputs,
                         ipu_tensor *out)
{
    const ipu_tensor *w = context;

    (void)ninputs, (void)noutputs;
    out[0] = ipu_tanh(g, ipu_matmul(g, in[0], *w));
    return 0;
}

static ipu_program_cycles cycles_of(int64_t count)
{
    struct device d = device_new();
    ipu_tensor w = device_floats(&d, "w", 2, SHAPE(64, 64)), x, out;
    ipu_program_cycles cycles = {.size = sizeof cycles};

    x = device_floats(&d, "x", 2, SHAPE(64, 64));
    MUST(ipu_repeat(d.graph, count, multiply_body, &w, 1, &x, NULL, &out));
    MUST(ipu_output(d.graph, "y", out));
    device_load(&d);
    MUST(ipu_executable_cycles(d.executable, &cycles));
    device_free(&d);
    return cycles;
}

/* Cycles are those of an iteration, times their number; the host's are not. */
START_TEST(cycles_grow_with_iterations)
{
    ipu_program_cycles zero = cycles_of(0), one = cycles_of(1),
                       many = cycles_of(1000);

    ck_assert_int_gt(one.compute, zero.compute);
    ck_assert_int_eq(many.compute - zero.compute,
                     1000 * (one.compute - zero.compute));
    ck_assert_int_eq(many.exchange, 1000 * one.exchange);
    ck_assert_double_eq_tol(many.flops, 1000 * one.flops, 1e-6 * many.flops);
    ck_assert_int_eq(many.host, one.host);
    ck_assert_int_eq(many.total,
                     many.compute + many.exchange + many.sync + many.host);
    /* More than can be counted is told as much, and nothing overflows. */
    many = cycles_of(INT64_MAX);
    ck_assert_int_ge(many.total, INT64_C(1) << 56);
    ck_assert_int_ge(many.total, many.compute);
}
END_TEST

/* One run of ten iterations costs the device what ten runs of one do, but for
 * counting; and the host is met once instead of ten times. */
START_TEST(one_run_meets_the_host_once)
{
    ipu_program_cycles once = cycles_of(1), loop = cycles_of(10);

    ck_assert_int_gt(once.host, 0);
    ck_assert_int_eq(loop.host, once.host);
    ck_assert_int_lt(loop.total, 10 * once.total - 8 * once.host);
    ck_assert_int_eq(loop.sync, 10 * once.sync);
}
END_TEST

START_TEST(bodies_can_be_looked_at)
{
    struct device d = device_new();
    ipu_tensor w = device_floats(&d, "w", 2, SHAPE(64, 64)), x, out;
    const ipu_executable *body;
    ipu_step_info info = {.size = sizeof info};
    ipu_memory_info memory = {.size = sizeof memory};
    int64_t count;

    x = device_floats(&d, "x", 2, SHAPE(64, 64));
    MUST(ipu_repeat(d.graph, 6, multiply_body, &w, 1, &x, NULL, &out));
    MUST(ipu_output(d.graph, "y", out));
    device_load(&d);
    ck_assert_int_eq(ipu_executable_body(d.executable, 0, &body, &count), 1);
    ck_assert_int_eq(count, 6);
    ck_assert_int_eq(ipu_executable_body(body, 0, NULL, &count), 0);
    ck_assert_int_eq(count, 1);
    MUST(ipu_executable_step(body, 0, &info));
    ck_assert_str_eq(info.op, "matmul");
    MUST(ipu_executable_step(d.executable, 0, &info));
    ck_assert_str_eq(info.op, "loop");
    ck_assert_int_gt(info.temporary_bytes, 0);
    MUST(ipu_executable_memory(d.executable, &memory));
    ck_assert_int_gt(memory.code_bytes_per_tile, 0);
    MUST_FAIL(ipu_executable_body(d.executable, 1, NULL, NULL),
              IPU_ERR_ARGUMENT, "there is no step 1");
    device_free(&d);
}
END_TEST

static TCase *tcase_values(void)
{
    TCase *t = tcase_create("values");

    tcase_add_test(t, carried_values);
    tcase_add_test(t, no_iterations);
    tcase_add_test(t, iterations_without_end_are_counted);
    tcase_add_test(t, values_become_each_other);
    tcase_add_test(t, initial_values_stay);
    tcase_add_test(t, bodies_use_what_is_around);
    tcase_add_test(t, loops_in_loops);
    tcase_add_test(t, whiles_end_by_their_condition);
    return t;
}

static TCase *tcase_variables(void)
{
    TCase *t = tcase_create("variables");

    tcase_add_test(t, variables_change_with_iterations);
    tcase_add_test(t, views_of_variables_stay);
    tcase_add_test(t, loops_follow_each_other);
    tcase_add_test(t, training_is_that_of_as_many_runs);
    tcase_add_test(t, host_calls_in_bodies);
    tcase_add_test(t, host_calls_before_loops);
    return t;
}

static TCase *tcase_costs(void)
{
    TCase *t = tcase_create("costs");

    tcase_add_test(t, cycles_grow_with_iterations);
    tcase_add_test(t, one_run_meets_the_host_once);
    tcase_add_test(t, bodies_can_be_looked_at);
    return t;
}

HVD_TEST_MAIN("device_loops", tcase_values, tcase_variables, tcase_costs)
