/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tests functions of each element and losses. Values are compared with the
 * standard library's in double or with the definition, derivatives with
 * differences; NaN, infinity and refused arguments are tested too.
 */
#include "suite.h"
#include <stdbool.h>

#include "differences.h"

enum { N = 203 };

static ipu_tensor leaky(ipu_graph *graph, ipu_tensor x)
{
    return ipu_leaky_relu(graph, x, 0.1);
}

static ipu_tensor elu(ipu_graph *graph, ipu_tensor x)
{
    return ipu_elu(graph, x, 1.5);
}

static ipu_tensor clip(ipu_graph *graph, ipu_tensor x)
{
    return ipu_clip(graph, x, -0.75, 1.25);
}

static ipu_tensor raised(ipu_graph *graph, ipu_tensor x, double power)
{
    return ipu_power(graph, x, ipu_fill(graph, IPU_FLOAT32, 0, NULL, power));
}

static ipu_tensor squared(ipu_graph *graph, ipu_tensor x)
{
    return raised(graph, x, 2);
}

static ipu_tensor cubed(ipu_graph *graph, ipu_tensor x)
{
    return raised(graph, x, 3);
}

#define PLAIN(name)                                                            \
    static ipu_tensor plain_##name(ipu_graph *graph, ipu_tensor x)             \
    {                                                                          \
        return ipu_##name(graph, x);                                           \
    }
PLAIN(floor)
PLAIN(ceil)
PLAIN(round)
PLAIN(sign)
PLAIN(sin)
PLAIN(cos)
PLAIN(log1p)
PLAIN(expm1)
PLAIN(erf)
PLAIN(atan)
PLAIN(softplus)

static double sign_of(double x)
{
    return (x > 0) - (x < 0);
}

static double softplus_of(double x)
{
    return log1p(exp(-fabs(x))) + (x > 0 ? x : 0);
}

static double leaky_of(double x)
{
    return x > 0 ? x : (double)0.1f * x;
}

static double elu_of(double x)
{
    return x > 0 ? x : 1.5 * expm1(x);
}

static double square_of(double x)
{
    return x * x;
}

static double cube_of(double x)
{
    return x * x * x;
}

static double clip_of(double x)
{
    return x < -0.75 ? -0.75 : x > 1.25 ? 1.25 : x;
}

static const struct {
    ipu_tensor (*op)(ipu_graph *, ipu_tensor);
    double (*of)(double);
    double low, high; /* where it is looked at */
    bool flat;        /* the derivative is 0 */
} functions[] = {
    {plain_floor, floor, -50, 50, true},
    {plain_ceil, ceil, -50, 50, true},
    {plain_round, rint, -50, 50, true},
    {plain_sign, sign_of, -3, 3, true},
    {plain_sin, sin, -30, 30, false},
    {plain_cos, cos, -30, 30, false},
    {plain_log1p, log1p, -0.99, 30, false},
    {plain_expm1, expm1, -20, 20, false},
    {plain_erf, erf, -5, 5, false},
    {plain_atan, atan, -40, 40, false},
    {plain_softplus, softplus_of, -100, 100, false},
    {leaky, leaky_of, -20, 20, false},
    {elu, elu_of, -20, 20, false},
    {clip, clip_of, -2, 2, false},
    {squared, square_of, -20, 20, false},
    {cubed, cube_of, -20, 20, false},
};
enum { FUNCTIONS = sizeof functions / sizeof *functions };

LOOP_TEST(functions_are_those_of_the_library, 0, FUNCTIONS)
{
    float in[N], out[N];
    double low = functions[_i].low, high = functions[_i].high;
    ipu_tensor x = device_floats(&d, "x", 1, SHAPE(N));

    MUST(ipu_output(d.graph, "y", functions[_i].op(d.graph, x)));
    device_load(&d);
    for (int i = 0; i < N; i++)
        in[i] = (float)(low + (high - low) * i / (N - 1));
    in[7] = 0;
    in[8] = functions[_i].flat ? 2.5f : 1e-6f;
    device_connect(&d, "x", in, N);
    device_connect(&d, "y", out, N);
    MUST(ipu_engine_run(d.engine));
    for (int i = 0; i < N; i++) {
        double wanted = functions[_i].of((double)in[i]);

        ck_assert_double_eq_tol((double)out[i], wanted,
                                1e-6 * fabs(wanted) + 1e-7);
    }
}

