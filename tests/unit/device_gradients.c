/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Derivatives against central differences: each case builds y from variables.
 */
#include "suite.h"

#include "differences.h"

/* --------------------------------------------------------------- single ops */

static ipu_tensor conv(int64_t h, int64_t w, int64_t ci, int64_t kh, int64_t kw,
                       int64_t co, ipu_conv_options options)
{
    ipu_tensor x = variable(4, SHAPE(2, h, w, ci));

    options.size = sizeof options;
    return ipu_conv2d(d.graph, x, variable(4, SHAPE(kh, kw, ci, co)), &options);
}

static ipu_tensor conv_valid(void)
{
    return conv(5, 4, 3, 3, 2, 2, (ipu_conv_options){.stride = {1, 1}});
}

static ipu_tensor conv_strides(void)
{
    return conv(7, 8, 2, 2, 3, 3, (ipu_conv_options){.stride = {2, 3}});
}

static ipu_tensor conv_same(void)
{
    return conv(4, 5, 2, 3, 4, 3,
                (ipu_conv_options){.stride = {1, 1}, .same = 1});
}

static ipu_tensor conv_same_strides(void)
{
    return conv(7, 6, 1, 3, 2, 2,
                (ipu_conv_options){.stride = {2, 3}, .same = 1});
}

static ipu_tensor conv_one(void)
{
    return conv(3, 3, 1, 3, 3, 1, (ipu_conv_options){.stride = {1, 1}});
}

/* The image has more pixels than one block of work. An output is a sum of 400
 * products, which is rounded differently by each library of matrix products:
 * small values keep that below the tolerance. */
static ipu_tensor conv_blocks(void)
{
    ipu_conv_options same = {.size = sizeof same, .stride = {1, 1}, .same = 1};
    ipu_tensor x =
        ipu_reshape(d.graph, variable(1, SHAPE(4)), 4, SHAPE(4, 1, 1, 1));
    ipu_tensor wide =
        ipu_conv2d(d.graph, x, variable(4, SHAPE(1, 1, 1, 1024)), &same);

    spread = 1;
    wide = ipu_reshape(d.graph, wide, 4, SHAPE(1, 16, 16, 16));
    return ipu_conv2d(d.graph, wide, variable(4, SHAPE(5, 5, 16, 1)), &same);
}

static ipu_tensor pool(void)
{
    return ipu_max_pool2d(d.graph, variable(4, SHAPE(1, 4, 5, 2)), 2);
}

static ipu_tensor pool_edges(void)
{
    return ipu_max_pool2d(d.graph, variable(4, SHAPE(1, 5, 7, 1)), 3);
}

static ipu_tensor matmul(void)
{
    ipu_tensor x = variable(2, SHAPE(3, 5));

    return ipu_matmul(d.graph, x, variable(2, SHAPE(5, 4)));
}

static ipu_tensor bias(void)
{
    ipu_tensor x = variable(3, SHAPE(2, 3, 4));

    return ipu_bias_add(d.graph, x, variable(1, SHAPE(4)));
}

/* The product has more rows than one block of sums. */
static ipu_tensor bias_many_rows(void)
{
    ipu_tensor zeros =
        ipu_matmul(d.graph, device_floats(&d, "x", 2, SHAPE(700, 0)),
                   device_floats(&d, "w", 2, SHAPE(0, 3)));

    return ipu_bias_add(d.graph, zeros, variable(1, SHAPE(3)));
}

static ipu_tensor relu(void)
{
    return ipu_relu(d.graph, variable(2, SHAPE(7, 9)));
}

static ipu_tensor reshape(void)
{
    return ipu_reshape(d.graph, variable(2, SHAPE(4, 6)), 3, SHAPE(2, 3, 4));
}

static ipu_tensor reduce(void)
{
    return ipu_reduce_sum(d.graph, variable(2, SHAPE(4, 5)), -0.75);
}

static ipu_tensor add(void)
{
    ipu_tensor x = variable(2, SHAPE(3, 4));

    return ipu_add(d.graph, x, variable(2, SHAPE(3, 4)));
}

static ipu_tensor multiply(void)
{
    ipu_tensor x = variable(2, SHAPE(3, 4));

    return ipu_multiply(d.graph, x, variable(2, SHAPE(3, 4)));
}

