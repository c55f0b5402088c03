/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tests dropout, random numbers and losses: their distribution, their
 * dependence on seed and step, derivatives against differences, and refused
 * arguments.
 */
#include "suite.h"

#include <stdbool.h>

#include "layers.h"

TEST(dropout_drops_by_seed_and_step)
{
    ipu_tensor in = input(1, SHAPE(MOST));
    ipu_tensor step = ipu_counter(d.graph, "step");
    ipu_tensor result = ipu_dropout(d.graph, in, 0.25, 7, step);
    static float first[MOST];
    int32_t zero = 0;
    int dropped = 0, same = 0;

    for (int i = 0; i < MOST; i++)
        x[i] = 3;
    compute(result, MOST);
    memcpy(first, y, sizeof first);
    for (int i = 0; i < MOST; i++) {
        dropped += y[i] == 0;
        ck_assert(y[i] == 0 || y[i] == 4);
    }
    ck_assert_int_gt(dropped, MOST / 4 - 120); /* 4 standard deviations */
    ck_assert_int_lt(dropped, MOST / 4 + 120);
    MUST(ipu_engine_run(d.engine)); /* another step: others */
    for (int i = 0; i < MOST; i++)
        same += y[i] == first[i];
    ck_assert_int_lt(same, MOST * 3 / 4);
    MUST(ipu_engine_write(d.engine, "step", &zero, 4));
    MUST(ipu_engine_run(d.engine));
    ck_assert_mem_eq(y, first, sizeof first);
}

TEST(seeds_differ)
{
    ipu_tensor in = input(1, SHAPE(1000));
    ipu_tensor step = ipu_fill(d.graph, IPU_INT32, 0, NULL, 3);
    ipu_tensor u = ipu_dropout(d.graph, in, 0.5, 1, step);
    ipu_tensor v = ipu_dropout(d.graph, in, 0.5, 2, step);
    int same = 0;

    for (int i = 0; i < 1000; i++)
        x[i] = 1;
    compute(ipu_subtract(d.graph, u, v), 1000);
    for (int i = 0; i < 1000; i++)
        same += y[i] == 0;
    ck_assert_int_gt(same, 400);
    ck_assert_int_lt(same, 600);
}

LOOP_TEST(derivatives_of_dropout, 0, 3)
{
    ipu_tensor step = ipu_fill(d.graph, IPU_INT32, 0, NULL, 11);

    check_gradients(
        ipu_dropout(d.graph, variable(2, SHAPE(6, 7)), _i * 0.4, 5, step));
}

LOOP_TEST(random_numbers_have_their_distribution, 0, 3)
{
    ipu_tensor step = ipu_fill(d.graph, IPU_INT32, 0, NULL, _i);
    ipu_tensor u = ipu_random_uniform(d.graph, 1, SHAPE(MOST), -1, 3, 9, step);
    ipu_tensor n = ipu_random_normal(d.graph, 1, SHAPE(MOST), 2, 0.5, 9, step);
    double sum = 0, squares = 0;
    int beyond = 0;

    input(1, SHAPE(1));
    MUST(ipu_output(d.graph, "n", n));
    MUST(ipu_output(d.graph, "u", u));
    device_load(&d);
    device_connect(&d, "n", x, MOST);
    device_connect(&d, "u", y, MOST);
    MUST(ipu_engine_run(d.engine));
    for (int i = 0; i < MOST; i++) {
        ck_assert(y[i] >= -1 && y[i] < 3);
        sum += (double)y[i];
        squares += ((double)y[i] - 1) * ((double)y[i] - 1);
    }
    ck_assert_double_eq_tol(sum / MOST, 1, 0.08);
    ck_assert_double_eq_tol(squares / MOST, 16. / 12, 0.1);
    sum = squares = 0;
    for (int i = 0; i < MOST; i++) {
        sum += (double)x[i];
        squares += ((double)x[i] - 2) * ((double)x[i] - 2);
        beyond += fabsf(x[i] - 2) > 1; /* 2 standard deviations: 4.55 % */
    }
    ck_assert_double_eq_tol(sum / MOST, 2, 0.04);
    ck_assert_double_eq_tol(squares / MOST, 0.25, 0.03);
    ck_assert_int_gt(beyond, 130);
    ck_assert_int_lt(beyond, 245);
}

TEST(mean_squared_error_is_the_mean)
{
    ipu_tensor in = input(1, SHAPE(4));
    ipu_tensor ones = ipu_fill(d.graph, IPU_FLOAT32, 1, SHAPE(4), 1);

    for (int i = 0; i < 4; i++)
        x[i] = (float)(i + 1);
    compute(ipu_mean_squared_error(d.graph, in, ones), 4);
    ck_assert_float_eq(y[0], (0 + 1 + 4 + 9) / 4.f);
}

TEST(derivatives_of_the_mean_squared_error)
{
    ipu_tensor u = variable(2, SHAPE(3, 5)), v = variable(1, SHAPE(5));

    check_gradients(ipu_mean_squared_error(d.graph, u, v));
}

LOOP_TEST(random_ops_refuse, 0, 7)
{
    ipu_tensor in = input(1, SHAPE(4)), odd = device_floats(&d, "o", 0, NULL);
    ipu_tensor step = ipu_fill(d.graph, IPU_INT32, 0, NULL, 0);

    switch (_i) {
    case 0:
        refused(ipu_dropout(d.graph, in, 1, 0, step), IPU_ERR_ARGUMENT,
                "dropout: the rate is 1, it must be 0 or more and less than 1");
        break;
    case 1:
        refused(ipu_dropout(d.graph, in, NAN, 0, step), IPU_ERR_ARGUMENT,
                "dropout: the rate is nan");
        break;
    case 2:
        refused(ipu_dropout(d.graph, in, 0.5, 0, odd), IPU_ERR_SHAPE,
                "dropout: o is float32 [], it must be int32 the step");
        break;
    case 3:
        refused(ipu_random_normal(d.graph, 1, NULL, 0, 1, 0, step),
                IPU_ERR_ARGUMENT, "random_normal: the shape is NULL");
        break;
    case 4:
        refused(ipu_random_uniform(d.graph, 0, NULL, 0, INFINITY, 0, step),
                IPU_ERR_ARGUMENT, "random_uniform: 0 and inf must be finite");
        break;
    case 5:
        refused(ipu_fill(d.graph, IPU_INT32, 0, NULL, 0.5), IPU_ERR_ARGUMENT,
                "fill: 0.5 is no int32");
        break;
    default:
        refused(ipu_mean_squared_error(d.graph, in,
                                       device_floats(&d, "t", 1, SHAPE(3))),
                IPU_ERR_SHAPE, "subtract: x is float32 [4] and t is");
    }
}

TEST_MAIN("device_random_ops", .set_up = set_up, .tear_down = tear_down)
