/* SPDX-License-Identifier: Apache-2.0 */
/* Operators of two or more tensors, which are broadcast: arithmetic,
 * comparisons, truths. */
#include <math.h>
#include <stdlib.h>

#include "onnx/operators/rows.h"

/* Two functions compute an operator: an op of the device and, if the elements
 * are known, one of the host. */
struct binary {
    ipu_tensor (*make)(ipu_graph *g, ipu_tensor a, ipu_tensor b);
    double (*host)(double a, double b); /* NULL: not of floats */
    int64_t (*host_whole)(int64_t a, int64_t b);
    bool makes_bool;
    /* Does a result leave the range of the type: of signed ones alone? */
    enum { STAYS, LEAVES_SIGNED, LEAVES } range;
};

/* Reads an element of a value that is broadcast to a larger shape. */
static void strides_in(const struct ipu__onnx_value *x, int32_t ndim,
                       int64_t *strides)
{
    int64_t own[IPU_MAX_DIMS];

    onnx__strides(x->ndim, x->extents, own);
    for (int32_t i = 0; i < ndim; i++) {
        int32_t at = i - (ndim - x->ndim);

        strides[i] = at < 0 || x->extents[at] == 1 ? 0 : own[at];
    }
}

/* Computes all elements of output 0 of known inputs. */
static void compute(const struct binary *how, const struct ipu__onnx_value *a,
                    const struct ipu__onnx_value *b,
                    const struct ipu__onnx_value *y, float *floats,
                    int64_t *wholes)
{
    int64_t of_a[IPU_MAX_DIMS], of_b[IPU_MAX_DIMS], n = onnx__size(y);

    strides_in(a, y->ndim, of_a);
    strides_in(b, y->ndim, of_b);
    for (int64_t i = 0; i < n; i++) {
        int64_t rest = i, at = 0, bt = 0;

        for (int32_t d = y->ndim - 1; d >= 0; d--) {
            int64_t index = rest % y->extents[d];

            rest /= y->extents[d];
            at += index * of_a[d];
            bt += index * of_b[d];
        }
        if (a->wholes)
            wholes[i] = how->host_whole(a->wholes[at], b->wholes[bt]);
        else if (wholes)
            wholes[i] =
                how->host((double)a->floats[at], (double)b->floats[bt]) != 0;
        else
            floats[i] =
                (float)how->host((double)a->floats[at], (double)b->floats[bt]);
    }
}

/* Computes on the host, if all is known. Returns 1 if it did. */
static int fold(struct ipu__onnx_call *call, const struct binary *how,
                struct ipu__onnx_value *a, struct ipu__onnx_value *b)
{
    int32_t type = how->makes_bool ? IPU_ONNX_BOOL : a->type, ndim = a->ndim;
    const struct ipu__onnx_kind *kind = ipu__onnx_kind(type);
    int64_t extents[IPU_MAX_DIMS], *wholes;
    float *floats;

    for (int32_t i = 0; i < ndim; i++)
        extents[i] = a->extents[i];
    if (!onnx__broadcast(&ndim, extents, b->ndim, b->extents))
        return onnx__refuse(call, "the shapes of its inputs do not fit");
    if (!onnx__known(call, a) || !onnx__known(call, b) ||
        !(a->wholes ? how->host_whole != NULL : how->host != NULL) ||
        !onnx__room(call, 0, type, ndim, extents, &floats, &wholes))
        return 0;
    compute(how, a, b, call->outputs[0], floats, wholes);
    for (int64_t i = 0; wholes && i < onnx__size(call->outputs[0]); i++)
        if (wholes[i] < kind->least || wholes[i] > kind->most)
            return onnx__refuse(call, "a constant leaves the range of %s",
                                kind->name);
    return 1;
}

ipu_tensor onnx__wrap(struct ipu__onnx_call *call, int32_t type, ipu_tensor x)
{
    const struct ipu__onnx_kind *kind = ipu__onnx_kind(type);
    double range = (double)(kind->most - kind->least + 1);
    ipu_tensor least = onnx__scalar(call, type, (double)kind->least);

    x = ipu_subtract(call->graph, x, least);
    x = onnx__remainder(call->graph, x, onnx__scalar(call, type, range), false);
    return ipu_add(call->graph, x, least);
}

static bool is_narrow(int32_t type)
{
    return onnx__is_whole(type) && ipu__onnx_kind(type)->bytes < 4;
}

/* Numbers of these types are those of int32 that are not negative: inputs and
 * constants beyond it are refused, and so is what may leave it. */
