/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Small graphs have programs whose steps, memory and tiles can be worked out by
 * hand; some graphs are refused.
 */
#include "suite.h"

#include <math.h>
#include <stdio.h>

#include "one_device.h"

static uint32_t without; /* passes */

static void set_up(void)
{
    without = 0;
    d = device_new();
}

static ipu_memory_info compiled(const ipu_target *target)
{
    const ipu_compile_options options = {
        .size = sizeof options, .target = target, .without = without};

    MUST(ipu_compile_with(d.graph, &options, &d.executable));
    return device_memory(&d);
}

/* ------------------------------------------------------------------- memory */

/* Each tensor has 64 floats, a whole number of alignments. */
enum { N = 64, BYTES = 4 * N };

static ipu_tensor row(const char *name)
{
    return device_floats(&d, name, 1, SHAPE(N));
}

TEST(a_chain_of_ops_in_place_needs_one_buffer)
{
    ipu_tensor x = row("x");
    ipu_memory_info info;

    for (int i = 0; i < 5; i++)
        x = ipu_tanh(d.graph, x);
    MUST(ipu_output(d.graph, "y", x));
    without = IPU_PASS_FUSE;
    info = compiled(NULL);
    ck_assert_int_eq(info.steps, 5);
    ck_assert_int_eq(info.always_live_bytes, 0);
    ck_assert_int_eq(info.planned_bytes, BYTES);
    ck_assert_int_eq(info.peak_bytes, BYTES);
    ck_assert_int_eq(info.unshared_bytes, 6 * BYTES);
}

TEST(what_is_still_needed_is_not_overwritten)
{
    ipu_tensor x = row("x"), y = ipu_relu(d.graph, x);

    MUST(ipu_output(d.graph, "y", ipu_add(d.graph, y, x)));
    without = IPU_PASS_FUSE;
    ck_assert_int_eq(compiled(NULL).planned_bytes, 2 * BYTES);
}

TEST(variables_are_never_overwritten)
{
    ipu_tensor v = ipu_variable(d.graph, "v", IPU_FLOAT32, 1, SHAPE(N));
    float one[N], back[N], y[N];
    ipu_memory_info info;

    for (int i = 0; i < N; i++)
        one[i] = 1;
    MUST(
        ipu_output(d.graph, "y",
                   ipu_add(d.graph, ipu_reshape(d.graph, v, 1, SHAPE(-1)), v)));
    info = compiled(NULL);
    ck_assert_int_eq(info.always_live_bytes, BYTES);
    ck_assert_int_eq(info.planned_bytes, 2 * BYTES);
    MUST(ipu_engine_new(d.executable, &d.engine));
    MUST(ipu_engine_write(d.engine, "v", one, sizeof one));
    device_connect(&d, "y", y, N);
    MUST(ipu_engine_run(d.engine));
    MUST(ipu_engine_run(d.engine));
    MUST(ipu_engine_read(d.engine, "v", back, sizeof back));
    ck_assert_mem_eq(one, back, sizeof one);
    ck_assert_float_eq(y[0], 2);
}

/* x is needed after its reshape: both share memory, which nothing may overwrite
 * until neither is needed. */
TEST(a_reshape_shares_memory_while_both_are_needed)
{
    ipu_tensor x = row("x");
    ipu_tensor flat = ipu_reshape(d.graph, x, 2, SHAPE(8, 8));
    ipu_tensor changed = ipu_relu(d.graph, flat);
    ipu_tensor back = ipu_reshape(d.graph, changed, 1, SHAPE(N));
    float in[N], out[N];

    MUST(ipu_output(d.graph, "y", ipu_add(d.graph, x, back)));
    without = IPU_PASS_FUSE;
    ck_assert_int_eq(compiled(NULL).planned_bytes, 2 * BYTES);
    MUST(ipu_engine_new(d.executable, &d.engine));
    device_fill(in, N, 5);
    device_connect(&d, "x", in, N);
    device_connect(&d, "y", out, N);
    MUST(ipu_engine_run(d.engine));
    for (int i = 0; i < N; i++)
        ck_assert_float_eq(out[i], in[i] + fmaxf(in[i], 0));
}

