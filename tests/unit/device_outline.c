/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tests code that equal steps share: the conditions, the steps, the bytes
 * saved, the cost, and that nothing else changes.
 */
#include "suite.h"

#include <stdio.h>

#include "ipu_file.h"
#include "one_device.h"

enum { TILES = 64, WIDTH = 48, ROWS = 96, MOST_LAYERS = 32, SEEN = 1 << 17 };

static ipu_target target;
static ipu_compile_options options;

static void set_up(void)
{
    d = device_new();
    ipu_target_init(&target, sizeof target);
    target.tiles = TILES;
    options = (ipu_compile_options){.size = sizeof options, .target = &target};
}

/* ---------------------------------------------------------------- programs */

static ipu_tensor x, weights[2 * MOST_LAYERS];

static void make_variables(int layers)
{
    char name[32];

    x = device_floats(&d, "x", 2, SHAPE(ROWS, WIDTH));
    for (int i = 0; i < layers; i++) {
        snprintf(name, sizeof name, "w%d", i);
        weights[2 * i] =
            ipu_variable(d.graph, name, IPU_FLOAT32, 2, SHAPE(WIDTH, WIDTH));
        snprintf(name, sizeof name, "b%d", i);
        weights[2 * i + 1] =
            ipu_variable(d.graph, name, IPU_FLOAT32, 1, SHAPE(WIDTH));
    }
}

/* Builds layers of equal shapes with training. Returns the loss. */
static ipu_tensor train(ipu_graph *g, int layers)
{
    ipu_tensor slopes[2 * MOST_LAYERS], loss, h = x;

    for (int i = 0; i < layers; i++)
        h = ipu_tanh(g, ipu_bias_add(g, ipu_matmul(g, h, weights[2 * i]),
                                     weights[2 * i + 1]));
    loss = ipu_reduce_sum(g, ipu_square(g, h), 1.0 / ROWS);
    MUST(ipu_gradients(g, loss, 2 * layers, weights, slopes));
    for (int i = 0; i < 2 * layers; i++)
        MUST(ipu_assign(
            g, weights[i],
            ipu_subtract(g, weights[i], ipu_scale(g, slopes[i], 0.05, 0))));
    return loss;
}

static void build_layers(int layers)
{
    make_variables(layers);
    MUST(ipu_output(d.graph, "loss", train(d.graph, layers)));
}

static void drop(void)
{
    ipu_engine_free(d.engine);
    ipu_executable_free(d.executable);
    d.engine = NULL;
    d.executable = NULL;
}

static ipu_memory_info memory(void)
{
    ipu_memory_info info = {.size = sizeof info};

    MUST(ipu_executable_memory(d.executable, &info));
    return info;
}

static ipu_step_info step(int32_t i)
{
    ipu_step_info info = {.size = sizeof info};

    MUST(ipu_executable_step(d.executable, i, &info));
    return info;
}

static int64_t exchange_code(void)
{
    ipu_tile_info info = {.size = sizeof info};

    MUST(ipu_executable_tile(d.executable, 0, &info));
    return info.exchange_code_bytes;
}

/* Compiles without sharing. */
static ipu_memory_info compile_plain(void)
{
    ipu_compile_options plain = options;
    ipu_memory_info info;

    plain.without |= IPU_PASS_OUTLINE;
    plain.allow_out_of_memory = 1;
    MUST(ipu_compile_with(d.graph, &plain, &d.executable));
    info = memory();
    ck_assert_int_eq(info.shared_code_bytes, 0);
    return info;
}

/* Sets tiles with `bytes` bytes less than the program needs without sharing.
 * The need depends a little on the size of tiles, so this repeats. */
static void leave_short_of(int64_t bytes)
{
    for (int i = 0; i < 8; i++) {
        target.bytes_per_tile = compile_plain().fullest_tile_bytes - bytes;
        drop();
    }
}

