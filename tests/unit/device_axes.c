/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tests ops along an axis: smallest, product, cumulative sums, softmax of any
 * axis, the k largest, elements by number, and their order. Values are compared
 * with loops that follow the definition, derivatives with differences.
 */
#include "differences.h"
#include "suite.h"

static float in[MOST], out[MOST];
static int32_t numbers[MOST];

static ipu_tensor x_of(int32_t ndim, const int64_t *shape)
{
    return device_floats(&d, "x", ndim, shape);
}

static void run(ipu_tensor y, int64_t count)
{
    MUST(ipu_output(d.graph, "y", y));
    device_load(&d);
    device_connect(&d, "x", in, count);
    device_connect(&d, "y", out, device_count(&d, y));
    MUST(ipu_engine_run(d.engine));
}

/* --------------------------------------------------------------- reductions */

LOOP_TEST(the_smallest_and_the_product, 0, 6)
{
    const int32_t axes[3][2] = {{1, 0}, {0, -1}, {-1, 1}};
    const int32_t naxes = _i % 3 == 0 ? 1 : 2;
    ipu_tensor x = x_of(3, SHAPE(3, 4, 5));
    ipu_tensor y =
        (_i < 3 ? ipu_min : ipu_prod)(d.graph, x, naxes, axes[_i % 3], _i % 2);
    double wanted[60];
    int64_t count = device_count(&d, y);

    device_fill(in, 60, 5);
    run(y, 60);
    for (int i = 0; i < 60; i++)
        wanted[i] = _i < 3 ? INFINITY : 1;
    for (int i = 0; i < 60; i++) {
        int a = i / 20, b = i / 5 % 4, c = i % 5;
        int to = _i % 3 == 0 ? a * 5 + c : _i % 3 == 1 ? b : a;

        wanted[to] = _i < 3 ? fmin(wanted[to], (double)in[i])
                            : wanted[to] * (double)in[i];
    }
    ck_assert_int_eq(count, _i % 3 == 0 ? 15 : _i % 3 == 1 ? 4 : 3);
    for (int64_t i = 0; i < count; i++)
        ck_assert_double_eq_tol((double)out[i], wanted[i],
                                1e-6 * fabs(wanted[i]));
}

LOOP_TEST(nan_and_nothing_in_reductions, 0, 2)
{
    const int32_t axis = 1;
    ipu_tensor x = x_of(2, SHAPE(2, 3));
    ipu_tensor none = ipu_fill(d.graph, IPU_FLOAT32, 2, SHAPE(2, 0), 1);
    float of_none[2];

    MUST(ipu_output(d.graph, "none", ipu_prod(d.graph, none, 1, &axis, 0)));
    in[0] = 1, in[1] = NAN, in[2] = -1, in[3] = 2, in[4] = 3, in[5] = INFINITY;
    MUST(ipu_output(d.graph, "y",
                    _i ? ipu_min(d.graph, x, 1, &axis, 0)
                       : ipu_prod(d.graph, x, 1, &axis, 0)));
    device_load(&d);
    device_connect(&d, "x", in, 6);
    device_connect(&d, "y", out, 2);
    device_connect(&d, "none", of_none, 2);
    MUST(ipu_engine_run(d.engine));
    ck_assert_float_nan(out[0]);
    ck_assert_float_eq(out[1], _i ? 2 : INFINITY);
    ck_assert_float_eq(of_none[0], 1);
}

/* The product of the others, whatever is 0. */
LOOP_TEST(the_derivative_of_a_product_with_zeros, 0, 3)
{
    const float rows[3][4] = {{2, 3, 4, 5}, {2, 0, 4, 5}, {0, 3, 0, 5}};
    const float slopes[3][4] = {{60, 40, 30, 24}, {0, 40, 0, 0}, {0, 0, 0, 0}};
    const int32_t axis = 0;
    ipu_tensor x = x_of(1, SHAPE(4)), y, dx;

    y = ipu_prod(d.graph, x, 1, &axis, 0);
    MUST(ipu_gradients(d.graph, y, 1, &x, &dx));
    memcpy(in, rows[_i], sizeof *rows);
    run(dx, 4);
    for (int i = 0; i < 4; i++)
        ck_assert_float_eq(out[i], slopes[_i][i]);
}

TEST(equal_elements_share_the_derivative_of_min)
{
    const int32_t axis = 0;
    ipu_tensor x = x_of(1, SHAPE(4)), dx;

    MUST(ipu_gradients(d.graph, ipu_min(d.graph, x, 1, &axis, 0), 1, &x, &dx));
    in[0] = 1, in[1] = 3, in[2] = 1, in[3] = 2;
    run(dx, 4);
    ck_assert_float_eq(out[0], 0.5f);
    ck_assert_float_eq(out[1], 0);
    ck_assert_float_eq(out[2], 0.5f);
}

