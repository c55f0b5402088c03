/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tests clipped gradients, and learning rates by the step, against the same in
 * double.
 */
#include "suite.h"

#include <math.h>

#include "one_device.h"

enum { A = 7, B = 33 };

static ipu_tensor x[2];
static float values[2][B], results[2][B];
static float norm;

static void set_up(void)
{
    d = device_new();
    x[0] = device_floats(&d, "a", 1, SHAPE(A));
    x[1] = device_floats(&d, "b", 1, SHAPE(B));
    device_fill(values[0], A, 1);
    device_fill(values[1], B, 2);
}

static void load_and_run(const ipu_tensor *outputs)
{
    MUST(ipu_output(d.graph, "ya", outputs[0]));
    MUST(ipu_output(d.graph, "yb", outputs[1]));
    device_load(&d);
    device_connect(&d, "a", values[0], A);
    device_connect(&d, "b", values[1], B);
    device_connect(&d, "ya", results[0], A);
    device_connect(&d, "yb", results[1], B);
}

static double clipped(double value, double limit)
{
    return value > limit ? limit : value < -limit ? -limit : value;
}

TEST(elements_stay_within_the_limit)
{
    MUST(ipu_clip_by_value(d.graph, 2, x, 0.25));
    load_and_run(x);
    values[1][3] = NAN;
    values[1][4] = -INFINITY;
    MUST(ipu_engine_run(d.engine));
    for (int i = 0; i < B; i++)
        if (i == 3)
            ck_assert(isnan(results[1][i]));
        else
            ck_assert_double_eq((double)results[1][i],
                                clipped((double)values[1][i], 0.25));
    for (int i = 0; i < A; i++)
        ck_assert_double_eq((double)results[0][i],
                            clipped((double)values[0][i], 0.25));
}

static double length(void)
{
    double sum = 0;

    for (int i = 0; i < A; i++)
        sum += (double)values[0][i] * (double)values[0][i];
    for (int i = 0; i < B; i++)
        sum += (double)values[1][i] * (double)values[1][i];
    return sqrt(sum);
}

/* _i is gradients that are too long, short enough, or zeros. */
LOOP_TEST(all_together_stay_within_the_norm, 0, 3)
{
    static const double limits[] = {0.5, 100, 1};
    double factor, is;
    ipu_tensor n;

    if (_i == 2)
        memset(values, 0, sizeof values);
    is = length();
    factor = is > limits[_i] ? limits[_i] / is : 1;
    MUST(ipu_clip_by_global_norm(d.graph, 2, x, limits[_i], &n));
    MUST(ipu_output(d.graph, "norm", n));
    load_and_run(x);
    device_connect(&d, "norm", &norm, 1);
    MUST(ipu_engine_run(d.engine));
    ck_assert_double_eq_tol((double)norm, is, 1e-5);
    for (int i = 0; i < B; i++)
        ck_assert_double_eq_tol((double)results[1][i],
                                (double)values[1][i] * factor, 1e-6);
    for (int i = 0; i < A; i++)
        ck_assert_double_eq_tol((double)results[0][i],
                                (double)values[0][i] * factor, 1e-6);
    if (factor == 1)
        ck_assert_mem_eq(values[1], results[1], sizeof results[1]);
}

/* Squares in float16 would overflow, or vanish. */
LOOP_TEST(halves_are_measured_in_float32, 0, 2)
{
    ipu_tensor h[2], y[2], n;
    float large = _i ? 1e-4f : 3000;

    for (int i = 0; i < 2; i++)
        h[i] = ipu_cast(d.graph, x[i], IPU_FLOAT16);
    MUST(ipu_clip_by_global_norm(d.graph, 2, h, (double)large, &n));
    for (int i = 0; i < 2; i++)
        y[i] = ipu_cast(d.graph, h[i], IPU_FLOAT32);
    MUST(ipu_output(d.graph, "norm", n));
    for (int i = 0; i < A; i++)
        values[0][i] = large;
    memset(values[1], 0, sizeof values[1]);
    load_and_run(y);
    device_connect(&d, "norm", &norm, 1);
    MUST(ipu_engine_run(d.engine));
    ck_assert_float_eq_tol(norm / large, sqrtf(A), 2e-3f);
    ck_assert_float_eq_tol(results[0][0] / large, 1 / sqrtf(A), 2e-3f);
}

