/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tests tensors in the host's memory, and tensors that the host gives in the
 * course of a run. The program is one step of descent whose gradient the host
 * replaces.
 */
#include "suite.h"

#include "one_device.h"

enum { N = 5 };

static _Alignas(64) float gradient[N], weights[N], x[N];
static float out[N];

/* Records the host's calls. */
static struct {
    int calls, receives;
    int status; /* status that the next receive returns */
    float seen[N];
    void *called_with, *received_with;
} host;

static int on_call(void *context, const char *name, void *data, int64_t count)
{
    ck_assert_ptr_eq(context, &host);
    ck_assert_str_eq(name, "gradient");
    ck_assert_int_eq(count, N);
    memcpy(host.seen, data, sizeof host.seen);
    host.called_with = data;
    host.calls++;
    return 0;
}

/* Halves the tensor that the call was shown, like the average with a rank that
 * has 0. */
static int on_receive(void *context, const char *name, void *data,
                      int64_t count)
{
    ck_assert_ptr_eq(context, &host);
    ck_assert_str_eq(name, "average");
    ck_assert_int_eq(count, N);
    ck_assert_int_gt(host.calls, host.receives);
    host.receives++;
    host.received_with = data;
    for (int i = 0; i < N; i++)
        ((float *)data)[i] = host.seen[i] / 2;
    return host.status;
}

/* The program: loss = sum(x w), w -= 0.5 average(gradient); the gradient is
 * x. */
static void set_up(void)
{
    ipu_tensor in, w, g, a;

    d = device_new();
    memset(&host, 0, sizeof host);
    for (int i = 0; i < N; i++) {
        x[i] = (float)(i + 1);
        weights[i] = (float)(10 * i);
        gradient[i] = -1;
    }
    in = device_floats(&d, "x", 1, SHAPE(N));
    w = ipu_variable(d.graph, "w", IPU_FLOAT32, 1, SHAPE(N));
    MUST(ipu_gradients(d.graph,
                       ipu_reduce_sum(d.graph, ipu_multiply(d.graph, in, w), 1),
                       1, &w, &g));
    g = ipu_scale(d.graph, g, 1, 0);
    MUST(ipu_host_call(d.graph, "gradient", g, on_call, &host));
    a = ipu_host_receive(d.graph, "average", g, on_receive, &host);
    MUST(ipu_sgd(d.graph, w, a, ipu_fill(d.graph, IPU_FLOAT32, 0, NULL, 0.5),
                 NULL));
    MUST(ipu_output(d.graph, "twice", ipu_scale(d.graph, in, 2, 0)));
    device_load(&d);
    MUST(ipu_engine_connect(d.engine, "x", x, sizeof x));
}

static void check_descent(const float *w, int steps)
{
    for (int i = 0; i < N; i++)
        ck_assert_float_eq(w[i], (float)(10 * i) -
                                     0.25f * (float)steps * (float)(i + 1));
}

TEST(the_host_replaces_a_tensor)
{
    MUST(ipu_engine_write(d.engine, "w", weights, sizeof weights));
    MUST(ipu_engine_run(d.engine));
    MUST(ipu_engine_run(d.engine));
    ck_assert_int_eq(host.calls, 2);
    ck_assert_int_eq(host.receives, 2);
    MUST(ipu_engine_read(d.engine, "w", out, sizeof out));
    check_descent(out, 2);
}

TEST(placed_tensors_are_not_copied)
{
    int hostile = getenv("IPU_POISON") != NULL;

    MUST(ipu_engine_place(d.engine, "gradient", gradient, sizeof gradient));
    MUST(ipu_engine_place(d.engine, "w", weights, sizeof weights));
    MUST(ipu_engine_place(d.engine, "x", x, sizeof x));
    MUST(ipu_engine_run(d.engine));
    check_descent(weights, 1);
    ck_assert_ptr_eq(host.called_with, gradient);
    if (!hostile)
        ck_assert_ptr_eq(host.received_with, gradient);
    MUST(ipu_engine_read(d.engine, "w", out, sizeof out));
    check_descent(out, 1);
}

TEST(engines_share_a_placed_variable)
{
    ipu_engine *other;

    MUST(ipu_engine_new(d.executable, &other));
    MUST(ipu_engine_connect(other, "x", x, sizeof x));
    MUST(ipu_engine_place(d.engine, "w", weights, sizeof weights));
    MUST(ipu_engine_place(other, "w", weights, sizeof weights));
    MUST(ipu_engine_run(d.engine));
    MUST(ipu_engine_run(other));
    MUST(ipu_engine_run(d.engine));
    check_descent(weights, 3);
    ipu_engine_free(other);
}

TEST(a_variable_returns_with_its_elements)
{
    MUST(ipu_engine_place(d.engine, "w", weights, sizeof weights));
    MUST(ipu_engine_run(d.engine));
    MUST(ipu_engine_place(d.engine, "w", NULL, 0));
    memset(weights, 0, sizeof weights);
    MUST(ipu_engine_run(d.engine));
    MUST(ipu_engine_read(d.engine, "w", out, sizeof out));
    check_descent(out, 2);
    /* Back already. */
    MUST(ipu_engine_place(d.engine, "w", NULL, 0));
    MUST(ipu_engine_read(d.engine, "w", out, sizeof out));
    check_descent(out, 2);
}

