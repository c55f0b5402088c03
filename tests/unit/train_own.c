/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tests networks that a program builds on graphs of its own (hvd_model.h), and
 * queues of the device that read data sets.
 */
#include "suite.h"

#include <hvd.h>
#include <hvd_dataset.h>
#include <hvd_model.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { ROWS = 3, IN = 5, UNITS = 4, DROPPED = 4000 };

static void check(int status)
{
    ck_assert_msg(status >= 0, "%s / %s", hvd_last_error(), ipu_last_error());
}

/* The program of a test. */
static ipu_executable *executable;
static ipu_engine *engine;

static void compile_graph(ipu_graph *g)
{
    check(ipu_compile(g, NULL, &executable));
    check(ipu_engine_new(executable, &engine));
    ipu_graph_free(g);
}

static void free_program(void)
{
    ipu_engine_free(engine);
    ipu_executable_free(executable);
}

static ipu_tensor begin(hvd_net *net, ipu_graph **g, hvd_mode mode,
                        int64_t rows, int64_t columns)
{
    const int64_t shape[] = {rows, columns};

    check(ipu_graph_new(g));
    check(hvd_net_begin(net, *g, mode));
    return ipu_input(*g, "x", IPU_FLOAT32, 2, shape);
}

TEST(layers_have_variables_that_the_program_writes)
{
    const hvd_variable *v;
    float x[ROWS][IN] = {{1, 2, 3, 4, 5}, {-1, 0, 1, 0, 2}, {0.5f}};
    float w[IN][UNITS], b[UNITS] = {1, -2, 3, -4}, y[ROWS][UNITS];
    ipu_graph *g;
    hvd_net *net;

    check(hvd_net_new(7, &net));
    /* For training, and then for an evaluation with the same variables. */
    for (int mode = HVD_MODE_TRAIN; mode <= HVD_MODE_EVALUATE; mode++) {
        ipu_tensor t = begin(net, &g, mode, ROWS, IN);

        ipu_output(g, "y", hvd_dense(net, "layer", t, UNITS, HVD_RELU));
        ck_assert_int_eq(hvd_net_end(net, &v), 2);
        ck_assert_str_eq(v[0].name, "layer/kernel");
        ck_assert_str_eq(v[1].name, "layer/bias");
        ck_assert(v[0].trained && v[0].ndim == 2 && v[0].count == IN * UNITS);
        ck_assert(v[0].shape[0] == IN && v[0].shape[1] == UNITS);
        ck_assert(v[1].count == UNITS && v[1].tensor.id >= 0);
        check(hvd_net_draw(net, 0, &w[0][0]));
        compile_graph(g);
        check(ipu_engine_connect(engine, "x", x, sizeof x));
        check(ipu_engine_connect(engine, "y", y, sizeof y));
        check(ipu_engine_write(engine, v[0].name, w, sizeof w));
        check(ipu_engine_write(engine, v[1].name, b, sizeof b));
        check(ipu_engine_run(engine));
        for (int r = 0; r < ROWS; r++)
            for (int u = 0; u < UNITS; u++) {
                double sum = (double)b[u];

                for (int i = 0; i < IN; i++)
                    sum += (double)x[r][i] * (double)w[i][u];
                ck_assert_double_eq_tol((double)y[r][u], fmax(sum, 0), 1e-5);
            }
        free_program();
    }
    hvd_net_free(net);
}

