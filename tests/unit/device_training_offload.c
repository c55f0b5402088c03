/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tests optimiser state in the DRAM of the chip: weights are the same, bit for
 * bit, tiles hold less, and each update makes two transfers.
 */
#include "suite.h"

#include "device.h"

enum { COUNT = 30000, SMALL = 16, N = 2, BYTES = COUNT * 4 };

enum { SGD, MOMENTUM, ADAM, LAMB, KINDS };

static struct device devices[2];
static ipu_target target;

static void set_up(void)
{
    memset(devices, 0, sizeof devices);
    ipu_target_init(&target, sizeof target);
}

static void tear_down(void)
{
    for (int i = 0; i < 2; i++)
        device_free(&devices[i]);
}

/* Tensors that the optimiser keeps of each variable. */
static const int kept[] = {[SGD] = 0, [MOMENTUM] = 1, [ADAM] = 2, [LAMB] = 2};

static struct device build(int kind, ipu_offload offload, int64_t minimum)
{
    static const ipu_sgd_options momentum = {.size = sizeof momentum,
                                             .momentum = 0.9};
    const ipu_update_options u = {
        .size = sizeof u, .offload = offload, .minimum_remote_bytes = minimum};
    struct device d = device_new();
    ipu_graph *graph = d.graph;
    ipu_tensor v[] = {
        ipu_variable(graph, "w", IPU_FLOAT32, 1, SHAPE(COUNT)),
        ipu_variable(graph, "b", IPU_FLOAT32, 1, SHAPE(SMALL)),
    };
    ipu_tensor x = device_floats(&d, "x", 1, SHAPE(COUNT)), slopes[2], loss;
    ipu_optimizer o = {.size = sizeof o,
                       .kind = kind == ADAM   ? IPU_OPTIMIZER_ADAM
                               : kind == LAMB ? IPU_OPTIMIZER_LAMB
                                              : IPU_OPTIMIZER_SGD,
                       .rate = ipu_fill(graph, IPU_FLOAT32, 0, NULL, 0.01),
                       .sgd = kind == MOMENTUM ? &momentum : NULL};

    loss = ipu_reduce_sum(graph,
                          ipu_square(graph, ipu_subtract(graph, v[0], x)), 0.5);
    loss = ipu_add(graph, loss,
                   ipu_reduce_sum(graph, ipu_square(graph, v[1]), 0.5));
    MUST(ipu_gradients(graph, loss, 2, v, slopes));
    MUST(ipu_accumulating_optimizer(graph, &o, 2, v, slopes, N, &u));
    MUST(ipu_output(graph, "loss", loss));
    return d;
}

static void load(struct device *d)
{
    /* Loads and stores in between keep ops from being fused and change the
     * order of steps. Without both passes their own cost shows. */
    const ipu_compile_options options = {.size = sizeof options,
                                         .target = &target,
                                         .without =
                                             IPU_PASS_FUSE | IPU_PASS_ORDER};

    MUST(ipu_compile_with(d->graph, &options, &d->executable));
    MUST(ipu_engine_new(d->executable, &d->engine));
}

static void train(struct device *d, float *w)
{
    static float x[COUNT];
    float small[SMALL];

    device_fill(small, SMALL, 9);
    MUST(ipu_engine_write(d->engine, "b", small, sizeof small));
    for (int i = 0; i < 100 * N; i++) {
        device_fill(x, COUNT, (uint64_t)i);
        device_connect(d, "x", x, COUNT);
        MUST(ipu_engine_run(d->engine));
    }
    MUST(ipu_engine_read(d->engine, "w", w, BYTES));
    MUST(ipu_engine_read(d->engine, "b", w + COUNT, sizeof small));
}

LOOP_TEST(weights_are_the_same_bits, 0, KINDS)
{
    static float weights[2][COUNT + SMALL];

    for (int i = 0; i < 2; i++) {
        devices[i] = build(_i, i ? IPU_OFFLOAD_ON : IPU_OFFLOAD_OFF, 1);
        load(&devices[i]);
        train(&devices[i], weights[i]);
    }
    ck_assert_int_eq(device_memory(&devices[0]).remote_bytes, 0);
    ck_assert_int_eq(device_memory(&devices[1]).remote_bytes,
                     (BYTES + SMALL * 4) * kept[_i] + (_i >= ADAM) * 4);
    ck_assert(weights[0][COUNT - 1] != 0);
    ck_assert_mem_eq(weights[0], weights[1], sizeof weights[0]);
}

/* Tile memory falls by the size of the state, and each update moves it in and
 * out. */
