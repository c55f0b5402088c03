/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tests ops on two elements each, with broadcasting, and select. Values are
 * compared with their definitions in double, derivatives with differences; NaN,
 * infinity and refused arguments are tested too.
 */
#include "suite.h"

#include <stdbool.h>

#include "elements.h"

static double sum(double u, double v)
{
    return u + v;
}

static double difference(double u, double v)
{
    return u - v;
}

static double product(double u, double v)
{
    return u * v;
}

static double quotient(double u, double v)
{
    return u / v;
}

static double larger(double u, double v)
{
    return isnan(u) || isnan(v) ? NAN : fmax(u, v);
}

static double smaller(double u, double v)
{
    return isnan(u) || isnan(v) ? NAN : fmin(u, v);
}

static double are_equal(double u, double v)
{
    return u == v;
}

static double are_not_equal(double u, double v)
{
    return u != v;
}

static double is_less(double u, double v)
{
    return u < v;
}

static double is_less_equal(double u, double v)
{
    return u <= v;
}

static double is_greater(double u, double v)
{
    return u > v;
}

static double is_greater_equal(double u, double v)
{
    return u >= v;
}

#undef OP
#define OP(name)                                                               \
    static ipu_tensor op_##name(ipu_graph *graph, ipu_tensor u, ipu_tensor v)  \
    {                                                                          \
        return ipu_##name(graph, u, v);                                        \
    }
OP(add)
OP(subtract)
OP(multiply)
OP(divide)
OP(maximum)
OP(minimum)
OP(power)
OP(equal)
OP(not_equal)
OP(less)
OP(less_equal)
OP(greater)
OP(greater_equal)

static const struct {
    ipu_tensor (*op)(ipu_graph *graph, ipu_tensor u, ipu_tensor v);
    double (*of)(double u, double v);
    float center, spread;
    int ints; /* whether int32 has it */
} binary[] = {
    {op_add, sum, 0, 2, 1},
    {op_subtract, difference, 0, 2, 1},
    {op_multiply, product, 0, 2, 1},
    {op_divide, quotient, 3, 1.5f, 0},
    {op_power, pow, 2, 0.8f, 0},
    {op_maximum, larger, 0, 2, 1},
    {op_minimum, smaller, 0, 2, 1},
    /* The ops that follow compare. */
    {op_equal, are_equal, 0, 2, 1},
    {op_not_equal, are_not_equal, 0, 2, 1},
    {op_less, is_less, 0, 2, 1},
    {op_less_equal, is_less_equal, 0, 2, 1},
    {op_greater, is_greater, 0, 2, 1},
    {op_greater_equal, is_greater_equal, 0, 2, 1},
};
enum { BINARY = sizeof binary / sizeof *binary };
enum { MAXIMUM = 5, MINIMUM, ARITHMETIC };

/* Shapes a and b that are broadcast, and the shape y of the result. */
static const struct {
    int32_t ndima, ndimb, ndim;
    int64_t a[4], b[4], y[4];
} pairs[] = {
    {1, 1, 1, {37}, {37}, {37}},
    {2, 1, 2, {5, 19}, {19}, {5, 19}},
    {1, 2, 2, {19}, {5, 19}, {5, 19}},
    {2, 2, 2, {6, 1}, {1, 7}, {6, 7}},
    {2, 0, 2, {6, 3}, {0}, {6, 3}},
    {0, 2, 2, {0}, {3, 6}, {3, 6}},
    {4, 3, 4, {2, 3, 1, 5}, {3, 4, 1}, {2, 3, 4, 5}},
    {4, 4, 4, {1, 3, 4, 5}, {2, 1, 4, 1}, {2, 3, 4, 5}},
    {0, 0, 0, {0}, {0}, {0}},
    {2, 1, 2, {0, 4}, {4}, {0, 4}},
    {2, 2, 2, {1, 4}, {0, 4}, {0, 4}},
};
enum { PAIRS = sizeof pairs / sizeof *pairs };