TEST(argmin_is_the_first_of_the_smallest)
{
    int32_t got[2];
    ipu_tensor x = x_of(2, SHAPE(3, 2));

    MUST(ipu_output(d.graph, "i", ipu_argmin(d.graph, x, 0)));
    device_load(&d);
    in[0] = 2, in[2] = 1, in[4] = 1;
    in[1] = 1, in[3] = NAN, in[5] = -INFINITY;
    device_connect(&d, "x", in, 6);
    device_connect(&d, "i", got, 2);
    MUST(ipu_engine_run(d.engine));
    ck_assert_int_eq(got[0], 1);
    ck_assert_int_eq(got[1], 1);
}

/* ------------------------------------------------------------ along an axis */

LOOP_TEST(cumulative_sums_go_on, 0, 12)
{
    int axis = _i % 3, exclusive = _i / 3 % 2, reverse = _i / 6;
    ipu_tensor x = x_of(3, SHAPE(3, 4, 5));
    const int n[3] = {3, 4, 5}, step[3] = {20, 5, 1};

    device_fill(in, 60, 6);
    run(ipu_cumulative_sum(d.graph, x, axis - 3, exclusive, reverse), 60);
    for (int i = 0; i < 60; i++) {
        int at = i / step[axis] % n[axis];
        double sum = 0;

        for (int k = 0; k < n[axis]; k++)
            if ((reverse ? k > at : k < at) || (k == at && !exclusive))
                sum += (double)in[i + (k - at) * step[axis]];
        ck_assert_double_eq_tol((double)out[i], sum, 1e-6);
    }
}

LOOP_TEST(softmax_of_any_axis, 0, 6)
{
    int axis = _i % 3;
    ipu_tensor x = x_of(3, SHAPE(3, 4, 5));
    const int n[3] = {3, 4, 5}, step[3] = {20, 5, 1};

    device_fill(in, 60, 7);
    run((_i < 3 ? ipu_softmax_axis : ipu_log_softmax_axis)(d.graph, x,
                                                           axis - 3),
        60);
    for (int i = 0; i < 60; i++) {
        int at = i / step[axis] % n[axis];
        double sum = 0, part;

        for (int k = 0; k < n[axis]; k++)
            sum += exp((double)in[i + (k - at) * step[axis]]);
        part = exp((double)in[i]) / sum;
        ck_assert_double_eq_tol((double)out[i], _i < 3 ? part : log(part),
                                1e-6);
    }
}

TEST(the_largest_fall)
{
    ipu_tensor x = x_of(2, SHAPE(4, 6)), i, y = ipu_top_k(d.graph, x, 4, &i);

    MUST(ipu_output(d.graph, "i", i));
    device_fill(in, 24, 8);
    in[3] = in[1]; /* equal ones keep their order */
    in[8] = NAN;
    in[9] = INFINITY;
    in[11] = NAN;
    for (int k = 12; k < 18; k++)
        in[k] = -INFINITY;
    MUST(ipu_output(d.graph, "y", y));
    device_load(&d);
    device_connect(&d, "x", in, 24);
    device_connect(&d, "y", out, 16);
    device_connect(&d, "i", numbers, 16);
    MUST(ipu_engine_run(d.engine));
    for (int r = 0; r < 4; r++)
        for (int k = 0; k < 4; k++) {
            int at = numbers[r * 4 + k], before = 0;
            float value = in[r * 6 + at];

            ck_assert(memcmp(&out[r * 4 + k], &value, sizeof value) == 0);
            for (int m = 0; m < 6; m++) {
                float o = in[r * 6 + m];

                before += isnan(value) ? isnan(o) && m < at
                          : isnan(o)   ? 1
                          : o > value  ? 1
                          : o == value ? m < at
                                       : 0;
            }
            ck_assert_int_eq(before, k);
        }
}

LOOP_TEST(elements_are_taken_by_number, 0, 2)
{
    ipu_tensor x = x_of(2, SHAPE(2, 3));
    ipu_tensor i = ipu_input(d.graph, "i", IPU_INT32, 2, SHAPE(2, 4));
    ipu_tensor y = ipu_take(d.graph, x, i), dx;
    int32_t given[8] = {2, 2, 0, 1, 0, 0, 0, 2};
    float slopes[6];

    MUST(ipu_gradients(d.graph, ipu_reduce_sum(d.graph, y, 1), 1, &x, &dx));
    MUST(ipu_output(d.graph, "y", y));
    MUST(ipu_output(d.graph, "dx", dx));
    device_load(&d);
    device_fill(in, 6, 9);
    device_connect(&d, "x", in, 6);
    device_connect(&d, "i", given, 8);
    device_connect(&d, "y", out, 8);
    device_connect(&d, "dx", slopes, 6);
    MUST(ipu_engine_run(d.engine));
    for (int k = 0; k < 8; k++)
        ck_assert_float_eq(out[k], in[k / 4 * 3 + given[k]]);
    for (int k = 0; k < 6; k++) {
        int times = 0;

        for (int m = 0; m < 4; m++)
            times += given[k / 3 * 4 + m] == k % 3;
        ck_assert_float_eq(slopes[k], (float)times);
    }
    given[5] = _i ? 3 : -1;
    MUST_FAIL(ipu_engine_run(d.engine), IPU_ERR_DATA,
              _i ? "number 5 of i is 3, not one of the 3 of a row"
                 : "number 5 of i is -1, not one of the 3 of a row");
}

