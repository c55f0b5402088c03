/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tests ops on one element each. Values are compared with their definitions in
 * double, derivatives with differences; NaN, infinity and refused arguments are
 * tested too.
 */
#include "suite.h"

#include <float.h>
#include <stdbool.h>

#include "elements.h"

static double identity_sigmoid(double x)
{
    return 1 / (1 + exp(-x));
}

static double gelu(double x)
{
    return x * 0.5 * erfc(-x * sqrt(0.5));
}

static double gelu_tanh(double x)
{
    double u = sqrt(2 / acos(-1)) * (x + 0.044715 * x * x * x);

    return x / (1 + exp(-2 * u));
}

static double silu(double x)
{
    return x / (1 + exp(-x));
}

static double square(double x)
{
    return x * x;
}

static double rsqrt(double x)
{
    return 1 / sqrt(x);
}

static double negative(double x)
{
    return -x;
}

static double scaled(double x)
{
    return x * -2.5 + 0.75;
}

/* The macros of ipu.h have arguments: these are functions. */
#define OP(name)                                                               \
    static ipu_tensor op_##name(ipu_graph *graph, ipu_tensor x)                \
    {                                                                          \
        return ipu_##name(graph, x);                                           \
    }
OP(negate)
OP(abs)
OP(square)
OP(exp)
OP(log)
OP(sqrt)
OP(rsqrt)
OP(tanh)
OP(sigmoid)
OP(gelu)
OP(gelu_tanh)
OP(silu)

static ipu_tensor op_scale(ipu_graph *graph, ipu_tensor x)
{
    return ipu_scale(graph, x, -2.5, 0.75);
}

static const struct {
    ipu_tensor (*op)(ipu_graph *graph, ipu_tensor x);
    double (*of)(double x);
    float center,
        spread;        /* the range in which it is defined and not too steep */
    float infinity[2]; /* its values at infinity and at minus infinity */
    const char *name;
    double slack; /* the error that is tolerated */
} unary[] = {
    {op_negate, negative, 0, 2, {-INFINITY, INFINITY}, "negate", 0},
    {op_abs, fabs, 0, 2, {INFINITY, INFINITY}, "abs", 0},
    {op_square, square, 0, 2, {INFINITY, INFINITY}, "square", 0},
    {op_exp, exp, 0, 1, {INFINITY, 0}, "exp", 0},
    {op_log, log, 3, 2, {INFINITY, NAN}, "log", 0},
    {op_sqrt, sqrt, 3, 2, {INFINITY, NAN}, "sqrt", 0},
    {op_rsqrt, rsqrt, 3, 2, {0, NAN}, "rsqrt", 0},
    {op_tanh, tanh, 0, 2, {1, -1}, "tanh", 0},
    {op_sigmoid, identity_sigmoid, 0, 2, {1, 0}, "sigmoid", 1.2e-38},
    {op_gelu, gelu, 0, 2, {INFINITY, NAN}, "gelu", 2e-36},
    {op_gelu_tanh, gelu_tanh, 0, 2, {INFINITY, NAN}, "gelu_tanh", 2e-36},
    {op_silu, silu, 0, 2, {INFINITY, NAN}, "silu", 2e-36},
    {op_scale, scaled, 0, 2, {-INFINITY, INFINITY}, "scale", 1e-7},
};
enum { UNARY = sizeof unary / sizeof *unary };

/* Fills x with all magnitudes, subnormal ones and those that overflow too. */
static void fill_magnitudes(float *x, int64_t count)
{
    for (int64_t i = 0; i < count; i++) {
        float size =
            ldexpf(1 + (float)(i % 7) / 7, (int)(i * 280 / count) - 150);

        x[i] = i % 3 ? size : -size;
    }
}

/* The device takes subnormal numbers for zero, and gives zero instead. */
static double flushed(float x)
{
    return fabsf(x) < FLT_MIN ? copysign(0, (double)x) : (double)x;
}

LOOP_TEST(functions_of_an_element_are_precise, 0, 2 * UNARY)
{
    ipu_tensor x = device_floats(&d, "a", 1, SHAPE(MOST));

    if (_i % 2)
        fill_magnitudes(a, MOST);
    else
        for (int i = 0; i < MOST; i++)
            a[i] = (float)i / 20 - 102.4f; /* -102.4 to 102.35 */
    for (int i = 0; i < MOST; i++)
        wanted[i] = flushed((float)unary[_i / 2].of(flushed(a[i])));
    compute(unary[_i / 2].op(d.graph, x), MOST, -1);
    for (int i = 0; i < MOST; i++) {
        double error = fabs((double)y[i] - wanted[i]);
        bool same = (double)y[i] == wanted[i] ||
                    (isnan(y[i]) && isnan(wanted[i])) ||
                    error <= fmax(unary[_i / 2].slack, (double)FLT_MIN);

        if (!same && !(error <= 1e-5 * fabs(wanted[i])))
            ck_abort_msg("%s(%.9g) is %.9g, not %.9g", unary[_i / 2].name,
                         (double)a[i], (double)y[i], wanted[i]);
    }
}

LOOP_TEST(nan_and_infinity_go_through, 0, UNARY)
{
    ipu_tensor x = device_floats(&d, "a", 1, SHAPE(40));

    for (int i = 0; i < 40; i++)
        a[i] = i % 3 == 0 ? NAN : i % 3 == 1 ? INFINITY : -INFINITY;
    compute(unary[_i].op(d.graph, x), 40, -1);
    for (int i = 0; i < 40; i++)
        wanted[i] = (double)(i % 3 ? unary[_i].infinity[i % 3 - 1] : NAN);
    check_values(40, 0);
}

LOOP_TEST(derivatives_of_functions_of_an_element, 0, UNARY)
{
    center = unary[_i].center;
    spread = unary[_i].spread;
    check_gradients(unary[_i].op(d.graph, variable(2, SHAPE(5, 7))));
}

LOOP_TEST(functions_of_an_element_take_floats, 0, UNARY)
{
    ipu_tensor x = ipu_input(d.graph, "i", IPU_INT32, 1, SHAPE(3));
    ipu_executable *executable = NULL;
    char words[64];

    ck_assert_int_lt(unary[_i].op(d.graph, x).id, 0);
    snprintf(words, sizeof words, "%s: i is int32 [3], it must be float32",
             unary[_i].name);
    MUST_FAIL(ipu_compile(d.graph, NULL, &executable), IPU_ERR_SHAPE, words);
}

LOOP_TEST(empty_tensors_and_scalars_are_nothing_special, 0, UNARY)
{
    ipu_tensor x = device_floats(&d, "a", 0, NULL);
    ipu_tensor none = device_floats(&d, "b", 2, SHAPE(0, 3));

    a[0] = 3;
    MUST(ipu_output(d.graph, "none", unary[_i].op(d.graph, none)));
    compute(unary[_i].op(d.graph, x), 1, 0);
    wanted[0] = unary[_i].of(3);
    check_values(1, 1e-6);
}

TEST_MAIN("device_unary", .set_up = set_up, .tear_down = tear_down)
