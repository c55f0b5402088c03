/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tests the values of every op but those on images against their definitions.
 */
#include "suite.h"

#include <math.h>
#include <stdlib.h>

#include "one_device.h"

enum { MOST = 4096 };

static float a[MOST], b[MOST], y[MOST];
static int32_t labels[MOST];

static void set_up(void)
{
    d = device_new();
    device_fill(a, MOST, 1);
    device_fill(b, MOST, 2);
    device_fill(y, MOST, 3);
}

static ipu_tensor input(const char *name, int32_t ndim, const int64_t *shape)
{
    return device_floats(&d, name, ndim, shape);
}

/* Runs the graph with a and b (if there is one) as inputs; writes the result to
 * y. */
static void compute(ipu_tensor first, ipu_tensor second, ipu_tensor result)
{
    MUST(ipu_output(d.graph, "y", result));
    device_load(&d);
    device_connect(&d, "a", a, device_count(&d, first));
    if (second.id >= 0)
        device_connect(&d, "b", b, device_count(&d, second));
    device_connect(&d, "y", y, device_count(&d, result));
    /* The engine runs twice: leftovers of one run must not matter to the
     * next. */
    MUST(ipu_engine_run(d.engine));
    memset(y, 0xff, (size_t)device_count(&d, result) * sizeof *y);
    MUST(ipu_engine_run(d.engine));
}

/* ------------------------------------------------------- matrix products */

static const int64_t products[][3] = {
    {1, 1, 1},    {2, 3, 4},  {7, 1, 5}, {1, 9, 1}, {33, 17, 29},
    {64, 61, 10}, {16, 0, 3}, {0, 5, 4}, {3, 5, 0},
};
enum { PRODUCTS = sizeof products / sizeof *products };

LOOP_TEST(matmul_is_the_sum_over_the_inner_dimension, 0, PRODUCTS)
{
    const int64_t *s = products[_i];
    ipu_tensor x = input("a", 2, SHAPE(s[0], s[1]));
    ipu_tensor w = input("b", 2, SHAPE(s[1], s[2]));

    compute(x, w, ipu_matmul(d.graph, x, w));
    for (int64_t i = 0; i < s[0]; i++)
        for (int64_t k = 0; k < s[2]; k++) {
            double sum = 0;

            for (int64_t j = 0; j < s[1]; j++)
                sum += (double)a[i * s[1] + j] * (double)b[j * s[2] + k];
            ck_assert_double_eq_tol((double)y[i * s[2] + k], sum, 2e-5);
        }
}

/* One tensor, x, is both inputs. */
TEST(matmul_takes_one_tensor_twice)
{
    ipu_tensor x = input("a", 2, SHAPE(2, 2));
    const float wanted[4] = {7, 10, 15, 22};

    for (int i = 0; i < 4; i++)
        a[i] = (float)(i + 1);
    compute(x, (ipu_tensor){-1}, ipu_matmul(d.graph, x, x));
    for (int i = 0; i < 4; i++)
        ck_assert_float_eq(y[i], wanted[i]);
}

/* -------------------------------------------------------------- by element */

static const struct {
    int32_t ndim;
    int64_t shape[4];
    int64_t count;
} shapes[] = {
    {1, {1}, 1},
    {1, {7}, 7},
    {2, {5, 3}, 15},
    {3, {2, 3, 17}, 102},
    {4, {3, 5, 7, 33}, 3465},
    {2, {0, 3}, 0},
    {2, {3, 0}, 0},
    {0, {0}, 1},
};
enum { SHAPES = sizeof shapes / sizeof *shapes, SCALAR = SHAPES - 1 };

LOOP_TEST(bias_is_added_to_the_last_dimension, 0, SCALAR)
{
    int64_t n = shapes[_i].shape[shapes[_i].ndim - 1];
    ipu_tensor x = input("a", shapes[_i].ndim, shapes[_i].shape);
    ipu_tensor bias = input("b", 1, &n);

    compute(x, bias, ipu_bias_add(d.graph, x, bias));
    for (int64_t i = 0; i < shapes[_i].count; i++)
        ck_assert_float_eq(y[i], a[i] + b[i % n]);
}

