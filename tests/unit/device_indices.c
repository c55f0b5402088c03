/* SPDX-License-Identifier: Apache-2.0 */
/* Ops on numbers of elements, other dtypes, and constants. */
#include "suite.h"

#include "differences.h"

static float x[MOST], y[MOST], wanted[MOST];
static int32_t numbers[64];

static void check_values(int64_t count)
{
    for (int64_t i = 0; i < count; i++)
        if (!(fabsf(y[i] - wanted[i]) <= 1e-6f) &&
            !(isnan(y[i]) && isnan(wanted[i])))
            ck_abort_msg("element %d is %.9g, not %.9g", (int)i, (double)y[i],
                         (double)wanted[i]);
}

/* Runs the graph with those of x, numbers and result that are there. */
static int compute(ipu_tensor result, int64_t count, int64_t nnumbers)
{
    MUST(ipu_output(d.graph, "y", result));
    device_load(&d);
    if (count >= 0)
        device_connect(&d, "x", x, count);
    if (nnumbers >= 0)
        device_connect(&d, "numbers", numbers, nnumbers);
    device_connect(&d, "y", y, device_count(&d, result));
    return ipu_engine_run(d.engine);
}

static ipu_tensor indices(int32_t ndim, const int64_t *shape)
{
    return ipu_input(d.graph, "numbers", IPU_INT32, ndim, shape);
}

/* ------------------------------------------------------------------- gather */

/* Chooses numbers for gather: x is [3, 4, 5], an axis of it has n elements. */
static void choose_numbers(int64_t n)
{
    for (int i = 0; i < 6; i++)
        numbers[i] = (int32_t)(i * 2 % n); /* some of them twice */
}

LOOP_TEST(gather_takes_by_number, 0, 3)
{
    const int64_t shape[] = {3, 4, 5};
    int64_t inner = _i == 0 ? 20 : _i == 1 ? 5 : 1, n = shape[_i];
    ipu_tensor in = device_floats(&d, "x", 3, shape);
    ipu_tensor result =
        ipu_gather(d.graph, in, indices(2, SHAPE(2, 3)), _i - 3);
    int64_t count = device_count(&d, result), extents[IPU_MAX_DIMS];

    ck_assert_int_eq(ipu_tensor_info(d.graph, result, NULL, extents, NULL), 4);
    ck_assert_int_eq(extents[_i] * extents[_i + 1], 6);
    device_fill(x, 60, 1);
    choose_numbers(n);
    for (int64_t i = 0; i < count; i++)
        wanted[i] =
            x[(i / inner / 6 * n + numbers[i / inner % 6]) * inner + i % inner];
    MUST(compute(result, 60, 6));
    check_values(count);
}

TEST(scatter_add_adds_by_number)
{
    ipu_tensor in = device_floats(&d, "x", 2, SHAPE(4, 3));
    ipu_tensor ones = ipu_fill(d.graph, IPU_FLOAT32, 2, SHAPE(5, 3), 1);
    const float times[4] = {2, 0, 1, 2};

    memcpy(numbers, (int32_t[]){0, 3, 2, 0, 3}, 5 * sizeof *numbers);
    device_fill(x, 12, 1);
    for (int i = 0; i < 12; i++)
        wanted[i] = x[i] + times[i / 3];
    MUST(compute(ipu_scatter_add(d.graph, in, indices(1, SHAPE(5)), ones, 0),
                 12, 5));
    check_values(12);
}

LOOP_TEST(derivatives_of_gather_and_scatter_add, 0, 3)
{
    const int32_t chosen[6] = {1, 0, 2, 1, 1, 2};
    ipu_tensor at = ipu_constant(d.graph, IPU_INT32, 2, SHAPE(2, 3), chosen);
    ipu_tensor v = variable(2, SHAPE(3, 4));

    if (_i < 2)
        check_gradients(ipu_gather(d.graph, v, at, _i));
    else
        check_gradients(
            ipu_scatter_add(d.graph, v, at, variable(3, SHAPE(2, 3, 4)), 0));
}

