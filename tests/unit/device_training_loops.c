/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tests accumulation, recomputation and offloading within ipu_repeat: a loop of
 * n iterations gives the weights of n runs, bit for bit.
 */
#include "suite.h"

#include "device.h"

enum { WIDTH = 8, ROWS = 6, MINI = 4, ITERATIONS = 20 };

static struct device d, runs;
static ipu_tensor w[3];

static void set_up(void)
{
    d = device_new();
    runs = device_new();
}

static void tear_down(void)
{
    device_free(&d);
    device_free(&runs);
}

static void variables(ipu_graph *graph)
{
    char name[] = "w0";

    for (int i = 0; i < 3; i++, name[1]++)
        w[i] = ipu_variable(graph, name, IPU_FLOAT32, 2, SHAPE(WIDTH, WIDTH));
}

/* A step of training by numbers drawn from a counter. */
static int step(ipu_graph *graph)
{
    const ipu_update_options u = {
        .size = sizeof u, .offload = IPU_OFFLOAD_ON, .minimum_remote_bytes = 1};
    ipu_optimizer o = {.size = sizeof o, .kind = IPU_OPTIMIZER_ADAM};
    ipu_tensor x = ipu_random_normal(graph, 2, SHAPE(ROWS, WIDTH), 0, 1, 7,
                                     ipu_counter(graph, "draws"));
    ipu_tensor gradients[3];

    ipu_allow_recompute(graph, 1);
    o.rate = ipu_fill(graph, IPU_FLOAT32, 0, NULL, 0.01);
    for (int i = 0; i < 3; i++) {
        x = ipu_tanh(graph, ipu_matmul(graph, x, w[i]));
        ipu_recomputation_checkpoint(graph, x);
    }
    x = ipu_reduce_sum(graph, ipu_square(graph, x), 0.1);
    ipu_gradients(graph, x, 3, w, gradients);
    return ipu_accumulating_optimizer(graph, &o, 3, w, gradients, MINI, &u);
}

static int body(ipu_graph *graph, void *context, int32_t ninputs,
                const ipu_tensor *inputs, int32_t noutputs, ipu_tensor *outputs)
{
    (void)context, (void)ninputs, (void)inputs, (void)noutputs, (void)outputs;
    return step(graph);
}

static int double_it(ipu_graph *graph, void *context, int32_t ninputs,
                     const ipu_tensor *inputs, int32_t noutputs,
                     ipu_tensor *outputs)
{
    (void)context, (void)ninputs, (void)inputs, (void)noutputs, (void)outputs;
    ipu_update_begin(graph, 1);
    ipu_assign(graph, w[0], ipu_scale(graph, w[0], 2, 0));
    ipu_update_end(graph);
    return ipu_update_offload(graph, 1, IPU_OFFLOAD_ON, 0);
}

static void write_one(float value)
{
    float values[WIDTH * WIDTH];

    for (int i = 0; i < WIDTH * WIDTH; i++)
        values[i] = value;
    MUST(ipu_engine_write(d.engine, "m", values, sizeof values));
}

static float read_one(void)
{
    float values[WIDTH * WIDTH];

    MUST(ipu_engine_read(d.engine, "m", values, sizeof values));
    return values[WIDTH];
}

static void write_all(struct device *to)
{
    float values[WIDTH * WIDTH];
    char name[] = "w0";

    for (int i = 0; i < 3; i++, name[1]++) {
        device_fill(values, WIDTH * WIDTH, (uint64_t)i);
        MUST(ipu_engine_write(to->engine, name, values, sizeof values));
    }
}

static void compare(const char *name)
{
    float first[WIDTH * WIDTH], second[WIDTH * WIDTH];

    MUST(ipu_engine_read(d.engine, name, first, sizeof first));
    MUST(ipu_engine_read(runs.engine, name, second, sizeof second));
    ck_assert_mem_eq(first, second, sizeof first);
}

/* Adam's means and its count of steps are offloaded. */
static void check_remote(const struct device *of)
{
    ipu_memory_info memory = {.size = sizeof memory};

    MUST(ipu_executable_memory(of->executable, &memory));
    ck_assert_int_eq(memory.remote_bytes, 6 * WIDTH * WIDTH * 4 + 4);
}

TEST(iterations_are_like_runs)
{
    variables(d.graph);
    MUST(ipu_repeat(d.graph, ITERATIONS, body, NULL, 0, NULL, NULL, NULL));
    device_load(&d);
    variables(runs.graph);
    MUST(step(runs.graph));
    device_load(&runs);
    check_remote(&runs);
    check_remote(&d);
    write_all(&d);
    write_all(&runs);
    for (int i = 0; i < 2; i++) {
        MUST(ipu_engine_run(d.engine));
        for (int k = 0; k < ITERATIONS; k++)
            MUST(ipu_engine_run(runs.engine));
        compare("w0");
        compare("w1");
        compare("w2");
    }
}

TEST(a_loop_ends_with_an_update)
{
    variables(d.graph);
    MUST_FAIL(
        ipu_repeat(d.graph, ITERATIONS + 1, body, NULL, 0, NULL, NULL, NULL),
        IPU_ERR_STATE,
        "gradients are accumulated over 4 mini-batches inside a loop of "
        "21 iterations");
}

/* A variable that the program around the loop reads stays on the chip. */
LOOP_TEST(what_is_around_a_loop_counts, 0, 2)
{
    ipu_memory_info memory = {.size = sizeof memory};
    ipu_tensor m;

    variables(d.graph);
    m = ipu_variable(d.graph, "m", IPU_FLOAT32, 2, SHAPE(WIDTH, WIDTH));
    w[0] = m;
    if (_i)
        MUST(ipu_output(d.graph, "sum", ipu_reduce_sum(d.graph, m, 1)));
    MUST(ipu_repeat(d.graph, MINI, double_it, NULL, 0, NULL, NULL, NULL));
    device_load(&d);
    MUST(ipu_executable_memory(d.executable, &memory));
    ck_assert_int_eq(memory.remote_bytes, _i ? 0 : WIDTH * WIDTH * 4);
    write_one(1);
    MUST(ipu_engine_run(d.engine));
    ck_assert_float_eq(read_one(), 1 << MINI);
}

/* Remedies are not tried on a copy of a graph with loops, but explained. */
TEST(loops_that_do_not_fit_are_explained)
{
    ipu_target target;

    ipu_target_init(&target, sizeof target);
    target.tiles = 2;
    target.bytes_per_tile = 4096;
    variables(d.graph);
    MUST(ipu_repeat(d.graph, ITERATIONS, body, NULL, 0, NULL, NULL, NULL));
    MUST_FAIL(ipu_compile(d.graph, &target, &d.executable), IPU_ERR_FULL,
              "What would change that");
}

TEST_MAIN("device_training_loops", .set_up = set_up, .tear_down = tear_down)