TEST(a_reshape_costs_no_memory)
{
    ipu_tensor x = row("x");

    MUST(ipu_output(d.graph, "before", x));
    MUST(ipu_output(d.graph, "after", ipu_reshape(d.graph, x, 2, SHAPE(8, 8))));
    ck_assert_int_eq(compiled(NULL).planned_bytes, BYTES);
}

/* An output and a tensor computed in its memory: the output must last to the
 * end. */
TEST(outputs_last_to_the_end)
{
    ipu_tensor x = row("x"), y = ipu_relu(d.graph, x);
    float in[N], first[N], second[N];

    MUST(ipu_output(d.graph, "first", y));
    MUST(ipu_output(d.graph, "x again", x));
    MUST(ipu_output(d.graph, "second", ipu_add(d.graph, y, y)));
    device_load(&d);
    device_fill(in, N, 6);
    device_connect(&d, "x", in, N);
    device_connect(&d, "first", first, N);
    device_connect(&d, "second", second, N);
    MUST(ipu_engine_run(d.engine));
    for (int i = 0; i < N; i++) {
        ck_assert_float_eq(first[i], fmaxf(in[i], 0));
        ck_assert_float_eq(second[i], 2 * fmaxf(in[i], 0));
    }
}

/* Forward results are needed late, so they pile up; backward ones do not. */
TEST(memory_is_planned_near_the_peak)
{
    enum { LAYERS = 12, WIDTH = 64 };
    ipu_tensor x = device_floats(&d, "x", 2, SHAPE(WIDTH, WIDTH));
    ipu_tensor weights[LAYERS], gradients[LAYERS];
    ipu_memory_info info;
    char name[16];

    for (int i = 0; i < LAYERS; i++) {
        snprintf(name, sizeof name, "w%d", i);
        weights[i] =
            ipu_variable(d.graph, name, IPU_FLOAT32, 2, SHAPE(WIDTH, WIDTH));
        x = ipu_relu(d.graph, ipu_matmul(d.graph, x, weights[i]));
    }
    MUST(ipu_gradients(d.graph, ipu_reduce_sum(d.graph, x, 1), LAYERS, weights,
                       gradients));
    for (int i = 0; i < LAYERS; i++) {
        snprintf(name, sizeof name, "g%d", i);
        MUST(ipu_output(d.graph, name, gradients[i]));
    }
    info = compiled(NULL);
    ck_assert_int_eq(info.always_live_bytes, LAYERS * WIDTH * WIDTH * 4);
    ck_assert_int_ge(info.planned_bytes, info.peak_bytes);
    ck_assert_int_le(info.planned_bytes, info.peak_bytes * 5 / 4);
    ck_assert_int_lt(info.planned_bytes, info.unshared_bytes * 3 / 4);
}

TEST(empty_tensors_take_no_memory)
{
    ipu_tensor x = device_floats(&d, "x", 2, SHAPE(0, 5));
    ipu_memory_info info;

    MUST(ipu_output(d.graph, "y", ipu_relu(d.graph, ipu_add(d.graph, x, x))));
    info = compiled(NULL);
    ck_assert_int_eq(info.planned_bytes, 0);
    ck_assert_int_eq(info.bytes_on_fullest_tile, 0);
    MUST(ipu_engine_new(d.executable, &d.engine));
    MUST(ipu_engine_run(d.engine)); /* nothing to connect */
}

/* -------------------------------------------------------------------- steps */

TEST(an_empty_graph_is_a_program)
{
    ipu_memory_info info = compiled(NULL);

    ck_assert_int_eq(info.steps, 0);
    ck_assert_int_eq(info.peak_bytes, 0);
    ck_assert_str_eq(device_program(&d), "");
    MUST(ipu_engine_new(d.executable, &d.engine));
    MUST(ipu_engine_run(d.engine));
}