LOOP_TEST(dynamic_update_replaces_an_element_of_an_axis, 0, 3)
{
    const int64_t shapes[3][2] = {{3, 2}, {4, 2}, {4, 3}};
    const int32_t stride = _i == 0 ? 6 : _i == 1 ? 2 : 1;
    const int32_t extent = _i == 0 ? 4 : _i == 1 ? 3 : 2;
    ipu_tensor in = device_floats(&d, "x", 3, SHAPE(4, 3, 2));
    ipu_tensor nines = ipu_fill(d.graph, IPU_FLOAT32, 2, shapes[_i], 9);

    device_fill(x, 24, 1);
    numbers[0] = 1;
    for (int i = 0; i < 24; i++)
        wanted[i] = i / stride % extent == 1 ? 9 : x[i];
    MUST(compute(
        ipu_dynamic_update(d.graph, in, indices(0, NULL), nines, _i - 3), 24,
        1));
    check_values(24);
    numbers[0] = extent;
    MUST_FAIL(ipu_engine_run(d.engine), IPU_ERR_DATA, "dynamic_update: number");
}

/* The elements that no index names stay; of equal indices the last counts. */
LOOP_TEST(scatter_replaces_by_number, 0, 3)
{
    static const int32_t chosen[3][4] = {{3, 0}, {2, 0, 1, 2}, {1, 1}};
    const int64_t counts[] = {2, 4, 2}, extents[] = {4, 3, 2};
    int64_t n = counts[_i], inner = _i == 0 ? 6 : _i == 1 ? 2 : 1;
    int64_t shape[] = {4, 3, 2}, outer = 24 / inner / extents[_i];
    ipu_tensor in = device_floats(&d, "x", 3, shape), updates;

    shape[_i] = n;
    device_fill(x, 24, 1);
    memcpy(wanted, x, 24 * sizeof *x);
    memcpy(numbers, chosen[_i], sizeof chosen[_i]);
    for (int64_t o = 0; o < outer; o++)
        for (int64_t k = 0; k < n; k++)
            for (int64_t i = 0; i < inner; i++)
                wanted[(o * extents[_i] + numbers[k]) * inner + i] =
                    (float)((o * n + k) * inner + i);
    updates = ipu_range(d.graph, IPU_FLOAT32, outer * n * inner, 0, 1);
    updates = ipu_reshape(d.graph, updates, 3, shape);
    MUST(compute(ipu_scatter(d.graph, in, indices(1, &n), updates, _i - 3), 24,
                 n));
    check_values(24);
    numbers[1] = -1;
    MUST_FAIL(ipu_engine_run(d.engine), IPU_ERR_DATA, "scatter: number 1");
}

LOOP_TEST(derivatives_of_scatter, 0, 2)
{
    static const int32_t chosen[2] = {2, 0};
    ipu_tensor at = ipu_constant(d.graph, IPU_INT32, 1, SHAPE(2), chosen);
    ipu_tensor v = variable(2, SHAPE(3, 4));

    check_gradients(ipu_scatter(
        d.graph, v, at, variable(2, _i ? SHAPE(3, 2) : SHAPE(2, 4)), _i));
}

TEST(dynamic_update_of_integers)
{
    const int32_t some[4] = {5, -6, 7, 1 << 30};
    ipu_tensor at = indices(0, NULL), all;

    all = ipu_constant(d.graph, IPU_INT32, 1, SHAPE(4), some);
    all = ipu_dynamic_update(d.graph, all, at, at, 0);
    numbers[0] = 2;
    for (int i = 0; i < 4; i++)
        wanted[i] = (float)(i == 2 ? 2 : some[i]);
    MUST(compute(ipu_cast(d.graph, all, IPU_FLOAT32), -1, 1));
    check_values(4);
}

LOOP_TEST(derivatives_of_dynamic_update, 0, 2)
{
    const int32_t number = 2;
    ipu_tensor at = ipu_constant(d.graph, IPU_INT32, 0, NULL, &number);
    ipu_tensor v = variable(2, SHAPE(3, 4));

    check_gradients(
        ipu_dynamic_update(d.graph, v, at, variable(1, SHAPE(_i ? 3 : 4)), _i));
}

/* Both read a row of one tensor, and so its derivative is made of rows. */
TEST(derivatives_of_rows)
{
    const int32_t first = 2, second = 0;
    ipu_tensor v = variable(2, SHAPE(3, 4)), a, b;

    a = ipu_gather(d.graph, v,
                   ipu_constant(d.graph, IPU_INT32, 0, NULL, &first), 0);
    b = ipu_gather(d.graph, v,
                   ipu_constant(d.graph, IPU_INT32, 0, NULL, &second), 0);
    check_gradients(ipu_multiply(d.graph, ipu_multiply(d.graph, a, b), b));
}