TEST(an_output_is_where_it_is_placed)
{
    float elsewhere[N];

    MUST(ipu_engine_place(d.engine, "twice", out, sizeof out));
    MUST(ipu_engine_run(d.engine));
    for (int i = 0; i < N; i++)
        ck_assert_float_eq(out[i], 2 * (float)(i + 1));
    /* Connected elsewhere, it is copied there. */
    MUST(ipu_engine_connect(d.engine, "twice", elsewhere, sizeof elsewhere));
    x[0] = 7;
    MUST(ipu_engine_run(d.engine));
    ck_assert_float_eq(elsewhere[0], 14);
    MUST(ipu_engine_place(d.engine, "twice", NULL, 0));
    MUST(ipu_engine_run(d.engine)); /* streams nowhere */
}

TEST(a_failed_receive_leaves_the_variables)
{
    host.status = -77;
    MUST(ipu_engine_place(d.engine, "w", weights, sizeof weights));
    MUST_FAIL(ipu_engine_run(d.engine), IPU_ERR_CALLBACK,
              "host receive 'average' returned -77");
    ck_assert_int_eq(ipu_engine_callback_status(d.engine), -77);
    check_descent(weights, 0);
    host.status = 0;
    MUST(ipu_engine_run(d.engine));
    ck_assert_int_eq(ipu_engine_callback_status(d.engine), 0);
    check_descent(weights, 1);
}

TEST(misuse_of_places_is_told)
{
    const struct {
        ipu_engine *engine;
        const char *name;
        void *data;
        size_t bytes;
        int status;
        const char *words;
    } cases[] = {
        {NULL, "w", out, sizeof out, IPU_ERR_ARGUMENT, "the engine is NULL"},
        {d.engine, NULL, out, sizeof out, IPU_ERR_ARGUMENT, "name is NULL"},
        {d.engine, "v", out, sizeof out, IPU_ERR_NAME, "no variable 'v'"},
        {d.engine, "w", out, 4, IPU_ERR_SHAPE, "'w' takes 20 bytes, not 4"},
        {d.engine, "x", out, 24, IPU_ERR_SHAPE, "'x' takes 20 bytes, not 24"},
        {d.engine, "w", (char *)out + 1, sizeof out, IPU_ERR_ARGUMENT,
         "no multiple of 4"},
    };

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        MUST_FAIL(ipu_engine_place(cases[i].engine, cases[i].name,
                                   cases[i].data, cases[i].bytes),
                  cases[i].status, cases[i].words);
}

TEST(a_stream_of_a_variable_stays)
{
    struct device own = device_new();
    ipu_tensor v = ipu_variable(own.graph, "v", IPU_FLOAT32, 1, SHAPE(N));

    MUST(ipu_output(own.graph, "v out", v));
    device_load(&own);
    MUST_FAIL(ipu_engine_place(own.engine, "v out", out, sizeof out),
              IPU_ERR_STATE, "connect it instead");
    device_free(&own);
}

TEST(misuse_of_receives_is_told)
{
    struct device own = device_new();
    ipu_tensor v = ipu_variable(own.graph, "v", IPU_FLOAT32, 1, SHAPE(N));

    ck_assert_int_lt(ipu_host_receive(own.graph, "r", v, NULL, NULL).id, 0);
    MUST_FAIL(ipu_compile(own.graph, NULL, &own.executable), IPU_ERR_ARGUMENT,
              "host receive 'r': the function is NULL");
    device_free(&own);
    own = device_new();
    v = ipu_variable(own.graph, "v", IPU_FLOAT32, 1, SHAPE(N));
    ck_assert_int_lt(ipu_host_receive(own.graph, "", v, on_receive, NULL).id,
                     0);
    MUST_FAIL(ipu_compile(own.graph, NULL, &own.executable), IPU_ERR_ARGUMENT,
              "the name is empty");
    device_free(&own);
}

/* The cycles of a receive count as host time on the chip. */
TEST(a_receive_is_a_stream)
{
    ipu_memory_info memory = {.size = sizeof memory};
    int32_t calls = 0, receives = 0;
    int64_t call_cycles = 0, receive_cycles = 0;

    MUST(ipu_executable_memory(d.executable, &memory));
    for (int32_t i = 0; i < memory.steps; i++) {
        ipu_step_info step = {.size = sizeof step};

        MUST(ipu_executable_step(d.executable, i, &step));
        if (strcmp(step.op, "host_call") == 0) {
            calls++;
            call_cycles = step.total_cycles;
        }
        if (strcmp(step.op, "host_receive") == 0) {
            ck_assert_int_eq(calls, 1); /* the call comes first */
            receives++;
            receive_cycles = step.total_cycles;
        }
    }
    ck_assert_int_eq(receives, 1);
    ck_assert_int_gt(call_cycles, 0);
    ck_assert_int_eq(receive_cycles, call_cycles);
}

TEST_MAIN("device_place", .set_up = set_up, .tear_down = one_device_free)
