/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Arithmetic on two tensors, element by element, with broadcasting.
 *
 * Integers wrap around. Of two equal elements the maximum, or minimum, is the
 * first, and gets the derivative; NaN wins over any number.
 */
#include <math.h>

#include "base/error.h"
#include "ops/arrangement/broadcast.h"
#include "ops/costs.h"
#include "ops/elementwise/pair.h"

#define NAME add_floats
#define OF(a, b) (a) + (b)
#include "ops/elementwise/binary.inc"

#define NAME add_ints
#define IN uint32_t
#define OUT uint32_t
#define OF(a, b) (a) + (b)
#include "ops/elementwise/binary.inc"

#define NAME subtract_floats
#define OF(a, b) (a) - (b)
#include "ops/elementwise/binary.inc"

#define NAME subtract_ints
#define IN uint32_t
#define OUT uint32_t
#define OF(a, b) (a) - (b)
#include "ops/elementwise/binary.inc"

#define NAME multiply_floats
#define OF(a, b) (a) * (b)
#include "ops/elementwise/binary.inc"

#define NAME multiply_ints
#define IN uint32_t
#define OUT uint32_t
#define OF(a, b) (a) * (b)
#include "ops/elementwise/binary.inc"

#define NAME divide_floats
#define OF(a, b) (a) / (b)
#include "ops/elementwise/binary.inc"

/* !(a < b): a is taken if it is NaN; b, if it is and a is not. */
#define NAME maximum_floats
#define OF(a, b) (a) >= (b) || (a) != (a) ? (a) : (b)
#include "ops/elementwise/binary.inc"

#define NAME maximum_ints
#define IN int32_t
#define OUT int32_t
#define OF(a, b) (a) >= (b) ? (a) : (b)
#include "ops/elementwise/binary.inc"

#define NAME minimum_floats
#define OF(a, b) (a) <= (b) || (a) != (a) ? (a) : (b)
#include "ops/elementwise/binary.inc"

#define NAME minimum_ints
#define IN int32_t
#define OUT int32_t
#define OF(a, b) (a) <= (b) ? (a) : (b)
#include "ops/elementwise/binary.inc"

#define NAME power_floats
#define OF(a, b) powf(a, b)
#include "ops/elementwise/binary.inc"

/* To the power of 2 or 3, as in variances and in GELU. */
IPU__WIDE(static, void, power_whole,
          (float *y, const float *x, bool cube, int64_t count),
          (y, x, cube, count))
{
    if (cube) {
        IPU__BY_ELEMENT
        for (int64_t i = 0; i < count; i++)
            y[i] = x[i] * x[i] * x[i];
    } else {
        IPU__BY_ELEMENT
        for (int64_t i = 0; i < count; i++)
            y[i] = x[i] * x[i];
    }
}

static void power_same(void *y, const void *a, const void *b, int64_t count)
{
    float power = *(const float *)b;

    if (power == 2 || power == 3)
        power_whole(y, a, power == 3, count);
    else
        power_floats.first(y, a, b, count);
}

static const struct ipu__pair_loops power_loops = {
    power_floats_both, power_same, power_floats_second};

static int floats_only(const struct ipu__call *call, struct ipu__shape *output)
{
    IPU_TRY(ipu__expect(call, 0, IPU_FLOAT32, -1, "of any shape"));
    return ipu__pair_shape(call, output);
}

/* --------------------------------------------------------- add and subtract */

static void add_gradient(ipu_graph *graph, const struct ipu__node *node,
                         ipu_tensor dy, ipu_tensor *dx)
{
    for (int i = 0; i < 2; i++)
        if (ipu__wanted(dx[i]))
            dx[i] = ipu__unbroadcast(graph, node, i, dy);
}

const struct ipu__op ipu__binary_add = {
    .name = "add",
    IPU__OF_PAIR,
    .slots = 1,
    .loop_slots = IPU__TWO_SLOTS,
    .shape = ipu__pair_shape,
    .floats = &add_floats,
    .ints = &add_ints,
    .gradient = add_gradient,
};

static void subtract_gradient(ipu_graph *graph, const struct ipu__node *node,
                              ipu_tensor dy, ipu_tensor *dx)
{
    if (ipu__wanted(dx[0]))
        dx[0] = ipu__unbroadcast(graph, node, 0, dy);
    if (ipu__wanted(dx[1]))
        dx[1] = ipu_negate(graph, ipu__unbroadcast(graph, node, 1, dy));
}

const struct ipu__op ipu__binary_subtract = {
    .name = "subtract",
    IPU__OF_PAIR,
    .slots = 1,
    .loop_slots = IPU__TWO_SLOTS,
    .shape = ipu__pair_shape,
    .floats = &subtract_floats,
    .ints = &subtract_ints,
    .gradient = subtract_gradient,
};

/* ------------------------------------------------------ multiply and divide */

static void multiply_gradient(ipu_graph *graph, const struct ipu__node *node,
                              ipu_tensor dy, ipu_tensor *dx)
{
    for (int i = 0; i < 2; i++)
        if (ipu__wanted(dx[i]))
            dx[i] = ipu__unbroadcast(
                graph, node, i,
                ipu_multiply(graph, dy, ipu__input(graph, node, !i)));
}

const struct ipu__op ipu__binary_multiply = {
    .name = "multiply",
    IPU__OF_PAIR,
    .slots = 1,
    .loop_slots = IPU__TWO_SLOTS,
    .shape = ipu__pair_shape,
    .floats = &multiply_floats,
    .ints = &multiply_ints,
    .gradient = multiply_gradient,
};

