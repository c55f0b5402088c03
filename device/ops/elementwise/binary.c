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
#define IN float
#define OUT float
#define OF(a, b) (a) + (b)
#include "ops/elementwise/binary.inc"

#define NAME add_ints
#define IN uint32_t
#define OUT uint32_t
#define OF(a, b) (a) + (b)
#include "ops/elementwise/binary.inc"

#define NAME subtract_floats
#define IN float
#define OUT float
#define OF(a, b) (a) - (b)
#include "ops/elementwise/binary.inc"

#define NAME subtract_ints
#define IN uint32_t
#define OUT uint32_t
#define OF(a, b) (a) - (b)
#include "ops/elementwise/binary.inc"

#define NAME multiply_floats
#define IN float
#define OUT float
#define OF(a, b) (a) * (b)
#include "ops/elementwise/binary.inc"

#define NAME multiply_ints
#define IN uint32_t
#define OUT uint32_t
#define OF(a, b) (a) * (b)
#include "ops/elementwise/binary.inc"

#define NAME divide_floats
#define IN float
#define OUT float
#define OF(a, b) (a) / (b)
#include "ops/elementwise/binary.inc"

/* !(a < b): a is taken if it is NaN; b, if it is and a is not. */
#define NAME maximum_floats
#define IN float
#define OUT float
#define OF(a, b) (a) >= (b) || (a) != (a) ? (a) : (b)
#include "ops/elementwise/binary.inc"

#define NAME maximum_ints
#define IN int32_t
#define OUT int32_t
#define OF(a, b) (a) >= (b) ? (a) : (b)
#include "ops/elementwise/binary.inc"

#define NAME minimum_floats
#define IN float
#define OUT float
#define OF(a, b) (a) <= (b) || (a) != (a) ? (a) : (b)
#include "ops/elementwise/binary.inc"

#define NAME minimum_ints
#define IN int32_t
#define OUT int32_t
#define OF(a, b) (a) <= (b) ? (a) : (b)
#include "ops/elementwise/binary.inc"

#define NAME power_floats
#define IN float
#define OUT float
#define OF(a, b) powf(a, b)
#include "ops/elementwise/binary.inc"

/* The loops of an op, by dtype; NULL where it is not defined. */
#define LOOPS(f, i)                                                            \
    (const struct ipu__pair_loops *const[IPU_NUM_DTYPES])                      \
    {                                                                          \
        [IPU_FLOAT32] = (f), [IPU_INT32] = (i)                                 \
    }

static int floats_only(const struct ipu__call *call, struct ipu__shape *output)
{
    IPU_TRY(ipu__expect(call, 0, IPU_FLOAT32, -1, "of any shape"));
    return ipu__pair_shape(call, output);
}

static ipu_tensor input(ipu_graph *graph, const struct ipu__node *node, int i)
{
    return ipu__handle(graph, node->inputs[i]);
}

/* --------------------------------------------------------- add and subtract */

static int run_add(const struct ipu__call *call)
{
    return ipu__pair_run(call, LOOPS(&add_floats, &add_ints));
}

static void add_gradient(ipu_graph *graph, const struct ipu__node *node,
                         const bool *needed, ipu_tensor dy, ipu_tensor *dx)
{
    for (int i = 0; i < 2; i++)
        if (needed[node->inputs[i]])
            dx[i] = ipu__unbroadcast(graph, node, i, dy);
}

const struct ipu__op ipu__binary_add = {
    .name = "add",
    .ninputs = 2,
    .in_place = 0,
    .by_element = true,
    .slots = 1,
    .loop_slots = IPU__TWO_SLOTS,
    .shape = ipu__pair_shape,
    .run = run_add,
    .gradient = add_gradient,
};

static int run_subtract(const struct ipu__call *call)
{
    return ipu__pair_run(call, LOOPS(&subtract_floats, &subtract_ints));
}

static void subtract_gradient(ipu_graph *graph, const struct ipu__node *node,
                              const bool *needed, ipu_tensor dy, ipu_tensor *dx)
{
    if (needed[node->inputs[0]])
        dx[0] = ipu__unbroadcast(graph, node, 0, dy);
    if (needed[node->inputs[1]])
        dx[1] = ipu_negate(graph, ipu__unbroadcast(graph, node, 1, dy));
}

const struct ipu__op ipu__binary_subtract = {
    .name = "subtract",
    .ninputs = 2,
    .in_place = 0,
    .by_element = true,
    .slots = 1,
    .loop_slots = IPU__TWO_SLOTS,
    .shape = ipu__pair_shape,
    .run = run_subtract,
    .gradient = subtract_gradient,
};

/* ------------------------------------------------------ multiply and divide */

static int run_multiply(const struct ipu__call *call)
{
    return ipu__pair_run(call, LOOPS(&multiply_floats, &multiply_ints));
}

static void multiply_gradient(ipu_graph *graph, const struct ipu__node *node,
                              const bool *needed, ipu_tensor dy, ipu_tensor *dx)
{
    for (int i = 0; i < 2; i++)
        if (needed[node->inputs[i]])
            dx[i] = ipu__unbroadcast(
                graph, node, i,
                ipu_multiply(graph, dy, input(graph, node, !i)));
}

const struct ipu__op ipu__binary_multiply = {
    .name = "multiply",
    .ninputs = 2,
    .in_place = 0,
    .by_element = true,
    .slots = 1,
    .loop_slots = IPU__TWO_SLOTS,
    .shape = ipu__pair_shape,
    .run = run_multiply,
    .gradient = multiply_gradient,
};

static int run_divide(const struct ipu__call *call)
{
    return ipu__pair_run(call, LOOPS(&divide_floats, NULL));
}