LOOP_TEST(their_derivatives_equal_differences, 0, FUNCTIONS)
{
    float slopes[8];
    ipu_tensor x, dx;

    if (!functions[_i].flat) {
        center = functions[_i].of == log1p ? 2 : 0;
        spread = 1.7f;
        check_gradients(functions[_i].op(d.graph, variable(1, SHAPE(24))));
        return;
    }
    x = variable(1, SHAPE(8));
    MUST(ipu_gradients(d.graph,
                       ipu_reduce_sum(d.graph, functions[_i].op(d.graph, x), 1),
                       1, &x, &dx));
    MUST(ipu_output(d.graph, "dx", dx));
    device_load(&d);
    device_connect(&d, "dx", slopes, 8);
    MUST(ipu_engine_run(d.engine));
    for (int i = 0; i < 8; i++)
        ck_assert_float_eq(slopes[i], 0);
}

LOOP_TEST(they_take_floats_and_keep_nan, 0, FUNCTIONS)
{
    ipu_tensor x = device_floats(&d, "x", 1, SHAPE(3));
    float in[3] = {NAN, 1, NAN}, out[3];
    struct device other;

    MUST(ipu_output(d.graph, "y", functions[_i].op(d.graph, x)));
    device_load(&d);
    device_connect(&d, "x", in, 3);
    device_connect(&d, "y", out, 3);
    MUST(ipu_engine_run(d.engine));
    ck_assert_float_nan(out[0]);
    ck_assert(!isnan(out[1]));
    ck_assert_float_nan(out[2]);
    other = device_new();
    x = ipu_input(other.graph, "i", IPU_INT32, 1, SHAPE(3));
    ck_assert_int_lt(functions[_i].op(other.graph, x).id, 0);
    MUST_FAIL(ipu_compile(other.graph, NULL, &other.executable), IPU_ERR_SHAPE,
              "it must be float32");
    device_free(&other);
}

LOOP_TEST(infinities_are_where_they_should_be, 0, 11)
{
    const struct {
        ipu_tensor (*op)(ipu_graph *, ipu_tensor);
        float at, wanted;
    } ends[] = {
        {plain_floor, -INFINITY, -INFINITY},
        {plain_sign, INFINITY, 1},
        {plain_erf, INFINITY, 1},
        {plain_atan, -INFINITY, -1.57079633f},
        {plain_expm1, -INFINITY, -1},
        {plain_log1p, -1, -INFINITY},
        {plain_softplus, -INFINITY, 0},
        {plain_softplus, INFINITY, INFINITY},
        {elu, -INFINITY, -1.5f},
        {clip, INFINITY, 1.25f},
        {leaky, -INFINITY, -INFINITY},
    };
    ipu_tensor x = device_floats(&d, "x", 0, NULL);
    float in = ends[_i].at, out;

    MUST(ipu_output(d.graph, "y", ends[_i].op(d.graph, x)));
    device_load(&d);
    device_connect(&d, "x", &in, 1);
    device_connect(&d, "y", &out, 1);
    MUST(ipu_engine_run(d.engine));
    ck_assert_float_eq(out, ends[_i].wanted);
}

TEST(the_derivative_of_clip_at_its_bounds)
{
    ipu_tensor x = device_floats(&d, "x", 1, SHAPE(4)), dx;
    float in[4] = {-0.75f, 1.25f, -0.76f, 1.26f}, slopes[4];

    MUST(ipu_gradients(d.graph, ipu_reduce_sum(d.graph, clip(d.graph, x), 1), 1,
                       &x, &dx));
    MUST(ipu_output(d.graph, "dx", dx));
    device_load(&d);
    device_connect(&d, "x", in, 4);
    device_connect(&d, "dx", slopes, 4);
    MUST(ipu_engine_run(d.engine));
    ck_assert_float_eq(slopes[0], 1);
    ck_assert_float_eq(slopes[1], 1);
    ck_assert_float_eq(slopes[2], 0);
    ck_assert_float_eq(slopes[3], 0);
}

TEST(clip_needs_a_range)
{
    ck_assert_int_lt(
        ipu_clip(d.graph, device_floats(&d, "x", 1, SHAPE(2)), 1, -1).id, 0);
    MUST_FAIL(ipu_compile(d.graph, NULL, &d.executable), IPU_ERR_ARGUMENT,
              "clip: 1 to -1 is no range");
}

/* ------------------------------------------------------------------- losses */

static float first[N], second[N];

static double run_loss(ipu_tensor loss)
{
    float out = 0;

    MUST(ipu_output(d.graph, "loss", loss));
    device_load(&d);
    device_connect(&d, "x", first, N);
    if (ipu_engine_connect(d.engine, "z", second, sizeof second) < 0)
        ck_assert_ptr_nonnull(strstr(ipu_last_error(), "no input"));
    device_connect(&d, "loss", &out, 1);
    MUST(ipu_engine_run(d.engine));
    return (double)out;
}

