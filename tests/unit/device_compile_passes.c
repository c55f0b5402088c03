/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Passes leave out steps and memory; results are the same bits without them.
 */
#include "suite.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>

#include "one_device.h"

static uint32_t without; /* passes */

enum { ALL = 31 };

static void set_up(void)
{
    without = 0;
    d = device_new();
}

static ipu_memory_info compiled(void)
{
    const ipu_compile_options options = {.size = sizeof options,
                                         .without = without};

    ipu_engine_free(d.engine);
    ipu_executable_free(d.executable);
    d.engine = NULL;
    d.executable = NULL;
    MUST(ipu_compile_with(d.graph, &options, &d.executable));
    return device_memory(&d);
}

static void must_have(const char *words)
{
    ck_assert_msg(strstr(device_program(&d), words) != NULL,
                  "'%s' is not in:\n%s", words, device_program(&d));
}

static ipu_tensor row(const char *name, int64_t count)
{
    return device_floats(&d, name, 1, SHAPE(count));
}

static ipu_tensor fill(double value)
{
    return ipu_fill(d.graph, IPU_FLOAT32, 0, NULL, value);
}

/* ---------------------------------------------------------------- constants */

TEST(what_constants_make_is_a_constant)
{
    const float data[] = {1, 2, 3, 4, 5, 6};
    ipu_tensor c = ipu_constant(d.graph, IPU_FLOAT32, 2, SHAPE(2, 3), data);
    float y[6];

    c = ipu_transpose(d.graph, ipu_exp(d.graph, c), NULL);
    MUST(ipu_output(d.graph, "y", ipu_multiply(d.graph, c, fill(3))));
    ck_assert_int_eq(compiled().steps, 0);
    MUST(ipu_engine_new(d.executable, &d.engine));
    device_connect(&d, "y", y, 6);
    MUST(ipu_engine_run(d.engine));
    ck_assert_float_eq_tol(y[1], 3 * expf(4), 1e-3f);
    without = IPU_PASS_FOLD | IPU_PASS_FUSE;
    ck_assert_int_eq(compiled().steps, 4);
}

/* A large tensor of one value takes no memory until it is needed. */
TEST(what_is_the_same_everywhere_is_filled)
{
    ipu_tensor x = ipu_fill(d.graph, IPU_FLOAT32, 2, SHAPE(1000, 1000), 2);

    x = ipu_sqrt(d.graph, ipu_add(d.graph, x, ipu_square(d.graph, x)));
    x = ipu_reshape(d.graph, x, 1, SHAPE(-1));
    MUST(ipu_output(d.graph, "y", ipu_reduce_sum(d.graph, x, 1)));
    ck_assert_int_eq(compiled().steps, 2);
    ck_assert_int_eq(compiled().always_live_bytes, 0);
    must_have("reshape:4 ()"); /* filled in its place */
}

/* A constant that would be large is not built at all. */
TEST(large_constants_are_not_made)
{
    static const float data[100];
    ipu_tensor c = ipu_constant(d.graph, IPU_FLOAT32, 1, SHAPE(100), data);

    MUST(ipu_output(d.graph, "y",
                    ipu_broadcast(d.graph, c, 2, SHAPE(1000, 100))));
    ck_assert_int_eq(compiled().steps, 1);
    ck_assert_int_eq(compiled().always_live_bytes, 400);
}

/* An op that fails does so when the program runs. */
TEST(what_fails_is_not_folded)
{
    const int32_t nine[] = {9};
    ipu_tensor table =
        ipu_constant(d.graph, IPU_FLOAT32, 1, SHAPE(1), (float[]){1});
    ipu_tensor at = ipu_constant(d.graph, IPU_INT32, 1, SHAPE(1), nine);

    MUST(ipu_output(d.graph, "y", ipu_gather(d.graph, table, at, 0)));
    ck_assert_int_eq(compiled().steps, 1);
    MUST(ipu_engine_new(d.executable, &d.engine));
    MUST_FAIL(
        ipu_engine_run(d.engine), IPU_ERR_DATA,
        "gather: number 0 of constant:1 is 9, not one of the 1 of constant:0");
}

