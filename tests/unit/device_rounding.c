/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tests stochastic rounding: the possible results, their frequency, and that
 * the mean of many draws is the rounded number. The same seed and step give the
 * same bits. Graphs are built with it, too.
 */
#include "one_device.h"
#include "suite.h"

#include <math.h>
#include <stdbool.h>

enum { DRAWS = 1 << 16 };

static double value_of(ipu_dtype dtype, uint16_t half)
{
    double sign = half & 0x8000 ? -1 : 1;
    uint32_t bits = (uint32_t)half << 16;
    int exponent = half >> 10 & 31, mantissa = half & 0x3ff;
    float wide;

    memcpy(&wide, &bits, sizeof wide);
    if (dtype == IPU_BFLOAT16)
        return (double)wide;
    if (exponent == 31)
        return mantissa ? (double)NAN : sign * (double)INFINITY;
    return exponent ? sign * ldexp(1024 + mantissa, exponent - 25)
                    : sign * ldexp(mantissa, -24);
}

/* Makes DRAWS draws of x. */
static void draw(ipu_dtype dtype, float x, uint64_t seed, int32_t step,
                 uint16_t *to)
{
    ipu_tensor one = ipu_input(d.graph, "x", IPU_FLOAT32, 0, NULL);
    ipu_tensor s = ipu_input(d.graph, "step", IPU_INT32, 0, NULL);

    one = ipu_broadcast(d.graph, one, 1, SHAPE(DRAWS));
    MUST(ipu_output(d.graph, "y",
                    ipu_stochastic_cast(d.graph, one, dtype, seed, s)));
    device_load(&d);
    device_connect(&d, "x", &x, 1);
    MUST(ipu_engine_connect(d.engine, "step", &step, sizeof step));
    MUST(ipu_engine_connect(d.engine, "y", to, DRAWS * sizeof *to));
    MUST(ipu_engine_run(d.engine));
}

static const float between[] = {
    1.0001f,    -3.00037f, 1000.3f, -65503.9f, 1.1e-4f, 6.0e-5f,
    6.1035e-5f, 3e-6f,     1e-8f,   -1e-7f,    0.1f,
};
enum { BETWEEN = sizeof between / sizeof *between };

/* A draw gives one of two numbers, next to each other, on both sides of x; and
 * their mean is x: 65536 draws of a step have a deviation of at most 1 / 512 of
 * it, and 5 of these are one in two millions. */
LOOP_TEST(the_mean_of_many_draws, 0, 2 * BETWEEN)
{
    static uint16_t got[DRAWS];
    ipu_dtype dtype = _i < BETWEEN ? IPU_FLOAT16 : IPU_BFLOAT16;
    double x = (double)between[_i % BETWEEN], sum = 0, low = 0, high = 0;

    draw(dtype, between[_i % BETWEEN], 12, 3, got);
    low = high = value_of(dtype, got[0]);
    for (int i = 0; i < DRAWS; i++) {
        double value = value_of(dtype, got[i]);

        sum += value;
        low = value < low ? value : low;
        high = value > high ? value : high;
    }
    ck_assert_double_le(low, x);
    ck_assert_double_ge(high, x);
    for (int i = 0; i < DRAWS; i++) {
        double value = value_of(dtype, got[i]);

        ck_assert(value == low || value == high);
        /* Neighbours: their bits differ by one, or by the sign of 0. */
        ck_assert(abs((got[i] & 0x7fff) - (got[0] & 0x7fff)) <= 1);
    }
    ck_assert_double_eq_tol(sum / DRAWS, x, 5.0 / 512 * (high - low));
}

LOOP_TEST(what_a_half_has_stays, 0, 9)
{
    static const float exact[] = {0,        -0.0f,    1,        -2.5f,    65504,
                                  0x1p-24f, 0x1p-14f, INFINITY, -INFINITY};
    static uint16_t got[DRAWS];
    float x = exact[_i];

    draw(IPU_FLOAT16, x, 5, 0, got);
    for (int i = 0; i < DRAWS; i++) {
        ck_assert(value_of(IPU_FLOAT16, got[i]) == (double)x);
        ck_assert_int_eq(got[i] >> 15, signbit(x) != 0);
    }
}

/* Values beyond the range are rounded as round-to-nearest does. */
LOOP_TEST(what_is_too_large, 0, 5)
{
    static const struct {
        float x, wanted;
    } cases[] = {{65510, 65504},
                 {65519.9f, 65504},
                 {65520, INFINITY},
                 {-1e30f, -INFINITY},
                 {-65519, -65504}};
    static uint16_t got[DRAWS];

    draw(IPU_FLOAT16, cases[_i].x, 5, 0, got);
    for (int i = 0; i < DRAWS; i++)
        ck_assert(value_of(IPU_FLOAT16, got[i]) == (double)cases[_i].wanted);
}

