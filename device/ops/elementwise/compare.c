/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Comparison of two tensors, with broadcasting: int32, 1 where it holds and 0
 * elsewhere. Nothing but "not equal" holds of NaN. They have no derivative,
 * and need none: their results are not float32.
 */
#include "ops/elementwise/pair.h"

#include "base/error.h"

#define NAME equal_floats
#define IN float
#define OUT int32_t
#define OF(a, b) (a) == (b)
#include "ops/elementwise/binary.inc"

#define NAME equal_ints
#define IN int32_t
#define OUT int32_t
#define OF(a, b) (a) == (b)
#include "ops/elementwise/binary.inc"

#define NAME not_equal_floats
#define IN float
#define OUT int32_t
#define OF(a, b) (a) != (b)
#include "ops/elementwise/binary.inc"

#define NAME not_equal_ints
#define IN int32_t
#define OUT int32_t
#define OF(a, b) (a) != (b)
#include "ops/elementwise/binary.inc"

#define NAME less_floats
#define IN float
#define OUT int32_t
#define OF(a, b) (a) < (b)
#include "ops/elementwise/binary.inc"

#define NAME less_ints
#define IN int32_t
#define OUT int32_t
#define OF(a, b) (a) < (b)
#include "ops/elementwise/binary.inc"

#define NAME less_equal_floats
#define IN float
#define OUT int32_t
#define OF(a, b) (a) <= (b)
#include "ops/elementwise/binary.inc"

#define NAME less_equal_ints
#define IN int32_t
#define OUT int32_t
#define OF(a, b) (a) <= (b)
#include "ops/elementwise/binary.inc"

static int int32_shape(const struct ipu__call *call, struct ipu__shape *output)
{
    IPU_TRY(ipu__pair_shape(call, output));
    output->dtype = IPU_INT32;
    return IPU_OK;
}

/* The loops of the four comparisons, which differ in one operator. */
#define LOOPS(comparison)                                                      \
    (const struct ipu__pair_loops *const[IPU_NUM_DTYPES])                      \
    {                                                                          \
        [IPU_FLOAT32] = &comparison##_floats, [IPU_INT32] = &comparison##_ints \
    }

static int run_equal(const struct ipu__call *call)
{
    return ipu__pair_run(call, LOOPS(equal));
}

static int run_not_equal(const struct ipu__call *call)
{
    return ipu__pair_run(call, LOOPS(not_equal));
}

static int run_less(const struct ipu__call *call)
{
    return ipu__pair_run(call, LOOPS(less));
}

static int run_less_equal(const struct ipu__call *call)
{
    return ipu__pair_run(call, LOOPS(less_equal));
}

const struct ipu__op ipu__equal = {
    .name = "equal",
    .ninputs = 2,
    .in_place = 0,
    .by_element = true,
    .slots = 1,
    .shape = int32_shape,
    .run = run_equal,
};

const struct ipu__op ipu__not_equal = {
    .name = "not_equal",
    .ninputs = 2,
    .in_place = 0,
    .by_element = true,
    .slots = 1,
    .shape = int32_shape,
    .run = run_not_equal,
};

const struct ipu__op ipu__less = {
    .name = "less",
    .ninputs = 2,
    .in_place = 0,
    .by_element = true,
    .slots = 1,
    .shape = int32_shape,
    .run = run_less,
};

const struct ipu__op ipu__less_equal = {
    .name = "less_equal",
    .ninputs = 2,
    .in_place = 0,
    .by_element = true,
    .slots = 1,
    .shape = int32_shape,
    .run = run_less_equal,
};

static ipu_tensor pair(ipu_graph *graph, const struct ipu__op *op, ipu_tensor a,
                       ipu_tensor b)
{
    return ipu__add(graph, op, (const ipu_tensor[]){a, b}, NULL);
}

ipu_tensor ipu_equal(ipu_graph *graph, ipu_tensor a, ipu_tensor b)
{
    return pair(graph, &ipu__equal, a, b);
}

ipu_tensor ipu_not_equal(ipu_graph *graph, ipu_tensor a, ipu_tensor b)
{
    return pair(graph, &ipu__not_equal, a, b);
}

ipu_tensor ipu_less(ipu_graph *graph, ipu_tensor a, ipu_tensor b)
{
    return pair(graph, &ipu__less, a, b);
}

ipu_tensor ipu_less_equal(ipu_graph *graph, ipu_tensor a, ipu_tensor b)
{
    return pair(graph, &ipu__less_equal, a, b);
}

ipu_tensor ipu_greater(ipu_graph *graph, ipu_tensor a, ipu_tensor b)
{
    return pair(graph, &ipu__less, b, a);
}

ipu_tensor ipu_greater_equal(ipu_graph *graph, ipu_tensor a, ipu_tensor b)
{
    return pair(graph, &ipu__less_equal, b, a);
}