/* ----------------------------------------------------------------- composed */

/* One tensor on both sides: both derivatives are added. */
static ipu_tensor square(void)
{
    ipu_tensor x = variable(2, SHAPE(4, 4));

    return ipu_multiply(d.graph, ipu_matmul(d.graph, x, x), x);
}

static ipu_tensor doubled(void)
{
    ipu_tensor x = variable(1, SHAPE(5));

    return ipu_add(d.graph, x, x);
}

/* relu's output is used in three places, one of them a reshape. */
static ipu_tensor branches(void)
{
    ipu_tensor x = ipu_relu(d.graph, variable(2, SHAPE(4, 4)));
    ipu_tensor flat = ipu_reshape(d.graph, x, 1, SHAPE(16));

    flat = ipu_multiply(d.graph, flat, flat);
    x = ipu_bias_add(d.graph, x, variable(1, SHAPE(4)));
    return ipu_add(d.graph, x, ipu_reshape(d.graph, flat, 2, SHAPE(4, 4)));
}

static ipu_tensor scaled_by_a_sum(void)
{
    ipu_tensor x = variable(2, SHAPE(3, 2));
    ipu_tensor sum = ipu_reduce_sum(d.graph, x, 0.5);

    return ipu_multiply(
        d.graph, sum,
        ipu_reduce_sum(d.graph, ipu_multiply(d.graph, x, x), 0.25));
}

static ipu_tensor image_layer(void)
{
    ipu_tensor y = conv(6, 6, 1, 3, 3, 2, (ipu_conv_options){.stride = {1, 1}});

    y = ipu_bias_add(d.graph, y, variable(1, SHAPE(2)));
    return ipu_reshape(d.graph, y, 2, SHAPE(2, -1));
}

static ipu_tensor (*const cases[])(void) = {
    conv_valid,
    conv_strides,
    conv_same,
    conv_same_strides,
    conv_one,
    conv_blocks,
    pool,
    pool_edges,
    matmul,
    bias,
    bias_many_rows,
    relu,
    reshape,
    reduce,
    add,
    multiply,
    square,
    doubled,
    branches,
    scaled_by_a_sum,
    image_layer,
};
enum { CASES = sizeof cases / sizeof *cases };

LOOP_TEST(derivatives_equal_difference_quotients, 0, CASES)
{
    check_gradients(cases[_i]());
}

/* Checks the cross entropy of logits with respect to the variables that there
 * are. Labels are a separate input, so it needs a separate run. */
static void check_cross_entropy(ipu_tensor logits)
{
    ipu_tensor labels = ipu_input(d.graph, "labels", IPU_INT32, 1, SHAPE(5));
    ipu_tensor weights = device_floats(&d, "weights", 1, SHAPE(5));
    ipu_tensor y = ipu_softmax_cross_entropy(d.graph, logits, labels);
    ipu_tensor gradients[MOST_VARIABLES];
    int32_t classes[5] = {0, 3, 1, 1, 2};
    float w[5], out[5], slopes[MOST], values[MOST];

    MUST(ipu_gradients(
        d.graph, ipu_reduce_sum(d.graph, ipu_multiply(d.graph, y, weights), 1),
        nvariables, variables, gradients));
    MUST(ipu_output(d.graph, "y", y));
    for (int v = 0; v < nvariables; v++)
        MUST(ipu_output(d.graph, v ? "d1" : "d0", gradients[v]));
    device_load(&d);
    device_fill(w, 5, 7);
    device_connect(&d, "labels", classes, 5);
    device_connect(&d, "weights", w, 5);
    device_connect(&d, "y", out, 5);
    for (int v = 0; v < nvariables; v++) {
        int64_t n = device_count(&d, variables[v]);

        device_fill(values, n, (uint64_t)(v + 8));
        MUST(ipu_engine_write(d.engine, names[v], values, (size_t)n * 4));
    }
    for (int v = 0; v < nvariables; v++) {
        const char *stream = v ? "d1" : "d0";

        device_connect(&d, stream, slopes, device_count(&d, variables[v]));
        MUST(ipu_engine_run(d.engine));
        MUST(ipu_engine_connect(d.engine, stream, NULL, 0));
        check_variable(v, slopes, out, w, 5);
    }
}