LOOP_TEST(nan_stays, 0, 2)
{
    static uint16_t got[DRAWS];
    ipu_dtype dtype = _i ? IPU_BFLOAT16 : IPU_FLOAT16;

    draw(dtype, NAN, 5, 0, got);
    for (int i = 0; i < DRAWS; i++)
        ck_assert(isnan(value_of(dtype, got[i])));
}

LOOP_TEST(seed_and_step_decide, 0, 3)
{
    static uint16_t first[DRAWS], second[DRAWS];
    int differ = 0;

    draw(IPU_FLOAT16, 1.0003f, 7, 1, first);
    device_free(&d);
    d = device_new();
    draw(IPU_FLOAT16, 1.0003f, _i == 1 ? 8 : 7, _i == 2 ? 2 : 1, second);
    for (int i = 0; i < DRAWS; i++)
        differ += first[i] != second[i];
    if (_i == 0)
        ck_assert_int_eq(differ, 0);
    else /* each is 1 with 0.307: they differ with the probability 0.43 */
        ck_assert_int_gt(differ, DRAWS * 4 / 10);
}

/* ---------------------------------------------------------------- of graphs */

enum { N = 64, STEPS = 4000 };

/* Computes w = w + 0.0001 in float16, where rounding to nearest leaves 1
 * unchanged. */
static void count_up(bool stochastic, const ipu_target *target, uint16_t *w)
{
    ipu_tensor v = ipu_variable(d.graph, "w", IPU_FLOAT16, 1, SHAPE(N));
    ipu_tensor step = ipu_counter(d.graph, "step");
    ipu_tensor small = ipu_fill(d.graph, IPU_FLOAT16, 0, NULL, 0.0001);

    MUST(ipu_stochastic_rounding(d.graph, stochastic, 3, step));
    MUST(ipu_assign(d.graph, v, ipu_add(d.graph, v, small)));
    MUST(ipu_compile(d.graph, target, &d.executable));
    MUST(ipu_engine_new(d.executable, &d.engine));
    for (int i = 0; i < N; i++)
        w[i] = 0x3c00;
    MUST(ipu_engine_write(d.engine, "w", w, N * sizeof *w));
    for (int i = 0; i < STEPS; i++)
        MUST(ipu_engine_run(d.engine));
    MUST(ipu_engine_read(d.engine, "w", w, N * sizeof *w));
}

LOOP_TEST(small_steps_add_up, 0, 2)
{
    double sum = 0;
    uint16_t w[N];

    count_up(_i, NULL, w);
    for (int i = 0; i < N; i++)
        sum += value_of(IPU_FLOAT16, w[i]) / N;
    if (!_i) {
        ck_assert_double_eq(sum, 1);
        return;
    }
    /* A step of 1/1024 in one of ten: a deviation of 0.0185 of each, 0.0023
     * of the mean of 64. */
    ck_assert_double_eq_tol(sum, 1.4, 0.012);
    ck_assert_uint_ne(w[0], w[1]);
}

TEST(the_target_changes_nothing)
{
    uint16_t first[N], second[N];
    ipu_target small;

    ipu_target_init(&small, sizeof small);
    small.tiles = 3;
    count_up(true, NULL, first);
    device_free(&d);
    d = device_new();
    count_up(true, &small, second);
    ck_assert_mem_eq(first, second, sizeof first);
}

/* A product, an activation, their derivatives, an update: each result is a
 * neighbour of what float32 makes of the same halves. */
TEST(whole_networks_are_built_with_it)
{
    ipu_tensor x = ipu_input(d.graph, "x", IPU_FLOAT16, 2, SHAPE(8, 16));
    ipu_tensor w = ipu_variable(d.graph, "w", IPU_FLOAT16, 2, SHAPE(16, 4));
    ipu_tensor step = ipu_counter(d.graph, "step"), y, wide, loss, dw, rate;
    uint16_t halves[128], weights[64], got[32], slopes[64];
    float exact[32];
    int moved = 0;

    rate = ipu_fill(d.graph, IPU_FLOAT16, 0, NULL, 0.125);
    wide = ipu_matmul(d.graph, ipu_cast(d.graph, x, IPU_FLOAT32),
                      ipu_cast(d.graph, w, IPU_FLOAT32));
    MUST(ipu_stochastic_rounding(d.graph, 1, 9, step));
    y = ipu_matmul(d.graph, x, w);
    loss = ipu_reduce_sum(d.graph, ipu_tanh(d.graph, y), 0.1);
    loss = ipu_cast(d.graph, loss, IPU_FLOAT32);
    MUST(ipu_gradients(d.graph, loss, 1, &w, &dw));
    MUST(ipu_sgd(d.graph, w, dw, rate, NULL));
    MUST(ipu_output(d.graph, "y", y));
    MUST(ipu_output(d.graph, "dw", dw));
    MUST(ipu_output(d.graph, "exact", wide));
    device_load(&d);
    for (int i = 0; i < 128; i++)
        halves[i] = (uint16_t)(0x3000 + 97 * i % 2048);
    for (int i = 0; i < 64; i++)
        weights[i] = (uint16_t)(0xb000 + 61 * i % 1024);
    MUST(ipu_engine_write(d.engine, "w", weights, sizeof weights));
    MUST(ipu_engine_connect(d.engine, "x", halves, sizeof halves));
    MUST(ipu_engine_connect(d.engine, "y", got, sizeof got));
    MUST(ipu_engine_connect(d.engine, "dw", slopes, sizeof slopes));
    device_connect(&d, "exact", exact, 32);
    MUST(ipu_engine_run(d.engine));
    for (int i = 0; i < 32; i++) {
        double value = value_of(IPU_FLOAT16, got[i]), x0 = (double)exact[i];
        double unit = ldexp(1, ilogb(x0) - 10);

        ck_assert_double_lt(fabs(value - x0), unit);
        moved += fabs(value - x0) > unit / 2;
    }
    ck_assert_int_gt(moved, 2); /* not to the nearest */
    for (int i = 0; i < 64; i++)
        ck_assert(isfinite(value_of(IPU_FLOAT16, slopes[i])));
}