LOOP_TEST(state_leaves_the_tiles, 0, KINDS)
{
    const ipu_system alone = {.size = sizeof alone,
                              .ipu = target,
                              .ipus = 1,
                              .ipus_per_board = 1,
                              .host_share = 1,
                              .streaming_bytes_per_board = 1 << 30};
    ipu_cycles one = {.size = sizeof one};
    ipu_program_cycles cycles[2];
    ipu_memory_info memory[2];

    for (int i = 0; i < 2; i++) {
        devices[i] = build(_i, i ? IPU_OFFLOAD_ON : IPU_OFFLOAD_OFF, 0);
        load(&devices[i]);
        memory[i] = device_memory(&devices[i]);
        cycles[i] = device_cycles(&devices[i]);
    }
    MUST(ipu_model_streaming(&alone, BYTES, &one));
    /* The b's are too small to be offloaded. */
    ck_assert_int_eq(memory[1].remote_bytes, BYTES * kept[_i]);
    ck_assert_int_eq(memory[0].always_live_bytes - memory[1].always_live_bytes,
                     BYTES * kept[_i]);
    ck_assert_int_eq(cycles[0].streaming_bytes, 0);
    ck_assert_int_eq(cycles[1].streaming_bytes, 2 * BYTES * kept[_i]);
    ck_assert_int_eq(cycles[1].streaming, 2 * one.exchange * kept[_i]);
    ck_assert_int_eq(cycles[1].update - cycles[0].update,
                     2 * one.total * kept[_i]);
    ck_assert_int_eq(cycles[1].total - cycles[0].total,
                     2 * one.total * kept[_i]);
    ck_assert_int_eq(cycles[1].mean_total - cycles[0].mean_total,
                     2 * one.total * kept[_i] / N);
    /* One tensor of the state is on the chip at a time: Adam's other one is
     * not. */
    if (kept[_i] == 2)
        ck_assert_int_lt(memory[1].peak_bytes, memory[0].peak_bytes);
}

TEST(without_streaming_memory_it_stays)
{
    MUST(ipu_target_find("mk1", &target));
    devices[0] = build(ADAM, IPU_OFFLOAD_AUTO, 0);
    load(&devices[0]);
    ck_assert_int_eq(device_memory(&devices[0]).remote_bytes, 0);
    devices[1] = build(ADAM, IPU_OFFLOAD_ON, 0);
    MUST_FAIL(ipu_compile(devices[1].graph, &target, &devices[1].executable),
              IPU_ERR_ARGUMENT, "'mk1' has no streaming memory");
}

LOOP_TEST(the_least_size_can_be_chosen, 0, 4)
{
    static const int64_t least[] = {SMALL * 4, SMALL * 4 + 1, BYTES, BYTES + 1};
    static const int64_t remote[] = {2 * (BYTES + SMALL * 4), 2 * BYTES,
                                     2 * BYTES, 0};

    devices[0] = build(ADAM, IPU_OFFLOAD_ON, least[_i]);
    load(&devices[0]);
    ck_assert_int_eq(device_memory(&devices[0]).remote_bytes, remote[_i]);
}

/* No transfer has more than 128 MiB. */
TEST(large_variables_go_in_pieces)
{
    enum { LARGE = (128 << 20) / 4 + 1000 };
    const ipu_system alone = {.size = sizeof alone,
                              .ipu = target,
                              .ipus = 1,
                              .ipus_per_board = 1,
                              .host_share = 1,
                              .streaming_bytes_per_board = 1 << 30};
    const ipu_compile_options options = {
        .size = sizeof options, .target = &target, .allow_out_of_memory = 1};
    ipu_cycles first = {.size = sizeof first}, second = first;
    ipu_tensor w, m;

    devices[0] = device_new();
    w = ipu_variable(devices[0].graph, "w", IPU_FLOAT32, 1, SHAPE(LARGE));
    m = ipu_variable(devices[0].graph, "m", IPU_FLOAT32, 1, SHAPE(LARGE));
    MUST(ipu_output(devices[0].graph, "sum",
                    ipu_reduce_sum(devices[0].graph, w, 1)));
    MUST(ipu_update_begin(devices[0].graph, 1));
    MUST(ipu_assign(devices[0].graph, m, ipu_add(devices[0].graph, m, w)));
    MUST(ipu_update_end(devices[0].graph));
    MUST(ipu_update_offload(devices[0].graph, 1, IPU_OFFLOAD_ON, 0));
    MUST(ipu_compile_with(devices[0].graph, &options, &devices[0].executable));
    ck_assert_int_eq(device_memory(&devices[0]).remote_bytes,
                     (int64_t)LARGE * 4);
    MUST(ipu_model_streaming(&alone, 128 << 20, &first));
    MUST(ipu_model_streaming(&alone, 4000, &second));
    ck_assert_int_eq(device_cycles(&devices[0]).streaming,
                     2 * (first.exchange + second.exchange));
}

