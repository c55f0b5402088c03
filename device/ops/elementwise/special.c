/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Functions of each element that networks need now and then: the standard
 * library computes all but erf, atan and softplus, element by element. Their
 * derivatives are made of ops that have derivatives again.
 *
 *     sin       cos            log1p     1 / (1 + x)
 *     cos      -sin            expm1     exp(x)
 *     erf       2 / sqrt(pi) exp(-x^2)
 *     atan      1 / (1 + x^2)
 *     softplus  sigmoid(x)
 */
#include "ops/costs.h"
#include "ops/functions.h"
#include "ops/op.h"

#define NAME run_sin
#define OF(x) sinf(x)
#include "ops/elementwise/unary.inc"

#define NAME run_cos
#define OF(x) cosf(x)
#include "ops/elementwise/unary.inc"

#define NAME run_log1p
#define OF(x) log1pf(x)
#include "ops/elementwise/unary.inc"

#define NAME run_expm1
#define OF(x) expm1f(x)
#include "ops/elementwise/unary.inc"

#define NAME run_erf
#define OF(x) ipu__erf(x)
#include "ops/elementwise/unary.inc"

#define NAME run_atan
#define OF(x) ipu__atan(x)
#include "ops/elementwise/unary.inc"

/* log(1 + exp(x)): of the larger and what the smaller adds to it. */
static inline float softplus(float x)
{
    float rest = ipu__softplus_rest(x);

    return x > 0 ? x + rest : rest;
}

#define NAME run_softplus
#define OF(x) softplus(x)
#include "ops/elementwise/unary.inc"

/* ------------------------------------------------------------- sin and cos */

static void sin_gradient(ipu_graph *graph, const struct ipu__node *node,
                         ipu_tensor dy, ipu_tensor *dx)
{
    dx[0] = ipu_multiply(graph, dy, ipu_cos(graph, ipu__input(graph, node, 0)));
}

const struct ipu__op ipu__sin = {
    .name = "sin",
    IPU__OF_ONE,
    .functions = {IPU__SIN},
    .run = run_sin,
    .gradient = sin_gradient,
};

static void cos_gradient(ipu_graph *graph, const struct ipu__node *node,
                         ipu_tensor dy, ipu_tensor *dx)
{
    ipu_tensor slope =
        ipu_negate(graph, ipu_sin(graph, ipu__input(graph, node, 0)));

    dx[0] = ipu_multiply(graph, dy, slope);
}

const struct ipu__op ipu__cos = {
    .name = "cos",
    IPU__OF_ONE,
    .functions = {IPU__SIN},
    .run = run_cos,
    .gradient = cos_gradient,
};

/* --------------------------------------------------------------------- atan */

static void atan_gradient(ipu_graph *graph, const struct ipu__node *node,
                          ipu_tensor dy, ipu_tensor *dx)
{
    ipu_tensor square = ipu_square(graph, ipu__input(graph, node, 0));

    dx[0] = ipu_divide(graph, dy, ipu_scale(graph, square, 1, 1));
}

/* The chip's library has none: |x| or its reciprocal, and a polynomial. */
const struct ipu__op ipu__unary_atan = {
    .name = "atan",
    IPU__OF_ONE,
    .functions = {IPU__DIVIDE},
    .slots = 16,
    .run = run_atan,
    .gradient = atan_gradient,
};

/* --------------------------------------------------------- log1p and expm1 */

static void log1p_gradient(ipu_graph *graph, const struct ipu__node *node,
                           ipu_tensor dy, ipu_tensor *dx)
{
    ipu_tensor more = ipu_scale(graph, ipu__input(graph, node, 0), 1, 1);

    dx[0] = ipu_divide(graph, dy, more);
}

const struct ipu__op ipu__unary_log1p = {
    .name = "log1p",
    IPU__OF_ONE,
    .functions = {IPU__LOG1P},
    .run = run_log1p,
    .gradient = log1p_gradient,
};

static void expm1_gradient(ipu_graph *graph, const struct ipu__node *node,
                           ipu_tensor dy, ipu_tensor *dx)
{
    dx[0] = ipu_multiply(graph, dy, ipu_exp(graph, ipu__input(graph, node, 0)));
}

const struct ipu__op ipu__unary_expm1 = {
    .name = "expm1",
    IPU__OF_ONE,
    .functions = {IPU__EXPM1},
    .run = run_expm1,
    .gradient = expm1_gradient,
};

/* --------------------------------------------------------- erf and softplus */

static void erf_gradient(ipu_graph *graph, const struct ipu__node *node,
                         ipu_tensor dy, ipu_tensor *dx)
{
    ipu_tensor square = ipu_square(graph, ipu__input(graph, node, 0));
    ipu_tensor slope = ipu_exp(graph, ipu_negate(graph, square));

    dx[0] =
        ipu_multiply(graph, dy, ipu_scale(graph, slope, 1.1283791670955126, 0));
}

const struct ipu__op ipu__unary_erf = {
    .name = "erf",
    IPU__OF_ONE,
    .functions = {IPU__ERF},
    .run = run_erf,
    .gradient = erf_gradient,
};

static void softplus_gradient(ipu_graph *graph, const struct ipu__node *node,
                              ipu_tensor dy, ipu_tensor *dx)
{
    dx[0] =
        ipu_multiply(graph, dy, ipu_sigmoid(graph, ipu__input(graph, node, 0)));
}

const struct ipu__op ipu__softplus = {
    .name = "softplus",
    IPU__OF_ONE,
    .functions = {IPU__EXP, IPU__LOG},
    .slots = 4,
    .run = run_softplus,
    .gradient = softplus_gradient,
};

ipu_tensor ipu_sin(ipu_graph *graph, ipu_tensor x)
{
    return ipu__add(graph, &ipu__sin, &x, NULL);
}

ipu_tensor ipu_cos(ipu_graph *graph, ipu_tensor x)
{
    return ipu__add(graph, &ipu__cos, &x, NULL);
}

ipu_tensor ipu_atan(ipu_graph *graph, ipu_tensor x)
{
    return ipu__add(graph, &ipu__unary_atan, &x, NULL);
}

ipu_tensor ipu_log1p(ipu_graph *graph, ipu_tensor x)
{
    return ipu__add(graph, &ipu__unary_log1p, &x, NULL);
}

ipu_tensor ipu_expm1(ipu_graph *graph, ipu_tensor x)
{
    return ipu__add(graph, &ipu__unary_expm1, &x, NULL);
}

ipu_tensor ipu_erf(ipu_graph *graph, ipu_tensor x)
{
    return ipu__add(graph, &ipu__unary_erf, &x, NULL);
}

ipu_tensor ipu_softplus(ipu_graph *graph, ipu_tensor x)
{
    return ipu__add(graph, &ipu__softplus, &x, NULL);
}