LOOP_TEST(numbers_out_of_range_fail_the_run, 0, 2)
{
    ipu_tensor table = device_floats(&d, "x", 2, SHAPE(4, 3));
    ipu_tensor at = indices(1, SHAPE(2));

    numbers[0] = 1;
    numbers[1] = _i ? 4 : -1;
    MUST_FAIL(compute(ipu_embedding(d.graph, table, at), 12, 2), IPU_ERR_DATA,
              _i ? "gather: number 1 of numbers is 4, not one of the 4 of x"
                 : "number 1 of numbers is -1");
    numbers[1] = 3;
    MUST(ipu_engine_run(d.engine));
}

TEST(a_nan_row_stays_one)
{
    ipu_tensor table = device_floats(&d, "x", 2, SHAPE(2, 2));

    memcpy(x, (float[]){NAN, INFINITY, 1, 2}, 4 * sizeof *x);
    memcpy(wanted, (float[]){1, 2, NAN, 0, 1, 2}, 6 * sizeof *wanted);
    memcpy(numbers, (int32_t[]){1, 0, 1}, 3 * sizeof *numbers);
    MUST(compute(ipu_embedding(d.graph, table, indices(1, SHAPE(3))), 4, 3));
    ck_assert_float_eq(y[3], INFINITY);
    y[3] = 0;
    check_values(6);
}

/* -------------------------------------------------------- argmax and others */

LOOP_TEST(argmax_is_the_first_of_the_largest, 0, 2)
{
    const float rows[4][3] = {
        {1, 3, 3}, {-2, -1, -3}, {NAN, 1, INFINITY}, {0, -INFINITY, 0}};
    const int32_t by_row[4] = {1, 1, 0, 0}, by_column[3] = {2, 0, 2};
    ipu_tensor in = device_floats(&d, "x", 2, SHAPE(4, 3));

    memcpy(x, rows, sizeof rows);
    MUST(compute(ipu_argmax(d.graph, in, _i - 2), 12, -1));
    if (_i)
        ck_assert_mem_eq(y, by_row, sizeof by_row);
    else
        ck_assert_mem_eq(y, by_column, sizeof by_column);
}

TEST(one_hot_is_1_at_the_number)
{
    memcpy(numbers, (int32_t[]){2, 0, -1, 3}, 4 * sizeof *numbers);
    memset(wanted, 0, sizeof wanted);
    wanted[2] = wanted[3] = 1;
    MUST(compute(ipu_one_hot(d.graph, indices(2, SHAPE(2, 2)), 3), -1, 4));
    check_values(12);
}

TEST(cast_goes_towards_0)
{
    const float from[8] = {1.9f, -1.9f, 0, NAN, 3e9f, -3e9f, INFINITY, -0.5f};
    const int32_t to[8] = {1, -1, 0, 0, INT32_MAX, INT32_MIN, INT32_MAX, 0};
    ipu_tensor in = device_floats(&d, "x", 1, SHAPE(8));

    memcpy(x, from, sizeof from);
    MUST(compute(ipu_cast(d.graph, in, IPU_INT32), 8, -1));
    ck_assert_mem_eq(y, to, sizeof to);
}

TEST(cast_of_integers)
{
    memcpy(numbers, (int32_t[]){7, -3, INT32_MIN}, 3 * sizeof *numbers);
    memcpy(wanted, (float[]){7, -3, -2147483648.0f}, 3 * sizeof *wanted);
    MUST(compute(ipu_cast(d.graph, indices(1, SHAPE(3)), IPU_FLOAT32), -1, 3));
    check_values(3);
}

/* Derivatives do not pass through an integer. */
TEST(derivatives_end_at_integers)
{
    ipu_tensor v = variable(1, SHAPE(5));
    ipu_tensor whole =
        ipu_cast(d.graph, ipu_cast(d.graph, v, IPU_INT32), IPU_FLOAT32);
    ipu_tensor loss =
        ipu_reduce_sum(d.graph, ipu_multiply(d.graph, v, whole), 1);
    ipu_tensor dv;

    MUST(ipu_gradients(d.graph, loss, 1, &v, &dv));
    MUST(ipu_output(d.graph, "y", dv));
    device_load(&d);
    MUST(ipu_engine_write(d.engine, "v0", (float[]){1.5f, 2.5f, -1.5f, 0, 9},
                          20));
    device_connect(&d, "y", y, 5);
    MUST(ipu_engine_run(d.engine));
    memcpy(wanted, (float[]){1, 2, -1, 0, 9}, 20);
    check_values(5);
}

