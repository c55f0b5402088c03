/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tests loss scaling. The scale follows its rules, gradients come back as
 * without it, updates with values that are not finite are left out, and float16
 * learns with a scale what it loses without one.
 */
#include "suite.h"

#include <math.h>
#include <stdbool.h>

#include "one_device.h"

enum { COUNT = 300 };

static ipu_tensor w, x;
static ipu_loss_scaling scaling;

static void set_up(void)
{
    d = device_new();
    scaling = (ipu_loss_scaling){.size = sizeof scaling};
}

/* Builds sum(w x) with w and x in float16: the derivative is the scale times
 * x. */
static void build(const ipu_loss_scaling_options *o, ipu_tensor *slope)
{
    ipu_tensor y;

    w = ipu_variable(d.graph, "w", IPU_FLOAT16, 1, SHAPE(COUNT));
    x = device_floats(&d, "x", 1, SHAPE(COUNT));
    y = ipu_multiply(d.graph, w, ipu_cast(d.graph, x, IPU_FLOAT16));
    y = ipu_reduce_sum(d.graph, ipu_cast(d.graph, y, IPU_FLOAT32), 1);
    MUST(
        ipu_scaled_gradients(d.graph, "scaling", y, 1, &w, o, slope, &scaling));
}

static float read_float(const char *name)
{
    float value;

    MUST(ipu_engine_read(d.engine, name, &value, sizeof value));
    return value;
}

/* ---------------------------------------------------------------- the rules */

/* The expected scale, step for step. */
struct model {
    double scale, overflows;
    int runs;
};

/* Rounds a value as float16 does, if it is neither tiny nor huge. */
static double rounded(double value)
{
    int exponent;
    double mantissa = frexp(value, &exponent);

    return ldexp(rint(ldexp(mantissa, 11)), exponent - 11);
}

static int count_overflows(const float *values, double scale)
{
    int count = 0;

    scale = rounded(scale);

    /* Half way from 65504 to the next, 65520, is rounded up to infinity. */
    for (int i = 0; i < COUNT; i++)
        count += !(fabs((double)values[i] * scale) < 65504 - 16);
    return count;
}

static void take_step(struct model *m, const ipu_loss_scaling_options *o,
                      int overflows)
{
    double next, elements = COUNT * (o->latest_only ? 1 : o->update_frequency);

    m->overflows = (o->latest_only ? 0 : m->overflows) + overflows;
    if (++m->runs < o->update_frequency)
        return;
    next =
        (double)(float)(m->scale * (m->overflows / elements > o->ratio_threshold
                                        ? o->decrease
                                        : o->increase));
    if (next < o->maximum && next >= 1)
        m->scale = next;
    m->runs = 0;
    m->overflows = 0;
}

static const ipu_loss_scaling_options cases[] = {
    {sizeof cases[0], 8, 1, 2, 0.5, 32768, 1e-5, 0, 0},
    {sizeof cases[0], 2, 20, 1.5, 0.75, 32768, 1e-5, 0, 0},
    {sizeof cases[0], 3, 512, 4, 0.25, 5000, 0.01, 0, 0},
    {sizeof cases[0], 4, 256, 2, 0.5, 32768, 0.005, 1, 0},
    {sizeof cases[0], 1, 30, 1.25, 0.5, 100, 0.5, 0, 0},
};

LOOP_TEST(the_scale_follows_its_rules, 0, sizeof cases / sizeof *cases)
{
    const ipu_loss_scaling_options *o = &cases[_i];
    struct model m = {.scale = o->initial};
    float values[COUNT], scale, overflows;
    int32_t finite, changes = 0;
    ipu_tensor slope;

    build(o, &slope);
    MUST(ipu_output(d.graph, "scale", scaling.scale));
    MUST(ipu_output(d.graph, "overflows", scaling.overflows));
    MUST(ipu_output(d.graph, "finite", scaling.finite));
    device_load(&d);
    device_connect(&d, "x", values, COUNT);
    device_connect(&d, "scale", &scale, 1);
    device_connect(&d, "overflows", &overflows, 1);
    device_connect(&d, "finite", &finite, 1);
    for (int run = 0; run < 150; run++) {
        double before = m.scale;

        /* A larger scale makes more of them overflow. Multiples of 8 are exact
         * in float16. */
        for (int i = 0; i < COUNT; i++)
            values[i] = (float)((i * 8) % 2048);
        MUST(ipu_engine_run(d.engine));
        ck_assert_double_eq_tol((double)scale, m.scale, m.scale * 1e-6);
        ck_assert_int_eq((int)overflows, count_overflows(values, m.scale));
        ck_assert_int_eq(finite, overflows == 0);
        take_step(&m, o, (int)overflows);
        ck_assert_double_eq_tol((double)read_float("scaling/scale"), m.scale,
                                m.scale * 1e-6);
        changes += m.scale != before;
    }
    ck_assert_int_ge(changes, 3);
}

