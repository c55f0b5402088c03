/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tests IPU_OFFLOAD_AUTO. The optimiser's state lies on the chip if the program
 * fits so, off the chip if the program fits only so, and on the chip if neither
 * fits. Bits are the same in all cases.
 */
#include "suite.h"

#include <stdbool.h>

#include "one_device.h"

enum { WIDTH = 64, ROWS = 16, LAYERS = 6, TILES = 16, RUNS = 6, MINI = 2 };
enum { LARGE = 624 * 1024 };

static ipu_target target;

static void set_up(void)
{
    d = device_new();
    ipu_target_init(&target, sizeof target);
    target.tiles = TILES;
}

static ipu_tensor build_loss(ipu_graph *g, ipu_tensor x, ipu_tensor *w)
{
    char name[16];

    for (int i = 0; i < LAYERS; i++) {
        snprintf(name, sizeof name, "w%d", i);
        w[i] = ipu_variable(g, name, IPU_FLOAT32, 2, SHAPE(WIDTH, WIDTH));
        x = ipu_tanh(g, ipu_matmul(g, x, w[i]));
    }
    x = ipu_reshape(g, ipu_square(g, x), 1, SHAPE(-1));
    return ipu_reduce_sum(g, x, 1e-2);
}

static int train(ipu_graph *g, ipu_tensor x, ipu_offload offload)
{
    const ipu_optimizer o = {.size = sizeof o,
                             .kind = IPU_OPTIMIZER_ADAM,
                             .rate = ipu_fill(g, IPU_FLOAT32, 0, NULL, 0.01)};
    const ipu_update_options u = {.size = sizeof u, .offload = offload};
    ipu_tensor w[LAYERS], slopes[LAYERS];
    ipu_tensor loss = build_loss(g, x, w);

    MUST(ipu_gradients(g, loss, LAYERS, w, slopes));
    return ipu_accumulating_optimizer(g, &o, LAYERS, w, slopes, MINI, &u);
}

static int body(ipu_graph *g, void *context, int32_t ninputs,
                const ipu_tensor *in, int32_t noutputs, ipu_tensor *out)
{
    (void)ninputs, (void)noutputs;
    out[0] = in[0];
    return train(g, in[0], *(const ipu_offload *)context);
}

/* Compiles for tiles of `bytes` bytes, whether the program fits or not. */
static void compile(ipu_offload offload, bool loop, int64_t bytes)
{
    const ipu_compile_options options = {
        .size = sizeof options, .target = &target, .allow_out_of_memory = 1};
    ipu_tensor x, y;

    device_free(&d);
    d = device_new();
    target.bytes_per_tile = bytes;
    x = device_floats(&d, "x", 2, SHAPE(ROWS, WIDTH));
    if (loop)
        MUST(ipu_repeat(d.graph, RUNS, body, &offload, 1, &x, NULL, &y));
    else
        MUST(train(d.graph, x, offload));
    MUST(ipu_compile_with(d.graph, &options, &d.executable));
}

/* Returns the weights after a few updates. */
static void run(bool loop, float *weights)
{
    static float x[ROWS * WIDTH];
    char name[16];

    MUST(ipu_engine_new(d.executable, &d.engine));
    for (int i = 0; i < LAYERS; i++) {
        snprintf(name, sizeof name, "w%d", i);
        device_fill(weights, WIDTH * WIDTH, (uint64_t)i);
        MUST(ipu_engine_write(d.engine, name, weights, WIDTH * WIDTH * 4));
    }
    device_fill(x, ROWS * WIDTH, 77);
    device_connect(&d, "x", x, ROWS * WIDTH);
    for (int i = 0; i < (loop ? 1 : RUNS); i++)
        MUST(ipu_engine_run(d.engine));
    for (int i = 0; i < LAYERS; i++) {
        snprintf(name, sizeof name, "w%d", i);
        MUST(ipu_engine_read(d.engine, name, weights + i * WIDTH * WIDTH,
                             WIDTH * WIDTH * 4));
    }
}

/* Test 0 has no loop, test 1 has one. */
LOOP_TEST(it_stays_where_there_is_room, 0, 2)
{
    ipu_memory_info memory[2];
    ipu_program_cycles cycles[2];

    for (int i = 0; i < 2; i++) {
        compile(i ? IPU_OFFLOAD_AUTO : IPU_OFFLOAD_OFF, _i, LARGE);
        memory[i] = device_memory(&d);
        cycles[i] = device_cycles(&d);
    }
    ck_assert_int_eq(memory[0].fullest_tile_bytes,
                     memory[1].fullest_tile_bytes);
    ck_assert_int_eq(cycles[0].total, cycles[1].total);
    ck_assert_int_eq(memory[1].remote_bytes, 0);
    ck_assert_int_eq(memory[1].automatic_bytes, 0);
    ck_assert_int_eq(memory[1].tile_bytes_without, 0);
}

