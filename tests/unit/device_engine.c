/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Compiling and running: order of host calls, memory, streams, errors,
 * threads, and a small network that learns.
 */
#include <pthread.h>

#include "check_main.h"
#include "device_graph.h"

enum { BATCH = 8, LAYERS = 4, WIDTH = 16 };

/* Calls in their order. */
struct log {
    int n;
    int order[LAYERS];
    int fail_at; /* -1: never */
    int64_t counts[LAYERS];
    double sums[LAYERS];
};

static struct log calls;

static int note(void *context, const char *name, void *data, int64_t count)
{
    int layer = (int)(intptr_t)context;
    const float *values = data;

    ck_assert(name[0] == 'g' && name[1] == '0' + layer);
    calls.order[calls.n++] = layer;
    calls.counts[layer] = count;
    calls.sums[layer] = 0;
    for (int64_t i = 0; i < count; i++)
        calls.sums[layer] += (double)values[i];
    return layer == calls.fail_at ? -42 : 0;
}

/* Dense layers with relu; the gradients' host calls are declared from the
 * first layer on, the wrong way round on purpose. */
static ipu_graph *network(ipu_tensor *loss_of)
{
    ipu_graph *graph;
    ipu_tensor weights[LAYERS], gradients[LAYERS], x, loss;
    char name[] = "w0";

    ck_ipu(ipu_graph_new(&graph));
    x = ipu_input(graph, "x", IPU_FLOAT32, SHAPE(BATCH, WIDTH));
    for (int i = 0; i < LAYERS; i++) {
        name[1] = (char)('0' + i);
        weights[i] =
            ipu_variable(graph, name, IPU_FLOAT32, SHAPE(WIDTH, WIDTH));
        x = ipu_relu(graph, ipu_matmul(graph, x, weights[i]));
    }
    loss = ipu_reduce_sum(
        graph,
        ipu_softmax_cross_entropy(
            graph, x, ipu_input(graph, "labels", IPU_INT32, SHAPE(BATCH))),
        1.0 / BATCH);
    ck_ipu(ipu_gradients(graph, loss, LAYERS, weights, gradients));
    for (int i = 0; i < LAYERS; i++) {
        name[0] = 'g';
        name[1] = (char)('0' + i);
        ck_ipu(ipu_host_call(graph, name, gradients[i], note,
                             (void *)(intptr_t)i));
    }
    ck_ipu(ipu_output(graph, "loss", loss));
    if (loss_of)
        *loss_of = loss;
    return graph;
}

static float x_data[BATCH * WIDTH], loss_data;
static int32_t label_data[BATCH];

static void connect_all(ipu_engine *engine)
{
    char name[] = "w0";

    for (int i = 0; i < BATCH * WIDTH; i++)
        x_data[i] = device_value(20, i);
    for (int i = 0; i < BATCH; i++)
        label_data[i] = i % WIDTH;
    ck_ipu(ipu_engine_connect(engine, "x", x_data, sizeof x_data));
    ck_ipu(ipu_engine_connect(engine, "labels", label_data, sizeof label_data));
    ck_ipu(ipu_engine_connect(engine, "loss", &loss_data, sizeof loss_data));
    for (int i = 0; i < LAYERS; i++) {
        float *w = device_values(30 + i, WIDTH * WIDTH);

        name[1] = (char)('0' + i);
        ck_ipu(ipu_engine_write(engine, name, w, WIDTH * WIDTH * 4));
        free(w);
    }
}

static ipu_engine *ready(ipu_executable **executable)
{
    ipu_graph *graph = network(NULL);
    ipu_engine *engine = device_load(graph, executable);

    ipu_graph_free(graph); /* the executable keeps what it needs */
    connect_all(engine);
    calls = (struct log){.fail_at = -1};
    return engine;
}

static void done(ipu_engine *engine, ipu_executable *executable)
{
    ipu_engine_free(engine);
    ipu_executable_free(executable);
}

/* ---------------------------------------------------------------- the order */

START_TEST(gradients_of_the_last_layer_come_first)
{
    ipu_executable *executable;
    ipu_engine *engine = ready(&executable);

    ck_ipu(ipu_engine_run(engine));
    ck_assert_int_eq(calls.n, LAYERS);
    for (int i = 0; i < LAYERS; i++) {
        ck_assert_int_eq(calls.order[i], LAYERS - 1 - i);
        ck_assert_int_eq(calls.counts[i], WIDTH * WIDTH);
    }
    done(engine, executable);
}
END_TEST

