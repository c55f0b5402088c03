/* SPDX-License-Identifier: Apache-2.0 */
/* Operators of one tensor, element by element, without attributes. */
#include <math.h>

#include "onnx/operators/rows.h"

/* Two functions compute an operator: an op of the device and, if the elements
 * are known, one of the host (NULL: the op does it then, too). */
struct unary {
    ipu_tensor (*make)(ipu_graph *g, ipu_tensor x);
    double (*host)(double x);
    /* The same of integers; NULL: they are refused. */
    ipu_tensor (*make_whole)(ipu_graph *g, ipu_tensor x);
    int64_t (*host_whole)(int64_t x);
};

static ipu_tensor zero(ipu_graph *g)
{
    return ipu_fill(g, IPU_INT32, 0, NULL, 0);
}

/* Computes known elements on the host. Returns false if that is not possible.
 */
static bool fold(struct ipu__onnx_call *call, const struct unary *how)
{
    struct ipu__onnx_value *x = call->inputs[0];
    int64_t n = onnx__size(x), *wholes;
    float *floats;

    if (!(onnx__is_whole(x->type) ? how->host_whole != NULL
                                  : how->host != NULL) ||
        !onnx__known(call, x) ||
        !onnx__room(call, 0, x->type, x->ndim, x->extents, &floats, &wholes))
        return false;
    for (int64_t i = 0; i < n; i++) {
        if (wholes)
            wholes[i] = how->host_whole(x->wholes[i]);
        else
            floats[i] = (float)how->host((double)x->floats[i]);
    }
    return true;
}

static int build_unary(struct ipu__onnx_call *call)
{
    const struct unary *how = call->op->how;
    struct ipu__onnx_value *x = call->inputs[0];
    ipu_tensor t;
    bool last;

    if (onnx__is_whole(x->type) && !how->make_whole)
        return onnx__want_floats(call, 0);
    if (fold(call, how))
        return IPU_OK;
    t = onnx__operand(call, x, &last);
    t = onnx__is_whole(x->type) ? how->make_whole(call->graph, t)
                                : how->make(call->graph, t);
    return onnx__give_as(call, x->type, t, last);
}

/* ------------------------------------------------------ of floats, and more */

static ipu_tensor abs_whole(ipu_graph *g, ipu_tensor x)
{
    return ipu_maximum(g, x, ipu_subtract(g, zero(g), x));
}

static int64_t host_abs(int64_t x)
{
    return x < 0 ? (int64_t)(0 - (uint64_t)x) : x;
}

static const struct unary how_abs = {ipu_abs, fabs, abs_whole, host_abs};

static ipu_tensor negate_whole(ipu_graph *g, ipu_tensor x)
{
    return ipu_subtract(g, zero(g), x);
}

static double host_negate(double x)
{
    return -x;
}

static int64_t host_negate_whole(int64_t x)
{
    return (int64_t)(0 - (uint64_t)x);
}

static const struct unary how_neg = {ipu_negate, host_negate, negate_whole,
                                     host_negate_whole};

static ipu_tensor sign_whole(ipu_graph *g, ipu_tensor x)
{
    return ipu_subtract(g, ipu_greater(g, x, zero(g)), ipu_less(g, x, zero(g)));
}

static double host_sign(double x)
{
    return x > 0 ? 1 : x < 0 ? -1 : x;
}

static int64_t host_sign_whole(int64_t x)
{
    return (x > 0) - (x < 0);
}

static const struct unary how_sign = {ipu_sign, host_sign, sign_whole,
                                      host_sign_whole};

static ipu_tensor relu_whole(ipu_graph *g, ipu_tensor x)
{
    return ipu_maximum(g, x, zero(g));
}

static double host_relu(double x)
{
    return x < 0 ? 0 : x;
}

static int64_t host_relu_whole(int64_t x)
{
    return x < 0 ? 0 : x;
}

static const struct unary how_relu = {ipu_relu, host_relu, relu_whole,
                                      host_relu_whole};

static double host_reciprocal(double x)
{
    return 1 / x;
}

static ipu_tensor one_like(ipu_graph *g, ipu_tensor x)
{
    ipu_dtype dtype = IPU_FLOAT32;

    ipu_tensor_info(g, x, &dtype, NULL, NULL);
    return ipu_fill(g, dtype, 0, NULL, 1);
}

static ipu_tensor reciprocal(ipu_graph *g, ipu_tensor x)
{
    return ipu_divide(g, one_like(g, x), x);
}

static const struct unary how_reciprocal = {reciprocal, host_reciprocal, NULL,
                                            NULL};