/* ------------------------------------------------------------------ algebra */

/* Builds something that equals x in every bit. */
static ipu_tensor unchanged(ipu_tensor x, int which)
{
    const int32_t swap[] = {1, 0};
    ipu_graph *g = d.graph;

    switch (which) {
    case 0: return ipu_multiply(g, x, fill(1));
    case 1: return ipu_divide(g, x, fill(1));
    case 2: return ipu_subtract(g, x, fill(0));
    case 3: return ipu_add(g, fill(-0.0), x);
    case 4: return ipu_negate(g, ipu_negate(g, x));
    case 5: return ipu_transpose(g, ipu_transpose(g, x, swap), swap);
    case 6:
        x = ipu_reshape(g, x, 1, SHAPE(12));
        return ipu_reshape(g, x, 2, SHAPE(3, 4));
    case 7: return ipu_cast(g, x, IPU_FLOAT32);
    case 8: return ipu_broadcast(g, x, 2, SHAPE(3, 4));
    default: return ipu_scale(g, x, 1, -0.0);
    }
}

enum { UNCHANGED = 10 };

LOOP_TEST(what_changes_nothing_is_dropped, 0, UNCHANGED)
{
    ipu_tensor x = device_floats(&d, "x", 2, SHAPE(3, 4));

    x = ipu_sqrt(d.graph, unchanged(x, _i));
    MUST(ipu_output(d.graph, "y", x));
    ck_assert_int_eq(compiled().steps, 1);
    must_have(" (x)");
}

/* An op that may change a 0's sign, or rounds differently, stays. */
LOOP_TEST(what_changes_a_bit_stays, 0, 4)
{
    ipu_tensor x = row("x", 2);
    float in[] = {-0.0f, 0x1.8p127f}, y[2];

    switch (_i) {
    case 0: x = ipu_add(d.graph, x, fill(0)); break;
    case 1: x = ipu_scale(d.graph, x, 1, 0); break;
    case 2: x = ipu_subtract(d.graph, x, fill(-0.0)); break;
    default: x = ipu_scale(d.graph, ipu_scale(d.graph, x, 2, 0), 0.5, 0); break;
    }
    MUST(ipu_output(d.graph, "y", x));
    compiled();
    MUST(ipu_engine_new(d.executable, &d.engine));
    device_connect(&d, "x", in, 2);
    device_connect(&d, "y", y, 2);
    MUST(ipu_engine_run(d.engine));
    ck_assert(!signbit(y[0]));
    if (_i == 3)
        ck_assert(isinf(y[1])); /* as 2 x is */
}

TEST(zero_is_added_to_what_is_never_negative)
{
    ipu_tensor x = ipu_relu(d.graph, row("x", 8));

    x = ipu_add(d.graph, ipu_scale(d.graph, x, 1, 0), fill(0));
    MUST(ipu_output(d.graph, "y", ipu_relu(d.graph, x)));
    ck_assert_int_eq(compiled().steps, 1);
}

/* A value that is rounded to float16 after +0 was added can be -0. */
LOOP_TEST(zero_is_added_to_what_is_rounded, 0, 2)
{
    ipu_tensor x = ipu_input(d.graph, "x", IPU_FLOAT16, 1, SHAPE(2));
    uint16_t least[2] = {0x0001, 0x8001}, y[2];

    x = ipu_scale(d.graph, ipu_scale(d.graph, x, 0.1, 0), _i ? 1 : -1, 0);
    MUST(ipu_output(d.graph, "y", x));
    device_load(&d);
    MUST(ipu_engine_connect(d.engine, "x", least, sizeof least));
    MUST(ipu_engine_connect(d.engine, "y", y, sizeof y));
    MUST(ipu_engine_run(d.engine));
    ck_assert_uint_eq(y[0], 0);
    ck_assert_uint_eq(y[1], 0);
}