/* The derivative is d(a / b) = da / b - (a / b) db / b. */
static void divide_gradient(ipu_graph *graph, const struct ipu__node *node,
                            ipu_tensor dy, ipu_tensor *dx)
{
    ipu_tensor quotient = ipu__handle(graph, node->output);
    ipu_tensor over = ipu_divide(graph, dy, ipu__input(graph, node, 1));

    if (ipu__wanted(dx[0]))
        dx[0] = ipu__unbroadcast(graph, node, 0, over);
    if (ipu__wanted(dx[1]))
        dx[1] = ipu__unbroadcast(
            graph, node, 1,
            ipu_negate(graph, ipu_multiply(graph, over, quotient)));
}

const struct ipu__op ipu__binary_divide = {
    .name = "divide",
    IPU__OF_PAIR,
    .functions = {IPU__DIVIDE},
    .shape = floats_only,
    .floats = &divide_floats,
    .gradient = divide_gradient,
};

/* ------------------------------------------------------ maximum and minimum */

static void maximum_gradient(ipu_graph *graph, const struct ipu__node *node,
                             ipu_tensor dy, ipu_tensor *dx)
{
    ipu__select_gradient(graph, node, 0,
                         ipu_greater_equal(graph, ipu__input(graph, node, 0),
                                           ipu__input(graph, node, 1)),
                         dy, dx);
}

const struct ipu__op ipu__binary_maximum = {
    .name = "maximum",
    IPU__OF_PAIR,
    .slots = 1,
    .shape = ipu__pair_shape,
    .floats = &maximum_floats,
    .ints = &maximum_ints,
    .gradient = maximum_gradient,
};

static void minimum_gradient(ipu_graph *graph, const struct ipu__node *node,
                             ipu_tensor dy, ipu_tensor *dx)
{
    ipu__select_gradient(graph, node, 0,
                         ipu_less_equal(graph, ipu__input(graph, node, 0),
                                        ipu__input(graph, node, 1)),
                         dy, dx);
}

const struct ipu__op ipu__binary_minimum = {
    .name = "minimum",
    IPU__OF_PAIR,
    .slots = 1,
    .shape = ipu__pair_shape,
    .floats = &minimum_floats,
    .ints = &minimum_ints,
    .gradient = minimum_gradient,
};

/* -------------------------------------------------------------------- power */

/* The derivative is d(a^b) = b a^(b - 1) da + a^b log(a) db. The first term is
 * 0 where b = 0, and the second where a = 0, rather than 0 times infinity. */
static void power_gradient(ipu_graph *graph, const struct ipu__node *node,
                           ipu_tensor dy, ipu_tensor *dx)
{
    ipu_tensor a = ipu__input(graph, node, 0), b = ipu__input(graph, node, 1);
    ipu_tensor y = ipu__handle(graph, node->output);
    ipu_tensor zero = ipu__scalar_like(graph, dy, 0);

    if (ipu__wanted(dx[0])) {
        ipu_tensor less = ipu_select(graph, ipu_equal(graph, b, zero), zero,
                                     ipu_scale(graph, b, 1, -1));
        ipu_tensor slope = ipu_multiply(graph, ipu_power(graph, a, less), b);

        dx[0] =
            ipu__unbroadcast(graph, node, 0, ipu_multiply(graph, slope, dy));
    }
    if (ipu__wanted(dx[1])) {
        ipu_tensor log = ipu_select(graph, ipu_equal(graph, a, zero), zero,
                                    ipu_log(graph, a));

        dx[1] = ipu__unbroadcast(
            graph, node, 1,
            ipu_multiply(graph, ipu_multiply(graph, y, log), dy));
    }
}

const struct ipu__op ipu__binary_power = {
    .name = "power",
    IPU__OF_PAIR,
    .functions = {IPU__POWER},
    .shape = floats_only,
    .floats = &power_loops,
    .gradient = power_gradient,
};

ipu_tensor ipu_add(ipu_graph *graph, ipu_tensor a, ipu_tensor b)
{
    return ipu__pair_add(graph, &ipu__binary_add, a, b);
}

ipu_tensor ipu_subtract(ipu_graph *graph, ipu_tensor a, ipu_tensor b)
{
    return ipu__pair_add(graph, &ipu__binary_subtract, a, b);
}

ipu_tensor ipu_multiply(ipu_graph *graph, ipu_tensor a, ipu_tensor b)
{
    return ipu__pair_add(graph, &ipu__binary_multiply, a, b);
}

ipu_tensor ipu_divide(ipu_graph *graph, ipu_tensor a, ipu_tensor b)
{
    return ipu__pair_add(graph, &ipu__binary_divide, a, b);
}

ipu_tensor ipu_maximum(ipu_graph *graph, ipu_tensor a, ipu_tensor b)
{
    return ipu__pair_add(graph, &ipu__binary_maximum, a, b);
}

ipu_tensor ipu_minimum(ipu_graph *graph, ipu_tensor a, ipu_tensor b)
{
    return ipu__pair_add(graph, &ipu__binary_minimum, a, b);
}

ipu_tensor ipu_power(ipu_graph *graph, ipu_tensor a, ipu_tensor b)
{
    return ipu__pair_add(graph, &ipu__binary_power, a, b);
}
