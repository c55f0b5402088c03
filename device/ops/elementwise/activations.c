/* SPDX-License-Identifier: Apache-2.0 */
/*
 * activations.c - activations that stand between the layers of a network,
 * except relu, which has a file of its own. The derivative of each is one op,
 * dx from dy and x, or from dy and y where that is less work.
 *
 *     gelu(x)       x Phi(x)            Phi: the normal distribution
 *     gelu_tanh(x)  x sigmoid(2 u)      u = sqrt(2 / pi) (x + 0.044715 x^3)
 *     silu(x)       x sigmoid(x)
 */
#include "ops/costs.h"
#include "ops/elementwise/pair.h"
#include "ops/functions.h"

/* Returns (1 + tanh(u)) / 2 = sigmoid(2 u): gelu_tanh(x) = x / 2 (1 +
 * tanh(u)). */
static inline float gelu_gate(float x)
{
    return ipu__sigmoid(1.59576912f * (x + 0.044715f * x * x * x));
}

static inline float gelu_tanh_slope(float x)
{
    float gate = gelu_gate(x);

    return gate +
           x * gate * (1 - gate) * (1.59576912f * (1 + 3 * 0.044715f * x * x));
}

static inline float silu_slope(float x)
{
    float gate = ipu__sigmoid(x);

    return gate + x * gate * (1 - gate);
}

#define NAME run_tanh
#define OF(x) ipu__tanh(x)
#include "ops/elementwise/unary.inc"

#define NAME run_sigmoid
#define OF(x) ipu__sigmoid(x)
#include "ops/elementwise/unary.inc"

#define NAME run_gelu
#define OF(x) (x) * ipu__normal_cdf(x)
#include "ops/elementwise/unary.inc"

#define NAME run_gelu_tanh
#define OF(x) (x) * gelu_gate(x)
#include "ops/elementwise/unary.inc"

#define NAME run_silu
#define OF(x) (x) * ipu__sigmoid(x)
#include "ops/elementwise/unary.inc"

#define NAME tanh_slopes
#define OF(dy, y) (dy) * (1 - (y) * (y))
#include "ops/elementwise/binary.inc"

#define NAME sigmoid_slopes
#define OF(dy, y) (dy) * (y) * (1 - (y))
#include "ops/elementwise/binary.inc"

#define NAME gelu_slopes
#define OF(dy, x) (dy) * (ipu__normal_cdf(x) + (x)*ipu__normal_density(x))
#include "ops/elementwise/binary.inc"

#define NAME gelu_tanh_slopes
#define OF(dy, x) (dy) * gelu_tanh_slope(x)
#include "ops/elementwise/binary.inc"

#define NAME silu_slopes
#define OF(dy, x) (dy) * silu_slope(x)
#include "ops/elementwise/binary.inc"

/* --------------------------------------------------------------------- tanh */

const struct ipu__op ipu__tanh_grad = {
    .name = "tanh_grad",
    IPU__OF_TWO,
    .slots = 3,
    .loop_slots = -1,
    .run = ipu__pair_run,
    .floats = &tanh_slopes,
};

const struct ipu__op ipu__activation_tanh = {
    .name = "tanh",
    IPU__OF_ONE,
    .functions = {IPU__TANH},
    .run = run_tanh,
    .gradient = ipu__slope_by_output,
    .slope = &ipu__tanh_grad,
};

/* ------------------------------------------------------------------ sigmoid */

const struct ipu__op ipu__sigmoid_grad = {
    .name = "sigmoid_grad",
    IPU__OF_TWO,
    .slots = 3,
    .loop_slots = -1,
    .run = ipu__pair_run,
    .floats = &sigmoid_slopes,
};

const struct ipu__op ipu__activation_sigmoid = {
    .name = "sigmoid",
    IPU__OF_ONE,
    .functions = {IPU__SIGMOID},
    .run = run_sigmoid,
    .gradient = ipu__slope_by_output,
    .slope = &ipu__sigmoid_grad,
};

/* --------------------------------------------------------------------- gelu */

const struct ipu__op ipu__gelu_grad = {
    .name = "gelu_grad",
    IPU__OF_TWO,
    .functions = {IPU__ERF, IPU__EXP},
    .slots = 8,
    .loop_slots = -1,
    .run = ipu__pair_run,
    .floats = &gelu_slopes,
};

const struct ipu__op ipu__gelu = {
    .name = "gelu",
    IPU__OF_ONE,
    .functions = {IPU__ERF},
    .slots = 4,
    .loop_slots = -1,
    .run = run_gelu,
    .gradient = ipu__slope_by_input,
    .slope = &ipu__gelu_grad,
};

const struct ipu__op ipu__gelu_tanh_grad = {
    .name = "gelu_tanh_grad",
    IPU__OF_TWO,
    .functions = {IPU__TANH},
    .slots = 12,
    .loop_slots = -1,
    .run = ipu__pair_run,
    .floats = &gelu_tanh_slopes,
};

const struct ipu__op ipu__gelu_tanh = {
    .name = "gelu_tanh",
    IPU__OF_ONE,
    .functions = {IPU__TANH},
    .slots = 6,
    .loop_slots = -1,
    .run = run_gelu_tanh,
    .gradient = ipu__slope_by_input,
    .slope = &ipu__gelu_tanh_grad,
};

/* --------------------------------------------------------------------- silu */

const struct ipu__op ipu__silu_grad = {
    .name = "silu_grad",
    IPU__OF_TWO,
    .functions = {IPU__SIGMOID},
    .slots = 5,
    .loop_slots = -1,
    .run = ipu__pair_run,
    .floats = &silu_slopes,
};

const struct ipu__op ipu__silu = {
    .name = "silu",
    IPU__OF_ONE,
    .functions = {IPU__SIGMOID},
    .slots = 1,
    .loop_slots = -1,
    .run = run_silu,
    .gradient = ipu__slope_by_input,
    .slope = &ipu__silu_grad,
};

ipu_tensor ipu_tanh(ipu_graph *graph, ipu_tensor x)
{
    return ipu__add(graph, &ipu__activation_tanh, &x, NULL);
}

ipu_tensor ipu_sigmoid(ipu_graph *graph, ipu_tensor x)
{
    return ipu__add(graph, &ipu__activation_sigmoid, &x, NULL);
}

ipu_tensor ipu_gelu(ipu_graph *graph, ipu_tensor x)
{
    return ipu__add(graph, &ipu__gelu, &x, NULL);
}

ipu_tensor ipu_gelu_tanh(ipu_graph *graph, ipu_tensor x)
{
    return ipu__add(graph, &ipu__gelu_tanh, &x, NULL);
}

ipu_tensor ipu_silu(ipu_graph *graph, ipu_tensor x)
{
    return ipu__add(graph, &ipu__silu, &x, NULL);
}
