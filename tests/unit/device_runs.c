/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tests streams, variables and host calls of engines from run to run, and that
 * every failure leaves an engine that runs again.
 */
#include "suite.h"

#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "one_device.h"

enum { N = 4 };

static float in[N] = {1, 2, 3, 4}, out[N], weights[N] = {10, 20, 30, 40};

/* Sets the status that a host call returns, and records its arguments. */
static struct {
    int status; /* to return */
    ipu_engine *run;
    int run_status;
    int calls;
    int64_t count;
    void *data;
    float seen[N];
    char name[16];
} call;

static int on_call(void *context, const char *name, void *data, int64_t count)
{
    ck_assert_ptr_eq(context, &call);
    call.calls++;
    call.count = count;
    call.data = data;
    memcpy(call.seen, data, (size_t)count * sizeof(float));
    snprintf(call.name, sizeof call.name, "%s", name);
    if (call.run)
        call.run_status = ipu_engine_run(call.run);
    return call.status;
}

/* The program: out = x v, and a host call of x v, and some integers. */
static void set_up(void)
{
    ipu_tensor x, v, y;

    d = device_new();
    memset(&call, 0, sizeof call);
    memset(out, 0, sizeof out);
    x = device_floats(&d, "x", 1, SHAPE(N));
    v = ipu_variable(d.graph, "v", IPU_FLOAT32, 1, SHAPE(N));
    y = ipu_multiply(d.graph, x, v);
    MUST(ipu_host_call(d.graph, "call", y, on_call, &call));
    MUST(ipu_output(d.graph, "y", y));
    ipu_variable(d.graph, "counter", IPU_INT32, 1, SHAPE(2));
    device_floats(&d, "unused", 1, SHAPE(3));
    device_load(&d);
    device_connect(&d, "x", in, N);
    device_connect(&d, "y", out, N);
    MUST(ipu_engine_write(d.engine, "v", weights, sizeof weights));
}

static void check_results(void)
{
    memset(out, 0, sizeof out);
    MUST(ipu_engine_run(d.engine));
    for (int i = 0; i < N; i++)
        ck_assert_float_eq(out[i], in[i] * weights[i]);
}

/* ------------------------------------------------------------------ streams */

TEST(inputs_are_read_at_each_run)
{
    check_results();
    in[2] = -7;
    check_results();
    in[2] = 3;
}

TEST(streams_can_be_connected_elsewhere)
{
    float other[N] = {-1, -2, -3, -4}, result[N];

    device_connect(&d, "x", other, N);
    device_connect(&d, "y", result, N);
    MUST(ipu_engine_run(d.engine));
    ck_assert_float_eq(result[3], -160);
    ck_assert_float_eq(out[3], 0);
}

TEST(outputs_need_no_host_memory)
{
    MUST(ipu_engine_connect(d.engine, "y", NULL, 0));
    MUST(ipu_engine_run(d.engine));
    ck_assert_float_eq(out[0], 0);
    ck_assert_int_eq(call.calls, 1);
}

TEST(an_unused_input_may_be_connected_but_need_not)
{
    float three[3] = {0};

    check_results();
    device_connect(&d, "unused", three, 3);
    MUST_FAIL(ipu_engine_connect(d.engine, "unused", three, 4), IPU_ERR_SHAPE,
              "stream 'unused' takes 12 bytes, not 4");
    check_results();
}

TEST(a_wrong_connection_leaves_the_old_one)
{
    MUST_FAIL(ipu_engine_connect(d.engine, "x", weights, 4 * N - 1),
              IPU_ERR_SHAPE, "'x' takes 16 bytes, not 15");
    MUST_FAIL(ipu_engine_connect(d.engine, "X", weights, 4 * N), IPU_ERR_NAME,
              "there is no input, output or host call 'X'");
    MUST_FAIL(ipu_engine_connect(d.engine, "v", weights, 4 * N), IPU_ERR_NAME,
              "no input, output or host call 'v'");
    MUST_FAIL(ipu_engine_connect(NULL, "x", weights, 4 * N), IPU_ERR_ARGUMENT,
              "engine is NULL");
    check_results();
}

TEST(a_run_without_an_input_changes_nothing)
{
    MUST(ipu_engine_connect(d.engine, "x", NULL, 0));
    MUST_FAIL(ipu_engine_run(d.engine), IPU_ERR_STATE,
              "input 'x' is not connected");
    ck_assert_int_eq(call.calls, 0);
    ck_assert_float_eq(out[0], 0);
    device_connect(&d, "x", in, N);
    check_results();
}

/* ---------------------------------------------------------------- variables */