/* A variable that another part of the program reads or writes stays on the
 * chip. */
LOOP_TEST(only_what_the_update_alone_uses_goes, 0, 5)
{
    ipu_graph *graph;
    ipu_tensor v, x;

    devices[0] = device_new();
    graph = devices[0].graph;
    v = ipu_variable(graph, "v", IPU_FLOAT32, 1, SHAPE(COUNT));
    x = device_floats(&devices[0], "x", 1, SHAPE(COUNT));
    MUST(ipu_update_begin(graph, 2));
    MUST(ipu_output(graph, "y", ipu_add(graph, v, x)));
    if (_i == 3)
        MUST(ipu_output(graph, "v now", v));
    MUST(ipu_update_end(graph));
    MUST(ipu_update_offload(graph, 2, IPU_OFFLOAD_ON, 0));
    if (_i == 1)
        MUST(ipu_output(graph, "z", ipu_square(graph, v)));
    if (_i == 2)
        MUST(ipu_assign(graph, v, x));
    if (_i == 4)
        MUST(ipu_host_call(graph, "call", v, device_no_call, NULL));
    load(&devices[0]);
    ck_assert_int_eq(device_memory(&devices[0]).remote_bytes,
                     _i == 0 || _i == 3 ? BYTES : 0);
}

/* Recomputation, accumulation and offloading together give the same bits as
 * accumulation alone. */
TEST(tools_go_together)
{
    static float weights[2][COUNT];
    static float x[COUNT];

    for (int i = 0; i < 2; i++) {
        const ipu_update_options u = {
            .size = sizeof u, .offload = i ? IPU_OFFLOAD_ON : IPU_OFFLOAD_OFF};
        struct device *d = &devices[i];
        ipu_optimizer o = {.size = sizeof o, .kind = IPU_OPTIMIZER_ADAM};
        ipu_tensor w, y, slope;

        *d = device_new();
        MUST(ipu_allow_recompute(d->graph, i));
        o.rate = ipu_fill(d->graph, IPU_FLOAT32, 0, NULL, 0.01);
        w = ipu_variable(d->graph, "w", IPU_FLOAT32, 1, SHAPE(COUNT));
        y = device_floats(d, "x", 1, SHAPE(COUNT));
        for (int k = 0; k < 12; k++)
            y = ipu_tanh(d->graph, ipu_add(d->graph, y, w));
        y = ipu_reduce_sum(d->graph, ipu_square(d->graph, y), 1e-3);
        MUST(ipu_gradients(d->graph, y, 1, &w, &slope));
        MUST(ipu_accumulating_optimizer(d->graph, &o, 1, &w, &slope, 3, &u));
        load(d);
        for (int run = 0; run < 300; run++) {
            device_fill(x, COUNT, (uint64_t)run);
            device_connect(d, "x", x, COUNT);
            MUST(ipu_engine_run(d->engine));
        }
        MUST(ipu_engine_read(d->engine, "w", weights[i], BYTES));
    }
    ck_assert_int_eq(device_cycles(&devices[0]).again, 0);
    ck_assert_int_gt(device_cycles(&devices[1]).again, 0);
    ck_assert_int_gt(device_cycles(&devices[1]).streaming, 0);
    ck_assert_int_lt(device_memory(&devices[1]).peak_bytes,
                     device_memory(&devices[0]).peak_bytes);
    ck_assert_mem_eq(weights[0], weights[1], sizeof weights[0]);
}

/* The host reads and writes them as others. */
TEST(the_host_sees_them)
{
    static float m[COUNT], seen[COUNT];

    devices[0] = build(MOMENTUM, IPU_OFFLOAD_ON, 0);
    load(&devices[0]);
    device_fill(m, COUNT, 4);
    MUST(ipu_engine_write(devices[0].engine, "w/momentum", m, BYTES));
    MUST(ipu_engine_read(devices[0].engine, "w/momentum", seen, BYTES));
    ck_assert_mem_eq(m, seen, BYTES);
    train(&devices[0], (float[COUNT + SMALL]){0});
    MUST(ipu_engine_read(devices[0].engine, "w/momentum", seen, BYTES));
    ck_assert_mem_ne(m, seen, BYTES);
}

TEST_MAIN("device_training_offload", .set_up = set_up, .tear_down = tear_down,
          .seconds = 120)