TEST(the_derivative_of_the_cross_entropy)
{
    check_cross_entropy(variable(2, SHAPE(5, 4)));
}

/* Several layers in a row: the chain rule. */
TEST(the_derivative_of_a_network)
{
    ipu_tensor x = variable(4, SHAPE(5, 4, 4, 1));
    ipu_tensor y = ipu_conv2d(d.graph, x, variable(4, SHAPE(3, 3, 1, 1)), NULL);

    y = ipu_multiply(d.graph, y, y);
    check_cross_entropy(ipu_reshape(d.graph, y, 2, SHAPE(5, 4)));
}

/* --------------------------------------------------------- what they are of */

/* Runs the graph. Returns the elements of an output. */
static const float *run_for(ipu_tensor tensor)
{
    static float out[64];

    MUST(ipu_output(d.graph, "result", tensor));
    device_load(&d);
    device_connect(&d, "result", out, device_count(&d, tensor));
    MUST(ipu_engine_run(d.engine));
    return out;
}

TEST(what_the_loss_does_not_depend_on_has_zeros)
{
    ipu_tensor x = variable(1, SHAPE(3)), other = variable(2, SHAPE(2, 2));
    ipu_tensor loss = ipu_reduce_sum(d.graph, x, 2), gradients[2];
    const ipu_tensor wrt[] = {other, x};
    int64_t shape[IPU_MAX_DIMS];
    const float *got;

    MUST(ipu_gradients(d.graph, loss, 2, wrt, gradients));
    ck_assert_int_eq(ipu_tensor_info(d.graph, gradients[0], NULL, shape, NULL),
                     2);
    ck_assert_int_eq(shape[0] * shape[1], 4);
    got = run_for(gradients[0]);
    for (int i = 0; i < 4; i++)
        ck_assert_float_eq(got[i], 0);
}

TEST(the_loss_with_respect_to_itself)
{
    ipu_tensor loss = ipu_variable(d.graph, "l", IPU_FLOAT32, 0, NULL), one;

    MUST(ipu_gradients(d.graph, loss, 1, &loss, &one));
    ck_assert_float_eq(run_for(one)[0], 1);
}

/* A derivative is taken with respect to a result in between, and not beyond
 * it. */
TEST(with_respect_to_results)
{
    ipu_tensor x = variable(1, SHAPE(3));
    ipu_tensor middle = ipu_add(d.graph, x, x), gradients[2];
    ipu_tensor loss = ipu_reduce_sum(d.graph, middle, 5);
    const ipu_tensor wrt[] = {middle, x};
    const float *got;

    MUST(ipu_gradients(d.graph, loss, 2, wrt, gradients));
    MUST(ipu_output(d.graph, "beyond", gradients[1]));
    got = run_for(gradients[0]);
    for (int i = 0; i < 3; i++)
        ck_assert_float_eq(got[i], 5);
}

/* The op that made the result need not have a derivative. */
TEST(with_respect_to_a_result_that_has_no_derivative)
{
    ipu_tensor x = variable(1, SHAPE(3)), dx, ddx;

    MUST(ipu_gradients(
        d.graph, ipu_reduce_sum(d.graph, ipu_relu(d.graph, x), 1), 1, &x, &dx));
    MUST(ipu_gradients(d.graph, ipu_reduce_sum(d.graph, dx, 3), 1, &dx, &ddx));
    ck_assert_float_eq(run_for(ddx)[2], 3);
}

/* The test takes d/dx of (d/dx of sum x^2 y) = 2 y, through multiply and
 * matmul. */
TEST(derivatives_of_derivatives)
{
    ipu_tensor x = variable(1, SHAPE(2)), y = variable(1, SHAPE(2)), dx, ddx;
    ipu_tensor f = ipu_multiply(d.graph, ipu_multiply(d.graph, x, x), y);
    const float values[2] = {3, -4};
    float got[2];

    MUST(ipu_gradients(d.graph, ipu_reduce_sum(d.graph, f, 1), 1, &x, &dx));
    MUST(ipu_gradients(d.graph, ipu_reduce_sum(d.graph, dx, 1), 1, &x, &ddx));
    MUST(ipu_output(d.graph, "ddx", ddx));
    device_load(&d);
    MUST(ipu_engine_write(d.engine, "v0", values, sizeof values));
    MUST(ipu_engine_write(d.engine, "v1", values, sizeof values));
    device_connect(&d, "ddx", got, 2);
    MUST(ipu_engine_run(d.engine));
    for (int i = 0; i < 2; i++)
        ck_assert_float_eq(got[i], 2 * values[i]);
}