TEST(variables_hold_until_written)
{
    int32_t two[2] = {0};
    float back[N];

    check_results();
    check_results();
    MUST(ipu_engine_read(d.engine, "v", back, sizeof back));
    ck_assert_mem_eq(back, weights, sizeof back);
    MUST(ipu_engine_read(d.engine, "counter", two, sizeof two));
    ck_assert_int_eq(two[0], 0); /* until written */
    two[1] = INT32_MIN;
    MUST(ipu_engine_write(d.engine, "counter", two, sizeof two));
    two[1] = 0;
    MUST(ipu_engine_run(d.engine));
    MUST(ipu_engine_read(d.engine, "counter", two, sizeof two));
    ck_assert_int_eq(two[1], INT32_MIN);
}

TEST(variables_are_written_and_read_whole)
{
    float back[N];

    MUST_FAIL(ipu_engine_write(d.engine, "v", weights, 4), IPU_ERR_SHAPE,
              "variable 'v' takes 16 bytes, not 4");
    MUST_FAIL(ipu_engine_read(d.engine, "v", back, 17), IPU_ERR_SHAPE,
              "takes 16 bytes, not 17");
    MUST_FAIL(ipu_engine_write(d.engine, "v", NULL, 16), IPU_ERR_ARGUMENT,
              "variable 'v': the host memory is NULL");
    MUST_FAIL(ipu_engine_write(d.engine, "w", weights, 16), IPU_ERR_NAME,
              "no variable 'w'");
    MUST_FAIL(ipu_engine_read(d.engine, "x", back, 16), IPU_ERR_NAME,
              "no variable 'x'");
    MUST_FAIL(ipu_engine_read(d.engine, NULL, back, 16), IPU_ERR_ARGUMENT,
              "name is NULL");
    MUST_FAIL(ipu_engine_write(NULL, "v", weights, 16), IPU_ERR_ARGUMENT,
              "engine is NULL");
    check_results();
}

TEST(engines_of_one_executable_have_their_own_variables)
{
    const float other_weights[N] = {1, 1, 1, 1};
    ipu_engine *other;
    float result[N];

    MUST(ipu_engine_new(d.executable, &other));
    MUST(ipu_engine_write(other, "v", other_weights, sizeof other_weights));
    MUST(ipu_engine_connect(other, "x", in, sizeof in));
    MUST(ipu_engine_connect(other, "y", result, sizeof result));
    check_results();
    MUST(ipu_engine_run(other));
    ck_assert_mem_eq(result, in, sizeof in);
    check_results();
    ipu_engine_free(other);
}

/* --------------------------------------------------------------- host calls */

TEST(a_host_call_sees_its_tensor)
{
    check_results();
    ck_assert_int_eq(call.calls, 1);
    ck_assert_int_eq(call.count, N);
    ck_assert_str_eq(call.name, "call");
    ck_assert_mem_eq(call.seen, out, sizeof out);
}

TEST(a_connected_host_call_finds_its_tensor_there)
{
    float there[N] = {0};

    device_connect(&d, "call", there, N);
    check_results();
    ck_assert_ptr_eq(call.data, there);
    ck_assert_mem_eq(there, out, sizeof out);
}

LOOP_TEST(a_host_call_that_fails_ends_the_run, 0, 2)
{
    call.status = -1000 - _i;
    MUST_FAIL(ipu_engine_run(d.engine), IPU_ERR_CALLBACK, "'call' returned");
    ck_assert_int_eq(ipu_engine_callback_status(d.engine), -1000 - _i);
    ck_assert_float_eq(out[0], 0);
    call.status = _i; /* 0 or more is a success */
    check_results();
    ck_assert_int_eq(ipu_engine_callback_status(d.engine), 0);
    ck_assert_int_eq(ipu_engine_callback_status(NULL), 0);
}

TEST(a_host_call_cannot_run_its_engine)
{
    call.run = d.engine;
    check_results();
    ck_assert_int_eq(call.run_status, IPU_ERR_STATE);
    ck_assert_int_eq(call.calls, 1);
    call.run = NULL;
    check_results();
}

/* ----------------------------------------------------------------- training */

/* Bright on the left or on the right: 8 x 8 pictures. */
enum { BATCH = 16, SIDE = 8, PIXELS = SIDE * SIDE, FILTERS = 4, FLAT = 36 };

static const struct {
    const char *name, *gradient;
    int32_t ndim;
    int64_t shape[4], count;
} parameters[] = {
    {"bias", "d bias", 1, {2}, 2},
    {"dense", "d dense", 2, {FLAT, 2}, 2 * FLAT},
    {"filter bias", "d filter bias", 1, {FILTERS}, FILTERS},
    {"filter", "d filter", 4, {3, 3, 1, FILTERS}, 9 * FILTERS},
};
enum { PARAMETERS = 4, MOST = 2 * FLAT };

