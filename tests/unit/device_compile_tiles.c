/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tensors lie on the tiles that the compiler or the program chooses; steps move
 * them where they are needed, which takes memory and cycles.
 */
#include "suite.h"

#include <math.h>
#include <stdio.h>

#include "one_device.h"

static ipu_target target;

/* There are 64 tiles, with 128 bytes each. */
enum { TILES = 64, EACH = 32, COUNT = TILES * EACH };

static void set_up(void)
{
    d = device_new();
    ipu_target_init(&target, sizeof target);
    target.tiles = TILES;
}

static ipu_memory_info compiled(void)
{
    MUST(ipu_compile(d.graph, &target, &d.executable));
    return device_memory(&d);
}

static ipu_tile_info tile(int32_t t)
{
    ipu_tile_info info = {.size = sizeof info};

    MUST(ipu_executable_tile(d.executable, t, &info));
    return info;
}

static ipu_tensor row(const char *name, int64_t count)
{
    return device_floats(&d, name, 1, SHAPE(count));
}

/* ----------------------------------------------------------------- exchange */

/* The address does not depend on tensors made between them. */
TEST(what_is_used_together_lies_together)
{
    ipu_tensor x, y, w;

    ipu_variable(d.graph, "between", IPU_FLOAT32, 1, SHAPE(6));
    x = row("x", COUNT);
    w = ipu_variable(d.graph, "w", IPU_FLOAT32, 1, SHAPE(COUNT));
    ipu_variable(d.graph, "between too", IPU_FLOAT32, 1, SHAPE(10));
    y = row("y", COUNT);
    MUST(ipu_output(d.graph, "z",
                    ipu_add(d.graph, ipu_multiply(d.graph, x, w), y)));
    MUST(ipu_output(d.graph, "y again", y));
    compiled();
    ck_assert_int_eq(device_step(&d, 0).exchange_bytes, 0);
    ck_assert_int_eq(device_step(&d, 0).exchange_cycles, 0);
}

/* x lies on one half of the chip, y on the other: each tile of y receives its
 * part of x. */
TEST(what_lies_elsewhere_is_received)
{
    ipu_tensor x = row("x", COUNT), y = ipu_exp(d.graph, x);
    int64_t words;

    MUST(ipu_map(d.graph, x, 0, TILES / 2));
    MUST(ipu_map(d.graph, y, TILES / 2, TILES / 2));
    MUST(ipu_output(d.graph, "y", y));
    compiled();
    words = 2 * EACH; /* half of the tiles have twice as many */
    ck_assert_int_eq(device_step(&d, 0).exchange_bytes, words * 4);
    ck_assert_int_ge(device_step(&d, 0).exchange_cycles, words);
    ck_assert_int_eq(device_step(&d, 0).temporary_bytes, words * 4);
    ck_assert_int_eq(tile(0).exchange_bytes, 0);
    ck_assert_int_eq(tile(0).tensor_bytes, words * 4);
    ck_assert_int_eq(tile(TILES - 1).exchange_bytes, words * 4);
    ck_assert_int_eq(tile(TILES - 1).not_always_live_bytes, 2 * words * 4);
    ck_assert_int_gt(tile(0).exchange_code_bytes, 0);
}

TEST(only_what_is_missing_is_received)
{
    ipu_tensor x = row("x", COUNT), y = ipu_exp(d.graph, x);

    MUST(ipu_map(d.graph, x, 0, TILES));
    MUST(ipu_map(d.graph, y, 0, TILES / 2));
    MUST(ipu_output(d.graph, "y", y));
    compiled();
    /* Tile 0 has half of the bytes that it needs, all others have none. */
    ck_assert_int_eq(device_step(&d, 0).exchange_bytes, 2 * EACH * 4);
    ck_assert_int_eq(tile(0).exchange_bytes, EACH * 4);
    ck_assert_int_eq(tile(1).exchange_bytes, 2 * EACH * 4);
}

/* 16 rows of 128: each tile has a quarter of one. */
TEST(of_rows_a_tile_receives_its_part)
{
    ipu_tensor x = device_floats(&d, "x", 2, SHAPE(16, 128));
    ipu_tensor b = row("b", 128);

    MUST(ipu_map(d.graph, b, 0, 1));
    MUST(ipu_output(d.graph, "y", ipu_bias_add(d.graph, x, b)));
    compiled();
    ck_assert_int_eq(device_step(&d, 0).exchange_bytes, EACH * 4);
    ck_assert_int_eq(tile(0).exchange_bytes, 0);
    ck_assert_int_eq(tile(63).exchange_bytes, EACH * 4);
}

/* A scalar is one value for each tile, but where it is. */
TEST(scalars_are_received)
{
    ipu_tensor s = device_floats(&d, "s", 0, NULL);

    MUST(ipu_map(d.graph, s, 5, 1));
    MUST(ipu_output(d.graph, "y", ipu_multiply(d.graph, row("x", COUNT), s)));
    compiled();
    ck_assert_int_eq(device_step(&d, 0).exchange_bytes, 4);
    ck_assert_int_eq(tile(5).exchange_bytes, 0);
    ck_assert_int_eq(tile(6).exchange_bytes, 4);
}