static bool is_wide_unsigned(int32_t type)
{
    return type == IPU_ONNX_UINT32 || type == IPU_ONNX_UINT64;
}

static int check_pair(struct ipu__onnx_call *call, const struct binary *how)
{
    const struct ipu__onnx_value *a = call->inputs[0], *b = call->inputs[1];

    if (a->type != b->type)
        return onnx__refuse(call, "its inputs are of %s and of %s",
                            ipu_onnx_type_name(a->type),
                            ipu_onnx_type_name(b->type));
    if (onnx__is_whole(a->type) && !how->host_whole)
        return onnx__want_floats(call, 0);
    if (!onnx__is_whole(a->type) && !how->host)
        return onnx__refuse(call, "of floats it is not supported");
    if (how->range == LEAVES && is_wide_unsigned(a->type))
        return onnx__refuse(call, "of %s it is not supported",
                            ipu_onnx_type_name(a->type));
    return IPU_OK;
}

static int build_by(struct ipu__onnx_call *call, const struct binary *how)
{
    int32_t type = call->inputs[0]->type;
    struct ipu__onnx_value *pair[2] = {call->inputs[0]}, room;
    ipu_tensor operands[2], y;
    bool last;
    int status;

    IPU_TRY(check_pair(call, how));
    IPU_TRY(onnx__old_broadcast(call, &room, &pair[1]));
    status = fold(call, how, pair[0], pair[1]);
    if (status != 0)
        return status < 0 ? status : IPU_OK;
    onnx__operands(call, 2, pair, operands, &last);
    y = how->make(call->graph, operands[0], operands[1]);
    if (how->range != STAYS && is_narrow(type))
        y = onnx__wrap(call, type, y);
    return onnx__give_as(call, how->makes_bool ? IPU_ONNX_BOOL : type, y, last);
}

static int build_pair(struct ipu__onnx_call *call)
{
    return build_by(call, call->op->how);
}

/* --------------------------------------------------------------- arithmetic */

static double host_add(double a, double b)
{
    return a + b;
}
static double host_subtract(double a, double b)
{
    return a - b;
}
static double host_multiply(double a, double b)
{
    return a * b;
}
static double host_divide(double a, double b)
{
    return a / b;
}
static int64_t whole_add(int64_t a, int64_t b)
{
    return (int64_t)((uint64_t)a + (uint64_t)b);
}
static int64_t whole_subtract(int64_t a, int64_t b)
{
    return (int64_t)((uint64_t)a - (uint64_t)b);
}
static int64_t whole_multiply(int64_t a, int64_t b)
{
    return (int64_t)((uint64_t)a * (uint64_t)b);
}

/* There is no result of a division by 0, and it must not end the process. */
static int64_t whole_divide(int64_t a, int64_t b)
{
    if (b == 0)
        return 0;
    return b == -1 ? whole_subtract(0, a) : a / b;
}

/* Divides floats or integers. */
static ipu_tensor divide(ipu_graph *g, ipu_tensor a, ipu_tensor b)
{
    ipu_dtype dtype = IPU_FLOAT32;

    ipu_tensor_info(g, a, &dtype, NULL, NULL);
    return dtype == IPU_INT32 ? onnx__quotient(g, a, b) : ipu_divide(g, a, b);
}

static const struct binary how_add = {ipu_add, host_add, whole_add, false,
                                      LEAVES};
static const struct binary how_subtract = {ipu_subtract, host_subtract,
                                           whole_subtract, false, LEAVES};
static const struct binary how_multiply = {ipu_multiply, host_multiply,
                                           whole_multiply, false, LEAVES};
static const struct binary how_divide = {divide, host_divide, whole_divide,
                                         false, LEAVES_SIGNED};

/* -------------------------------------------------------------- comparisons */

#define COMPARISON(name, sign)                                                 \
    static double host_##name(double a, double b)                              \
    {                                                                          \
        return a sign b;                                                       \
    }                                                                          \
    static int64_t whole_##name(int64_t a, int64_t b)                          \
    {                                                                          \
        return a sign b;                                                       \
    }                                                                          \
    static const struct binary how_##name = {ipu_##name, host_##name,          \
                                             whole_##name, true, STAYS}

COMPARISON(equal, ==);
COMPARISON(less, <);
COMPARISON(less_equal, <=);
COMPARISON(greater, >);
COMPARISON(greater_equal, >=);

/* ------------------------------------------------------------------- truths */

