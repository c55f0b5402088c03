/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tests reductions. Values are compared with their definitions in double,
 * derivatives with differences; NaN, infinity and refused arguments are tested
 * too.
 */
#include "suite.h"

#include <stdbool.h>

#include "elements.h"

#undef OP
#define OP(name)                                                               \
    static ipu_tensor op_##name(ipu_graph *graph, ipu_tensor x, int32_t naxes, \
                                const int32_t *axes, int32_t keepdims)         \
    {                                                                          \
        return ipu_##name(graph, x, naxes, axes, keepdims);                    \
    }
OP(sum)
OP(mean)
OP(max)

enum { SUM, MEAN, MAX, REDUCTIONS };
static ipu_tensor (*const reductions[REDUCTIONS])(ipu_graph *, ipu_tensor,
                                                  int32_t, const int32_t *,
                                                  int32_t) = {op_sum, op_mean,
                                                              op_max};

static const struct {
    int32_t ndim;
    int64_t shape[5];
    int32_t naxes, axes[5];
} reduced[] = {
    {1, {1}, 1, {0}},
    {1, {1037}, 1, {0}},
    {2, {7, 33}, 1, {1}},
    {2, {7, 33}, 1, {-2}},
    {2, {7, 33}, 2, {1, 0}},
    {2, {7, 33}, 0, {0}},
    {3, {3, 5, 7}, 1, {1}},
    {3, {3, 5, 7}, 2, {0, -1}},
    {4, {2, 3, 4, 5}, 2, {1, 3}},
    {5, {2, 1, 3, 2, 19}, 3, {0, 2, 4}},
    {0, {0}, 0, {0}},
    {2, {0, 3}, 1, {1}},
    {2, {3, 0}, 1, {1}},
};
enum { REDUCED = sizeof reduced / sizeof *reduced, LAST_FULL = REDUCED - 1 };

/* Computes wanted by the definition. Returns how many results there are. */
static int64_t reduce(int kind, int c)
{
    bool gone[5] = {0};
    int64_t counts[MOST] = {0}, results = 1, all = 1;

    for (int k = 0; k < reduced[c].naxes; k++)
        gone[(reduced[c].axes[k] + reduced[c].ndim) % reduced[c].ndim] = true;
    for (int k = 0; k < reduced[c].ndim; k++) {
        all *= reduced[c].shape[k];
        results *= gone[k] ? 1 : reduced[c].shape[k];
    }
    for (int64_t i = 0; i < results; i++)
        wanted[i] = kind == MAX ? -(double)INFINITY : 0;
    for (int64_t i = 0; i < all; i++) {
        int64_t rest = i, at = 0, stride = 1;

        for (int k = reduced[c].ndim - 1; k >= 0; k--) {
            int64_t index = rest % reduced[c].shape[k];

            rest /= reduced[c].shape[k];
            if (!gone[k]) {
                at += index * stride;
                stride *= reduced[c].shape[k];
            }
        }
        counts[at]++;
        if (kind != MAX)
            wanted[at] += (double)a[i];
        else if (!(wanted[at] >= (double)a[i]))
            wanted[at] = isnan(wanted[at]) ? NAN : (double)a[i];
    }
    for (int64_t i = 0; kind == MEAN && i < results; i++)
        wanted[i] /= (double)counts[i];
    return results;
}

LOOP_TEST(reductions_follow_their_definitions, 0, REDUCED *REDUCTIONS * 2)
{
    int kind = _i / 2 % REDUCTIONS, c = _i / 2 / REDUCTIONS, keep = _i % 2;
    ipu_tensor x = device_floats(&d, "a", reduced[c].ndim, reduced[c].shape);
    ipu_tensor result;
    int64_t results;

    if (kind == MAX && c == LAST_FULL)
        return; /* refused */
    device_fill(a, MOST, 1);
    result =
        reductions[kind](d.graph, x, reduced[c].naxes, reduced[c].axes, keep);
    ck_assert_int_eq(ipu_tensor_info(d.graph, result, NULL, NULL, NULL),
                     reduced[c].ndim - (keep ? 0 : reduced[c].naxes));
    results = reduce(kind, c);
    ck_assert_int_eq(device_count(&d, result), results);
    compute(result, device_count(&d, x), -1);
    check_values(results, 1e-6);
}

LOOP_TEST(nan_and_infinity_in_reductions, 0, REDUCTIONS * 2)
{
    int kind = _i / 2;
    const int32_t axes[] = {_i % 2};
    ipu_tensor x = device_floats(&d, "a", 2, SHAPE(50, 50));

    for (int i = 0; i < 2500; i++)
        a[i] = (float)(i % 13);
    a[2 * 50 + 3] = NAN;
    a[4 * 50 + 5] = INFINITY;
    a[6 * 50 + 7] = -INFINITY;
    compute(reductions[kind](d.graph, x, 1, axes, 0), 2500, -1);
    for (int i = 0; i < 50; i++) {
        ck_assert_int_eq(isnan(y[i]) != 0, i == (_i % 2 ? 2 : 3));
        ck_assert_int_eq(y[i] == INFINITY, i == (_i % 2 ? 4 : 5));
        ck_assert_int_eq(y[i] == -INFINITY,
                         kind != MAX && i == (_i % 2 ? 6 : 7));
    }
}