/* NaN and infinities are overflows in every dtype; 65504 is the limit. */
LOOP_TEST(what_is_not_finite_is_counted, 0, 3)
{
    static const ipu_dtype dtypes[] = {IPU_FLOAT32, IPU_FLOAT16, IPU_BFLOAT16};
    const ipu_loss_scaling_options o = {.size = sizeof o};
    float values[] = {NAN, INFINITY, -INFINITY, 65504, -70000, 65000,
                      0,   -1,       1e-8f,     60000, -65536, 1};
    enum { N = sizeof values / sizeof *values };
    ipu_tensor v = ipu_variable(d.graph, "v", dtypes[_i], 1, SHAPE(N)), slope,
               y;
    float overflows;

    x = device_floats(&d, "x", 1, SHAPE(N));
    y = ipu_multiply(d.graph, v, ipu_cast(d.graph, x, dtypes[_i]));
    y = ipu_reduce_sum(d.graph, ipu_cast(d.graph, y, IPU_FLOAT32), 1);
    MUST(ipu_scaled_gradients(d.graph, "s", y, 1, &v, &o, &slope, &scaling));
    MUST(ipu_output(d.graph, "overflows", scaling.overflows));
    device_load(&d);
    device_connect(&d, "x", values, N);
    device_connect(&d, "overflows", &overflows, 1);
    MUST(ipu_engine_run(d.engine));
    /* bfloat16 rounds 65504 to 65536, and 65000 to 65024. */
    ck_assert_float_eq(overflows, 6);
}

/* Powers of 2 change no bit of a value within the range. */
LOOP_TEST(gradients_come_back, 0, 2)
{
    const ipu_loss_scaling_options o = {
        .size = sizeof o, .initial = 64, .widen = _i};
    float values[COUNT];
    uint16_t plain[COUNT], halves[COUNT];
    float floats[COUNT];
    ipu_tensor slope, other, y;
    ipu_dtype dtype;

    build(&o, &slope);
    y = ipu_multiply(d.graph, w, ipu_cast(d.graph, x, IPU_FLOAT16));
    y = ipu_reduce_sum(d.graph, ipu_cast(d.graph, y, IPU_FLOAT32), 1);
    MUST(ipu_gradients(d.graph, y, 1, &w, &other));
    MUST(ipu_tensor_info(d.graph, slope, &dtype, NULL, NULL));
    ck_assert_int_eq(dtype, _i ? IPU_FLOAT32 : IPU_FLOAT16);
    MUST(ipu_output(d.graph, "slope", slope));
    MUST(ipu_output(d.graph, "wide", ipu_cast(d.graph, other, IPU_FLOAT32)));
    MUST(ipu_output(d.graph, "other", other));
    device_load(&d);
    device_fill(values, COUNT, 5);
    device_connect(&d, "x", values, COUNT);
    MUST(ipu_engine_connect(d.engine, "slope", _i ? (void *)floats : halves,
                            _i ? sizeof floats : sizeof halves));
    MUST(ipu_engine_connect(d.engine, "other", plain, sizeof plain));
    device_connect(&d, "wide", values, COUNT);
    MUST(ipu_engine_run(d.engine));
    if (_i)
        ck_assert_mem_eq(floats, values, sizeof floats);
    else
        ck_assert_mem_eq(halves, plain, sizeof halves);
}

/* -------------------------------------------------------- updates left out */

static const ipu_sgd_options momentum = {.size = sizeof momentum,
                                         .momentum = 0.5};

/* Builds w in float32, cast to a half; every mini'th run updates it, if all is
 * finite. */
static void build_trainer(int kind, int mini, double initial)
{
    const ipu_loss_scaling_options o = {
        .size = sizeof o, .initial = initial, .maximum = 1e9};
    ipu_update_options u = {.size = sizeof u, .conditional = 1};
    ipu_optimizer optimizer = {
        .size = sizeof optimizer,
        .kind = kind,
        .sgd = &momentum,
        .rate = ipu_fill(d.graph, IPU_FLOAT32, 0, NULL, 0.25)};
    ipu_tensor y, slope;

    w = ipu_variable(d.graph, "w", IPU_FLOAT32, 1, SHAPE(COUNT));
    x = device_floats(&d, "x", 1, SHAPE(COUNT));
    y = ipu_multiply(d.graph, ipu_cast(d.graph, w, IPU_FLOAT16),
                     ipu_cast(d.graph, x, IPU_FLOAT16));
    y = ipu_reduce_sum(d.graph, ipu_cast(d.graph, y, IPU_FLOAT32), 1);
    MUST(ipu_scaled_gradients(d.graph, "scaling", y, 1, &w, &o, &slope,
                              &scaling));
    u.condition = scaling.finite;
    MUST(ipu_accumulating_optimizer(d.graph, &optimizer, 1, &w, &slope, mini,
                                    &u));
    device_load(&d);
}