/* A variable that no op uses is still written and read. */
TEST(unused_variables_are_kept)
{
    float three[1] = {3}, back[1];

    ipu_variable(d.graph, "v", IPU_FLOAT32, 0, NULL);
    ck_assert_int_eq(compiled(NULL).always_live_bytes, 4);
    MUST(ipu_engine_new(d.executable, &d.engine));
    MUST(ipu_engine_read(d.engine, "v", back, sizeof back));
    ck_assert_float_eq(back[0], 0);
    MUST(ipu_engine_write(d.engine, "v", three, sizeof three));
    MUST(ipu_engine_run(d.engine));
    MUST(ipu_engine_read(d.engine, "v", back, sizeof back));
    ck_assert_float_eq(back[0], 3);
}

/* The call that needs fewest ops runs first, whatever the order of declaration.
 * Ops that only outputs need run last. */
TEST(host_calls_come_in_the_order_of_what_they_need)
{
    ipu_tensor x = row("x"), one = ipu_relu(d.graph, x);
    ipu_tensor two = ipu_add(d.graph, one, x), other = ipu_add(d.graph, x, x);
    const char *text, *place[4];
    const char *const words[4] = {"host_call 'one'", "host_call 'two'",
                                  "multiply:", NULL};

    MUST(ipu_output(d.graph, "out", ipu_multiply(d.graph, other, x)));
    MUST(ipu_host_call(d.graph, "two", two, device_no_call, NULL));
    MUST(ipu_host_call(d.graph, "one", one, device_no_call, NULL));
    ck_assert_int_eq(compiled(NULL).steps, 5); /* the last two are one */
    text = device_program(&d);
    for (int i = 0; words[i]; i++) {
        place[i] = strstr(text, words[i]);
        ck_assert_msg(place[i] != NULL, "'%s' is not in:\n%s", words[i], text);
        if (i > 0)
            ck_assert(place[i] > place[i - 1]);
    }
}

/* Memory holds inputs, variables and one tensor for two calls. */
TEST(host_calls_take_any_tensor)
{
    ipu_tensor x = row("x");
    float in[N] = {0};

    MUST(ipu_host_call(d.graph, "a", x, device_no_call, NULL));
    MUST(ipu_host_call(d.graph, "b", x, device_no_call, NULL));
    MUST(ipu_host_call(d.graph, "c",
                       ipu_variable(d.graph, "v", IPU_INT32, 0, NULL),
                       device_no_call, NULL));
    ck_assert_int_eq(compiled(NULL).steps, 3);
    MUST(ipu_engine_new(d.executable, &d.engine));
    device_connect(&d, "x", in, N);
    MUST(ipu_engine_run(d.engine));
}

TEST(printing_writes_no_more_than_it_may)
{
    char text[64];
    int64_t needed;

    MUST(ipu_output(d.graph, "y", ipu_relu(d.graph, row("x"))));
    compiled(NULL);
    needed = ipu_executable_print(d.executable, NULL, 0);
    ck_assert_int_eq(needed, (int64_t)strlen(device_program(&d)));
    ck_assert_int_gt(needed, 8);
    memset(text, 'x', sizeof text);
    ck_assert_int_eq(ipu_executable_print(d.executable, text, 8), needed);
    ck_assert_uint_eq(strlen(text), 7);
    ck_assert_int_eq(text[8], 'x');
    MUST_FAIL(ipu_executable_print(NULL, text, 8), IPU_ERR_ARGUMENT,
              "print: the executable is NULL");
}

/* Compiling leaves the graph as it was, and the program does not need it. */
TEST(a_graph_can_be_compiled_again_and_freed)
{
    ipu_executable *before = NULL;
    static char first[4096];

    MUST(ipu_output(d.graph, "y", ipu_relu(d.graph, row("x"))));
    MUST(ipu_compile(d.graph, NULL, &before));
    ipu_executable_print(before, first, sizeof first);
    compiled(NULL);
    ipu_graph_free(d.graph);
    d.graph = NULL;
    ck_assert_str_eq(device_program(&d), first);
    ipu_executable_free(before);
    MUST(ipu_engine_new(d.executable, &d.engine));
}

/* ------------------------------------------------------------------ targets */