/* ... while what the others need has not been computed. */
START_TEST(a_call_comes_before_what_it_does_not_need)
{
    ipu_executable *executable;
    ipu_engine *engine = ready(&executable);
    char text[8192];
    const char *call, *after;
    int products = 0;

    ck_assert(ipu_executable_print(executable, text, sizeof text) <
              (int64_t)sizeof text);
    call = strstr(text, "host_call 'g3'");
    ck_assert(call != NULL);
    for (after = call; (after = strstr(after, "matmul:")); after++)
        products += after[-1] == ' ' && after[-2] == ' ';
    /* The derivatives of layers 2, 1 and 0, and what leads to them. */
    ck_assert_int_ge(products, 5);
    done(engine, executable);
}
END_TEST

START_TEST(what_nobody_needs_is_dropped)
{
    ipu_graph *graph;
    ipu_executable *executable;
    ipu_memory_info info = {.size = sizeof info};
    ipu_tensor x;

    ck_ipu(ipu_graph_new(&graph));
    x = ipu_input(graph, "x", IPU_FLOAT32, SHAPE(3, 3));
    ipu_matmul(graph, ipu_relu(graph, x), x);
    ck_ipu(ipu_output(graph, "y", ipu_add(graph, x, x)));
    ck_ipu(ipu_compile(graph, NULL, &executable));
    ck_ipu(ipu_executable_memory(executable, &info));
    ck_assert_int_eq(info.steps, 1);
    ipu_executable_free(executable);
    ipu_graph_free(graph);
}
END_TEST

/* ------------------------------------------------------------------- memory */

START_TEST(memory_is_shared_and_counted)
{
    ipu_graph *graph = network(NULL);
    ipu_executable *executable;
    ipu_memory_info info = {.size = sizeof info};
    int64_t weights = LAYERS * WIDTH * WIDTH * 4;

    ck_ipu(ipu_compile(graph, NULL, &executable));
    ck_ipu(ipu_executable_memory(executable, &info));
    ck_assert_int_eq(info.always_live_bytes, weights);
    ck_assert_int_lt(info.planned_bytes, info.unshared_bytes);
    ck_assert_int_ge(info.planned_bytes, info.peak_bytes);
    ck_assert_int_gt(info.peak_bytes, weights);
    ck_assert_int_ge(info.bytes_on_fullest_tile * 1472, info.peak_bytes);
    ck_assert_int_le(info.bytes_on_fullest_tile, info.peak_bytes);
    ipu_executable_free(executable);
    ipu_graph_free(graph);
}
END_TEST

/* The same network with memory shared and not (IPU_POISON): same bits. */
START_TEST(sharing_does_not_change_bits)
{
    double sums[2][LAYERS];
    float losses[2];

    for (int poison = 0; poison < 2; poison++) {
        ipu_executable *executable;
        ipu_engine *engine;

        setenv("IPU_POISON", poison ? "1" : "0", 1);
        engine = ready(&executable);
        for (int run = 0; run < 3; run++) {
            calls.n = 0;
            ck_ipu(ipu_engine_run(engine));
        }
        memcpy(sums[poison], calls.sums, sizeof calls.sums);
        losses[poison] = loss_data;
        done(engine, executable);
    }
    ck_assert_mem_eq(sums[0], sums[1], sizeof sums[0]);
    ck_assert(losses[0] == losses[1]);
    ck_assert(isfinite(losses[0]) && losses[0] > 0);
}
END_TEST

START_TEST(the_same_graph_gives_the_same_program)
{
    char text[2][8192];

    for (int i = 0; i < 2; i++) {
        ipu_graph *graph = network(NULL);
        ipu_executable *executable;

        ck_ipu(ipu_compile(graph, NULL, &executable));
        ipu_executable_print(executable, text[i], sizeof text[i]);
        ck_assert_int_eq(ipu_executable_print(executable, NULL, 0),
                         (int64_t)strlen(text[i]));
        ipu_executable_free(executable);
        ipu_graph_free(graph);
    }
    ck_assert_str_eq(text[0], text[1]);
}
END_TEST

/* ------------------------------------------------------------------- errors */