static void run_with(float value)
{
    float values[COUNT];

    for (int i = 0; i < COUNT; i++)
        values[i] = i == COUNT / 2 ? value : 1;
    device_connect(&d, "x", values, COUNT);
    MUST(ipu_engine_run(d.engine));
}

/* _i: of each run, and of two. */
LOOP_TEST(updates_that_overflow_are_left_out, 0, 2)
{
    int mini = _i + 1;
    float before[COUNT], after[COUNT];

    build_trainer(IPU_OPTIMIZER_SGD, mini, 1024);
    for (int i = 0; i < mini; i++)
        run_with(2);
    MUST(ipu_engine_read(d.engine, "w", before, sizeof before));
    ck_assert_float_eq(before[0], -0.25f * (float)mini);
    for (int i = 0; i < mini; i++)
        run_with(i ? 1 : 100); /* 102400 is too large for float16 */
    MUST(ipu_engine_read(d.engine, "w", after, sizeof after));
    ck_assert_mem_eq(before, after, sizeof before);
    MUST(ipu_engine_read(d.engine, "w/momentum", after, sizeof after));
    ck_assert_float_eq(after[COUNT / 2], 2.0f * (float)mini);
    /* Gradients that were accumulated with an overflow are discarded. */
    for (int i = 0; i < mini; i++)
        run_with(1);
    MUST(ipu_engine_read(d.engine, "w", after, sizeof after));
    ck_assert_float_eq(after[0], before[0] - 0.25f * 1.5f * (float)mini);
    ck_assert(isfinite(after[COUNT / 2]));
}

TEST(updates_left_out_are_not_counted)
{
    int32_t steps;

    build_trainer(IPU_OPTIMIZER_ADAM, 1, 1024);
    for (int i = 0; i < 6; i++)
        run_with(i % 2 ? 100 : 1);
    MUST(ipu_engine_read(d.engine, "optimizer/step", &steps, 4));
    ck_assert_int_eq(steps, 3);
}

/* A scale that is too large at first falls until gradients fit. */
TEST(a_scale_that_is_too_large_falls)
{
    float after[COUNT];

    build_trainer(IPU_OPTIMIZER_SGD, 1, 1 << 24);
    for (int i = 0; i < 8 * 12; i++)
        run_with(1);
    /* The scale tries 65536 again and again, which is no float16. */
    ck_assert_float_le(read_float("scaling/scale"), 65536);
    MUST(ipu_engine_read(d.engine, "w", after, sizeof after));
    ck_assert(isfinite(after[0]));
    ck_assert_float_lt(after[0], -1);
}

/* --------------------------------------------------------------- training */

enum { ROWS = 16, INPUTS = 12 };

/* Fits a line through points, with errors of 1e-4 and their mean square as the
 * loss: derivatives of 1e-8 vanish in float16. */
static float final_loss(double initial, double increase)
{
    const ipu_loss_scaling_options o = {
        .size = sizeof o, .initial = initial, .increase = increase};
    ipu_update_options u = {.size = sizeof u, .conditional = 1};
    ipu_optimizer optimizer = {
        .size = sizeof optimizer,
        .rate = ipu_fill(d.graph, IPU_FLOAT32, 0, NULL, 300)};
    static float xs[ROWS * INPUTS], ys[ROWS];
    ipu_tensor in = device_floats(&d, "in", 2, SHAPE(ROWS, INPUTS));
    ipu_tensor out = device_floats(&d, "out", 2, SHAPE(ROWS, 1));
    ipu_tensor v = ipu_variable(d.graph, "v", IPU_FLOAT32, 2, SHAPE(INPUTS, 1));
    ipu_tensor y, loss, slope;
    float value;

    y = ipu_matmul(d.graph, ipu_cast(d.graph, in, IPU_FLOAT16),
                   ipu_cast(d.graph, v, IPU_FLOAT16));
    y = ipu_subtract(d.graph, ipu_cast(d.graph, y, IPU_FLOAT32), out);
    loss = ipu_reduce_sum(d.graph, ipu_square(d.graph, y), 1e-4 / ROWS);
    MUST(ipu_scaled_gradients(d.graph, "s", loss, 1, &v, &o, &slope, &scaling));
    u.condition = scaling.finite;
    MUST(ipu_accumulating_optimizer(d.graph, &optimizer, 1, &v, &slope, 1, &u));
    MUST(ipu_output(d.graph, "loss", loss));
    device_load(&d);
    device_fill(xs, ROWS * INPUTS, 1);
    for (int i = 0; i < ROWS; i++) {
        ys[i] = 0;
        for (int k = 0; k < INPUTS; k++)
            ys[i] += 1e-3f * xs[i * INPUTS + k];
    }
    device_connect(&d, "in", xs, ROWS * INPUTS);
    device_connect(&d, "out", ys, ROWS);
    device_connect(&d, "loss", &value, 1);
    for (int i = 0; i < 600; i++)
        MUST(ipu_engine_run(d.engine));
    return value / 1e-4f;
}

