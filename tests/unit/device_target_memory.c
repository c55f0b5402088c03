/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tests the memory of compiled programs on a chip, by tiles and steps, and the
 * compiler's text on a program that does not fit.
 */
#include "suite.h"

#include <math.h>

#include "target_program.h"

/* ------------------------------------------------------------------- memory */

/* Tiles, steps and the program report the same sums. */
TEST(tiles_add_up)
{
    ipu_memory_info info;
    int64_t always = 0, most = 0, steps_most = 0;

    small_layer();
    info = compiled();
    for (int32_t t = 0; t < target.tiles; t++) {
        ipu_tile_info tile = {.size = sizeof tile};

        MUST(ipu_executable_tile(d.executable, t, &tile));
        if (tile.peak_bytes != tile.code_bytes + tile.always_live_bytes +
                                   tile.not_always_live_bytes)
            ck_abort_msg("tile %d does not add up", (int)t);
        always += tile.always_live_bytes;
        most = tile.peak_bytes > most ? tile.peak_bytes : most;
    }
    for (int32_t i = 0; i < info.steps; i++)
        if (device_step(&d, i).fullest_tile_bytes > steps_most)
            steps_most = device_step(&d, i).fullest_tile_bytes;
    ck_assert_int_eq(always, 128 * 32 * 4);
    ck_assert_int_eq(most, info.fullest_tile_bytes);
    ck_assert_int_eq(most, steps_most);
    ck_assert_int_gt(info.code_bytes_per_tile, 0);
    ck_assert_int_eq(info.bytes_per_tile, 624 << 10);
    ck_assert_int_eq(info.fullest_step,
                     0); /* step 0 has both inputs and its own memory */
}

/* The code of a kind of op exists once, its exchanges once for each op. */
TEST(code_is_shared_by_steps_of_a_kind)
{
    static const char *const names[] = {"none", "one", "two", "three"};
    ipu_tensor x = device_floats(&d, "x", 1, SHAPE(64));
    int64_t code[4]; /* by the number of steps */

    without = IPU_PASS_FUSE;
    for (int i = 0; i < 4; i++) {
        ipu_memory_info info;

        x = i > 0 ? ipu_tanh(d.graph, x) : x;
        MUST(ipu_output(d.graph, names[i], x));
        info = compiled();
        code[i] = info.code_bytes_per_tile;
        ck_assert_int_eq(info.steps, i);
        ipu_executable_free(d.executable);
        d.executable = NULL;
    }
    ck_assert_int_gt(code[2], code[1]);
    ck_assert_int_eq(code[3] - code[2], code[2] - code[1]);
    ck_assert_int_lt(code[2] - code[1], code[1] - code[0]);
}

/* ------------------------------------------------------------ what does not
 * fit */

/* Fourteen layers of 1024 x 1024 with a batch of 1024, for training: 112 MB
 * of weights and activations each. */
static void large_network(int64_t batch)
{
    enum { LAYERS = 14, WIDTH = 1024 };
    ipu_tensor x = device_floats(&d, "x", 2, SHAPE(batch, WIDTH));
    ipu_tensor weights[LAYERS], gradients[LAYERS];
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
        MUST(ipu_host_call(d.graph, name, gradients[i], device_no_call, NULL));
    }
}

static void text_has(const char *words)
{
    ck_assert_msg(strstr(ipu_last_error(), words) != NULL, "'%s' is not in: %s",
                  words, ipu_last_error());
}

TEST(a_network_that_does_not_fit_is_explained)
{
    ipu_executable *executable = NULL;
    const char *at;
    int tensors = 0;

    MUST(ipu_target_find("mk1", &target));
    target.streaming_bytes_per_second = 20e9;
    large_network(4096);
    MUST_FAIL(ipu_compile(d.graph, &target, &executable), IPU_ERR_FULL,
              "the program does not fit on 'mk1': tile ");
    ck_assert_ptr_null(executable);
    text_has(" more than it has, at step ");
    text_has("code ");
    text_has(", variables ");
    text_has(", temporary ");
    at = strstr(ipu_last_error(), "largest there: '");
    ck_assert_ptr_nonnull(at);
    for (; strncmp(at, "What would", 10) != 0; at++)
        tensors += strncmp(at, " float32 [", 10) == 0;
    ck_assert_int_eq(tensors, 10);
    text_has("'x' float32 [4096,1024] 13800 (device.h:"); /* which made it */
    text_has("(device_target_memory.c:");
    text_has("What would change that; float16 throughout: ");
    text_has("of the batch, gradients accumulated: ");
    text_has("recomputing results that only later steps need: ");
    text_has("sharding over 2 chips: ");
    text_has("What would not; offload: there is nothing that only the update "
             "uses; ");
    text_has(" ms");
}