/* Returns the element of a broadcast operand that belongs to element i of y. */
static int64_t element_of(int32_t ndim, const int64_t *extents, int p,
                          int64_t i)
{
    int64_t at = 0, stride = 1;

    for (int32_t k = pairs[p].ndim - 1; k >= 0; k--) {
        int32_t own = k - (pairs[p].ndim - ndim);

        if (own >= 0 && extents[own] != 1)
            at += i % pairs[p].y[k] * stride;
        if (own >= 0)
            stride *= extents[own];
        i /= pairs[p].y[k];
    }
    return at;
}

static int64_t count_of(int32_t ndim, const int64_t *extents)
{
    int64_t count = 1;

    for (int32_t i = 0; i < ndim; i++)
        count *= extents[i];
    return count;
}

static void check_pair(int op, int p, ipu_dtype dtype)
{
    int64_t na = count_of(pairs[p].ndima, pairs[p].a);
    int64_t nb = count_of(pairs[p].ndimb, pairs[p].b);
    int64_t n = count_of(pairs[p].ndim, pairs[p].y), shape[IPU_MAX_DIMS];
    ipu_tensor u = ipu_input(d.graph, "a", dtype, pairs[p].ndima, pairs[p].a);
    ipu_tensor v = ipu_input(d.graph, "b", dtype, pairs[p].ndimb, pairs[p].b);
    ipu_tensor result = binary[op].op(d.graph, u, v);
    ipu_dtype got;

    ck_assert_int_eq(ipu_tensor_info(d.graph, result, &got, shape, NULL),
                     pairs[p].ndim);
    for (int32_t k = 0; k < pairs[p].ndim; k++)
        ck_assert_int_eq(shape[k], pairs[p].y[k]);
    for (int64_t i = 0; i < n; i++)
        wanted[i] = binary[op].of(
            (double)a[element_of(pairs[p].ndima, pairs[p].a, p, i)],
            (double)b[element_of(pairs[p].ndimb, pairs[p].b, p, i)]);
    if (dtype == IPU_INT32)
        for (int64_t i = 0; i < MOST; i++) {
            int32_t ints[2] = {(int32_t)a[i], (int32_t)b[i]};

            memcpy(&a[i], &ints[0], 4);
            memcpy(&b[i], &ints[1], 4);
        }
    compute(result, na, nb);
    if (got == IPU_INT32)
        for (int64_t i = 0; i < n; i++) {
            int32_t number;

            memcpy(&number, &y[i], 4);
            y[i] = (float)number;
        }
    check_values(n, 1e-6);
}

LOOP_TEST(pairs_of_floats_are_broadcast, 0, BINARY *PAIRS)
{
    int op = _i / PAIRS;

    device_fill(a, MOST, 1);
    device_fill(b, MOST, 2);
    for (int i = 0; i < MOST; i++) {
        a[i] = binary[op].center + binary[op].spread * a[i];
        b[i] = binary[op].center + binary[op].spread * b[i];
        if (i % 3 == 0)
            b[i] = a[i];
    }
    check_pair(op, _i % PAIRS, IPU_FLOAT32);
}

LOOP_TEST(pairs_of_integers_are_broadcast, 0, BINARY *PAIRS)
{
    int op = _i / PAIRS;

    for (int i = 0; i < MOST; i++) {
        a[i] = (float)(i * 7 % 23 - 11);
        b[i] = (float)(i * 5 % 17 - 8);
    }
    if (binary[op].ints)
        check_pair(op, _i % PAIRS, IPU_INT32);
}

LOOP_TEST(nan_and_infinity_of_pairs, 0, BINARY)
{
    const float some[] = {NAN, INFINITY, -INFINITY, 0, 1};
    ipu_tensor u = device_floats(&d, "a", 1, SHAPE(25));
    ipu_tensor v = device_floats(&d, "b", 1, SHAPE(25));

    for (int i = 0; i < 25; i++) {
        a[i] = some[i / 5];
        b[i] = some[i % 5];
        wanted[i] = binary[_i].of((double)a[i], (double)b[i]);
    }
    compute(binary[_i].op(d.graph, u, v), 25, 25);
    for (int i = 0; _i >= ARITHMETIC && i < 25; i++) {
        int32_t number;

        memcpy(&number, &y[i], 4);
        y[i] = (float)number;
    }
    check_values(25, 0);
}