LOOP_TEST(clipping_refuses, 0, 5)
{
    ipu_tensor number = ipu_fill(d.graph, IPU_INT32, 0, NULL, 1);

    ck_assert_int_eq(ipu_clip_by_value(NULL, 1, x, 1), IPU_ERR_ARGUMENT);
    switch (_i) {
    case 0:
        MUST_FAIL(ipu_clip_by_value(d.graph, 2, x, 0), IPU_ERR_ARGUMENT,
                  "the limit is 0");
        break;
    case 1:
        MUST_FAIL(ipu_clip_by_global_norm(d.graph, 2, x, NAN, NULL),
                  IPU_ERR_ARGUMENT, "the limit is nan");
        break;
    case 2:
        MUST_FAIL(ipu_clip_by_value(d.graph, -1, x, 1), IPU_ERR_ARGUMENT,
                  "less than 0");
        break;
    case 3:
        MUST_FAIL(ipu_clip_by_value(d.graph, 1, NULL, 1), IPU_ERR_ARGUMENT,
                  "clip by value: the array of gradients is NULL");
        break;
    default:
        MUST_FAIL(ipu_clip_by_global_norm(d.graph, 1, &number, 1, NULL),
                  IPU_ERR_SHAPE, "is int32: floats are wanted");
    }
}

/* ----------------------------------------------------------- learning rates */

static double rate_at(const ipu_rate_options *o, int step)
{
    double t = (double)(step - o->warmup) / (double)(o->steps - o->warmup);

    if (step < o->warmup)
        return o->rate * (step + 1) / (double)o->warmup;
    t = t > 1 ? 1 : t;
    switch (o->kind) {
    case IPU_RATE_LINEAR: return o->rate * (1 - t) + o->final_rate * t;
    case IPU_RATE_COSINE:
        return o->final_rate +
               (o->rate - o->final_rate) * pow(cos(acos(-1.0) * t / 2), 2);
    case IPU_RATE_EXPONENTIAL:
        return exp(log(o->rate) * (1 - t) + log(o->final_rate) * t);
    case IPU_RATE_INVERSE_SQRT:
        return o->rate * sqrt((double)(o->warmup ? o->warmup : 1) / (step + 1));
    default: return o->rate;
    }
}

/* _i is the kind, and whether it warms up. */
LOOP_TEST(rates_follow_their_definitions, 0, 10)
{
    const ipu_rate_options o = {.size = sizeof o,
                                .kind = _i / 2,
                                .rate = 0.3,
                                .final_rate = 0.01,
                                .warmup = _i % 2 ? 5 : 0,
                                .steps = 20};
    float rate;

    MUST(ipu_output(d.graph, "rate",
                    ipu_rate(d.graph, ipu_counter(d.graph, "step"), &o)));
    device_load(&d);
    device_connect(&d, "rate", &rate, 1);
    for (int step = 0; step < 30; step++) {
        MUST(ipu_engine_run(d.engine));
        ck_assert_double_eq_tol((double)rate, rate_at(&o, step), 1e-6);
    }
}

static const struct {
    ipu_rate_options options;
    const char *words;
} refused[] = {
    {{4, 0, 1, 1, 0, 1}, "options' size is 4"},
    {{sizeof refused->options, 5, 1, 1, 0, 1}, "5 is neither CONSTANT"},
    {{sizeof refused->options, 0, -1, 0, 0, 1}, "from -1 to 0: both must"},
    {{sizeof refused->options, 0, NAN, 0, 0, 1}, "from nan"},
    {{sizeof refused->options, 3, 1, 0, 0, 9}, "by factors"},
    {{sizeof refused->options, 1, 1, 0, 9, 9}, "9 steps with 9 to warm up"},
    {{sizeof refused->options, 0, 1, 0, -1, 9}, "with -1 to warm up"},
};

LOOP_TEST(rates_refuse, 0, sizeof refused / sizeof *refused)
{
    ipu_tensor step = ipu_counter(d.graph, "step");

    ck_assert_int_lt(ipu_rate(NULL, step, &refused[_i].options).id, 0);
    ck_assert_int_lt(ipu_rate(d.graph, step, &refused[_i].options).id, 0);
    MUST_FAIL(ipu_compile(d.graph, NULL, &d.executable), IPU_ERR_ARGUMENT,
              refused[_i].words);
}

LOOP_TEST(a_rate_is_of_a_step, 0, 2)
{
    const ipu_rate_options o = {.size = sizeof o, .rate = 1};

    ck_assert_int_lt(_i ? ipu_rate(d.graph, x[0], &o).id
                        : ipu_rate(d.graph, x[0], NULL).id,
                     0);
    MUST_FAIL(ipu_compile(d.graph, NULL, &d.executable),
              _i ? IPU_ERR_SHAPE : IPU_ERR_ARGUMENT,
              _i ? "step" : "rate: the options are NULL");
}

TEST_MAIN("device_training_rates", .set_up = set_up,
          .tear_down = one_device_free)