/* The refusal names a number of parts whose accumulation fits: four, because
 * half of the batch does not fit. Such a part fits as a batch of its own. */
TEST(a_remedy_does_what_is_said_of_it)
{
    enum { BATCH = 8192 };
    ipu_executable *executable = NULL;
    const char *at;
    int parts;

    MUST(ipu_target_find("mk1", &target));
    large_network(BATCH);
    MUST_FAIL(ipu_compile(d.graph, &target, &executable), IPU_ERR_FULL,
              "gradients accumulated");
    at = strstr(ipu_last_error(), "; 1/");
    ck_assert_ptr_nonnull(at);
    parts = atoi(at + 4);
    ck_assert_int_eq(parts, 4);
    ipu_graph_free(d.graph);
    d = device_new();
    large_network(BATCH / parts);
    MUST(ipu_compile(d.graph, &target, &d.executable));
}

TEST(what_does_not_fit_is_compiled_on_request)
{
    const ipu_compile_options options = {
        .size = sizeof options, .target = &target, .allow_out_of_memory = 1};
    float x[64], y[64];

    target.tiles = 4;
    target.bytes_per_tile = 16;
    MUST(ipu_output(d.graph, "y",
                    ipu_relu(d.graph, device_floats(&d, "x", 1, SHAPE(64)))));
    MUST_FAIL(ipu_compile(d.graph, &target, &d.executable), IPU_ERR_FULL,
              "does not fit");
    MUST(ipu_compile_with(d.graph, &options, &d.executable));
    MUST(ipu_engine_new(d.executable, &d.engine));
    device_fill(x, 64, 1);
    device_connect(&d, "x", x, 64);
    device_connect(&d, "y", y, 64);
    MUST(ipu_engine_run(d.engine));
    ck_assert_float_eq(y[7], fmaxf(x[7], 0));
}

/* A product is planned for more memory then; 0 cannot be doubled. */
TEST(a_tile_may_have_a_byte)
{
    const ipu_compile_options options = {
        .size = sizeof options, .target = &target, .allow_out_of_memory = 1};

    target.bytes_per_tile = 1;
    small_layer();
    MUST_FAIL(ipu_compile(d.graph, &target, &d.executable), IPU_ERR_FULL,
              "does not fit");
    MUST(ipu_compile_with(d.graph, &options, &d.executable));
}

TEST(a_program_without_steps_may_not_fit_either)
{
    target.tiles = 1;
    target.bytes_per_tile = 100;
    ipu_variable(d.graph, "v", IPU_FLOAT32, 1, SHAPE(64));
    MUST_FAIL(ipu_compile(d.graph, &target, &d.executable), IPU_ERR_FULL,
              "tile 0 would hold 256 bytes, 156 more than it has");
}

TEST(arguments_are_checked)
{
    ipu_step_info step_info = {.size = sizeof step_info};
    ipu_tile_info tile_info = {.size = sizeof tile_info};
    ipu_program_cycles run = {.size = 0};
    ipu_cycles some = {.size = sizeof some};
    ipu_compile_options options = {.size = 0};

    MUST_FAIL(ipu_compile_with(d.graph, NULL, &d.executable), IPU_ERR_ARGUMENT,
              "options is NULL");
    MUST_FAIL(ipu_compile_with(d.graph, &options, &d.executable),
              IPU_ERR_ARGUMENT, "size is 0");
    small_layer();
    without = IPU_PASS_FUSE;
    compiled();
    MUST_FAIL(ipu_executable_step(d.executable, 2, &step_info),
              IPU_ERR_ARGUMENT, "no step 2: the program has 0 to 1");
    MUST_FAIL(ipu_executable_step(NULL, 0, &step_info), IPU_ERR_ARGUMENT,
              "step: the executable is NULL");
    MUST_FAIL(ipu_executable_tile(d.executable, 1472, &tile_info),
              IPU_ERR_ARGUMENT, "no tile 1472: 'mk2' has 0 to 1471");
    MUST_FAIL(ipu_executable_tile_cycles(d.executable, -1, 0, &some),
              IPU_ERR_ARGUMENT, "no step -1");
    MUST_FAIL(ipu_executable_cycles(d.executable, &run), IPU_ERR_ARGUMENT,
              "size is 0");
}

TEST_MAIN("device_target_memory", .set_up = set_up, .tear_down = tear_down)
