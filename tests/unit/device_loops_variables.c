/* SPDX-License-Identifier: Apache-2.0 */
/* Loops that change variables, and that call the host. */
#include "device.h"
#include "suite.h"

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

/* The body computes w = w * 2 + 1; the carried value adds up the old values of
 * w. */
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

/* Before a loop a variable has its old value, after it the new one. */
TEST(variables_change_with_iterations)
{
    struct device d = device_new();
    ipu_tensor w = ipu_variable(d.graph, "w", IPU_FLOAT32, 0, NULL);
    ipu_tensor zero = device_scalar(d.graph, IPU_FLOAT32, 0), sum, before,
               after;
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

/* A view made before the loop shows the old value, although it is read after
 * the loop. */
TEST(views_of_variables_stay)
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

/* One variable is changed by two loops, by a nested one, and by an assignment
 * at the end. */
static int nested_double(ipu_graph *g, void *context, int32_t ninputs,
                         const ipu_tensor *in, int32_t noutputs,
                         ipu_tensor *out)
{
    const ipu_tensor *w = context;

    (void)ninputs, (void)noutputs, (void)in, (void)out;
    MUST(ipu_repeat(g, 2, double_variable, context, 0, NULL, NULL, NULL));
    return ipu_assign(g, *w, ipu_scale(g, *w, 1, 100));
}

TEST(loops_follow_each_other)
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

/* A counter and a slot made in the body belong to the program. */
static int train(ipu_graph *g, void *context, int32_t ninputs,
                 const ipu_tensor *in, int32_t noutputs, ipu_tensor *out)
{
    const ipu_tensor *x = context; /* x, y, w */
    ipu_tensor w = x[2], loss, dw, step = ipu_counter(g, "step");

    (void)ninputs, (void)noutputs, (void)in;
    loss = ipu_mean_squared_error(g, ipu_matmul(g, x[0], w), x[1]);
    MUST(ipu_gradients(g, loss, 1, &w, &dw));
    MUST(ipu_adam(g, w, dw, device_scalar(g, IPU_FLOAT32, 0.05), step, NULL));
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

/* n iterations give the same bits as n runs. */
TEST(training_is_that_of_as_many_runs)
{
    struct device looped = device_new(), plain = device_new();
    ipu_tensor x[3], loss, zero = device_scalar(looped.graph, IPU_FLOAT32, 0);
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

/* The host is called once an iteration. A failure ends the loop, and the
 * variable keeps the value of the iteration before. */
TEST(host_calls_in_bodies)
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

/* A host call shows a variable as it is before the loop that is built after. */
TEST(host_calls_before_loops)
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

TEST_MAIN("device_loops_variables")