LOOP_TEST(add_and_multiply_go_by_element, 0, SHAPES)
{
    ipu_tensor u = input("a", shapes[_i].ndim, shapes[_i].shape);
    ipu_tensor v = input("b", shapes[_i].ndim, shapes[_i].shape);

    compute(u, v, ipu_add(d.graph, ipu_multiply(d.graph, u, v), u));
    for (int64_t i = 0; i < shapes[_i].count; i++) {
        float product = a[i] * b[i];

        ck_assert_float_eq(y[i], product + a[i]);
    }
}

LOOP_TEST(relu_drops_what_is_below_0, 0, SHAPES)
{
    ipu_tensor x = input("a", shapes[_i].ndim, shapes[_i].shape);

    compute(x, (ipu_tensor){-1}, ipu_relu(d.graph, x));
    for (int64_t i = 0; i < shapes[_i].count; i++)
        ck_assert_float_eq(y[i], a[i] > 0 ? a[i] : 0);
}

TEST(relu_of_infinities_and_nan)
{
    ipu_tensor x = input("a", 1, SHAPE(4));

    a[0] = INFINITY;
    a[1] = -INFINITY;
    a[2] = -0.0f;
    a[3] = NAN;
    compute(x, (ipu_tensor){-1}, ipu_relu(d.graph, x));
    ck_assert_float_eq(y[0], INFINITY);
    ck_assert_float_eq(y[1], 0);
    ck_assert_float_eq(y[2], 0);
    ck_assert(!signbit(y[2]));
    ck_assert_float_nan(y[3]);
}

LOOP_TEST(reshape_keeps_the_elements, 0, SHAPES)
{
    ipu_tensor x = input("a", shapes[_i].ndim, shapes[_i].shape);

    compute(x, (ipu_tensor){-1},
            ipu_reshape(d.graph, x, 1, SHAPE(shapes[_i].count)));
    for (int64_t i = 0; i < shapes[_i].count; i++)
        ck_assert_float_eq(y[i], a[i]);
}

TEST(reshape_takes_integers)
{
    ipu_tensor x = ipu_input(d.graph, "a", IPU_INT32, 2, SHAPE(2, 2));
    const int32_t from[4] = {1, -2, INT32_MAX, INT32_MIN};

    memcpy(a, from, sizeof from);
    compute(x, (ipu_tensor){-1}, ipu_reshape(d.graph, x, 1, SHAPE(-1)));
    ck_assert_mem_eq(y, from, sizeof from);
}

LOOP_TEST(reduce_sum_is_the_scaled_sum, 0, SHAPES)
{
    ipu_tensor x = input("a", shapes[_i].ndim, shapes[_i].shape);
    double sum = 0;

    compute(x, (ipu_tensor){-1}, ipu_reduce_sum(d.graph, x, -0.25));
    for (int64_t i = 0; i < shapes[_i].count; i++)
        sum += (double)a[i];
    ck_assert_double_eq_tol((double)y[0], sum * -0.25, 1e-5);
}

/* A sum in float would lose the small numbers next to the large one. */
TEST(reduce_sum_keeps_small_elements)
{
    ipu_tensor x = input("a", 1, SHAPE(MOST));

    a[0] = 16777216.0f;
    for (int i = 1; i < MOST; i++)
        a[i] = 0.25f;
    compute(x, (ipu_tensor){-1}, ipu_reduce_sum(d.graph, x, 1));
    ck_assert_float_eq(y[0], (float)(16777216.0 + 0.25 * (MOST - 1)));
}

/* ------------------------------------------------------------ cross entropy */

static ipu_tensor softmax(int64_t rows, int64_t classes, ipu_tensor *logits)
{
    ipu_tensor l = ipu_input(d.graph, "labels", IPU_INT32, 1, &rows);

    *logits = input("a", 2, SHAPE(rows, classes));
    return ipu_softmax_cross_entropy(d.graph, *logits, l);
}