LOOP_TEST(what_comes_later_is_masked, 0, 4)
{
    ipu_tensor x = x_of(3, SHAPE(2, 3, 5));

    device_fill(in, 30, 10);
    run(ipu_causal_mask(d.graph, x, _i - 1, -7), 30);
    for (int i = 0; i < 30; i++)
        ck_assert_float_eq(out[i], i % 5 - i / 5 % 3 >= _i - 1 ? -7 : in[i]);
}

/* -------------------------------------------------------------- derivatives */

static ipu_tensor make_min(ipu_tensor x)
{
    const int32_t axis = 1;

    return ipu_min(d.graph, x, 1, &axis, 0);
}

static ipu_tensor make_prod(ipu_tensor x)
{
    const int32_t axes[] = {0, 2};

    return ipu_prod(d.graph, x, 2, axes, 1);
}

static ipu_tensor make_cumulative(ipu_tensor x)
{
    return ipu_cumulative_sum(d.graph, x, 1, 0, 0);
}

static ipu_tensor make_exclusive(ipu_tensor x)
{
    return ipu_cumulative_sum(d.graph, x, 2, 1, 1);
}

static ipu_tensor make_softmax(ipu_tensor x)
{
    return ipu_softmax_axis(d.graph, x, 0);
}

static ipu_tensor make_log_softmax(ipu_tensor x)
{
    return ipu_log_softmax_axis(d.graph, x, 1);
}

static ipu_tensor make_top(ipu_tensor x)
{
    return ipu_top_k(d.graph, x, 2, NULL);
}

static ipu_tensor make_mask(ipu_tensor x)
{
    return ipu_causal_mask(d.graph, x, 1, -3);
}

LOOP_TEST(derivatives_along_an_axis, 0, 8)
{
    ipu_tensor (*const make[])(ipu_tensor) = {
        make_min,     make_prod,        make_cumulative, make_exclusive,
        make_softmax, make_log_softmax, make_top,        make_mask};

    spacing = _i == 1 ? 0.04f : 0.2f;
    check_gradients(make[_i](variable(3, SHAPE(2, 3, 4))));
}

/* ------------------------------------------------------------------ refused */

static void misuse(int i)
{
    const int32_t axis = 1, three = 3;
    ipu_tensor x = x_of(2, SHAPE(3, 0));
    ipu_tensor v = device_floats(&d, "v", 1, SHAPE(3));
    ipu_tensor n = ipu_input(d.graph, "n", IPU_INT32, 2, SHAPE(3, 1));

    switch (i) {
    case 0: ipu_min(d.graph, x, 1, &axis, 0); break;
    case 1: ipu_prod(d.graph, x, 1, &three, 0); break;
    case 2: ipu_argmin(d.graph, x, 1); break;
    case 3: ipu_cumulative_sum(d.graph, x, 2, 0, 0); break;
    case 4: ipu_softmax_axis(d.graph, x, -3); break;
    case 5: ipu_top_k(d.graph, v, 4, NULL); break;
    case 6: ipu_top_k(d.graph, v, 0, NULL); break;
    case 7: ipu_take(d.graph, v, n); break;
    case 8: ipu_take(d.graph, x, v); break;
    default: ipu_causal_mask(d.graph, v, 1, 0); break;
    }
}

static const char *const misuses[] = {
    "min: x is float32 [3,0]: of no elements along axis 1, none is the "
    "smallest",
    "prod: there is no axis 3 in 2 dimensions",
    "argmin: x is float32 [3,0]: axis 1 must have 1 to",
    "cumulative_sum: there is no axis 2 in the 2 dimensions of x",
    "softmax: there is no axis -3",
    "v is float32 [3], of which there are no 4 largest",
    "no 0 largest",
    "all dimensions but the last must be the same",
    "it must be int32 [..., k]",
    "it must be float32 [..., rows, columns]",
};
enum { MISUSES = sizeof misuses / sizeof *misuses };

LOOP_TEST(what_cannot_be_is_refused, 0, MISUSES)
{
    misuse(_i);
    device_says(&d, misuses[_i]);
}

TEST_MAIN("device_axes", .set_up = set_up, .tear_down = tear_down)