LOOP_TEST(derivatives_of_pairs, 0, ARITHMETIC *PAIRS)
{
    int op = _i / PAIRS, p = _i % PAIRS;
    ipu_tensor u, v;

    center = binary[op].center;
    spread = binary[op].spread;
    u = variable(pairs[p].ndima, pairs[p].a);
    v = variable(pairs[p].ndimb, pairs[p].b);
    if (op == MAXIMUM || op == MINIMUM) { /* no two elements are equal */
        spacing = 0.25f;
        v = ipu_scale(d.graph, v, 1, 0.0625);
    }
    check_gradients(binary[op].op(d.graph, u, v));
}

TEST(integers_wrap_around)
{
    int32_t u[3] = {INT32_MAX, INT32_MIN, 1 << 30}, v[3] = {1, -1, 4}, got[3];
    ipu_tensor s = ipu_input(d.graph, "a", IPU_INT32, 1, SHAPE(3));
    ipu_tensor t = ipu_input(d.graph, "b", IPU_INT32, 1, SHAPE(3));

    memcpy(a, u, sizeof u);
    memcpy(b, v, sizeof v);
    compute(ipu_add(d.graph, s, t), 3, 3);
    memcpy(got, y, sizeof got);
    ck_assert_int_eq(got[0], INT32_MIN);
    ck_assert_int_eq(got[1], INT32_MAX);
    ck_assert_int_eq(got[2], (1 << 30) + 4);
}

/* If a^b does not depend on a (as b is 0) or on b (as a is 0), the derivative
 * by that one is 0, not NaN. */
LOOP_TEST(derivatives_of_powers_at_0, 0, 2)
{
    ipu_tensor u = device_floats(&d, "a", 1, SHAPE(2));
    ipu_tensor v = device_floats(&d, "b", 1, SHAPE(2)), by[2];
    ipu_tensor loss = ipu_reduce_sum(d.graph, ipu_power(d.graph, u, v), 1);

    MUST(ipu_gradients(d.graph, loss, 2, (const ipu_tensor[]){u, v}, by));
    a[0] = 0;
    a[1] = 2;
    b[0] = _i ? 3 : 0;
    b[1] = 3;
    wanted[0] = 0;
    wanted[1] = _i ? 8 * log(2) : 12;
    compute(by[_i], 2, 2);
    check_values(2, 1e-6);
}

LOOP_TEST(select_takes_one_or_the_other, 0, 4)
{
    int32_t conditions[6] = {0, 1, -7, 0, INT32_MIN, 0};
    ipu_tensor c = ipu_input(d.graph, "c", IPU_INT32, 2, SHAPE(2, 3));
    ipu_tensor u =
        device_floats(&d, "a", 2, _i % 2 ? SHAPE(2, 3) : SHAPE(2, 1));
    ipu_tensor v =
        device_floats(&d, "b", 2, _i / 2 ? SHAPE(2, 3) : SHAPE(1, 3));
    ipu_tensor result = ipu_select(d.graph, c, u, v);

    device_fill(a, 6, 1);
    a[0] = NAN; /* not chosen, so it has no effect */
    device_fill(b, 6, 2);
    MUST(ipu_output(d.graph, "y", result));
    device_load(&d);
    device_connect(&d, "a", a, device_count(&d, u));
    device_connect(&d, "b", b, device_count(&d, v));
    device_connect(&d, "c", conditions, 6);
    device_connect(&d, "y", y, 6);
    MUST(ipu_engine_run(d.engine));
    for (int i = 0; i < 6; i++)
        wanted[i] = (double)(conditions[i] ? a[_i % 2 ? i : i / 3]
                                           : b[_i / 2 ? i : i % 3]);
    check_values(6, 0);
}

TEST(derivatives_of_select_and_broadcast)
{
    ipu_tensor u = variable(2, SHAPE(4, 1)), v = variable(1, SHAPE(3));
    ipu_tensor c = ipu_less(d.graph, u, v);

    u = ipu_broadcast(d.graph, u, 3, SHAPE(2, 4, 3));
    check_gradients(ipu_select(d.graph, c, u, v));
}