static void load_softmax(int64_t rows, int64_t classes)
{
    ipu_tensor logits, losses = softmax(rows, classes, &logits);

    MUST(ipu_output(d.graph, "y", losses));
    device_load(&d);
    device_connect(&d, "a", a, rows * classes);
    device_connect(&d, "labels", labels, rows);
    device_connect(&d, "y", y, rows);
}

static double cross_entropy(const float *row, int64_t classes, int32_t label)
{
    double sum = 0;

    for (int64_t i = 0; i < classes; i++)
        sum += exp((double)row[i]);
    return log(sum) - (double)row[label];
}

LOOP_TEST(cross_entropy_follows_its_definition, 0, 5)
{
    const int64_t sizes[][2] = {{1, 1}, {3, 2}, {64, 10}, {5, 777}, {0, 3}};
    int64_t rows = sizes[_i][0], classes = sizes[_i][1];

    for (int64_t i = 0; i < rows; i++)
        labels[i] = (int32_t)(i * 7 % classes);
    load_softmax(rows, classes);
    MUST(ipu_engine_run(d.engine));
    for (int64_t i = 0; i < rows; i++)
        ck_assert_double_eq_tol(
            (double)y[i], cross_entropy(a + i * classes, classes, labels[i]),
            1e-5);
}

TEST(cross_entropy_does_not_overflow)
{
    const float rows[4][3] = {{1e4f, 0, -1e4f},
                              {-1e30f, -1e30f, -1e30f},
                              {3e38f, 3e38f, -3e38f},
                              {-INFINITY, 0, -INFINITY}};

    memcpy(a, rows, sizeof rows);
    memcpy(labels, (int32_t[]){1, 2, 0, 1}, 4 * sizeof *labels);
    load_softmax(4, 3);
    MUST(ipu_engine_run(d.engine));
    ck_assert_float_eq(y[0], 1e4f);
    ck_assert_double_eq_tol((double)y[1], log(3), 1e-6);
    ck_assert_double_eq_tol((double)y[2], log(2), 1e-6);
    ck_assert_double_eq_tol((double)y[3], 0, 1e-6);
}

TEST(a_nan_makes_its_row_nan)
{
    memcpy(a, (float[]){1, NAN, 3, 1, 2, 3}, 6 * sizeof *a);
    memcpy(labels, (int32_t[]){0, 0}, 2 * sizeof *labels);
    load_softmax(2, 3);
    MUST(ipu_engine_run(d.engine));
    ck_assert_float_nan(y[0]);
    ck_assert_float_finite(y[1]);
}

LOOP_TEST(labels_out_of_range_fail_the_run, 0, 4)
{
    const int32_t bad[] = {3, -1, INT32_MAX, INT32_MIN};
    const char *const words[] = {"row 2 of labels is label 3, not one of the 3",
                                 "label -1", "label 2147483647",
                                 "label -2147483648"};

    memcpy(labels, (int32_t[]){0, 2, bad[_i], 1}, 4 * sizeof *labels);
    load_softmax(4, 3);
    y[0] = 77;
    MUST_FAIL(ipu_engine_run(d.engine), IPU_ERR_DATA, words[_i]);
    ck_assert_float_eq(y[0], 77); /* nothing is streamed out */
    labels[2] = 2;
    MUST(ipu_engine_run(d.engine));
    ck_assert_double_eq_tol((double)y[0], cross_entropy(a, 3, 0), 1e-5);
}

/* Nobody asks for the loss itself, so its derivative has to check the label. */
TEST(labels_are_checked_by_the_derivative_too)
{
    ipu_tensor logits, losses = softmax(2, 3, &logits), dx;
    ipu_tensor sum = ipu_reduce_sum(d.graph, losses, 1);

    MUST(ipu_gradients(d.graph, sum, 1, &logits, &dx));
    MUST(ipu_output(d.graph, "y", dx));
    device_load(&d);
    device_connect(&d, "a", a, 6);
    device_connect(&d, "labels", labels, 2);
    labels[0] = 0;
    labels[1] = 3;
    MUST_FAIL(ipu_engine_run(d.engine), IPU_ERR_DATA, "row 1 of labels");
}

TEST_MAIN("device_ops", .set_up = set_up, .tear_down = one_device_free)