LOOP_TEST(two_become_one, 0, 4)
{
    const int32_t first[] = {2, 0, 1}, second[] = {0, 2, 1};
    ipu_tensor x = device_floats(&d, "x", 3, SHAPE(2, 3, 4)), y = x;

    switch (_i) {
    case 0:
        y = ipu_transpose(d.graph, ipu_transpose(d.graph, x, first), second);
        break;
    case 1: y = ipu_abs(d.graph, ipu_negate(d.graph, x)); break;
    case 2: y = ipu_scale(d.graph, ipu_scale(d.graph, x, 3, 0), -1, 0); break;
    default:
        x = ipu_input(d.graph, "h", IPU_FLOAT16, 1, SHAPE(8));
        y = ipu_cast(d.graph, ipu_cast(d.graph, x, IPU_FLOAT32), IPU_BFLOAT16);
        break;
    }
    MUST(ipu_output(d.graph, "y", y));
    ck_assert_int_eq(compiled().steps, 1);
    must_have(_i == 3 ? "(h)" : "(x)");
}

/* An output of a variable shows the new value, an output of a copy the old one:
 * the copy must not be taken for the variable. */
TEST(a_copy_of_a_variable_stays_what_it_was)
{
    ipu_tensor v = ipu_variable(d.graph, "v", IPU_FLOAT32, 1, SHAPE(1));
    float copy[1], now[1];

    MUST(ipu_output(d.graph, "copy", ipu_multiply(d.graph, v, fill(1))));
    MUST(ipu_output(d.graph, "now", v));
    MUST(ipu_assign(d.graph, v, ipu_add(d.graph, v, fill(1))));
    device_load(&d);
    device_connect(&d, "copy", copy, 1);
    device_connect(&d, "now", now, 1);
    MUST(ipu_engine_run(d.engine));
    ck_assert_float_eq(copy[0], 0);
    ck_assert_float_eq(now[0], 1);
}

/* ------------------------------------------------------------------ merging */

TEST(what_is_computed_twice_is_computed_once)
{
    ipu_tensor x = row("x", 64), step = ipu_counter(d.graph, "step");
    ipu_tensor a = ipu_dropout(d.graph, ipu_exp(d.graph, x), 0.5, 7, step);
    ipu_tensor b = ipu_dropout(d.graph, ipu_exp(d.graph, x), 0.5, 7, step);
    ipu_tensor c = ipu_dropout(d.graph, ipu_exp(d.graph, x), 0.5, 8, step);

    MUST(ipu_output(d.graph, "a", a));
    MUST(ipu_output(d.graph, "b", b));
    MUST(ipu_output(d.graph, "c", c));
    without = IPU_PASS_FUSE;
    ck_assert_int_eq(compiled().steps, 3 + 2); /* and the counter */
    without |= IPU_PASS_MERGE;
    ck_assert_int_eq(compiled().steps, 6 + 2);
}

TEST(different_attributes_are_not_merged)
{
    ipu_tensor x = row("x", 64);

    MUST(ipu_output(d.graph, "a", ipu_scale(d.graph, x, 2, 0)));
    MUST(ipu_output(d.graph, "b", ipu_scale(d.graph, x, 2, 1)));
    MUST(ipu_output(d.graph, "c", ipu_slice(d.graph, x, SHAPE(0), SHAPE(8))));
    MUST(ipu_output(d.graph, "d", ipu_slice(d.graph, x, SHAPE(8), SHAPE(8))));
    without = IPU_PASS_FUSE;
    ck_assert_int_eq(compiled().steps, 4);
}

/* ------------------------------------------------------------------- fusion */

/* The ops that follow a convolution take its output while it is in the
 * cache. */