static void compile_short_of(int64_t bytes)
{
    leave_short_of(bytes);
    MUST(ipu_compile_with(d.graph, &options, &d.executable));
}

/* ------------------------------------------------------------------- tests */

/* A program that fits must not share: saving memory that is free gains
 * nothing. */
TEST(what_fits_shares_nothing)
{
    ipu_memory_info plain;

    build_layers(8);
    leave_short_of(0);
    plain = compile_plain();
    drop();
    MUST(ipu_compile_with(d.graph, &options, &d.executable));
    ck_assert_int_eq(memory().shared_code_bytes, 0);
    ck_assert_int_eq(memory().fullest_tile_bytes, plain.fullest_tile_bytes);
    for (int32_t i = 0; i < plain.steps; i++) {
        ck_assert_int_eq(step(i).code_of, i);
        ck_assert_int_eq(step(i).calls, 1);
        ck_assert_int_eq(step(i).copied_bytes, 0);
    }
}

/* The reports on steps, on tiles and on the whole program agree. */
TEST(what_is_shared_is_there_once)
{
    int64_t own = 0, calls[1000] = {0};
    ipu_memory_info plain, shared;
    int64_t before, after;

    build_layers(16);
    compile_short_of(6000);
    shared = memory();
    after = exchange_code();
    ck_assert_int_le(shared.fullest_tile_bytes, target.bytes_per_tile);
    ck_assert_int_ge(shared.shared_code_bytes, 6000);
    ck_assert_int_lt(shared.steps, 1000);
    for (int32_t i = 0; i < shared.steps; i++) {
        ipu_step_info s = step(i), body = step(s.code_of);
        ipu_cycles c = {.size = sizeof c};

        MUST(ipu_executable_tile_cycles(d.executable, i, 0, &c));
        ck_assert_int_le(s.code_of, i);
        ck_assert_int_eq(body.code_of, s.code_of);
        ck_assert_str_eq(body.op, s.op);
        ck_assert_int_eq(body.calls, s.calls);
        ck_assert_int_eq(body.total_cycles, s.total_cycles);
        ck_assert_int_eq(body.copied_bytes, s.copied_bytes);
        own += s.code_of == i ? c.exchange_code_bytes : 0;
        calls[s.code_of]++;
    }
    for (int32_t i = 0; i < shared.steps; i++)
        ck_assert_int_eq(calls[step(i).code_of], step(i).calls);
    ck_assert_int_eq(own, after);
    drop();
    plain = compile_plain();
    before = exchange_code();
    ck_assert_int_lt(after, before / 2);
    ck_assert_int_eq(shared.code_bytes_per_tile + shared.shared_code_bytes,
                     plain.code_bytes_per_tile);
}

/* Cycles are those of steps that share nothing, plus copying. */
TEST(copies_are_counted)
{
    int copying = 0;
    int64_t plain[1000];
    ipu_memory_info info;

    build_layers(12);
    leave_short_of(5000);
    info = compile_plain();
    for (int32_t i = 0; i < info.steps; i++)
        plain[i] = step(i).compute_cycles;
    drop();
    MUST(ipu_compile_with(d.graph, &options, &d.executable));
    for (int32_t i = 0; i < info.steps; i++) {
        ipu_step_info s = step(i);
        ipu_loop loop = {.size = sizeof loop,
                         .tuned = 1,
                         .loads = 1,
                         .stores = 1,
                         .iterations = (s.copied_bytes + 7) / 8};
        ipu_cycles c = {.size = sizeof c};

        MUST(ipu_model_loop(&target, &loop, &c));
        if (s.copied_bytes > 0)
            ck_assert_int_eq(s.compute_cycles, plain[i] + c.compute);
        else
            ck_assert_int_eq(s.compute_cycles, plain[i]);
        copying += s.copied_bytes > 0;
        /* Weights are all alive at once, so sharing has to copy them. */
        if (s.calls > 1 && strcmp(s.op, "matmul") == 0)
            ck_assert_int_gt(s.copied_bytes, 0);
    }
    ck_assert_int_gt(copying, 0);
}