TEST(first_values_depend_on_the_seed_alone)
{
    float drawn[3][IN * UNITS], bias[UNITS];
    const hvd_variable *v;
    double most = sqrt(6.0 / (IN + UNITS));

    for (int i = 0; i < 3; i++) {
        ipu_graph *g;
        hvd_net *net;
        ipu_tensor x;

        check(hvd_net_new(i == 2 ? 8 : 7, &net));
        x = begin(net, &g, HVD_MODE_TRAIN, ROWS, IN);
        hvd_dense(net, "layer", x, UNITS, HVD_LINEAR);
        check(hvd_net_end(net, &v));
        check(hvd_net_draw(net, 0, drawn[i]));
        check(hvd_net_draw(net, 1, bias));
        ck_assert_int_lt(hvd_net_draw(net, 2, bias), 0);
        ck_assert(strstr(hvd_last_error(), "no variable 2, but 2"));
        ipu_graph_free(g);
        hvd_net_free(net);
    }
    ck_assert_mem_eq(drawn[0], drawn[1], sizeof drawn[0]);
    ck_assert_mem_ne(drawn[0], drawn[2], sizeof drawn[0]);
    for (int i = 0; i < IN * UNITS; i++)
        ck_assert(fabs((double)drawn[0][i]) <= most && drawn[0][i] != 0);
    for (int i = 0; i < UNITS; i++)
        ck_assert(bias[i] == 0);
}

static int count_zeros(const float *y)
{
    int zeros = 0;

    for (int i = 0; i < DROPPED; i++) {
        ck_assert(y[i] == 0 || fabsf(y[i] - 4 / 3.0f) < 1e-6f);
        zeros += y[i] == 0;
    }
    return zeros;
}

TEST(dropout_draws_other_elements_in_each_step)
{
    static float x[DROPPED], first[DROPPED], y[DROPPED];
    const hvd_variable *v;
    ipu_graph *g;
    hvd_net *net;

    for (int i = 0; i < DROPPED; i++)
        x[i] = 1;
    check(hvd_net_new(1, &net));
    ipu_tensor t = begin(net, &g, HVD_MODE_TRAIN, 1, DROPPED);
    ipu_output(g, "y", hvd_dropout(net, t, 0.25));
    ck_assert_int_eq(hvd_net_end(net, &v), 0);
    compile_graph(g);
    check(ipu_engine_connect(engine, "x", x, sizeof x));
    check(ipu_engine_connect(engine, "y", y, sizeof y));
    check(ipu_engine_run(engine));
    memcpy(first, y, sizeof y);
    check(ipu_engine_run(engine));
    ck_assert_mem_ne(first, y, sizeof y);
    ck_assert(abs(count_zeros(first) - DROPPED / 4) < DROPPED / 20);
    ck_assert(abs(count_zeros(y) - DROPPED / 4) < DROPPED / 20);
    free_program();
    hvd_net_free(net);
}

TEST(mistakes_are_told_at_the_end)
{
    const hvd_variable *v;
    ipu_graph *g;
    hvd_net *net;
    ipu_tensor x;

    check(hvd_net_new(1, &net));
    ck_assert_int_lt(hvd_net_begin(net, NULL, HVD_MODE_TRAIN), 0);
    x = begin(net, &g, HVD_MODE_TRAIN, ROWS, IN);
    ck_assert_int_lt(hvd_net_begin(net, g, 3), 0);
    ck_assert(strstr(hvd_last_error(), "not 3"));
    hvd_dense(net, "a", x, 2, HVD_LINEAR);
    hvd_dense(net, "a", x, 3, HVD_LINEAR);
    ck_assert_int_lt(hvd_net_end(net, &v), 0);
    ck_assert(strstr(hvd_last_error(), "'a/kernel' was asked for twice"));
    ipu_graph_free(g);
    x = begin(net, &g, HVD_MODE_EVALUATE, ROWS, IN);
    hvd_dense(net, "late", x, 2, HVD_LINEAR);
    ck_assert_int_lt(hvd_net_end(net, &v), 0);
    ck_assert(strstr(hvd_last_error(), "'late/kernel' was not asked for"));
    ipu_graph_free(g);
    x = begin(net, &g, HVD_MODE_TRAIN, ROWS, IN);
    ck_assert_int_lt(hvd_net_input(net, "labels").id, 0);
    ck_assert_int_lt(hvd_net_end(net, &v), 0);
    ck_assert(strstr(hvd_last_error(), "no component 'labels'"));
    ipu_graph_free(g);
    hvd_net_free(net);
    hvd_net_free(NULL);
}

/* ------------------------------------------------------------------- queues */