TEST(a_layer_is_one_step)
{
    ipu_tensor x = device_floats(&d, "x", 4, SHAPE(2, 9, 9, 3));
    ipu_tensor k =
        ipu_variable(d.graph, "k", IPU_FLOAT32, 4, SHAPE(3, 3, 3, 5));
    ipu_tensor b = ipu_variable(d.graph, "b", IPU_FLOAT32, 1, SHAPE(5));
    ipu_step_info info = {.size = sizeof info};
    int64_t fused, apart;

    x = ipu_bias_add(d.graph, ipu_conv2d(d.graph, x, k, NULL), b);
    MUST(ipu_output(d.graph, "y", ipu_relu(d.graph, x)));
    ck_assert_int_eq(compiled().steps, 1);
    must_have("conv2d:0 + bias_add:1 + relu:2 (x, k, b)");
    MUST(ipu_executable_step(d.executable, 0, &info));
    ck_assert_str_eq(info.op, "conv2d");
    ck_assert_str_eq(info.parts, "conv2d, bias_add, relu");
    fused = info.total_cycles;
    without = IPU_PASS_FUSE;
    ck_assert_int_eq(compiled().steps, 3);
    apart = 0;
    for (int32_t i = 0; i < 3; i++) {
        MUST(ipu_executable_step(d.executable, i, &info));
        ck_assert_ptr_null(info.parts);
        apart += info.total_cycles;
    }
    ck_assert_int_lt(fused, apart);
}

/* A value that passes between parts has no memory, and no loads and stores. */
TEST(what_is_in_between_needs_no_memory)
{
    enum { COUNT = 100000 };
    ipu_tensor x = row("x", COUNT), y = x;
    int64_t fused;

    for (int i = 0; i < 6; i++) {
        y = ipu_add(d.graph, ipu_tanh(d.graph, y), x);
        y = ipu_multiply(d.graph, y, y);
    }
    MUST(ipu_output(d.graph, "y", y));
    fused = compiled().peak_bytes;
    ck_assert_int_eq(fused, COUNT * 4); /* in the place of x */
    without = IPU_PASS_FUSE;
    ck_assert_int_ge(compiled().peak_bytes, 2 * fused);
}

/* Moments and variable, each in its place. */
TEST(an_optimiser_is_one_step_in_place)
{
    ipu_tensor w = ipu_variable(d.graph, "w", IPU_FLOAT32, 1, SHAPE(6000));
    ipu_tensor g = row("g", 6000), rate = device_floats(&d, "rate", 0, NULL);

    MUST(ipu_adamw(d.graph, w, g, rate, ipu_counter(d.graph, "step"), NULL));
    ck_assert_int_eq(compiled().steps, 3); /* and the counter's two */
    must_have("blend:");
    must_have(" + assign w/m + ");
    must_have(" + assign w (");
    ck_assert_int_lt(compiled().peak_bytes, 4 * 6000 * 4 + 32);
}

/* A host call that shows the value in between keeps the two ops apart. */
TEST(a_host_call_comes_when_it_did)
{
    ipu_tensor x = row("x", 8), y = ipu_exp(d.graph, ipu_sqrt(d.graph, x));
    const char *call, *rest;

    MUST(ipu_host_call(d.graph, "call", y, device_no_call, NULL));
    y = ipu_tanh(d.graph, ipu_sqrt(d.graph, y));
    MUST(ipu_output(d.graph, "y", y));
    ck_assert_int_eq(compiled().steps, 3);
    call = strstr(device_program(&d), "host_call 'call' exp:1");
    rest = strstr(device_program(&d), "sqrt:2 + tanh:3 (exp:1)");
    ck_assert(call && rest && call < rest);
}