static const struct unary how_sqrt = {ipu_sqrt, sqrt, NULL, NULL};
static const struct unary how_exp = {ipu_exp, exp, NULL, NULL};
static const struct unary how_log = {ipu_log, log, NULL, NULL};
static const struct unary how_floor = {ipu_floor, floor, NULL, NULL};
static const struct unary how_ceil = {ipu_ceil, ceil, NULL, NULL};
static const struct unary how_round = {ipu_round, nearbyint, NULL, NULL};
static const struct unary how_erf = {ipu_erf, erf, NULL, NULL};
static const struct unary how_sin = {ipu_sin, sin, NULL, NULL};
static const struct unary how_cos = {ipu_cos, cos, NULL, NULL};
static const struct unary how_tanh = {ipu_tanh, tanh, NULL, NULL};
static const struct unary how_sigmoid = {ipu_sigmoid, NULL, NULL, NULL};
static const struct unary how_softplus = {ipu_softplus, NULL, NULL, NULL};

/* --------------------------------------------------- composed of other ops */

static ipu_tensor make_tan(ipu_graph *g, ipu_tensor x)
{
    return ipu_divide(g, ipu_sin(g, x), ipu_cos(g, x));
}

static const struct unary how_tan = {make_tan, tan, NULL, NULL};

/* With m = exp(x) - 1, which is precise near 0: (m + m / (m + 1)) / 2. */
static ipu_tensor make_sinh(ipu_graph *g, ipu_tensor x)
{
    ipu_tensor m = ipu_expm1(g, x);

    return ipu_scale(g, ipu_add(g, m, ipu_divide(g, m, ipu_scale(g, m, 1, 1))),
                     0.5, 0);
}

static const struct unary how_sinh = {make_sinh, sinh, NULL, NULL};

static ipu_tensor make_cosh(ipu_graph *g, ipu_tensor x)
{
    return ipu_scale(g, ipu_add(g, ipu_exp(g, x), ipu_exp(g, ipu_negate(g, x))),
                     0.5, 0);
}

static const struct unary how_cosh = {make_cosh, cosh, NULL, NULL};

/* The sign of x, times log1p(a + a^2 / (1 + sqrt(a^2 + 1))) with a = |x|. */
static ipu_tensor make_asinh(ipu_graph *g, ipu_tensor x)
{
    ipu_tensor a = ipu_abs(g, x), square = ipu_square(g, a);
    ipu_tensor root = ipu_sqrt(g, ipu_scale(g, square, 1, 1));

    a = ipu_add(g, a, ipu_divide(g, square, ipu_scale(g, root, 1, 1)));
    return ipu_multiply(g, ipu_sign(g, x), ipu_log1p(g, a));
}

static const struct unary how_asinh = {make_asinh, asinh, NULL, NULL};

/* With t = x - 1, which is precise near 1: log1p(t + sqrt(2 t + t^2)). */
static ipu_tensor make_acosh(ipu_graph *g, ipu_tensor x)
{
    ipu_tensor t = ipu_scale(g, x, 1, -1);
    ipu_tensor root =
        ipu_sqrt(g, ipu_add(g, ipu_scale(g, t, 2, 0), ipu_square(g, t)));

    return ipu_log1p(g, ipu_add(g, t, root));
}

static const struct unary how_acosh = {make_acosh, acosh, NULL, NULL};

static ipu_tensor make_atanh(ipu_graph *g, ipu_tensor x)
{
    ipu_tensor minus = ipu_negate(g, x);

    return ipu_scale(g, ipu_subtract(g, ipu_log1p(g, x), ipu_log1p(g, minus)),
                     0.5, 0);
}

static const struct unary how_atanh = {make_atanh, atanh, NULL, NULL};

static const struct unary how_atan = {ipu_atan, atan, NULL, NULL};

/* sqrt(1 - x^2), of factors that are precise near 1 and -1. */
static ipu_tensor other_side(ipu_graph *g, ipu_tensor x)
{
    return ipu_sqrt(
        g, ipu_multiply(g, ipu_scale(g, x, 1, 1), ipu_scale(g, x, -1, 1)));
}

/* The angle is twice the one whose tangent is x / (1 + sqrt(1 - x^2)). */
static ipu_tensor make_asin(ipu_graph *g, ipu_tensor x)
{
    ipu_tensor half = ipu_divide(g, x, ipu_scale(g, other_side(g, x), 1, 1));

    return ipu_scale(g, ipu_atan(g, half), 2, 0);
}

static const struct unary how_asin = {make_asin, asin, NULL, NULL};

/* The same with sqrt(1 - x^2) / (1 + x), which is infinite at -1. */
static ipu_tensor make_acos(ipu_graph *g, ipu_tensor x)
{
    ipu_tensor half = ipu_divide(g, ipu_sqrt(g, ipu_scale(g, x, -1, 1)),
                                 ipu_sqrt(g, ipu_scale(g, x, 1, 1)));

    return ipu_scale(g, ipu_atan(g, half), 2, 0);
}