static int64_t whole_and(int64_t a, int64_t b)
{
    return a && b;
}
static int64_t whole_or(int64_t a, int64_t b)
{
    return a || b;
}
static int64_t whole_xor(int64_t a, int64_t b)
{
    return !a != !b;
}

static const struct binary how_and = {ipu_multiply, NULL, whole_and, true,
                                      STAYS};
static const struct binary how_or = {ipu_maximum, NULL, whole_or, true, STAYS};
static const struct binary how_xor = {ipu_not_equal, NULL, whole_xor, true,
                                      STAYS};

static int build_truth(struct ipu__onnx_call *call)
{
    if (call->inputs[0]->type != IPU_ONNX_BOOL)
        return onnx__refuse(call, "it takes bool");
    return build_pair(call);
}

/* ------------------------------------------------------------------- modulo */

/* a - b trunc(a / b), which is exact while the quotient is below 2^24. */
static ipu_tensor float_remainder(ipu_graph *g, ipu_tensor a, ipu_tensor b)
{
    ipu_tensor quotient = onnx__truncate(g, ipu_divide(g, a, b));

    return ipu_subtract(g, a, ipu_multiply(g, b, quotient));
}

/* The remainder with the sign of the dividend, of floats or integers. */
static ipu_tensor make_fmod(ipu_graph *g, ipu_tensor a, ipu_tensor b)
{
    ipu_dtype dtype = IPU_FLOAT32;

    ipu_tensor_info(g, a, &dtype, NULL, NULL);
    return dtype == IPU_INT32 ? onnx__remainder(g, a, b, true)
                              : float_remainder(g, a, b);
}

static ipu_tensor make_mod(ipu_graph *g, ipu_tensor a, ipu_tensor b)
{
    return onnx__remainder(g, a, b, false);
}

/* As with a quotient, there is none of 0; INT64_MIN % -1 would trap. */
static int64_t whole_fmod(int64_t a, int64_t b)
{
    return b == 0 || b == -1 ? 0 : a % b;
}

static int64_t whole_mod(int64_t a, int64_t b)
{
    int64_t rest = whole_fmod(a, b);

    return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
}

static const struct binary how_fmod = {make_fmod, fmod, whole_fmod, false,
                                       STAYS};
static const struct binary how_mod = {make_mod, NULL, whole_mod, false, STAYS};

static int build_mod(struct ipu__onnx_call *call)
{
    return build_by(call,
                    onnx__int(call, "fmod", 0) != 0 ? &how_fmod : &how_mod);
}

/* ------------------------------------------------------- any number of them */

/* Combines all inputs with one op, one after the other. */
static int combine(struct ipu__onnx_call *call,
                   ipu_tensor (*make)(ipu_graph *, ipu_tensor, ipu_tensor),
                   double factor)
{
    int32_t type = call->inputs[0]->type;
    ipu_tensor *operands;
    bool last;
    ipu_tensor y;

    for (int i = 0; i < call->ninputs; i++)
        if (!call->inputs[i] || call->inputs[i]->type != type)
            return onnx__refuse(call, "an input is missing or of another type");
    IPU_TRY(ipu__new_array(&operands, (size_t)call->ninputs, sizeof *operands));
    onnx__operands(call, call->ninputs, call->inputs, operands, &last);
    y = operands[0];
    for (int i = 1; i < call->ninputs; i++)
        y = make(call->graph, y, operands[i]);
    free(operands);
    if (factor != 1)
        y = ipu_scale(call->graph, y, factor, 0);
    return call->ninputs == 1 && factor == 1
               ? onnx__give_same(call, 0, call->inputs[0])
               : onnx__give_as(call, type, y, last);
}

/* NaN stays, as on the device. */
static double host_maximum(double a, double b)
{
    return a >= b || a != a ? a : b;
}
static double host_minimum(double a, double b)
{
    return a <= b || a != a ? a : b;
}
static int64_t whole_maximum(int64_t a, int64_t b)
{
    return a >= b ? a : b;
}
static int64_t whole_minimum(int64_t a, int64_t b)
{
    return a <= b ? a : b;
}

static const struct binary how_max = {ipu_maximum, host_maximum, whole_maximum,
                                      false, STAYS};
static const struct binary how_min = {ipu_minimum, host_minimum, whole_minimum,
                                      false, STAYS};

/* Those of shapes are of two. */
static int build_extreme(struct ipu__onnx_call *call)
{
    const struct binary *how = call->op->how;

    return call->ninputs == 2 && call->inputs[1] ? build_by(call, how)
                                                 : combine(call, how->make, 1);
}