LOOP_TEST(losses_follow_their_definitions, 0, 3)
{
    ipu_tensor x = device_floats(&d, "x", 1, SHAPE(N)), z, loss;
    double wanted = 0;

    device_fill(first, N, 1);
    device_fill(second, N, 2);
    if (_i != 0)
        z = device_floats(&d, "z", 1, SHAPE(N));
    for (int i = 0; i < N; i++) {
        double a = (double)first[i], b = (double)second[i], size = fabs(a - b);

        wanted += _i == 0      ? a * a / 2
                  : _i == 1    ? size / N
                  : size < 0.3 ? size * size / 2 / N
                               : 0.3 * (size - 0.15) / N;
    }
    loss = _i == 0   ? ipu_l2_loss(d.graph, x)
           : _i == 1 ? ipu_mean_absolute_error(d.graph, x, z)
                     : ipu_huber_loss(d.graph, x, z, 0.3);
    ck_assert_double_eq_tol(run_loss(loss), wanted, 1e-5);
}

LOOP_TEST(cross_entropies_of_sigmoids, 0, 2)
{
    ipu_tensor x = device_floats(&d, "x", 1, SHAPE(N));
    ipu_tensor z = device_floats(&d, "z", 1, SHAPE(N));
    ipu_tensor loss =
        _i ? ipu_binary_cross_entropy(d.graph, ipu_sigmoid(d.graph, x), z, 1e-7)
           : ipu_sigmoid_cross_entropy(d.graph, x, z);
    double wanted = 0, got;

    device_fill(first, N, 1);
    device_fill(second, N, 2);
    for (int i = 0; i < N; i++) {
        double p, t;

        first[i] *= _i ? 5 : 80; /* where exp is 1e34 */
        second[i] = second[i] * 0.5f + 0.5f;
        p = 1 / (1 + exp(-(double)first[i]));
        t = (double)second[i];
        wanted += _i ? -t * log(p) - (1 - t) * log1p(-p)
                     : softplus_of((double)first[i]) - (double)first[i] * t;
    }
    got = run_loss(ipu_reduce_sum(d.graph, loss, 1));
    ck_assert_double_eq_tol(got, wanted, 1e-5 * wanted);
}

/* Each of these has its row of 6 classes, or 6 elements. */
static double loss_of_row(int kind, const double *x, const double *y, int label,
                          double smoothing)
{
    enum { CLASSES = 6 };
    double norm = 0, loss = 0;

    for (int i = 0; i < CLASSES; i++)
        norm += exp(x[i]);
    for (int i = 0; i < CLASSES; i++) {
        double target = kind == 0 ? y[i] : i == label, apart;

        apart = fabs(x[i] - y[i]);
        target = target * (1 - smoothing) + smoothing / CLASSES;
        loss += kind <= 1   ? -target * (x[i] - log(norm))
                : kind == 2 ? apart * apart
                : kind == 3 ? apart
                : kind == 4
                    ? (apart < 0.3 ? apart * apart / 2 : 0.3 * (apart - 0.15))
                : kind == 5 ? fmax(0, 1 - x[i] * y[i])
                            : y[i] * log(y[i] / fmax(x[i], 1e-7));
    }
    return loss;
}

static ipu_tensor loss_by_kind(int kind, ipu_tensor x, ipu_tensor y,
                               ipu_tensor labels, double smoothing)
{
    switch (kind) {
    case 0:
        return ipu_categorical_cross_entropy(
            d.graph, x, ipu_smooth_targets(d.graph, y, 6, smoothing));
    case 1: return ipu_sparse_cross_entropy(d.graph, x, labels, smoothing);
    case 2: return ipu_squared_error(d.graph, x, y);
    case 3: return ipu_absolute_error(d.graph, x, y);
    case 4: return ipu_huber_error(d.graph, x, y, 0.3);
    case 5: return ipu_hinge_loss(d.graph, x, y);
    default: return ipu_kl_divergence(d.graph, x, y, 1e-7);
    }
}

