/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tests weights and accumulators in the DRAM of the chip, together with the
 * other options of variables. Bits are the same after 100 steps, tiles hold
 * less, and bytes moved match the loads and stores.
 */
#include "suite.h"

#include "device.h"

enum { WIDTH = 64, ROWS = 16, LAYERS = 4, BYTES = WIDTH * WIDTH * 4 };

enum { WEIGHTS = 1, ACCUMULATORS = 2, STATE = 4, RECOMPUTE = 8, LOOP = 16 };

static struct device devices[2];
static ipu_tensor w[LAYERS];
static int made, count; /* the program's kind, and its mini-batches */

static void set_up(void)
{
    memset(devices, 0, sizeof devices);
    count = 4;
}

static void tear_down(void)
{
    for (int i = 0; i < 2; i++)
        device_free(&devices[i]);
}

static ipu_offload on(int flag)
{
    return made & flag ? IPU_OFFLOAD_ON : IPU_OFFLOAD_OFF;
}

static void variables(ipu_graph *g)
{
    char name[] = "w0";

    for (int i = 0; i < LAYERS; i++, name[1]++)
        w[i] = ipu_variable(g, name, IPU_FLOAT32, 2, SHAPE(WIDTH, WIDTH));
}

/* Builds tanh layers on noise that is drawn by the step, with Adam. */
static int step(ipu_graph *g)
{
    const ipu_optimizer adam = {.size = sizeof adam,
                                .kind = IPU_OPTIMIZER_ADAM,
                                .rate =
                                    ipu_fill(g, IPU_FLOAT32, 0, NULL, 0.01)};
    const ipu_update_options u = {
        .size = sizeof u,
        .offload = on(STATE),
        .offload_weights = made & WEIGHTS ? IPU_OFFLOAD_ON : IPU_OFFLOAD_AUTO,
        .accumulation = {.size = sizeof u.accumulation,
                         .offload = on(ACCUMULATORS)}};
    ipu_tensor slopes[LAYERS], loss;
    ipu_tensor h = ipu_random_normal(g, 2, SHAPE(ROWS, WIDTH), 0, 1, 7,
                                     ipu_counter(g, "noise"));

    ipu_allow_recompute(g, made & RECOMPUTE);
    for (int i = 0; i < LAYERS; i++) {
        h = ipu_tanh(g, ipu_matmul(g, h, w[i]));
        if (i % 2)
            h = ipu_recomputation_checkpoint(g, h);
    }
    loss = ipu_reduce_sum(g, ipu_square(g, h), 1.0 / ROWS);
    ipu_gradients(g, loss, LAYERS, w, slopes);
    return ipu_accumulating_optimizer(g, &adam, LAYERS, w, slopes, count, &u);
}

static int body(ipu_graph *g, void *context, int32_t ninputs,
                const ipu_tensor *inputs, int32_t noutputs, ipu_tensor *outputs)
{
    (void)context, (void)ninputs, (void)inputs, (void)noutputs, (void)outputs;
    return step(g);
}

static void build(struct device *d, int how)
{
    made = how;
    *d = device_new();
    variables(d->graph);
    if (made & LOOP)
        MUST(ipu_repeat(d->graph, 100, body, NULL, 0, NULL, NULL, NULL));
    else
        MUST(step(d->graph));
    device_load(d);
}

static void train(struct device *d, float (*weights)[WIDTH * WIDTH])
{
    char name[] = "w0";

    for (int i = 0; i < LAYERS; i++, name[1]++) {
        device_fill(weights[i], WIDTH * WIDTH, (uint64_t)i + 1);
        MUST(ipu_engine_write(d->engine, name, weights[i], sizeof *weights));
    }
    for (int i = 0; i < (made & LOOP ? 1 : 100); i++)
        MUST(ipu_engine_run(d->engine));
    for (int i = 0; i < LAYERS; i++) {
        name[1] = (char)('0' + i);
        MUST(ipu_engine_read(d->engine, name, weights[i], sizeof *weights));
    }
}

/* _i is each of the 32 combinations of options. */
LOOP_TEST(weights_are_the_same_bits, 0, 32)
{
    static float weights[2][LAYERS][WIDTH * WIDTH];

    build(&devices[0], 0);
    train(&devices[0], weights[0]);
    build(&devices[1], _i);
    train(&devices[1], weights[1]);
    ck_assert_float_ne(weights[0][0][1], weights[0][0][2]);
    ck_assert_mem_eq(weights[0], weights[1], sizeof weights[0]);
}

/* Each variable leaves the tiles, and is loaded and stored no more often than
 * necessary. */
LOOP_TEST(what_goes_is_moved, 0, 4)
{
    static const struct {
        int how;
        int variables; /* of each layer that go */
        int transfers; /* number of transfers in a run with an update */
    } cases[] = {
        /* Adam's means are loaded and stored by the update. */
        {STATE, 2, 4},
        /* The gradient is added to the sum each time, and the update reads
         * it. */
        {ACCUMULATORS, 1, 2},
        /* The weights are read on the way there, on the way back (except the
         * first layer's), and by the update, which stores them. */
        {WEIGHTS, 1, 4},
        {STATE | ACCUMULATORS | WEIGHTS, 4, 10},
    };
    const int missing = cases[_i].how & WEIGHTS ? 1 : 0;
    ipu_memory_info memory[2];
    ipu_program_cycles cycles[2];

    for (int i = 0; i < 2; i++) {
        build(&devices[i], i ? cases[_i].how : 0);
        memory[i] = device_memory(&devices[i]);
        cycles[i] = device_cycles(&devices[i]);
    }
    ck_assert_int_eq(memory[0].remote_bytes, 0);
    ck_assert_int_eq(memory[1].remote_bytes,
                     (int64_t)LAYERS * BYTES * cases[_i].variables);
    ck_assert_int_eq(memory[0].always_live_bytes - memory[1].always_live_bytes,
                     (int64_t)LAYERS * BYTES * cases[_i].variables);
    ck_assert_int_lt(memory[1].peak_bytes, memory[0].peak_bytes);
    ck_assert_int_eq(cycles[0].streaming_bytes, 0);
    ck_assert_int_eq(cycles[1].streaming_bytes,
                     (int64_t)(LAYERS * cases[_i].transfers - missing) * BYTES);
    ck_assert_int_ge(cycles[1].total - cycles[0].total, cycles[1].streaming);
}