/* A sum in float would lose the small numbers next to the large one. */
LOOP_TEST(sums_keep_small_elements, 0, 2)
{
    const int32_t axis = 0;
    ipu_tensor x =
        device_floats(&d, "a", 2, _i ? SHAPE(2048, 2) : SHAPE(4096, 1));

    for (int i = 0; i < MOST; i++)
        a[i] = i < 2 ? 16777216.0f : 0.25f;
    compute(ipu_sum(d.graph, x, 1, &axis, 0), MOST, -1);
    ck_assert_float_eq(y[0], _i ? (float)(16777216.0 + 0.25 * 2047)
                                : (float)(2 * 16777216.0 + 0.25 * 4094));
}

LOOP_TEST(derivatives_of_reductions, 0, REDUCED *REDUCTIONS * 2)
{
    int kind = _i / 2 % REDUCTIONS, c = _i / 2 / REDUCTIONS;

    if (c == 1 || (kind == MAX && c == LAST_FULL))
        return;
    spread = 20; /* the largest must stay the largest */
    check_gradients(
        reductions[kind](d.graph, variable(reduced[c].ndim, reduced[c].shape),
                         reduced[c].naxes, reduced[c].axes, _i % 2));
}

TEST(equal_elements_share_the_derivative_of_max)
{
    const int32_t axis = 1;
    ipu_tensor x = device_floats(&d, "a", 2, SHAPE(2, 3)), dx;
    ipu_tensor loss =
        ipu_reduce_sum(d.graph, ipu_max(d.graph, x, 1, &axis, 0), 1);
    const double shares[6] = {0.5, 0, 0.5, 0, 1, 0};

    MUST(ipu_gradients(d.graph, loss, 1, &x, &dx));
    memcpy(a, (float[]){3, 1, 3, -2, -1, -3}, 6 * sizeof *a);
    memcpy(wanted, shares, sizeof shares);
    compute(dx, 6, -1);
    check_values(6, 0);
}

LOOP_TEST(axes_that_are_none_are_refused, 0, 4)
{
    const struct {
        int32_t naxes, axes[2];
        int status;
        const char *words;
    } bad[] = {
        {1, {2, 0}, IPU_ERR_SHAPE, "sum: there is no axis 2 in 2 dimensions"},
        {1, {-3, 0}, IPU_ERR_SHAPE, "sum: there is no axis -3"},
        {2, {1, -1}, IPU_ERR_ARGUMENT, "sum: axis -1 is given twice"},
        {-1, {0, 0}, IPU_ERR_ARGUMENT, "sum: the number of axes is less"},
    };
    ipu_tensor x = device_floats(&d, "x", 2, SHAPE(2, 3));
    device_refused(&d, ipu_sum(d.graph, x, bad[_i].naxes, bad[_i].axes, 0),
                   bad[_i].status, bad[_i].words);
}

LOOP_TEST(reductions_that_cannot_be_are_refused, 0, 4)
{
    const int32_t axis = 0;
    ipu_executable *executable = NULL;
    const char *words = "mean: i is int32 [3], it must be float32";
    int status = IPU_ERR_SHAPE;

    if (_i == 0) {
        ipu_mean(d.graph, ipu_input(d.graph, "i", IPU_INT32, 1, SHAPE(3)), 1,
                 &axis, 0);
    } else if (_i == 1) {
        ipu_max(d.graph, device_floats(&d, "x", 2, SHAPE(0, 2)), 1, &axis, 0);
        words = "max: x is float32 [0,2]: of no elements along axis 0";
    } else if (_i == 2) {
        ipu_sum(d.graph, device_floats(&d, "x", 2, SHAPE(0, 2)), 1, NULL, 0);
        words = "sum: the axes are NULL";
        status = IPU_ERR_ARGUMENT;
    } else {
        ipu_sum(d.graph, (ipu_tensor){-1}, 1, &axis, 0);
        words = "sum: input 0: the tensor is invalid";
        status = IPU_ERR_ARGUMENT;
    }
    MUST_FAIL(ipu_compile(d.graph, NULL, &executable), status, words);
    ck_assert_int_lt(ipu_sum(NULL, (ipu_tensor){0}, 0, NULL, 0).id, 0);
}

TEST_MAIN("device_reductions", .set_up = set_up, .tear_down = tear_down)