TEST(constants_stay)
{
    float values[6];
    ipu_tensor c, view;

    device_fill(values, 6, 3);
    memcpy(wanted, values, sizeof values);
    c = ipu_constant(d.graph, IPU_FLOAT32, 2, SHAPE(2, 3), values);
    memset(values, 0, sizeof values); /* copied */
    view = ipu_reshape(d.graph, c, 1, SHAPE(6));
    for (int i = 0; i < 6; i++)
        wanted[i] = wanted[i] * -1;
    MUST(compute(ipu_negate(d.graph, view), -1, -1));
    MUST(ipu_engine_run(d.engine));
    ipu_graph_free(d.graph); /* the executable has its own */
    d.graph = NULL;
    MUST(ipu_engine_run(d.engine));
    check_values(6);
}

LOOP_TEST(numbers_refuse, 0, 14)
{
    ipu_tensor table = device_floats(&d, "x", 2, SHAPE(4, 3));
    ipu_tensor at = indices(1, SHAPE(2));
    ipu_tensor deep =
        ipu_input(d.graph, "deep", IPU_INT32, 8, SHAPE(1, 1, 1, 1, 1, 1, 1, 1));

    switch (_i) {
    case 0:
        device_refused(&d, ipu_gather(d.graph, table, at, 2), IPU_ERR_SHAPE,
                       "gather: there is no axis 2 in the 2 dimensions of x");
        break;
    case 1:
        device_refused(
            &d, ipu_gather(d.graph, table, table, 0), IPU_ERR_SHAPE,
            "gather: x is float32 [4,3], it must be int32 of any shape");
        break;
    case 2:
        device_refused(&d, ipu_gather(d.graph, table, deep, 0), IPU_ERR_SHAPE,
                       "the result has too many dimensions");
        break;
    case 3:
        device_refused(
            &d, ipu_scatter_add(d.graph, table, at, table, 0), IPU_ERR_SHAPE,
            "scatter_add: x is float32 [4,3] and x is float32 [4,3]: the "
            "updates must be as what a gather");
        break;
    case 4:
        device_refused(
            &d, ipu_argmax(d.graph, device_floats(&d, "e", 2, SHAPE(3, 0)), 1),
            IPU_ERR_SHAPE, "argmax: e is float32 [3,0]: axis 1 must have");
        break;
    case 5:
        device_refused(&d, ipu_argmax(d.graph, at, 0), IPU_ERR_SHAPE,
                       "argmax: numbers is int32 [2], it must be float32");
        break;
    case 6:
        device_refused(&d, ipu_one_hot(d.graph, at, 0), IPU_ERR_ARGUMENT,
                       "one_hot: a depth of 0, it must be at least 1");
        break;
    case 7:
        device_refused(&d, ipu_one_hot(d.graph, table, 3), IPU_ERR_SHAPE,
                       "one_hot: x is float32 [4,3], it must be int32");
        break;
    case 8:
        device_refused(&d, ipu_one_hot(d.graph, deep, 3), IPU_ERR_SHAPE,
                       "one_hot: deep has 8 dimensions");
        break;
    case 9:
        device_refused(&d, ipu_cast(d.graph, table, 99), IPU_ERR_ARGUMENT,
                       "cast: dtype 99 is none");
        break;
    case 10:
        device_refused(&d,
                       ipu_constant(d.graph, IPU_FLOAT32, 1, SHAPE(3), NULL),
                       IPU_ERR_ARGUMENT, "constant: the data are NULL");
        break;
    case 11:
        device_refused(
            &d, ipu_dynamic_update(d.graph, table, at, table, 0), IPU_ERR_SHAPE,
            "dynamic_update: numbers is int32 [2], it must be int32 scalar");
        break;
    case 12:
        device_refused(&d,
                       ipu_dynamic_update(
                           d.graph, table,
                           ipu_fill(d.graph, IPU_INT32, 0, NULL, 0), table, 0),
                       IPU_ERR_SHAPE, "the updates must be as what a gather");
        break;
    default:
        device_refused(&d, ipu_constant(d.graph, IPU_FLOAT32, 1, NULL, x),
                       IPU_ERR_ARGUMENT, "constant: the shape is NULL");
    }
}

TEST_MAIN("device_indices", .set_up = set_up, .tear_down = tear_down)