TEST(without_a_scale_nothing_is_learnt)
{
    /* A scale that stays 1. */
    ck_assert_float_gt(final_loss(1, 1), 1e-6f);
    ck_assert_float_eq(read_float("s/scale"), 1);
}

TEST(with_a_scale_it_is)
{
    ck_assert_float_lt(final_loss(1, 2), 2e-8f);
    ck_assert_float_gt(read_float("s/scale"), 1000);
}

/* ----------------------------------------------------------------- refusals */

static const struct {
    ipu_loss_scaling_options options;
    const char *words;
} refused[] = {
    {{sizeof cases[0], -1, 1, 2, 0.5, 0, 0, 0, 0}, "update frequency is -1"},
    {{sizeof cases[0], 8, 1, 2, -1, 0, 0, 0, 0}, "decreases by -1"},
    {{sizeof cases[0], 8, 1, 0.25, 0.5, 0, 0, 0, 0}, "increases by 0.25"},
    {{sizeof cases[0], 8, 1, NAN, 0.5, 0, 0, 0, 0}, "increases by nan"},
    {{sizeof cases[0], 8, 1, 2, 0.5, 1, 0, 0, 0}, "maximum is 1,"},
    {{sizeof cases[0], 8, -2, 2, 0.5, 0, 0, 0, 0}, "initial scale is -2"},
    {{sizeof cases[0], 8, 200, 2, 0.5, 100, 0, 0, 0}, "initial scale is 200"},
    {{sizeof cases[0], 8, 60, 2, 0.5, 100, 0, 0, 0}, "also increased"},
    {{sizeof cases[0], 8, 1, 2, 0.5, 0, 1, 0, 0}, "ratio is 1,"},
    {{4, 8, 1, 2, 0.5, 0, 0.1, 0, 0}, "options' size is 4"},
};

LOOP_TEST(options_are_checked, 0, sizeof refused / sizeof *refused)
{
    ipu_tensor slope;

    w = ipu_variable(d.graph, "w", IPU_FLOAT32, 1, SHAPE(COUNT));
    MUST_FAIL(ipu_scaled_gradients(d.graph, "s", ipu_reduce_sum(d.graph, w, 1),
                                   1, &w, &refused[_i].options, &slope, NULL),
              IPU_ERR_ARGUMENT, refused[_i].words);
}

LOOP_TEST(what_is_missing_is_named, 0, 4)
{
    ipu_loss_scaling small = {.size = 4};
    ipu_tensor slope, loss;

    w = ipu_variable(d.graph, "w", IPU_FLOAT32, 1, SHAPE(COUNT));
    loss = ipu_reduce_sum(d.graph, w, 1);
    ck_assert_int_eq(
        ipu_scaled_gradients(NULL, "s", loss, 1, &w, NULL, &slope, NULL),
        IPU_ERR_ARGUMENT);
    if (_i == 0)
        ipu_scaled_gradients(d.graph, NULL, loss, 1, &w, NULL, &slope, NULL);
    else if (_i == 1)
        ipu_scaled_gradients(d.graph, "s", loss, 1, &w, NULL, &slope, &small);
    else if (_i == 2)
        ipu_scaled_gradients(d.graph, "s", w, 1, &w, NULL, &slope, NULL);
    else
        ipu_update_begin_if(d.graph, 1, loss);
    device_says(&d, (const char *[]){
                        "it has no name", "size of the place for tensors is 4",
                        "not a float32 scalar", "is not an int32 scalar"}[_i]);
}

TEST_MAIN("device_training_scaling", .set_up = set_up,
          .tear_down = one_device_free, .seconds = 120)