TEST(broadcast_repeats)
{
    ipu_tensor x = device_floats(&d, "a", 2, SHAPE(3, 1));

    device_fill(a, 3, 1);
    compute(ipu_broadcast(d.graph, x, 3, SHAPE(2, 3, 4)), 3, -1);
    for (int i = 0; i < 24; i++)
        wanted[i] = (double)a[i / 4 % 3];
    check_values(24, 0);
}

static ipu_tensor misfit(void)
{
    return ipu_subtract(d.graph, device_floats(&d, "u", 2, SHAPE(3, 5)),
                        device_floats(&d, "v", 2, SHAPE(5, 3)));
}

static ipu_tensor mixed(void)
{
    return ipu_less(d.graph, device_floats(&d, "u", 1, SHAPE(3)),
                    ipu_input(d.graph, "v", IPU_INT32, 1, SHAPE(3)));
}

static ipu_tensor divided_ints(void)
{
    ipu_tensor x = ipu_input(d.graph, "u", IPU_INT32, 1, SHAPE(3));

    return ipu_divide(d.graph, x, x);
}

static ipu_tensor condition_of_floats(void)
{
    ipu_tensor x = device_floats(&d, "u", 1, SHAPE(3));

    return ipu_select(d.graph, x, x, x);
}

static ipu_tensor select_mixed(void)
{
    ipu_tensor x = ipu_input(d.graph, "u", IPU_INT32, 1, SHAPE(3));

    return ipu_select(d.graph, x, x, device_floats(&d, "v", 1, SHAPE(3)));
}

static ipu_tensor select_misfit(void)
{
    ipu_tensor x = ipu_input(d.graph, "u", IPU_INT32, 1, SHAPE(3));

    return ipu_select(d.graph, x, x,
                      ipu_input(d.graph, "v", IPU_INT32, 1, SHAPE(4)));
}

static ipu_tensor broadcast_misfit(void)
{
    return ipu_broadcast(d.graph, device_floats(&d, "u", 1, SHAPE(3)), 2,
                         SHAPE(3, 4));
}

static ipu_tensor broadcast_smaller(void)
{
    return ipu_broadcast(d.graph, device_floats(&d, "u", 1, SHAPE(3)), 1,
                         SHAPE(1));
}

static ipu_tensor broadcast_null(void)
{
    return ipu_broadcast(d.graph, device_floats(&d, "u", 1, SHAPE(3)), 1, NULL);
}

static const struct {
    ipu_tensor (*make)(void);
    int status;
    const char *words;
} bad_pairs[] = {
    {misfit, IPU_ERR_SHAPE,
     "subtract: u is float32 [3,5] and v is float32 [5,3]: dimensions, "
     "aligned at the last, must be equal, 1, or missing"},
    {mixed, IPU_ERR_SHAPE,
     "less: u is float32 [3] and v is int32 [3]: the dtypes must be the same: "
     "ipu_cast one of them"},
    {divided_ints, IPU_ERR_SHAPE, "divide: u is int32 [3], it must be float32"},
    {condition_of_floats, IPU_ERR_SHAPE,
     "select: u is float32 [3], it must be int32"},
    {select_mixed, IPU_ERR_SHAPE, "select: u is int32 [3] and v is float32"},
    {select_misfit, IPU_ERR_SHAPE, "select: u is int32 [3] and v is int32 [4]"},
    {broadcast_misfit, IPU_ERR_SHAPE,
     "broadcast: u is float32 [3] and cannot become float32 [3,4]"},
    {broadcast_smaller, IPU_ERR_SHAPE, "cannot become float32 [1]"},
    {broadcast_null, IPU_ERR_ARGUMENT, "broadcast: the shape is NULL"},
};
enum { BAD_PAIRS = sizeof bad_pairs / sizeof *bad_pairs };

LOOP_TEST(pairs_that_do_not_fit_are_refused, 0, BAD_PAIRS)
{
    device_refused(&d, bad_pairs[_i].make(), bad_pairs[_i].status,
                   bad_pairs[_i].words);
}

TEST_MAIN("device_pairs", .set_up = set_up, .tear_down = tear_down)