/* _i: with smoothing, and the kind. */
LOOP_TEST(losses_of_rows, 0, 14)
{
    enum { ROWS = 4 };
    static int32_t labels[ROWS] = {0, 5, 2, 3};
    ipu_tensor x = device_floats(&d, "x", 2, SHAPE(ROWS, 6));
    ipu_tensor z = device_floats(&d, "z", 2, SHAPE(ROWS, 6));
    ipu_tensor y = ipu_input(d.graph, "y", IPU_INT32, 1, SHAPE(ROWS)), loss;
    double smoothing = _i % 2 ? 0.2 : 0, wanted = 0;
    float result;

    loss = ipu_reduce_sum(d.graph, loss_by_kind(_i / 2, x, z, y, smoothing), 1);
    MUST(ipu_output(d.graph, "loss", loss));
    device_load(&d);
    device_connect(&d, "loss", &result, 1);
    if (_i / 2 == 1)
        device_connect(&d, "y", labels, ROWS);
    device_fill(first, ROWS * 6, 1);
    device_fill(second, ROWS * 6, 2);
    for (int row = 0; row < ROWS; row++) {
        double a[6], b[6];

        for (int i = 0; i < 6; i++) {
            float *p = &first[row * 6 + i], *q = &second[row * 6 + i];

            *q = *q * 0.5f + 0.5f;
            if (_i / 2 == 6)
                *p = row ? *p * 0.5f + 0.5f : 0;
            a[i] = (double)*p;
            b[i] = (double)*q;
        }
        wanted += loss_of_row(_i / 2, a, b, labels[row], smoothing);
    }
    device_connect(&d, "x", first, ROWS * 6);
    if (_i / 2 != 1)
        device_connect(&d, "z", second, ROWS * 6);
    MUST(ipu_engine_run(d.engine));
    ck_assert_double_eq_tol((double)result, wanted, 2e-6 * fabs(wanted) + 1e-5);
}

/* The numbers are spaced so that none is at a bend. */
LOOP_TEST(derivatives_of_losses_of_rows, 0, 7)
{
    ipu_tensor x = variable(2, SHAPE(2, 6)), z = variable(2, SHAPE(2, 6));
    ipu_tensor y = ipu_range(d.graph, IPU_INT32, 2, 0, 3);

    spread = 1;
    spacing = 0.11f;
    if (_i == 6) { /* probabilities */
        x = ipu_sigmoid(d.graph, x);
        z = ipu_sigmoid(d.graph, z);
    }
    check_gradients(loss_by_kind(_i, x, z, y, 0.2));
}

LOOP_TEST(derivatives_of_losses, 0, 3)
{
    ipu_tensor x = variable(1, SHAPE(12)), z = variable(1, SHAPE(12)), loss;

    spread = 1;
    if (_i == 2)
        z = ipu_clip(d.graph, z, -1e3, 1e3);
    loss = _i == 0   ? ipu_sigmoid_cross_entropy(d.graph, x, z)
           : _i == 1 ? ipu_huber_loss(d.graph, x, z, 0.4)
                     : ipu_binary_cross_entropy(
                           d.graph, ipu_sigmoid(d.graph, x), z, 1e-7);
    /* The numbers are spaced so that no difference is taken at the bend of |x -
     * z|. */
    spacing = 0.11f;
    check_gradients(loss);
}

LOOP_TEST(losses_refuse, 0, 8)
{
    ipu_tensor x = device_floats(&d, "x", 1, SHAPE(2));
    ipu_tensor z = device_floats(&d, "z", 1, SHAPE(3));
    static const char *const words[] = {
        "huber_loss: delta is 0",    "epsilon is 1",
        "they must be the same",     "dimensions, aligned at the last",
        "huber_error: delta is 0",   "smooth_targets: smoothing is 2",
        "smooth_targets: 0 classes", "kl_divergence: epsilon is 0"};

    if (_i == 0)
        ipu_huber_loss(d.graph, x, x, 0);
    else if (_i == 1)
        ipu_binary_cross_entropy(d.graph, x, x, 1);
    else if (_i == 2)
        ipu_sigmoid_cross_entropy(d.graph, x, z);
    else if (_i == 4)
        ipu_huber_error(d.graph, x, x, 0);
    else if (_i == 5 || _i == 6)
        ipu_smooth_targets(d.graph, x, _i == 5, _i == 5 ? 2 : 0.1);
    else if (_i == 7)
        ipu_kl_divergence(d.graph, x, x, 0);
    else
        ipu_mean_absolute_error(d.graph, x, z);
    MUST_FAIL(ipu_compile(d.graph, NULL, &d.executable),
              _i == 2 || _i == 3 ? IPU_ERR_SHAPE : IPU_ERR_ARGUMENT, words[_i]);
}

TEST_MAIN("device_functions", .set_up = set_up, .tear_down = tear_down)
