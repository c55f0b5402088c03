/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Comparison of two tensors, with broadcasting: int32, 1 where it holds and 0
 * elsewhere. Nothing but "not equal" holds of NaN. They have no derivative,
 * and need none: their results are not float32.
 */
#include "ops/elementwise/pair.h"

#include "base/error.h"

#define NAME equal_floats
#define OUT int32_t
#define OF(a, b) (a) == (b)
#include "ops/elementwise/binary.inc"

#define NAME equal_ints
#define IN int32_t
#define OUT int32_t
#define OF(a, b) (a) == (b)
#include "ops/elementwise/binary.inc"

#define NAME not_equal_floats
#define OUT int32_t
#define OF(a, b) (a) != (b)
#include "ops/elementwise/binary.inc"

#define NAME not_equal_ints
#define IN int32_t
#define OUT int32_t
#define OF(a, b) (a) != (b)
#include "ops/elementwise/binary.inc"

#define NAME less_floats
#define OUT int32_t
#define OF(a, b) (a) < (b)
#include "ops/elementwise/binary.inc"

#define NAME less_ints
#define IN int32_t
#define OUT int32_t
#define OF(a, b) (a) < (b)
#include "ops/elementwise/binary.inc"

#define NAME less_equal_floats
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

const struct ipu__op ipu__equal = {
    .name = "equal",
    IPU__OF_PAIR,
    .slots = 1,
    .shape = int32_shape,
    .floats = &equal_floats,
    .ints = &equal_ints,
};

const struct ipu__op ipu__not_equal = {
    .name = "not_equal",
    IPU__OF_PAIR,
    .slots = 1,
    .shape = int32_shape,
    .floats = &not_equal_floats,
    .ints = &not_equal_ints,
};

const struct ipu__op ipu__less = {
    .name = "less",
    IPU__OF_PAIR,
    .slots = 1,
    .shape = int32_shape,
    .floats = &less_floats,
    .ints = &less_ints,
};

const struct ipu__op ipu__less_equal = {
    .name = "less_equal",
    IPU__OF_PAIR,
    .slots = 1,
    .shape = int32_shape,
    .floats = &less_equal_floats,
    .ints = &less_equal_ints,
};

ipu_tensor ipu_equal(ipu_graph *graph, ipu_tensor a, ipu_tensor b)
{
    return ipu__pair_add(graph, &ipu__equal, a, b);
}

ipu_tensor ipu_not_equal(ipu_graph *graph, ipu_tensor a, ipu_tensor b)
{
    return ipu__pair_add(graph, &ipu__not_equal, a, b);
}

ipu_tensor ipu_less(ipu_graph *graph, ipu_tensor a, ipu_tensor b)
{
    return ipu__pair_add(graph, &ipu__less, a, b);
}

ipu_tensor ipu_less_equal(ipu_graph *graph, ipu_tensor a, ipu_tensor b)
{
    return ipu__pair_add(graph, &ipu__less_equal, a, b);
}

ipu_tensor ipu_greater(ipu_graph *graph, ipu_tensor a, ipu_tensor b)
{
    return ipu__pair_add(graph, &ipu__less, b, a);
}

ipu_tensor ipu_greater_equal(ipu_graph *graph, ipu_tensor a, ipu_tensor b)
{
    return ipu__pair_add(graph, &ipu__less_equal, b, a);
}