TEST(a_target_is_a_mk2_until_told_otherwise)
{
    ipu_target target;

    ipu_target_init(&target, sizeof target);
    ck_assert_uint_eq(target.size, sizeof target);
    ck_assert_int_eq(target.tiles, 1472);
    ck_assert_int_eq(target.bytes_per_tile, 624 * 1024);
    ck_assert(target.clock_hz > 1.3e9 && target.clock_hz < 1.35e9);
    ipu_target_init(NULL, sizeof target);
}

/* A program compiled against a later header has a longer struct. Fields that
 * the library does not know become 0, and nothing past the struct is
 * written. */
TEST(a_target_may_be_longer)
{
    struct {
        ipu_target target;
        char unknown[16], beyond;
    } later;

    memset(&later, 'x', sizeof later);
    ipu_target_init(&later.target, sizeof later.target + sizeof later.unknown);
    for (size_t i = 0; i < sizeof later.unknown; i++)
        ck_assert_int_eq(later.unknown[i], 0);
    ck_assert_int_eq(later.beyond, 'x');
    MUST(ipu_compile(d.graph, &later.target, &d.executable));
}

/* Tiles hold grains of 8 bytes. A single tensor is spread evenly. */
LOOP_TEST(tensors_are_spread_over_tiles, 0, 4)
{
    const struct {
        int32_t tiles;
        int64_t fullest;
    } cases[] = {{1, BYTES}, {3, 88}, {32, 8}, {1472, 8}};
    ipu_target target;

    ipu_target_init(&target, sizeof target);
    target.tiles = cases[_i].tiles;
    MUST(ipu_output(d.graph, "y", row("x")));
    ck_assert_int_eq(compiled(&target).bytes_on_fullest_tile,
                     cases[_i].fullest);
}

/* The second tensor begins where the first ended, around the chip. */
TEST(small_tensors_do_not_pile_up_on_one_tile)
{
    ipu_target target;
    char name[] = "a";

    ipu_target_init(&target, sizeof target);
    target.tiles = 4;
    for (; name[0] <= 'h'; name[0]++)
        ipu_variable(d.graph, name, IPU_FLOAT32, 0, NULL);
    ck_assert_int_eq(compiled(&target).bytes_on_fullest_tile, 2 * 8);
}

LOOP_TEST(targets_that_cannot_be_are_refused, 0, 5)
{
    ipu_executable *executable = NULL;
    ipu_target target;
    const char *words = "";

    ipu_target_init(&target, sizeof target);
    switch (_i) {
    case 0:
        target.tiles = -5;
        words = "tiles is -5";
        break;
    case 1:
        target.tiles = INT32_MAX;
        words = "tiles is 2147483647";
        break;
    case 2:
        target.bytes_per_tile = 0;
        words = "bytes_per_tile is 0";
        break;
    case 3:
        target.clock_hz = NAN;
        words = "clock_hz is nan";
        break;
    default:
        target.size = 4;
        words = "size is 4";
        break;
    }
    MUST_FAIL(ipu_compile(d.graph, &target, &executable), IPU_ERR_ARGUMENT,
              words);
    ck_assert_ptr_null(executable);
}

TEST(null_arguments_are_refused)
{
    ipu_memory_info info = {.size = sizeof info};

    MUST_FAIL(ipu_compile(d.graph, NULL, NULL), IPU_ERR_ARGUMENT,
              "compile: the place for an executable is NULL");
    MUST_FAIL(ipu_executable_memory(NULL, &info), IPU_ERR_ARGUMENT,
              "memory: the executable is NULL");
    compiled(NULL);
    MUST_FAIL(ipu_executable_memory(d.executable, NULL), IPU_ERR_ARGUMENT,
              "memory: the place for the info is NULL");
    info.size = 0;
    MUST_FAIL(ipu_executable_memory(d.executable, &info), IPU_ERR_ARGUMENT,
              "size is 0");
    ipu_executable_free(NULL);
}

TEST_MAIN("device_compile", .set_up = set_up, .tear_down = one_device_free)