/* Returns the bytes of the program on tiles that are little larger than they
 * must be: on larger tiles, products take the free memory. */
static int64_t least(ipu_offload offload, bool loop)
{
    int64_t bytes = LARGE;

    for (int i = 0; i < 8; i++) {
        compile(offload, loop, bytes);
        if (device_memory(&d).fullest_tile_bytes > bytes)
            break;
        bytes = device_memory(&d).fullest_tile_bytes;
    }
    return device_memory(&d).fullest_tile_bytes;
}

LOOP_TEST(it_goes_where_the_program_fits_only_so, 0, 2)
{
    static float weights[2][LAYERS * WIDTH * WIDTH];
    int64_t without = least(IPU_OFFLOAD_OFF, _i);
    int64_t with = least(IPU_OFFLOAD_ON, _i);
    ipu_memory_info memory;
    ipu_program_cycles on, automatic;

    ck_assert_int_lt(with, without);
    compile(IPU_OFFLOAD_OFF, _i, LARGE);
    run(_i, weights[0]);
    compile(IPU_OFFLOAD_ON, _i, with);
    on = device_cycles(&d);
    compile(IPU_OFFLOAD_AUTO, _i, with);
    memory = device_memory(&d);
    automatic = device_cycles(&d);
    ck_assert_int_le(memory.fullest_tile_bytes, memory.bytes_per_tile);
    ck_assert_int_gt(memory.tile_bytes_without, memory.bytes_per_tile);
    /* Adam keeps two means of each weight. */
    ck_assert_int_eq(memory.automatic_bytes, 2 * LAYERS * WIDTH * WIDTH * 4);
    ck_assert_int_eq(memory.remote_bytes, memory.automatic_bytes);
    ck_assert_int_eq(on.total, automatic.total);
    ck_assert_int_eq(on.streaming, automatic.streaming);
    ck_assert_int_gt(automatic.streaming, 0);
    run(_i, weights[1]);
    ck_assert_mem_eq(weights[0], weights[1], sizeof weights[0]);
}

LOOP_TEST(it_stays_where_nothing_helps, 0, 2)
{
    ipu_executable *none = NULL;
    ipu_memory_info memory;

    /* The weights alone do not fit, so neither choice fits. */
    compile(IPU_OFFLOAD_AUTO, _i, LAYERS * WIDTH * WIDTH * 4 / TILES);
    memory = device_memory(&d);
    ck_assert_int_eq(memory.remote_bytes, 0);
    ck_assert_int_eq(memory.automatic_bytes, 0);
    ck_assert_int_gt(memory.fullest_tile_bytes, memory.bytes_per_tile);
    ck_assert_int_gt(device_cycles(&d).total, 0);
    MUST_FAIL(ipu_compile(d.graph, &target, &none), IPU_ERR_FULL,
              "offloading what only the update uses: ");
}

/* No message mentions it either. */
LOOP_TEST(without_streaming_memory_it_stays, 0, 2)
{
    target.streaming_bytes_per_second = 0;
    compile(IPU_OFFLOAD_AUTO, _i, LAYERS * WIDTH * WIDTH * 4 / TILES);
    ck_assert_int_eq(device_memory(&d).remote_bytes, 0);
}

/* Remedies first look for any number of chips that fits with the state on the
 * chip: 4 chips rather than 2 with the state off the chip. */
TEST(remedies_are_tried_on_the_chip_first)
{
    const ipu_compile_options options = {.size = sizeof options,
                                         .target = &target};
    ipu_remedy few = {.size = sizeof few}, found = few, fixed = few;

    compile(IPU_OFFLOAD_ON, false, LARGE);
    MUST(ipu_remedy_try(d.graph, &options, IPU_REMEDY_SHARD, 2, &few));
    compile(IPU_OFFLOAD_AUTO, false, few.tile_bytes);
    MUST(ipu_remedy_try(d.graph, &options, IPU_REMEDY_SHARD, 2, &fixed));
    ck_assert(fixed.fits);
    ck_assert_int_gt(fixed.remote_bytes, 0);
    ck_assert_int_gt(fixed.streaming_cycles, 0);
    MUST(ipu_remedy_try(d.graph, &options, IPU_REMEDY_SHARD, 0, &found));
    ck_assert(found.fits);
    ck_assert_int_eq(found.parts, 4);
    ck_assert_int_eq(found.remote_bytes, 0);
    ck_assert_int_eq(found.streaming_cycles, 0);
    ck_assert_int_lt(found.cycles, fixed.cycles);
}

TEST_MAIN("device_offload_automatic", .set_up = set_up,
          .tear_down = one_device_free, .seconds = 120)