/* The derivative is d(a / b) = da / b - (a / b) db / b. */
static void divide_gradient(ipu_graph *graph, const struct ipu__node *node,
                            const bool *needed, ipu_tensor dy, ipu_tensor *dx)
{
    ipu_tensor quotient = ipu__handle(graph, node->output);
    ipu_tensor over = ipu_divide(graph, dy, input(graph, node, 1));

    if (needed[node->inputs[0]])
        dx[0] = ipu__unbroadcast(graph, node, 0, over);
    if (needed[node->inputs[1]])
        dx[1] = ipu__unbroadcast(
            graph, node, 1,
            ipu_negate(graph, ipu_multiply(graph, over, quotient)));
}

const struct ipu__op ipu__binary_divide = {
    .name = "divide",
    .ninputs = 2,
    .in_place = 0,
    .by_element = true,
    .functions = {IPU__DIVIDE},
    .shape = floats_only,
    .run = run_divide,
    .gradient = divide_gradient,
};

/* ------------------------------------------------------ maximum and minimum */

static int run_maximum(const struct ipu__call *call)
{
    return ipu__pair_run(call, LOOPS(&maximum_floats, &maximum_ints));
}

static void maximum_gradient(ipu_graph *graph, const struct ipu__node *node,
                             const bool *needed, ipu_tensor dy, ipu_tensor *dx)
{
    ipu__select_gradient(
        graph, node, 0, needed,
        ipu_greater_equal(graph, input(graph, node, 0), input(graph, node, 1)),
        dy, dx);
}

const struct ipu__op ipu__binary_maximum = {
    .name = "maximum",
    .ninputs = 2,
    .in_place = 0,
    .by_element = true,
    .slots = 1,
    .shape = ipu__pair_shape,
    .run = run_maximum,
    .gradient = maximum_gradient,
};

static int run_minimum(const struct ipu__call *call)
{
    return ipu__pair_run(call, LOOPS(&minimum_floats, &minimum_ints));
}

static void minimum_gradient(ipu_graph *graph, const struct ipu__node *node,
                             const bool *needed, ipu_tensor dy, ipu_tensor *dx)
{
    ipu__select_gradient(
        graph, node, 0, needed,
        ipu_less_equal(graph, input(graph, node, 0), input(graph, node, 1)), dy,
        dx);
}

const struct ipu__op ipu__binary_minimum = {
    .name = "minimum",
    .ninputs = 2,
    .in_place = 0,
    .by_element = true,
    .slots = 1,
    .shape = ipu__pair_shape,
    .run = run_minimum,
    .gradient = minimum_gradient,
};

/* -------------------------------------------------------------------- power */

static int run_power(const struct ipu__call *call)
{
    return ipu__pair_run(call, LOOPS(&power_floats, NULL));
}

/* The derivative is d(a^b) = b a^(b - 1) da + a^b log(a) db. The first term is
 * 0 where b = 0, and the second where a = 0, rather than 0 times infinity. */
static void power_gradient(ipu_graph *graph, const struct ipu__node *node,
                           const bool *needed, ipu_tensor dy, ipu_tensor *dx)
{
    ipu_tensor a = input(graph, node, 0), b = input(graph, node, 1);
    ipu_tensor y = ipu__handle(graph, node->output);
    ipu_tensor zero = ipu__scalar_like(graph, dy, 0);

    if (needed[node->inputs[0]]) {
        ipu_tensor less = ipu_select(graph, ipu_equal(graph, b, zero), zero,
                                     ipu_scale(graph, b, 1, -1));
        ipu_tensor slope = ipu_multiply(graph, ipu_power(graph, a, less), b);

        dx[0] =
            ipu__unbroadcast(graph, node, 0, ipu_multiply(graph, slope, dy));
    }
    if (needed[node->inputs[1]]) {
        ipu_tensor log = ipu_select(graph, ipu_equal(graph, a, zero), zero,
                                    ipu_log(graph, a));

        dx[1] = ipu__unbroadcast(
            graph, node, 1,
            ipu_multiply(graph, ipu_multiply(graph, y, log), dy));
    }
}

const struct ipu__op ipu__binary_power = {
    .name = "power",
    .ninputs = 2,
    .in_place = 0,
    .by_element = true,
    .functions = {IPU__POWER},
    .shape = floats_only,
    .run = run_power,
    .gradient = power_gradient,
};

static ipu_tensor pair(ipu_graph *graph, const struct ipu__op *op, ipu_tensor a,
                       ipu_tensor b)
{
    return ipu__add(graph, op, (const ipu_tensor[]){a, b}, NULL);
}

ipu_tensor ipu_add(ipu_graph *graph, ipu_tensor a, ipu_tensor b)
{
    return pair(graph, &ipu__binary_add, a, b);
}

ipu_tensor ipu_subtract(ipu_graph *graph, ipu_tensor a, ipu_tensor b)
{
    return pair(graph, &ipu__binary_subtract, a, b);
}

ipu_tensor ipu_multiply(ipu_graph *graph, ipu_tensor a, ipu_tensor b)
{
    return pair(graph, &ipu__binary_multiply, a, b);
}

ipu_tensor ipu_divide(ipu_graph *graph, ipu_tensor a, ipu_tensor b)
{
    return pair(graph, &ipu__binary_divide, a, b);
}

ipu_tensor ipu_maximum(ipu_graph *graph, ipu_tensor a, ipu_tensor b)
{
    return pair(graph, &ipu__binary_maximum, a, b);
}

ipu_tensor ipu_minimum(ipu_graph *graph, ipu_tensor a, ipu_tensor b)
{
    return pair(graph, &ipu__binary_minimum, a, b);
}

ipu_tensor ipu_power(ipu_graph *graph, ipu_tensor a, ipu_tensor b)
{
    return pair(graph, &ipu__binary_power, a, b);
}