/* Elements 0, 1, ... of one number each, of a dtype of 4 or 8 bytes. */
static hvd_dataset *numbers(hvd_dtype dtype, int64_t count, int64_t batch)
{
    static const double zeros[8];
    static const float values[] = {0, 1, 2, 3, 4, 5, 6, 7};
    const hvd_component component = {"n", dtype, 0, {0}};
    const void *const arrays[] = {dtype == HVD_FLOAT32 ? (const void *)values
                                                       : zeros};

    return hvd_dataset_batch(
        hvd_dataset_memory(1, &component, arrays, count, NULL, NULL), batch, 1);
}

static int make_queue(hvd_dataset *d, int worker, int repeat,
                      ipu_infeed **infeed)
{
    hvd_input_context context;
    ipu_infeed_options o;

    hvd_input_context_init(&context, sizeof context);
    context.num_input_pipelines = worker < 0 ? 1 : 2;
    context.input_pipeline_id = worker < 0 ? 0 : worker;
    ipu_infeed_options_init(&o, sizeof o);
    o.name = "numbers";
    o.repeat = repeat;
    return hvd_infeed_new(d, worker < 0 ? NULL : &context, &o, infeed);
}

/* Compiles a program that takes a batch and gives it to n. */
static void compile_queue(ipu_infeed *infeed, float *n, size_t bytes)
{
    ipu_tensor t;
    ipu_graph *g;

    check(ipu_graph_new(&g));
    check(ipu_infeed_dequeue(g, infeed, &t));
    check(ipu_output(g, "n", t));
    compile_graph(g);
    check(ipu_engine_connect(engine, "n", n, bytes));
}

static void expect(const float *n, float first, float second)
{
    check(ipu_engine_run(engine));
    ck_assert(n[0] == first && n[1] == second);
}

TEST(a_queue_gives_batches_epoch_after_epoch)
{
    ipu_infeed *infeed;
    float n[2];

    check(make_queue(numbers(HVD_FLOAT32, 7, 2), -1, 1, &infeed));
    compile_queue(infeed, n, sizeof n);
    check(ipu_infeed_start(infeed));
    for (int epoch = 0; epoch < 3; epoch++)
        for (int i = 0; i < 3; i++)
            expect(n, (float)(2 * i), (float)(2 * i + 1));
    expect(n, 0, 1);
    /* Started again, it begins anew. */
    check(ipu_infeed_stop(infeed));
    check(ipu_infeed_start(infeed));
    expect(n, 0, 1);
    expect(n, 2, 3);
    free_program();
    ipu_infeed_free(infeed);
}

TEST(a_queue_ends_with_its_data_and_may_be_one_of_two)
{
    ipu_infeed *infeed;
    float n[2];

    for (int worker = 0; worker < 2; worker++) {
        check(make_queue(numbers(HVD_FLOAT32, 8, 2), worker, 0, &infeed));
        compile_queue(infeed, n, sizeof n);
        check(ipu_infeed_start(infeed));
        expect(n, (float)worker, (float)(2 + worker));
        expect(n, (float)(4 + worker), (float)(6 + worker));
        ck_assert_int_eq(ipu_engine_run(engine), IPU_ERR_END);
        free_program();
        ipu_infeed_free(infeed);
    }
}

TEST(what_a_queue_cannot_read_is_refused)
{
    ipu_infeed *infeed;

    ck_assert_int_eq(make_queue(numbers(HVD_FLOAT64, 4, 2), -1, 1, &infeed),
                     HVD_ERR_ARGUMENT);
    ck_assert(strstr(hvd_last_error(), "'n' is float64"));
    ck_assert_int_eq(make_queue(numbers(HVD_FLOAT32, 4, 5), -1, 1, &infeed),
                     HVD_ERR_ARGUMENT);
    ck_assert(strstr(hvd_last_error(), "no batch: 4 elements"));
    ck_assert_int_lt(
        make_queue(hvd_dataset_npy("/nowhere.npy", "n"), -1, 1, &infeed), 0);
    ck_assert(strstr(hvd_last_error(), "/nowhere.npy"));
}

TEST_MAIN("train_own", .seconds = 60)