static int build_sum(struct ipu__onnx_call *call)
{
    IPU_TRY(onnx__want_floats(call, 0));
    return combine(call, ipu_add, 1);
}

static int build_mean(struct ipu__onnx_call *call)
{
    IPU_TRY(onnx__want_floats(call, 0));
    return combine(call, ipu_add, 1.0 / call->ninputs);
}

/* ------------------------------------------------------------------- choice */

static bool fold_where(struct ipu__onnx_call *call)
{
    struct ipu__onnx_value *const *in = call->inputs;
    int32_t ndim = in[0]->ndim;
    int64_t extents[IPU_MAX_DIMS], of[3][IPU_MAX_DIMS], *wholes;
    float *floats;

    for (int32_t d = 0; d < ndim; d++)
        extents[d] = in[0]->extents[d];
    if (!onnx__all_known(call) ||
        !onnx__broadcast(&ndim, extents, in[1]->ndim, in[1]->extents) ||
        !onnx__broadcast(&ndim, extents, in[2]->ndim, in[2]->extents) ||
        !onnx__room(call, 0, in[1]->type, ndim, extents, &floats, &wholes))
        return false;
    for (int i = 0; i < 3; i++)
        strides_in(in[i], ndim, of[i]);
    for (int64_t i = 0; i < ipu__onnx_count(ndim, extents); i++) {
        int64_t rest = i, at[3] = {0, 0, 0};
        int chosen;

        for (int32_t d = ndim - 1; d >= 0; rest /= extents[d--])
            for (int j = 0; j < 3; j++)
                at[j] += rest % extents[d] * of[j][d];
        chosen = in[0]->wholes[at[0]] ? 1 : 2;
        if (wholes)
            wholes[i] = in[chosen]->wholes[at[chosen]];
        else
            floats[i] = in[chosen]->floats[at[chosen]];
    }
    return true;
}

static int build_where(struct ipu__onnx_call *call)
{
    struct ipu__onnx_value *const *in = call->inputs;
    ipu_tensor operands[3];
    bool last;

    if (in[0]->type != IPU_ONNX_BOOL || in[1]->type != in[2]->type)
        return onnx__refuse(call, "its inputs are of wrong types");
    if (fold_where(call))
        return IPU_OK;
    onnx__operands(call, 3, in, operands, &last);
    return onnx__give_as(
        call, in[1]->type,
        ipu_select(call->graph, operands[0], operands[1], operands[2]), last);
}

#define INT32_ONLY "uint32 and uint64 are refused"
/* Attributes of versions before 7; the last had no meaning. */
#define OLD "axis broadcast consumed_inputs"

const struct ipu__onnx_operator onnx__binary_rows[] = {
    {"Add", 1, OLD, 2, 2, build_pair, &how_add, INT32_ONLY},
    {"And", 1, OLD, 2, 2, build_truth, &how_and, NULL},
    {"Div", 1, OLD, 2, 2, build_pair, &how_divide, NULL},
    {"Equal", 1, OLD, 2, 2, build_pair, &how_equal, NULL},
    {"Greater", 1, OLD, 2, 2, build_pair, &how_greater, NULL},
    {"GreaterOrEqual", 12, "", 2, 2, build_pair, &how_greater_equal, NULL},
    {"Less", 1, OLD, 2, 2, build_pair, &how_less, NULL},
    {"LessOrEqual", 12, "", 2, 2, build_pair, &how_less_equal, NULL},
    {"Max", 6, "", 1, IPU__ONNX_ANY_NUMBER, build_extreme, &how_max, NULL},
    {"Mean", 6, "", 1, IPU__ONNX_ANY_NUMBER, build_mean, NULL, NULL},
    {"Min", 6, "", 1, IPU__ONNX_ANY_NUMBER, build_extreme, &how_min, NULL},
    {"Mod", 10, "fmod", 2, 2, build_mod, NULL, NULL},
    {"Mul", 1, OLD, 2, 2, build_pair, &how_multiply, INT32_ONLY},
    {"Or", 1, OLD, 2, 2, build_truth, &how_or, NULL},
    {"Sub", 1, OLD, 2, 2, build_pair, &how_subtract, INT32_ONLY},
    {"Sum", 6, "", 1, IPU__ONNX_ANY_NUMBER, build_sum, NULL, NULL},
    {"Where", 9, "", 3, 3, build_where, NULL, NULL},
    {"Xor", 1, OLD, 2, 2, build_truth, &how_xor, NULL},
    {.name = NULL},
};
