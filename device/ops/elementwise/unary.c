/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Functions of each element by itself. Their derivatives are made of ops that
 * have derivatives again.
 */
#include "ops/costs.h"
#include "ops/functions.h"
#include "ops/op.h"

#define NAME run_negate
#define OF(x) -(x)
#include "ops/elementwise/unary.inc"

#define NAME run_abs
#define OF(x) fabsf(x)
#include "ops/elementwise/unary.inc"

#define NAME run_square
#define OF(x) (x) * (x)
#include "ops/elementwise/unary.inc"

#define NAME run_exp
#define OF(x) ipu__exp(x)
#include "ops/elementwise/unary.inc"

#define NAME run_log
#define OF(x) ipu__log(x)
#include "ops/elementwise/unary.inc"

#define NAME run_sqrt
#define OF(x) __builtin_sqrtf(x)
#include "ops/elementwise/unary.inc"

#define NAME run_rsqrt
#define OF(x) 1 / __builtin_sqrtf(x)
#include "ops/elementwise/unary.inc"

static ipu_tensor output(ipu_graph *graph, const struct ipu__node *node)
{
    return ipu__handle(graph, node->output);
}

/* ---------------------------------------------- negate, abs and square */

static void negate_gradient(ipu_graph *graph, const struct ipu__node *node,
                            ipu_tensor dy, ipu_tensor *dx)
{
    (void)node;
    dx[0] = ipu_negate(graph, dy);
}

const struct ipu__op ipu__negate = {
    .name = "negate",
    IPU__OF_ONE,
    .slots = 1,
    .run = run_negate,
    .gradient = negate_gradient,
};

/* The sign of x times dy; 0 at 0. */
static void abs_gradient(ipu_graph *graph, const struct ipu__node *node,
                         ipu_tensor dy, ipu_tensor *dx)
{
    ipu_tensor zero = ipu__scalar_like(graph, dy, 0),
               x = ipu__input(graph, node, 0);
    ipu_tensor above = ipu_select(graph, ipu_greater(graph, x, zero), dy, zero);

    dx[0] = ipu_select(graph, ipu_less(graph, x, zero), ipu_negate(graph, dy),
                       above);
}

const struct ipu__op ipu__unary_abs = {
    .name = "abs",
    IPU__OF_ONE,
    .slots = 1,
    .run = run_abs,
    .gradient = abs_gradient,
};

static void square_gradient(ipu_graph *graph, const struct ipu__node *node,
                            ipu_tensor dy, ipu_tensor *dx)
{
    dx[0] = ipu_multiply(graph, ipu_scale(graph, dy, 2, 0),
                         ipu__input(graph, node, 0));
}

const struct ipu__op ipu__square = {
    .name = "square",
    IPU__OF_ONE,
    .slots = 1,
    .run = run_square,
    .gradient = square_gradient,
};

/* -------------------------------------------------------------- exp and log */

static void exp_gradient(ipu_graph *graph, const struct ipu__node *node,
                         ipu_tensor dy, ipu_tensor *dx)
{
    dx[0] = ipu_multiply(graph, dy, output(graph, node));
}

const struct ipu__op ipu__unary_exp = {
    .name = "exp",
    IPU__OF_ONE,
    .functions = {IPU__EXP},
    .run = run_exp,
    .gradient = exp_gradient,
};

static void log_gradient(ipu_graph *graph, const struct ipu__node *node,
                         ipu_tensor dy, ipu_tensor *dx)
{
    dx[0] = ipu_divide(graph, dy, ipu__input(graph, node, 0));
}

const struct ipu__op ipu__unary_log = {
    .name = "log",
    IPU__OF_ONE,
    .functions = {IPU__LOG},
    .run = run_log,
    .gradient = log_gradient,
};

/* -------------------------------------------------------------------- roots */

static void sqrt_gradient(ipu_graph *graph, const struct ipu__node *node,
                          ipu_tensor dy, ipu_tensor *dx)
{
    dx[0] =
        ipu_divide(graph, ipu_scale(graph, dy, 0.5, 0), output(graph, node));
}

const struct ipu__op ipu__sqrt = {
    .name = "sqrt",
    IPU__OF_ONE,
    .functions = {IPU__SQRT},
    .run = run_sqrt,
    .gradient = sqrt_gradient,
};

/* -y^3 / 2, as y / x: it neither overflows nor underflows before dx does. */
static void rsqrt_gradient(ipu_graph *graph, const struct ipu__node *node,
                           ipu_tensor dy, ipu_tensor *dx)
{
    ipu_tensor slope =
        ipu_divide(graph, output(graph, node), ipu__input(graph, node, 0));

    dx[0] = ipu_multiply(graph, ipu_scale(graph, dy, -0.5, 0), slope);
}

const struct ipu__op ipu__rsqrt = {
    .name = "rsqrt",
    IPU__OF_ONE,
    .functions = {IPU__RSQRT},
    .run = run_rsqrt,
    .gradient = rsqrt_gradient,
};

/* -------------------------------------------------------------------- scale */

IPU__WIDE(static, void, scale_each,
          (float *y, const float *x, float factor, float offset, int64_t count),
          (y, x, factor, offset, count))
{
    IPU__BY_ELEMENT
    for (int64_t i = 0; i < count; i++)
        y[i] = x[i] * factor + offset;
}

static int run_scale(const struct ipu__call *call)
{
    scale_each(call->output.data, call->inputs[0].data,
               (float)call->attributes->scale, (float)call->attributes->offset,
               ipu__shape_count(&call->output.shape));
    return IPU_OK;
}

static void scale_gradient(ipu_graph *graph, const struct ipu__node *node,
                           ipu_tensor dy, ipu_tensor *dx)
{
    dx[0] = ipu_scale(graph, dy, node->attributes.scale, 0);
}

const struct ipu__op ipu__scale = {
    .name = "scale",
    IPU__OF_ONE,
    .slots = 2,
    .loop_slots = IPU__BY_ROW_SLOTS,
    .run = run_scale,
    .gradient = scale_gradient,
};

ipu_tensor ipu_negate(ipu_graph *graph, ipu_tensor x)
{
    return ipu__add(graph, &ipu__negate, &x, NULL);
}

ipu_tensor ipu_abs(ipu_graph *graph, ipu_tensor x)
{
    return ipu__add(graph, &ipu__unary_abs, &x, NULL);
}

ipu_tensor ipu_square(ipu_graph *graph, ipu_tensor x)
{
    return ipu__add(graph, &ipu__square, &x, NULL);
}

ipu_tensor ipu_exp(ipu_graph *graph, ipu_tensor x)
{
    return ipu__add(graph, &ipu__unary_exp, &x, NULL);
}

ipu_tensor ipu_log(ipu_graph *graph, ipu_tensor x)
{
    return ipu__add(graph, &ipu__unary_log, &x, NULL);
}

ipu_tensor ipu_sqrt(ipu_graph *graph, ipu_tensor x)
{
    return ipu__add(graph, &ipu__sqrt, &x, NULL);
}

ipu_tensor ipu_rsqrt(ipu_graph *graph, ipu_tensor x)
{
    return ipu__add(graph, &ipu__rsqrt, &x, NULL);
}

ipu_tensor ipu_scale(ipu_graph *graph, ipu_tensor x, double factor,
                     double offset)
{
    const struct ipu__attributes attributes = {.scale = factor,
                                               .offset = offset};

    return ipu__add(graph, &ipu__scale, &x, &attributes);
}