/* More missing memory means more sharing, but no more than needed. */
TEST(only_as_much_as_it_takes)
{
    int64_t last = 0;

    build_layers(16);
    for (int64_t bytes = 100; bytes <= 6400; bytes *= 4) {
        int64_t copied = 0;

        compile_short_of(bytes);
        for (int32_t i = 0; i < memory().steps; i++)
            copied += step(i).copied_bytes;
        ck_assert_int_ge(memory().shared_code_bytes, bytes);
        ck_assert_int_ge(copied, last);
        last = copied;
        drop();
    }
}

/* Masks are made and used up one after the other: each at the same address, and
 * x and z are always the same. */
TEST(what_lies_there_is_not_copied)
{
    ipu_tensor z = x = device_floats(&d, "x", 2, SHAPE(ROWS, WIDTH));
    int shared = 0;

    for (int i = 0; i < 12; i++) {
        ipu_tensor y =
            ipu_transpose(d.graph, ipu_scale(d.graph, x, 1, i + 1), NULL);

        z = ipu_add(d.graph, z, ipu_transpose(d.graph, y, NULL));
    }
    MUST(ipu_output(d.graph, "z", z));
    options.without = IPU_PASS_FUSE | IPU_PASS_SIMPLIFY | IPU_PASS_ORDER;
    compile_short_of(200);
    for (int32_t i = 0; i < memory().steps; i++) {
        if (step(i).calls == 1)
            continue;
        shared++;
        ck_assert_int_eq(step(i).copied_bytes, 0);
    }
    ck_assert_int_gt(shared, 2);
}

/* Steps that differ in shape, or in their op's attributes, are not equal. */
TEST(what_differs_is_not_shared)
{
    ipu_tensor w, y;
    char name[32];

    x = device_floats(&d, "x", 2, SHAPE(ROWS, WIDTH));
    options.without = IPU_PASS_FUSE;
    for (int i = 0; i < 12; i++) {
        snprintf(name, sizeof name, "w%d", i);
        w = ipu_variable(d.graph, name, IPU_FLOAT32, 2,
                         SHAPE(WIDTH, WIDTH + i));
        y = ipu_scale(d.graph, ipu_matmul(d.graph, x, w), i + 2, 0);
        snprintf(name, sizeof name, "y%d", i);
        MUST(ipu_output(d.graph, name, y));
    }
    options.brief = 1;
    target.bytes_per_tile = 8 * 1024;
    options.allow_out_of_memory = 1;
    MUST(ipu_compile_with(d.graph, &options, &d.executable));
    for (int32_t i = 0; i < memory().steps; i++)
        ck_assert_int_eq(step(i).calls, 1);
}

/* Without the pass, the program is refused. */
TEST(without_it_the_program_is_too_large)
{
    build_layers(16);
    compile_short_of(4000);
    drop();
    options.without = IPU_PASS_OUTLINE;
    options.brief = 1;
    MUST_FAIL(ipu_compile_with(d.graph, &options, &d.executable), IPU_ERR_FULL,
              "does not fit");
}

static int train_again(ipu_graph *graph, void *context, int32_t ninputs,
                       const ipu_tensor *inputs, int32_t noutputs,
                       ipu_tensor *outputs)
{
    (void)context, (void)ninputs, (void)inputs, (void)noutputs;
    outputs[0] = train(graph, 12);
    return IPU_OK;
}

/* The body of a loop does not fit together with the variables around it; by
 * itself it would fit. */