TEST(the_derivative_of_relu_at_0_is_0)
{
    ipu_tensor x = variable(1, SHAPE(3)), dx; /* zeros */
    const float *got;

    MUST(ipu_gradients(
        d.graph, ipu_reduce_sum(d.graph, ipu_relu(d.graph, x), 1), 1, &x, &dx));
    got = run_for(dx);
    for (int i = 0; i < 3; i++)
        ck_assert_float_eq(got[i], 0);
}

static ipu_tensor scalar(ipu_dtype dtype)
{
    return ipu_input(d.graph, "scalar", dtype, 0, NULL);
}

LOOP_TEST(what_cannot_be_differentiated_is_refused, 0, 5)
{
    ipu_tensor x = variable(1, SHAPE(3)), gradient = {77};
    ipu_tensor loss = ipu_reduce_sum(d.graph, x, 1);
    ipu_executable *executable = NULL;
    int status = IPU_ERR_SHAPE;
    const char *words;

    switch (_i) {
    case 0:
        loss = x;
        words = "v0 is float32 [3], not a float32 scalar";
        break;
    case 1:
        loss = scalar(IPU_INT32);
        words = "not a float32 scalar";
        break;
    case 2:
        x = scalar(IPU_INT32);
        words = "scalar is not float32";
        break;
    case 3:
        loss.id = -1;
        status = IPU_ERR_ARGUMENT;
        words = "the loss: the tensor is invalid";
        break;
    default:
        x.id = -1;
        status = IPU_ERR_ARGUMENT;
        words = "number 0";
        break;
    }
    MUST_FAIL(ipu_gradients(d.graph, loss, 1, &x, &gradient), status, words);
    ck_assert_int_eq(gradient.id, 77);
    MUST_FAIL(ipu_compile(d.graph, NULL, &executable), status, words);
}

LOOP_TEST(bad_arrays_are_refused, 0, 3)
{
    ipu_tensor x = variable(1, SHAPE(3)), gradient;
    ipu_tensor loss = ipu_reduce_sum(d.graph, x, 1);
    ipu_executable *executable = NULL;

    MUST(ipu_gradients(d.graph, loss, 0, NULL, NULL));
    if (_i == 0)
        MUST_FAIL(ipu_gradients(d.graph, loss, -1, &x, &gradient),
                  IPU_ERR_ARGUMENT, "less than 0");
    if (_i == 1)
        MUST_FAIL(ipu_gradients(d.graph, loss, 1, NULL, &gradient),
                  IPU_ERR_ARGUMENT, "gradients: an array is NULL");
    if (_i == 2)
        MUST_FAIL(ipu_gradients(d.graph, loss, 1, &x, NULL), IPU_ERR_ARGUMENT,
                  "gradients: an array is NULL");
    MUST_FAIL(ipu_compile(d.graph, NULL, &executable), IPU_ERR_ARGUMENT,
              "gradients:");
}

/* The second derivative of an activation is not offered: it says so, once it
 * is really needed. */
TEST(ops_without_a_derivative_say_so)
{
    ipu_tensor x = variable(1, SHAPE(4)), other = variable(1, SHAPE(4));
    ipu_tensor y = ipu_tanh(d.graph, x), dx, ddx;

    MUST(ipu_gradients(d.graph, ipu_reduce_sum(d.graph, y, 1), 1, &x, &dx));
    dx = ipu_reduce_sum(d.graph, dx, 1);
    /* dx does not depend on x. */
    MUST(ipu_gradients(d.graph, dx, 1, &other, &ddx));
    MUST_FAIL(ipu_gradients(d.graph, dx, 1, &x, &ddx), IPU_ERR_ARGUMENT,
              "has no derivative");
}

TEST_MAIN("device_gradients", .set_up = set_up, .tear_down = tear_down,
          .seconds = 120)