/* A column is not the end of a row: its op stays by itself. */
TEST(other_broadcasts_stay_apart)
{
    ipu_tensor x = device_floats(&d, "x", 2, SHAPE(8, 8));
    ipu_tensor column = device_floats(&d, "c", 2, SHAPE(8, 1));

    x = ipu_add(d.graph, ipu_exp(d.graph, x), column);
    MUST(ipu_output(d.graph, "y", x));
    ck_assert_int_eq(compiled().steps, 2);
}

/* ------------------------------------------------------- the same bits, odd
 * shapes */

enum { ROWS = 301, COLUMNS = 37, SIZE = ROWS * COLUMNS };

struct fed {
    float x[SIZE], row[COLUMNS], first[SIZE], second[SIZE], w[SIZE], m[SIZE];
    uint16_t half[SIZE];
};

static ipu_tensor chain(ipu_graph *g, ipu_tensor x, ipu_tensor bias,
                        ipu_tensor w)
{
    ipu_tensor step = ipu_counter(g, "step"), y;

    y = ipu_gelu(g, ipu_bias_add(g, x, bias));
    y = ipu_dropout(g, y, 0.3, 11, step);
    y = ipu_reshape(g, ipu_multiply(g, bias, y), 1, SHAPE(SIZE));
    y = ipu_reshape(g, y, 2, SHAPE(ROWS, COLUMNS));
    return ipu_select(g, ipu_less(g, y, ipu_scale(g, x, 0.1, 0)), w, y);
}

static void build_chain(ipu_graph *g)
{
    ipu_tensor x = ipu_input(g, "x", IPU_FLOAT32, 2, SHAPE(ROWS, COLUMNS));
    ipu_tensor bias = ipu_input(g, "row", IPU_FLOAT32, 1, SHAPE(COLUMNS));
    ipu_tensor w = ipu_variable(g, "w", IPU_FLOAT32, 2, SHAPE(ROWS, COLUMNS));
    ipu_tensor y = chain(g, x, bias, w), half, noise;
    const ipu_sgd_options sgd = {.size = sizeof sgd, .momentum = 0.9};
    ipu_tensor gradient;

    half = ipu_cast(g, ipu_tanh(g, y), IPU_FLOAT16);
    half = ipu_bias_add(g, half, ipu_cast(g, bias, IPU_FLOAT16));
    MUST(ipu_output(g, "half", ipu_relu(g, half)));
    MUST(ipu_gradients(g, ipu_reduce_sum(g, ipu_square(g, y), 1), 1, &w,
                       &gradient));
    noise = ipu_random_uniform(g, 2, SHAPE(ROWS, COLUMNS), -1, 1, 3,
                               ipu_fill(g, IPU_INT32, 0, NULL, 4));
    MUST(ipu_output(g, "first",
                    ipu_add(g, noise,
                            ipu_matmul(g, y,
                                       ipu_fill(g, IPU_FLOAT32, 2,
                                                SHAPE(COLUMNS, COLUMNS), 1)))));
    MUST(ipu_output(g, "second", y));
    MUST(ipu_sgd(g, w, gradient, ipu_fill(g, IPU_FLOAT32, 0, NULL, 0.1), &sgd));
}

static void run_chain(uint32_t passes, const char *poison, struct fed *fed)
{
    const ipu_compile_options options = {.size = sizeof options,
                                         .without = passes};
    struct device own = device_new();

    ck_assert_int_eq(setenv("IPU_POISON", poison, 1), 0);
    build_chain(own.graph);
    MUST(ipu_compile_with(own.graph, &options, &own.executable));
    MUST(ipu_engine_new(own.executable, &own.engine));
    device_fill(fed->x, SIZE, 1);
    device_fill(fed->row, COLUMNS, 2);
    device_fill(fed->w, SIZE, 3);
    device_connect(&own, "x", fed->x, SIZE);
    device_connect(&own, "row", fed->row, COLUMNS);
    device_connect(&own, "first", fed->first, SIZE);
    device_connect(&own, "second", fed->second, SIZE);
    MUST(ipu_engine_connect(own.engine, "half", fed->half, sizeof fed->half));
    MUST(ipu_engine_write(own.engine, "w", fed->w, sizeof fed->w));
    for (int i = 0; i < 3; i++)
        MUST(ipu_engine_run(own.engine));
    MUST(ipu_engine_read(own.engine, "w", fed->w, sizeof fed->w));
    MUST(ipu_engine_read(own.engine, "w/momentum", fed->m, sizeof fed->m));
    device_free(&own);
}