static void build_network(struct device *net)
{
    ipu_tensor variables[PARAMETERS], gradients[PARAMETERS], x, loss;
    ipu_tensor labels =
        ipu_input(net->graph, "labels", IPU_INT32, 1, SHAPE(BATCH));

    for (int i = 0; i < PARAMETERS; i++)
        variables[i] = ipu_variable(net->graph, parameters[i].name, IPU_FLOAT32,
                                    parameters[i].ndim, parameters[i].shape);
    x = device_floats(net, "x", 4, SHAPE(BATCH, SIDE, SIDE, 1));
    x = ipu_conv2d(net->graph, x, variables[3], NULL);
    x = ipu_relu(net->graph, ipu_bias_add(net->graph, x, variables[2]));
    x = ipu_reshape(net->graph, ipu_max_pool2d(net->graph, x, 2), 2,
                    SHAPE(BATCH, FLAT));
    x = ipu_bias_add(net->graph, ipu_matmul(net->graph, x, variables[1]),
                     variables[0]);
    loss = ipu_reduce_sum(net->graph,
                          ipu_softmax_cross_entropy(net->graph, x, labels),
                          1.0 / BATCH);
    MUST(ipu_output(net->graph, "loss", loss));
    MUST(ipu_gradients(net->graph, loss, PARAMETERS, variables, gradients));
    for (int i = 0; i < PARAMETERS; i++)
        MUST(ipu_output(net->graph, parameters[i].gradient, gradients[i]));
}

struct training {
    float first, last;
    float values[PARAMETERS][MOST];
};

static void draw(float *pixels, int32_t *labels, uint64_t *state)
{
    for (int n = 0; n < BATCH; n++) {
        labels[n] = (int32_t)(device_random(state) % 2);
        for (int i = 0; i < PIXELS; i++)
            pixels[n * PIXELS + i] =
                0.25f * device_random_float(state) +
                (i % SIDE / (SIDE / 2) == labels[n] ? 0.5f : 0);
    }
}

/* Gradient descent on the host, for some steps. */
static void *train(void *context)
{
    struct training *t = context;
    static const float rate = 0.2f;
    struct device net = device_new();
    float pixels[BATCH * PIXELS], slopes[PARAMETERS][MOST];
    int32_t labels[BATCH];
    uint64_t state = 1;

    build_network(&net);
    device_load(&net);
    device_connect(&net, "x", pixels, BATCH * PIXELS);
    device_connect(&net, "labels", labels, BATCH);
    device_connect(&net, "loss", &t->last, 1);
    for (int i = 0; i < PARAMETERS; i++) {
        device_fill(t->values[i], parameters[i].count, (uint64_t)i);
        for (int64_t k = 0; k < parameters[i].count; k++)
            t->values[i][k] *= 0.125f;
        device_connect(&net, parameters[i].gradient, slopes[i],
                       parameters[i].count);
    }
    for (int step = 0; step < 100; step++) {
        draw(pixels, labels, &state);
        for (int i = 0; i < PARAMETERS; i++)
            MUST(ipu_engine_write(net.engine, parameters[i].name, t->values[i],
                                  (size_t)parameters[i].count * 4));
        MUST(ipu_engine_run(net.engine));
        if (step == 0)
            t->first = t->last;
        for (int i = 0; i < PARAMETERS; i++)
            for (int64_t k = 0; k < parameters[i].count; k++)
                t->values[i][k] -= rate * slopes[i][k];
    }
    device_free(&net);
    return NULL;
}

TEST(a_network_learns)
{
    struct training t = {0};

    train(&t);
    ck_assert_float_eq_tol(t.first, logf(2), 0.1f);
    ck_assert_float_lt(t.last, 0.05f);
}

/* Runs on two threads at once, poisoned or not, give the same bits. */
LOOP_TEST(training_gives_the_same_bits_every_time, 0, 2)
{
    static struct training alone, others[2];
    pthread_t threads[2];

    setenv("IPU_POISON", "0", 1);
    train(&alone);
    setenv("IPU_POISON", _i ? "1" : "0", 1);
    for (int i = 0; i < 2; i++)
        ck_assert_int_eq(pthread_create(&threads[i], NULL, train, &others[i]),
                         0);
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    for (int i = 0; i < 2; i++)
        ck_assert_mem_eq(&others[i], &alone, sizeof alone);
}

TEST(threads_are_checked)
{
    const int32_t bad[] = {0, -1, 1025, INT32_MAX};

    for (int i = 0; i < 4; i++)
        MUST_FAIL(ipu_set_threads(bad[i]), IPU_ERR_ARGUMENT,
                  "threads: give 1 to 1024");
    MUST(ipu_set_threads(2));
    MUST(ipu_set_threads(1));
}

TEST_MAIN("device_runs", .set_up = set_up, .tear_down = one_device_free,
          .seconds = 120)