TEST(bodies_share_code_too)
{
    const ipu_executable *body = NULL;
    ipu_memory_info inner = {.size = sizeof inner};
    ipu_tensor loss = ipu_fill(d.graph, IPU_FLOAT32, 0, NULL, 0);

    make_variables(12);
    MUST(ipu_repeat(d.graph, 5, train_again, NULL, 1, &loss, NULL, &loss));
    MUST(ipu_output(d.graph, "loss", loss));
    compile_short_of(1000);
    ck_assert_int_le(memory().fullest_tile_bytes, target.bytes_per_tile);
    for (int32_t i = 0; i < memory().steps && !body; i++)
        MUST(ipu_executable_body(d.executable, i, &body, NULL));
    ck_assert_ptr_nonnull(body);
    MUST(ipu_executable_memory(body, &inner));
    ck_assert_int_ge(inner.shared_code_bytes, 1000);
    ck_assert_int_lt(inner.fullest_tile_bytes + 1000, target.bytes_per_tile);
}

/* -------------------------------------------------------------- the results */

struct result {
    float losses[3], w[WIDTH * WIDTH];
};

static void run(struct result *r)
{
    static float rows[ROWS * WIDTH], w[WIDTH * WIDTH], b[WIDTH];
    uint64_t seed = 1;
    char name[32];

    MUST(ipu_engine_new(d.executable, &d.engine));
    for (int i = 0; i < ROWS * WIDTH; i++)
        rows[i] = device_random_float(&seed);
    for (int i = 0; i < 12; i++) {
        for (int k = 0; k < WIDTH * WIDTH; k++)
            w[k] = device_random_float(&seed) / 4;
        snprintf(name, sizeof name, "w%d", i);
        MUST(ipu_engine_write(d.engine, name, w, sizeof w));
        snprintf(name, sizeof name, "b%d", i);
        MUST(ipu_engine_write(d.engine, name, b, sizeof b));
    }
    device_connect(&d, "x", rows, ROWS * WIDTH);
    for (int i = 0; i < 3; i++) {
        device_connect(&d, "loss", &r->losses[i], 1);
        MUST(ipu_engine_run(d.engine));
    }
    MUST(ipu_engine_read(d.engine, "w3", r->w, sizeof r->w));
}

/* The program runs from memory, and from a file. */
TEST(results_are_the_same_bits)
{
    static struct result plain, shared, loaded;
    static char text[SEEN], again[SEEN];
    const char *path = device_file("");
    ipu_executable *e = NULL;

    build_layers(12);
    leave_short_of(5000);
    compile_plain();
    run(&plain);
    drop();
    MUST(ipu_compile_with(d.graph, &options, &d.executable));
    ck_assert_int_gt(memory().shared_code_bytes, 0);
    run(&shared);
    ck_assert_mem_eq(&plain, &shared, sizeof plain);
    ck_assert(plain.losses[0] != plain.losses[2]);

    MUST(ipu_executable_save(d.executable, path));
    MUST(ipu_executable_load(path, &e));
    ck_assert_int_lt(ipu_executable_print(d.executable, text, SEEN), SEEN);
    ck_assert_int_lt(ipu_executable_print(e, again, SEEN), SEEN);
    ck_assert_str_eq(text, again);
    ck_assert_ptr_nonnull(strstr(text, "  code shared by "));
    ck_assert_ptr_nonnull(strstr(text, "  code of step "));
    for (int32_t i = 0; i < memory().steps; i++) {
        ipu_step_info s = step(i), other = {.size = sizeof other};

        MUST(ipu_executable_step(e, i, &other));
        ck_assert_int_eq(s.code_of, other.code_of);
        ck_assert_int_eq(s.calls, other.calls);
        ck_assert_int_eq(s.copied_bytes, other.copied_bytes);
        ck_assert_int_eq(s.total_cycles, other.total_cycles);
    }
    drop();
    d.executable = e;
    run(&loaded);
    ck_assert_mem_eq(&plain, &loaded, sizeof plain);
    unlink(path);
}

TEST_MAIN("device_outline", .set_up = set_up, .tear_down = one_device_free,
          .seconds = 120)