/* Some of the weights have a gradient. */
static bool learns(const struct fed *fed)
{
    int moved = 0;

    for (int i = 0; i < SIZE; i++)
        moved += fed->m[i] != 0;
    return moved > SIZE / 10;
}

/* The test runs rows of an odd length, more than a block, halves, dropout,
 * random numbers, a gradient and its optimiser, with each set of passes and
 * without passes. */
LOOP_TEST(passes_change_no_bit, 0, 2 * (ALL + 1))
{
    static struct fed plain, other;

    run_chain(ALL, "0", &plain);
    ck_assert(isfinite(plain.first[0]) && learns(&plain));
    run_chain((uint32_t)_i / 2, _i % 2 ? "1" : "0", &other);
    ck_assert_mem_eq(&plain, &other, sizeof plain);
}

/* A whole product or convolution as the head. */
static ipu_tensor head(ipu_graph *g, int which, ipu_tensor x, ipu_tensor w)
{
    const ipu_conv_options grouped = {
        .size = sizeof grouped, .stride = {1, 1}, .same = 1, .groups = 2};

    if (which < 2)
        return ipu_batch_matmul(g, x, w, 0, which);
    x = ipu_reshape(g, x, 4, SHAPE(4, 20, 10, 6));
    return ipu_conv2d(g, x,
                      ipu_slice(g, ipu_reshape(g, w, 4, SHAPE(4, 5, 15, 4)),
                                SHAPE(0, 0, 0, 0), SHAPE(3, 3, 3, 4)),
                      &grouped);
}

LOOP_TEST(heads_change_no_bit, 0, 3)
{
    static float in[4 * 20 * 60], weights[1200], out[2][4 * 20 * 60];

    device_fill(in, 4800, 1);
    device_fill(weights, 1200, 2);
    for (int fused = 0; fused < 2; fused++) {
        ipu_tensor x = device_floats(&d, "x", 3, SHAPE(4, 20, 60)), y;
        ipu_tensor w =
            _i == 1 ? ipu_variable(d.graph, "w", IPU_FLOAT32, 2, SHAPE(20, 60))
                    : ipu_variable(d.graph, "w", IPU_FLOAT32, 2, SHAPE(60, 20));
        int64_t shape[IPU_MAX_DIMS], count;
        int ndim;

        y = head(d.graph, _i, x, w);
        ndim = ipu_tensor_info(d.graph, y, NULL, shape, NULL);
        count = device_count(&d, y);
        y = ipu_bias_add(d.graph, y,
                         device_floats(&d, "b", 1, SHAPE(shape[ndim - 1])));
        MUST(ipu_output(d.graph, "y", ipu_silu(d.graph, y)));
        without = fused ? 0 : IPU_PASS_FUSE;
        compiled();
        MUST(ipu_engine_new(d.executable, &d.engine));
        device_connect(&d, "x", in, 4800);
        device_connect(&d, "b", weights, shape[ndim - 1]);
        device_connect(&d, "y", out[fused], count);
        MUST(ipu_engine_write(d.engine, "w", weights, sizeof weights));
        MUST(ipu_engine_run(d.engine));
        device_free(&d);
        d = device_new();
    }
    ck_assert_mem_eq(out[0], out[1], sizeof out[0]);
    ck_assert(out[0][5] != 0);
}

TEST_MAIN("device_compile_passes", .set_up = set_up,
          .tear_down = one_device_free)