TEST(memory_is_told_by_kind)
{
    const float three[] = {3, 4};
    ipu_tensor x = device_floats(&d, "x", 2, SHAPE(256, 512)), w, c;
    ipu_tile_info t;

    w = ipu_variable(d.graph, "w", IPU_FLOAT32, 2, SHAPE(512, 64));
    c = ipu_constant(d.graph, IPU_FLOAT32, 1, SHAPE(2), three);
    MUST(ipu_map(d.graph, c, 9, 1));
    x = ipu_matmul(d.graph, x, w);
    MUST(ipu_output(d.graph, "y", x));
    MUST(ipu_output(d.graph, "c", c));
    compiled();
    t = tile(9);
    ck_assert_int_eq(t.constant_bytes, 8);
    ck_assert_int_eq(t.always_live_bytes, 8 + 512 * 64 * 4 / TILES);
    ck_assert_int_gt(t.partial_bytes, 0);
    ck_assert_int_gt(t.temporary_bytes, t.partial_bytes);
    ck_assert_int_eq(t.tensor_bytes + t.temporary_bytes,
                     t.not_always_live_bytes);
    ck_assert_int_lt(t.exchange_code_bytes + t.state_bytes, t.code_bytes);
}

/* ------------------------------------------------------------------ mapping */

/* A tensor is put on few tiles: they fill up, the others stay empty, and
 * results are the same. */
TEST(a_mapped_tensor_lies_where_it_shall)
{
    ipu_tensor v = ipu_variable(d.graph, "v", IPU_FLOAT32, 1, SHAPE(COUNT));
    float in[COUNT], y[COUNT];

    MUST(ipu_map(d.graph, v, 62, 4)); /* 62, 63: none beyond */
    MUST_FAIL(ipu_compile(d.graph, &target, &d.executable), IPU_ERR_ARGUMENT,
              "v is mapped to 4 tiles from 62 on: 'mk2' has tiles 0 to 63");
    ck_assert_ptr_nonnull(strstr(ipu_last_error(), "device_compile_tiles.c:"));
    device_free(&d);
    d = device_new();
    v = ipu_variable(d.graph, "v", IPU_FLOAT32, 1, SHAPE(COUNT));
    MUST(ipu_map(d.graph, v, 60, 4));
    MUST(ipu_output(d.graph, "y", ipu_relu(d.graph, v)));
    compiled();
    ck_assert_int_eq(tile(59).always_live_bytes, 0);
    ck_assert_int_eq(tile(60).always_live_bytes, COUNT * 4 / 4);
    ck_assert_int_eq(tile(63).always_live_bytes, COUNT * 4 / 4);
    MUST(ipu_engine_new(d.executable, &d.engine));
    device_fill(in, COUNT, 1);
    MUST(ipu_engine_write(d.engine, "v", in, sizeof in));
    device_connect(&d, "y", y, COUNT);
    MUST(ipu_engine_run(d.engine));
    for (int i = 0; i < COUNT; i++)
        ck_assert_float_eq(y[i], fmaxf(in[i], 0));
}

/* A mapped tensor is not computed in another's memory, and always has memory,
 * even between two ops of a step. */
TEST(a_mapped_tensor_has_memory)
{
    ipu_tensor x = row("x", COUNT), y = ipu_exp(d.graph, x);
    int64_t peak;

    MUST(ipu_output(d.graph, "z", ipu_tanh(d.graph, y)));
    peak = compiled().peak_bytes;
    ipu_executable_free(d.executable);
    MUST(ipu_map(d.graph, y, 3, 8));
    ck_assert_int_gt(compiled().peak_bytes, peak);
    ck_assert_int_ge(tile(3).tensor_bytes, COUNT * 4 / 8);
}

LOOP_TEST(maps_that_cannot_be_are_refused, 0, 5)
{
    ipu_tensor x = row("x", COUNT);
    const char *words = "";
    int status = IPU_ERR_ARGUMENT;

    switch (_i) {
    case 0:
        ipu_map(d.graph, x, -1, 4);
        words = "x to 4 tiles from -1 on";
        break;
    case 1:
        ipu_map(d.graph, x, 0, 0);
        words = "x to 0 tiles";
        break;
    case 2:
        ipu_map(d.graph, ipu_reshape(d.graph, x, 2, SHAPE(2, -1)), 0, 4);
        words = "lies where x does, of which it is another view";
        break;
    case 3:
        ipu_map(d.graph, x, 0, 4);
        ipu_map(d.graph, x, 4, 4);
        words = "x is mapped already, to 4 tiles from 0 on";
        status = IPU_ERR_STATE;
        break;
    default:
        ipu_map(d.graph, (ipu_tensor){-1}, 0, 4);
        words = "invalid";
        break;
    }
    MUST_FAIL(ipu_compile(d.graph, &target, &d.executable), status, words);
    MUST_FAIL(ipu_map(NULL, x, 0, 4), IPU_ERR_ARGUMENT,
              "map: the graph is NULL");
}

TEST_MAIN("device_compile_tiles", .set_up = set_up,
          .tear_down = one_device_free)