/* Comparisons, moves and other dtypes go on as they are. */
TEST(what_makes_no_float16_stays)
{
    ipu_tensor x = ipu_input(d.graph, "x", IPU_FLOAT16, 1, SHAPE(4));
    ipu_tensor step = ipu_input(d.graph, "step", IPU_INT32, 0, NULL), y;
    const char *name;

    MUST(ipu_stochastic_rounding(d.graph, 1, 9, step));
    y = ipu_less(d.graph, x, x);
    MUST(ipu_tensor_info(d.graph, y, NULL, NULL, &name));
    ck_assert_str_eq(name, "less:0");
    y = ipu_reshape(d.graph, x, 2, SHAPE(2, 2));
    MUST(ipu_tensor_info(d.graph, y, NULL, NULL, &name));
    ck_assert_str_eq(name, "reshape:1");
    y = ipu_abs(d.graph, x);
    MUST(ipu_tensor_info(d.graph, y, NULL, NULL, &name));
    ck_assert_str_eq(name, "stochastic_cast:4");
    MUST(ipu_stochastic_rounding(d.graph, 0, 0, (ipu_tensor){-1}));
    y = ipu_abs(d.graph, x);
    MUST(ipu_tensor_info(d.graph, y, NULL, NULL, &name));
    ck_assert_str_eq(name, "abs:5");
}

static int differentiate(ipu_graph *graph, void *context, int32_t ninputs,
                         const ipu_tensor *inputs, int32_t noutputs,
                         ipu_tensor *outputs)
{
    const ipu_tensor *v = context;
    ipu_tensor sum = ipu_cast(graph, *v, IPU_FLOAT32), slope;

    (void)ninputs, (void)inputs, (void)noutputs;
    for (int i = 0; i < 40; i++) /* the body begins with many tensors */
        sum = ipu_tanh(graph, sum);
    sum = ipu_reduce_sum(graph, sum, 1);
    MUST(ipu_gradients(graph, sum, 1, v, &slope));
    outputs[0] = ipu_cast(graph, slope, IPU_FLOAT32);
    return 0;
}

/* The first to be rounded in the body is a derivative: which brings the step
 * there. */
TEST(derivatives_in_a_loop_are_rounded)
{
    ipu_tensor step = ipu_counter(d.graph, "step"), in, out;
    ipu_tensor v = ipu_variable(d.graph, "v", IPU_FLOAT16, 1, SHAPE(4));
    float zero[4] = {0}, slope[4];

    in = device_floats(&d, "x", 1, SHAPE(4));
    MUST(ipu_stochastic_rounding(d.graph, 1, 5, step));
    MUST(ipu_repeat(d.graph, 2, differentiate, &v, 1, &in, NULL, &out));
    MUST(ipu_output(d.graph, "slope", out));
    device_load(&d);
    device_connect(&d, "x", zero, 4);
    device_connect(&d, "slope", slope, 4);
    MUST(ipu_engine_run(d.engine));
    for (int i = 0; i < 4; i++)
        ck_assert_float_eq(slope[i], 1); /* of tanh, at 0 */
}

LOOP_TEST(misuse_is_refused, 0, 4)
{
    ipu_tensor x = device_floats(&d, "x", 1, SHAPE(2));
    ipu_tensor step = ipu_input(d.graph, "step", IPU_INT32, 0, NULL);
    static const char *const words[] = {
        "is neither float16 nor bfloat16", "the step, a scalar",
        "x, is no int32 scalar", "the step: the tensor is invalid"};

    if (_i == 0)
        ipu_stochastic_cast(d.graph, x, IPU_FLOAT32, 1, step);
    else if (_i == 1)
        ipu_stochastic_cast(d.graph, x, IPU_FLOAT16, 1, x);
    else
        ck_assert_int_lt(ipu_stochastic_rounding(
                             d.graph, 1, 1, _i == 2 ? x : (ipu_tensor){-1}),
                         0);
    device_says(&d, words[_i]);
}

TEST_MAIN("device_rounding", .set_up = one_device_new,
          .tear_down = one_device_free, .seconds = 60)
