/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whole numbers near each element, and its sign. They are flat wherever they
 * have a derivative, which is taken to be 0 everywhere.
 */
#include "ops/functions.h"
#include "ops/op.h"

#define NAME run_floor
#define OF(x) __builtin_floorf(x)
#include "ops/elementwise/unary.inc"

#define NAME run_ceil
#define OF(x) __builtin_ceilf(x)
#include "ops/elementwise/unary.inc"

/* Two integers may be as near; then the even one is taken. */
#define NAME run_round
#define OF(x) __builtin_rintf(x)
#include "ops/elementwise/unary.inc"

#define NAME run_sign
#define OF(x) (x) > 0 ? 1.0f : (x) < 0 ? -1.0f : (x)
#include "ops/elementwise/unary.inc"

static void flat(ipu_graph *graph, const struct ipu__node *node, ipu_tensor dy,
                 ipu_tensor *dx)
{
    (void)dy;
    dx[0] = ipu__constant(graph, &graph->tensors[node->output].shape, 0);
}

const struct ipu__op ipu__floor = {
    .name = "floor",
    IPU__OF_ONE,
    .slots = 1,
    .run = run_floor,
    .gradient = flat,
};

const struct ipu__op ipu__ceil = {
    .name = "ceil",
    IPU__OF_ONE,
    .slots = 1,
    .run = run_ceil,
    .gradient = flat,
};

const struct ipu__op ipu__round = {
    .name = "round",
    IPU__OF_ONE,
    .slots = 1,
    .run = run_round,
    .gradient = flat,
};

const struct ipu__op ipu__sign = {
    .name = "sign",
    IPU__OF_ONE,
    .slots = 3,
    .run = run_sign,
    .gradient = flat,
};

ipu_tensor ipu_floor(ipu_graph *graph, ipu_tensor x)
{
    return ipu__add(graph, &ipu__floor, &x, NULL);
}

ipu_tensor ipu_ceil(ipu_graph *graph, ipu_tensor x)
{
    return ipu__add(graph, &ipu__ceil, &x, NULL);
}

ipu_tensor ipu_round(ipu_graph *graph, ipu_tensor x)
{
    return ipu__add(graph, &ipu__round, &x, NULL);
}

ipu_tensor ipu_sign(ipu_graph *graph, ipu_tensor x)
{
    return ipu__add(graph, &ipu__sign, &x, NULL);
}