static const struct unary how_acos = {make_acos, acos, NULL, NULL};

static ipu_tensor make_softsign(ipu_graph *g, ipu_tensor x)
{
    return ipu_divide(g, x, ipu_scale(g, ipu_abs(g, x), 1, 1));
}

static const struct unary how_softsign = {make_softsign, NULL, NULL, NULL};

/* x * max(0, min(1, x / 6 + 0.5)) */
static ipu_tensor make_hard_swish(ipu_graph *g, ipu_tensor x)
{
    return ipu_multiply(g, x, ipu_clip(g, ipu_scale(g, x, 1.0 / 6, 0.5), 0, 1));
}

static const struct unary how_hard_swish = {make_hard_swish, NULL, NULL, NULL};

/* ---------------------------------------------------- other types of output */

static int build_not(struct ipu__onnx_call *call)
{
    struct ipu__onnx_value *x = call->inputs[0];
    int64_t *wholes;
    float *floats;
    ipu_tensor t;
    bool last;

    if (x->type != IPU_ONNX_BOOL)
        return onnx__refuse(call, "it takes bool");
    if (onnx__known(call, x) &&
        onnx__room(call, 0, x->type, x->ndim, x->extents, &floats, &wholes)) {
        for (int64_t i = 0; i < onnx__size(x); i++)
            wholes[i] = !x->wholes[i];
        return IPU_OK;
    }
    t = onnx__operand(call, x, &last);
    return onnx__give_as(call, x->type,
                         ipu_equal(call->graph, t, zero(call->graph)), last);
}

static int build_is_nan(struct ipu__onnx_call *call)
{
    bool last;
    ipu_tensor x;

    IPU_TRY(onnx__want_floats(call, 0));
    x = onnx__operand(call, call->inputs[0], &last);
    return onnx__give_as(call, IPU_ONNX_BOOL, ipu_not_equal(call->graph, x, x),
                         last);
}

static int build_is_inf(struct ipu__onnx_call *call)
{
    int32_t type = call->inputs[0]->type;
    bool minus = onnx__int(call, "detect_negative", 1) != 0, last;
    bool plus = onnx__int(call, "detect_positive", 1) != 0;
    ipu_graph *g = call->graph;
    ipu_tensor x;

    IPU_TRY(onnx__want_floats(call, 0));
    if (!minus && !plus)
        return onnx__refuse(call, "it detects neither infinity");
    x = onnx__operand(call, call->inputs[0], &last);
    x = minus && plus ? ipu_abs(g, x) : x;
    return onnx__give_as(
        call, IPU_ONNX_BOOL,
        ipu_equal(g, x, onnx__scalar(call, type, plus ? INFINITY : -INFINITY)),
        last);
}

#define UNARY(name, first, how)                                                \
    {                                                                          \
        name, first, "", 1, 1, build_unary, &how, NULL                         \
    }

const struct ipu__onnx_operator onnx__unary_rows[] = {
    UNARY("Abs", 6, how_abs),
    UNARY("Acos", 7, how_acos),
    UNARY("Acosh", 9, how_acosh),
    UNARY("Asin", 7, how_asin),
    UNARY("Asinh", 9, how_asinh),
    UNARY("Atan", 7, how_atan),
    UNARY("Atanh", 9, how_atanh),
    UNARY("Ceil", 6, how_ceil),
    UNARY("Cos", 7, how_cos),
    UNARY("Cosh", 9, how_cosh),
    UNARY("Erf", 9, how_erf),
    UNARY("Exp", 6, how_exp),
    UNARY("Floor", 6, how_floor),
    UNARY("HardSwish", 14, how_hard_swish),
    {"IsInf", 10, "detect_negative detect_positive", 1, 1, build_is_inf, NULL,
     NULL},
    {"IsNaN", 9, "", 1, 1, build_is_nan, NULL, NULL},
    UNARY("Log", 6, how_log),
    UNARY("Neg", 6, how_neg),
    {"Not", 1, "", 1, 1, build_not, NULL, NULL},
    UNARY("Reciprocal", 6, how_reciprocal),
    UNARY("Relu", 6, how_relu),
    UNARY("Round", 11, how_round),
    UNARY("Sigmoid", 6, how_sigmoid),
    UNARY("Sign", 9, how_sign),
    UNARY("Sin", 7, how_sin),
    UNARY("Sinh", 9, how_sinh),
    UNARY("Softplus", 1, how_softplus),
    UNARY("Softsign", 1, how_softsign),
    UNARY("Sqrt", 6, how_sqrt),
    UNARY("Tan", 7, how_tan),
    UNARY("Tanh", 6, how_tanh),
    {.name = NULL},
};