START_TEST(a_failing_host_call_ends_the_run)
{
    ipu_executable *executable;
    ipu_engine *engine = ready(&executable);

    calls.fail_at = 2;
    ck_ipu_fails(ipu_engine_run(engine), IPU_ERR_CALLBACK, "'g2'");
    ck_assert_int_eq(ipu_engine_callback_status(engine), -42);
    ck_assert_int_eq(calls.n, 2);
    calls = (struct log){.fail_at = -1};
    ck_ipu(ipu_engine_run(engine));
    ck_assert_int_eq(ipu_engine_callback_status(engine), 0);
    ck_assert_int_eq(calls.n, LAYERS);
    done(engine, executable);
}
END_TEST

START_TEST(streams_and_variables_are_checked)
{
    ipu_executable *executable;
    ipu_engine *engine = ready(&executable);
    float few[3];

    ck_ipu_fails(ipu_engine_connect(engine, "x", few, sizeof few),
                 IPU_ERR_SHAPE, "12");
    ck_ipu_fails(ipu_engine_connect(engine, "nothing", few, sizeof few),
                 IPU_ERR_NAME, "'nothing'");
    ck_ipu_fails(ipu_engine_write(engine, "w1", few, sizeof few), IPU_ERR_SHAPE,
                 "1024");
    ck_ipu_fails(ipu_engine_write(engine, "x", few, sizeof few), IPU_ERR_NAME,
                 "'x'");
    ck_ipu_fails(ipu_engine_read(engine, "w1", NULL, WIDTH * WIDTH * 4),
                 IPU_ERR_ARGUMENT, "NULL");
    ck_ipu_fails(ipu_engine_connect(engine, NULL, few, 4), IPU_ERR_ARGUMENT,
                 "name");
    ck_ipu(ipu_engine_connect(engine, "x", NULL, 0));
    ck_ipu_fails(ipu_engine_run(engine), IPU_ERR_STATE, "'x'");
    ck_ipu(ipu_engine_connect(engine, "x", x_data, sizeof x_data));
    ck_ipu(ipu_engine_run(engine));
    ck_ipu_fails(ipu_engine_run(NULL), IPU_ERR_ARGUMENT, "NULL");
    done(engine, executable);
    done(NULL, NULL);
}
END_TEST

START_TEST(compiling_is_checked)
{
    ipu_graph *graph = network(NULL);
    ipu_executable *executable = NULL;
    ipu_target target;
    ipu_memory_info info = {0};

    ck_ipu_fails(ipu_compile(NULL, NULL, &executable), IPU_ERR_ARGUMENT,
                 "graph");
    ipu_target_init(&target, sizeof target);
    target.tiles = 0;
    ck_ipu_fails(ipu_compile(graph, &target, &executable), IPU_ERR_ARGUMENT,
                 "0 tiles");
    target.size = 1;
    ck_ipu_fails(ipu_compile(graph, &target, &executable), IPU_ERR_ARGUMENT,
                 "ipu_target_init");
    ck_ipu(ipu_compile(graph, NULL, &executable));
    ck_ipu_fails(ipu_executable_memory(executable, &info), IPU_ERR_ARGUMENT,
                 "size");
    ck_ipu_fails(ipu_set_threads(0), IPU_ERR_ARGUMENT, "0 threads");
    ck_ipu(ipu_set_threads(1));
    ck_ipu_fails(ipu_host_call(graph, "h", (ipu_tensor){0}, NULL, NULL),
                 IPU_ERR_ARGUMENT, "NULL");
    ipu_executable_free(executable);
    ipu_graph_free(graph);
}
END_TEST

/* A host call connected to host memory finds its tensor there. */
static int find_there(void *context, const char *name, void *data,
                      int64_t count)
{
    (void)name;
    ck_assert(data == context);
    ck_assert_int_eq(count, 3);
    ck_assert(((float *)data)[2] == 6);
    return 0;
}

START_TEST(a_connected_host_call_is_copied)
{
    float there[3], x[3] = {1, 2, 3};
    ipu_graph *graph;
    ipu_executable *executable;
    ipu_engine *engine;
    ipu_tensor t;

    ck_ipu(ipu_graph_new(&graph));
    t = ipu_input(graph, "x", IPU_FLOAT32, SHAPE(3));
    ck_ipu(ipu_host_call(graph, "h", ipu_add(graph, t, t), find_there, there));
    engine = device_load(graph, &executable);
    ck_ipu(ipu_engine_connect(engine, "h", there, sizeof there));
    ck_ipu(ipu_engine_connect(engine, "x", x, sizeof x));
    ck_ipu(ipu_engine_run(engine));
    ck_assert(there[0] == 2);
    done(engine, executable);
    ipu_graph_free(graph);
}
END_TEST