/* Only the weight of the layer that is being computed is on the chip. */
TEST(weights_are_not_there_between_uses)
{
    ipu_memory_info memory[2];

    count = 1;
    for (int i = 0; i < 2; i++) {
        build(&devices[i], i ? STATE | WEIGHTS : STATE);
        memory[i] = device_memory(&devices[i]);
    }
    /* The fullest step has at most a weight, its gradient, a mean of each kind
     * and their new values, and some activations. */
    ck_assert_int_gt(memory[0].peak_bytes, (int64_t)LAYERS * BYTES);
    ck_assert_int_le(memory[1].peak_bytes,
                     6 * BYTES + (int64_t)4 * LAYERS * ROWS * WIDTH * 4);
}

TEST(small_ones_stay)
{
    ipu_tensor v;

    devices[0] = device_new();
    for (int i = 0; i < 2; i++) {
        v = ipu_variable(devices[0].graph, i ? "large" : "small", IPU_FLOAT32,
                         1, SHAPE(31 + i));
        MUST(ipu_offload_variable(devices[0].graph, v, IPU_OFFLOAD_ON));
        MUST(ipu_output(devices[0].graph, i ? "y" : "x",
                        ipu_negate(devices[0].graph, v)));
    }
    device_load(&devices[0]);
    ck_assert_int_eq(device_memory(&devices[0]).remote_bytes, 128);
}

/* Some reads of variables belong to no node: host calls, outputs, queues, and
 * assignments to others. */
static int see(void *context, const char *name, void *data, int64_t n)
{
    (void)name;
    memcpy(context, data, (size_t)n * sizeof(float));
    return 0;
}

TEST(whoever_reads_one_gets_it)
{
    float seen[64], shown[64], first[64], other[64];
    ipu_tensor v, u;
    ipu_graph *g;

    devices[0] = device_new();
    g = devices[0].graph;
    v = ipu_variable(g, "v", IPU_FLOAT32, 1, SHAPE(64));
    u = ipu_variable(g, "u", IPU_FLOAT32, 1, SHAPE(64));
    MUST(ipu_offload_variable(g, v, IPU_OFFLOAD_ON));
    MUST(ipu_host_call(g, "seen", v, see, seen));
    MUST(ipu_output(g, "shown", v));
    MUST(ipu_assign(g, u, v));
    MUST(ipu_assign(g, v, ipu_scale(g, v, 2, 0)));
    device_load(&devices[0]);
    device_fill(first, 64, 3);
    MUST(ipu_engine_write(devices[0].engine, "v", first, sizeof first));
    device_connect(&devices[0], "shown", shown, 64);
    MUST(ipu_engine_run(devices[0].engine));
    MUST(ipu_engine_read(devices[0].engine, "u", other, sizeof other));
    ck_assert_mem_eq(seen, first, sizeof first);
    ck_assert_mem_eq(other, first, sizeof first);
    for (int i = 0; i < 64; i++)
        ck_assert_float_eq(shown[i], 2 * first[i]);
    ck_assert_int_eq(device_memory(&devices[0]).remote_bytes, 256);
}

LOOP_TEST(misuse_is_refused, 0, 3)
{
    ipu_target mk1;
    ipu_tensor x, v;
    ipu_graph *g;

    devices[0] = device_new();
    g = devices[0].graph;
    x = device_floats(&devices[0], "x", 1, SHAPE(64));
    v = ipu_variable(g, "v", IPU_FLOAT32, 1, SHAPE(64));
    ipu_target_init(&mk1, sizeof mk1);
    MUST(ipu_target_find("mk1", &mk1));
    MUST(ipu_offload_variable(g, v, IPU_OFFLOAD_ON));
    MUST(ipu_output(g, "y", ipu_add(g, x, v)));
    MUST_FAIL(ipu_compile(g, &mk1, &devices[0].executable), IPU_ERR_ARGUMENT,
              "v is to be kept beside the chip, but 'mk1' has no streaming");
    MUST_FAIL(ipu_offload_variable(NULL, v, IPU_OFFLOAD_ON), IPU_ERR_ARGUMENT,
              "NULL");
    if (_i == 0)
        MUST_FAIL(ipu_offload_variable(g, x, IPU_OFFLOAD_ON), IPU_ERR_ARGUMENT,
                  "x is not a variable");
    else if (_i == 1)
        MUST_FAIL(ipu_offload_variable(g, v, 3), IPU_ERR_ARGUMENT,
                  "3 is neither AUTO, ON nor OFF");
    else
        MUST_FAIL(ipu_offload_variable(g, (ipu_tensor){-1}, IPU_OFFLOAD_ON),
                  IPU_ERR_ARGUMENT, "offload: ");
}

TEST_MAIN("device_training_weights", .set_up = set_up, .tear_down = tear_down,
          .seconds = 120)