/* ------------------------------------------------------- threads, learning */

/* Fit y = x w by gradient descent on the host; returns the last loss. */
static double learn(int seed)
{
    enum { N = 32, D = 6 };
    float *x = device_values(seed, N * D), w[D * 3] = {0}, g[D * 3], loss = 0;
    int32_t labels[N];
    ipu_graph *graph;
    ipu_executable *executable;
    ipu_engine *engine;
    ipu_tensor weights, gradient, loss_of;

    for (int r = 0; r < N; r++)
        labels[r] = x[r * D] > 0.3f ? 2 : x[r * D + 1] > 0 ? 1 : 0;
    ck_ipu(ipu_graph_new(&graph));
    weights = ipu_variable(graph, "w", IPU_FLOAT32, SHAPE(D, 3));
    loss_of = ipu_reduce_sum(
        graph,
        ipu_softmax_cross_entropy(
            graph,
            ipu_matmul(graph, ipu_input(graph, "x", IPU_FLOAT32, SHAPE(N, D)),
                       weights),
            ipu_input(graph, "labels", IPU_INT32, SHAPE(N))),
        1.0 / N);
    ck_ipu(ipu_gradients(graph, loss_of, 1, &weights, &gradient));
    ck_ipu(ipu_output(graph, "loss", loss_of));
    ck_ipu(ipu_output(graph, "g", gradient));
    engine = device_load(graph, &executable);
    ck_ipu(ipu_engine_connect(engine, "x", x, N * D * 4));
    ck_ipu(ipu_engine_connect(engine, "labels", labels, sizeof labels));
    ck_ipu(ipu_engine_connect(engine, "loss", &loss, sizeof loss));
    ck_ipu(ipu_engine_connect(engine, "g", g, sizeof g));
    for (int step = 0; step < 400; step++) {
        ck_ipu(ipu_engine_write(engine, "w", w, sizeof w));
        ck_ipu(ipu_engine_run(engine));
        if (step == 0)
            ck_assert(fabs((double)loss - log(3)) < 1e-5);
        for (int i = 0; i < D * 3; i++)
            w[i] -= g[i];
    }
    done(engine, executable);
    ipu_graph_free(graph);
    free(x);
    return (double)loss;
}

static void *learn_on_a_thread(void *result)
{
    *(double *)result = learn(50);
    return NULL;
}

START_TEST(a_small_network_learns)
{
    ck_assert(learn(50) < 0.4);
}
END_TEST

START_TEST(engines_run_on_several_threads)
{
    pthread_t threads[3];
    double losses[3], alone = learn(50);

    for (int i = 0; i < 3; i++)
        ck_assert(pthread_create(&threads[i], NULL, learn_on_a_thread,
                                 &losses[i]) == 0);
    for (int i = 0; i < 3; i++) {
        pthread_join(threads[i], NULL);
        ck_assert(losses[i] == alone);
    }
}
END_TEST

static TCase *tcase_program(void)
{
    TCase *tcase = tcase_create("program");

    tcase_add_test(tcase, gradients_of_the_last_layer_come_first);
    tcase_add_test(tcase, a_call_comes_before_what_it_does_not_need);
    tcase_add_test(tcase, what_nobody_needs_is_dropped);
    tcase_add_test(tcase, memory_is_shared_and_counted);
    tcase_add_test(tcase, sharing_does_not_change_bits);
    tcase_add_test(tcase, the_same_graph_gives_the_same_program);
    return tcase;
}

static TCase *tcase_running(void)
{
    TCase *tcase = tcase_create("running");

    tcase_set_timeout(tcase, 120);
    tcase_add_test(tcase, a_failing_host_call_ends_the_run);
    tcase_add_test(tcase, streams_and_variables_are_checked);
    tcase_add_test(tcase, compiling_is_checked);
    tcase_add_test(tcase, a_connected_host_call_is_copied);
    tcase_add_test(tcase, a_small_network_learns);
    tcase_add_test(tcase, engines_run_on_several_threads);
    return tcase;
}

HVD_TEST_MAIN("device_engine", tcase_program, tcase_running)
