/* SPDX-License-Identifier: Apache-2.0 */
/*
 * quantized.c - numbers of 8 bits that stand for (number - zero point) * scale.
 *
 * The device multiplies floats. Numbers of 8 bits less their zero points have 9
 * bits, and their products 17: sums of as many as float32 holds exactly are one
 * product. For longer sums the first factor is split into 16 high + low, whose
 * products have 13 bits; the two sums are put together as int32. So what is
 * built is exact, at the speed of floats.
 */
#include <stdlib.h>

#include "onnx/operators/window.h"

/* Sums of so many products are exact: 255 * 255 n, and 16 * 255 n, are at most
 * 2^24. */
enum { MOST_WHOLE = 258, MOST_SPLIT = 4112 };

static ipu_tensor as_float(ipu_graph *g, ipu_tensor x)
{
    return ipu_cast(g, x, IPU_FLOAT32);
}

/* Returns a scale or a zero point of x: one number, or one for each element of
 * an axis. NULL: there is none, and the result is invalid. */
static int parameter(struct ipu__onnx_call *call, struct ipu__onnx_value *p,
                     const struct ipu__onnx_value *x, int32_t axis,
                     ipu_tensor *t)
{
    int64_t shape[IPU_MAX_DIMS];
    ipu_graph *g = call->graph;

    t->id = -1;
    if (!p)
        return IPU_OK;
    *t = onnx__tensor(call, p);
    if (onnx__size(p) == 1) {
        *t = ipu_reshape(g, *t, 0, NULL);
        return IPU_OK;
    }
    if (axis < 0 || axis >= x->ndim || p->ndim != 1 ||
        p->extents[0] != x->extents[axis])
        return onnx__refuse(call, "its scales or zero points do not fit");
    for (int32_t d = 0; d < x->ndim; d++)
        shape[d] = d == axis ? p->extents[0] : 1;
    *t = ipu_reshape(g, *t, x->ndim, shape);
    return IPU_OK;
}

/* Returns the number of each element of x, a float, in a type. */
static ipu_tensor quantize(ipu_graph *g, ipu_tensor x, ipu_tensor scale,
                           ipu_tensor zero, int32_t type)
{
    const struct ipu__onnx_kind *kind = ipu__onnx_kind(type);
    ipu_tensor y = ipu_round(g, ipu_divide(g, x, scale));

    if (zero.id >= 0)
        y = ipu_add(g, y, as_float(g, zero));
    y = ipu_clip(g, y, (double)kind->least, (double)kind->most);
    return ipu_cast(g, y, IPU_INT32);
}

static int check_type(struct ipu__onnx_call *call, int32_t type)
{
    if (type != IPU_ONNX_INT8 && type != IPU_ONNX_UINT8)
        return onnx__refuse(call, "numbers of %s are not supported",
                            ipu_onnx_type_name(type));
    return IPU_OK;
}

static int build_quantize(struct ipu__onnx_call *call)
{
    struct ipu__onnx_value *x = call->inputs[0], *zero = onnx__in(call, 2);
    int32_t type = zero ? zero->type : IPU_ONNX_UINT8, axis = -1;
    ipu_graph *g = call->graph;
    ipu_tensor scale, offset;

    IPU_TRY(check_type(call, type));
    if (x->ndim > 0 && onnx__size(call->inputs[1]) != 1)
        IPU_TRY(onnx__axis(call, onnx__int(call, "axis", 1), x->ndim, &axis));
    onnx__int(call, "axis", 1); /* which one scale does not need */
    IPU_TRY(parameter(call, call->inputs[1], x, axis, &scale));
    IPU_TRY(parameter(call, zero, x, axis, &offset));
    return onnx__give(
        call, 0, type,
        quantize(g, as_float(g, onnx__tensor(call, x)), scale, offset, type));
}

static int build_dequantize(struct ipu__onnx_call *call)
{
    struct ipu__onnx_value *x = call->inputs[0];
    ipu_graph *g = call->graph;
    ipu_tensor t, scale, offset;
    int32_t axis = -1;

    if (x->type != IPU_ONNX_INT32)
        IPU_TRY(check_type(call, x->type));
    if (x->ndim > 0 && onnx__size(call->inputs[1]) != 1)
        IPU_TRY(onnx__axis(call, onnx__int(call, "axis", 1), x->ndim, &axis));
    onnx__int(call, "axis", 1);
    IPU_TRY(parameter(call, call->inputs[1], x, axis, &scale));
    IPU_TRY(parameter(call, onnx__in(call, 2), x, axis, &offset));
    t = onnx__tensor(call, x);
    if (offset.id >= 0)
        t = ipu_subtract(g, t, offset);
    return onnx__give(call, 0, IPU_ONNX_FLOAT,
                      ipu_multiply(g, as_float(g, t), scale));
}

/* The scale makes the range of x, with 0, that of uint8. */
static int build_dynamic(struct ipu__onnx_call *call)
{
    struct ipu__onnx_value *x = call->inputs[0];
    ipu_graph *g = call->graph;
    ipu_tensor t, zero, low, high, scale, offset;
    int32_t axes[IPU_MAX_DIMS];

    IPU_TRY(onnx__want_floats(call, 0));
    for (int32_t d = 0; d < x->ndim; d++)
        axes[d] = d;
    t = onnx__tensor(call, x);
    zero = onnx__scalar(call, x->type, 0);
    low = ipu_minimum(g, ipu_min(g, t, x->ndim, axes, 0), zero);
    high = ipu_maximum(g, ipu_max(g, t, x->ndim, axes, 0), zero);
    scale = ipu_scale(g, ipu_subtract(g, high, low), 1.0 / 255, 0);
    offset = quantize(g, ipu_negate(g, low), scale, (ipu_tensor){-1},
                      IPU_ONNX_UINT8);
    IPU_TRY(onnx__give(call, 1, x->type, scale));
    IPU_TRY(onnx__give(call, 2, IPU_ONNX_UINT8, offset));
    return onnx__give(call, 0, IPU_ONNX_UINT8,
                      quantize(g, t, scale, offset, IPU_ONNX_UINT8));
}

/* ----------------------------------------------------------------- products */

/* A factor less its zero point, as a value of floats. */
static int read_factor(struct ipu__onnx_call *call, int i, int zero,
                       int32_t axis, struct ipu__onnx_value *factor)
{
    struct ipu__onnx_value *x = call->inputs[i];
    ipu_graph *g = call->graph;
    ipu_tensor offset;

    IPU_TRY(check_type(call, x->type));
    IPU_TRY(parameter(call, onnx__in(call, zero), x, axis, &offset));
    *factor = (struct ipu__onnx_value){.name = x->name,
                                       .type = IPU_ONNX_FLOAT,
                                       .ndim = x->ndim,
                                       .tensor = onnx__tensor(call, x),
                                       .last = {-1},
                                       .input = -1,
                                       .state = IPU__ONNX_MADE};
    for (int32_t d = 0; d < x->ndim; d++)
        factor->extents[d] = x->extents[d];
    if (offset.id >= 0)
        factor->tensor = ipu_subtract(g, factor->tensor, offset);
    factor->tensor = as_float(g, factor->tensor);
    return IPU_OK;
}

typedef int product_fn(struct ipu__onnx_call *call, ipu_tensor *y);

/* Sets *y, int32, to a product of factors that are sums of so many terms. */
static int multiply(struct ipu__onnx_call *call, product_fn *make,
                    struct ipu__onnx_value *a, struct ipu__onnx_value *b,
                    int64_t terms, ipu_tensor *y)
{
    struct ipu__onnx_value *factors[2] = {a, b}, high = *a, low = *a;
    struct ipu__onnx_call inner = *call;
    ipu_graph *g = call->graph;
    ipu_tensor upper;

    if (terms > MOST_SPLIT)
        return onnx__refuse(call,
                            "sums of more than %d products are not "
                            "supported",
                            MOST_SPLIT);
    inner.inputs = factors;
    inner.ninputs = 2;
    if (terms <= MOST_WHOLE) {
        IPU_TRY(make(&inner, y));
        call->wrong_attribute |= inner.wrong_attribute;
        *y = ipu_cast(g, *y, IPU_INT32);
        return IPU_OK;
    }
    high.tensor = ipu_floor(g, ipu_scale(g, a->tensor, 1.0 / 16, 0));
    low.tensor = ipu_subtract(g, a->tensor, ipu_scale(g, high.tensor, 16, 0));
    factors[0] = &high;
    IPU_TRY(make(&inner, &upper));
    factors[0] = &low;
    IPU_TRY(make(&inner, y));
    call->wrong_attribute |= inner.wrong_attribute;
    upper = ipu_multiply(g, ipu_cast(g, upper, IPU_INT32),
                         onnx__scalar(call, IPU_ONNX_INT32, 16));
    *y = ipu_add(g, upper, ipu_cast(g, *y, IPU_INT32));
    return IPU_OK;
}

/* Multiplies matrices whose numbers and zero points are these inputs: those of
 * the first have one for each row, those of the second for each column. */
static int multiply_matrices(struct ipu__onnx_call *call, int a, int a_zero,
                             int b, int b_zero, ipu_tensor *y)
{
    const struct ipu__onnx_value *x = call->inputs[a], *w = call->inputs[b];
    struct ipu__onnx_value first, second;

    if (x->ndim == 0 || w->ndim == 0)
        return onnx__refuse(call, "a scalar is no matrix");
    IPU_TRY(read_factor(call, a, a_zero, x->ndim - 2, &first));
    IPU_TRY(read_factor(call, b, b_zero, w->ndim - 1, &second));
    return multiply(call, onnx__multiply_matrices, &first, &second,
                    x->extents[x->ndim - 1], y);
}

static int build_matmul_integer(struct ipu__onnx_call *call)
{
    ipu_tensor y;

    IPU_TRY(multiply_matrices(call, 0, 2, 1, 3, &y));
    return onnx__give(call, 0, IPU_ONNX_INT32, y);
}

/* Gives numbers of output 0: y times the product of two scales. of_b has one
 * for each element of an axis of the result, or one. */
static int give_scaled(struct ipu__onnx_call *call, ipu_tensor y, int of_a,
                       int of_b, int of_y, int32_t axis, bool last)
{
    struct ipu__onnx_value *const *in = call->inputs;
    struct ipu__onnx_value result = {.ndim = 0};
    int32_t type = in[of_y + 1]->type;
    ipu_graph *g = call->graph;
    ipu_tensor a, b, scale, zero;

    IPU_TRY(check_type(call, type));
    result.ndim = ipu_tensor_info(g, y, NULL, result.extents, NULL);
    axis = axis < 0 ? result.ndim - 1 : axis;
    IPU_TRY(parameter(call, in[of_a], &result, result.ndim - 2, &a));
    IPU_TRY(parameter(call, in[of_b], &result, axis, &b));
    IPU_TRY(parameter(call, in[of_y], &result, axis, &scale));
    IPU_TRY(parameter(call, in[of_y + 1], &result, axis, &zero));
    y = ipu_multiply(g, as_float(g, y), ipu_multiply(g, a, b));
    y = quantize(g, y, scale, zero, type);
    return last ? onnx__give_last(call, 0, type, y)
                : onnx__give(call, 0, type, y);
}

/* Inputs: a, its scale and zero point, b, those of b, those of y. */
static int build_qlinear_matmul(struct ipu__onnx_call *call)
{
    ipu_tensor y;

    IPU_TRY(multiply_matrices(call, 0, 2, 3, 5, &y));
    return give_scaled(call, y, 1, 4, 6, -1, false);
}

/* Sets *y to the convolution, int32, with the channels last. */
static int convolve(struct ipu__onnx_call *call, int w, int x_zero, int w_zero,
                    ipu_tensor *y)
{
    struct ipu__onnx_value first, second;
    int64_t outputs = call->inputs[w]->extents[0];

    IPU_TRY(read_factor(call, 0, x_zero, -1, &first));
    IPU_TRY(read_factor(call, w, w_zero, 0, &second));
    if (call->inputs[w]->ndim < 1 || outputs < 1)
        return onnx__refuse(call, "its kernel does not fit its input");
    return multiply(call, onnx__convolve, &first, &second,
                    onnx__size(call->inputs[w]) / outputs, y);
}

static int build_conv_integer(struct ipu__onnx_call *call)
{
    ipu_tensor y;

    IPU_TRY(convolve(call, 1, 2, 3, &y));
    return onnx__window_give(call, IPU_ONNX_INT32, y);
}

/* Inputs: x, its scale and zero point, w, those of w, those of y, the bias. */
static int build_qlinear_conv(struct ipu__onnx_call *call)
{
    struct ipu__onnx_value *bias = onnx__in(call, 8);
    ipu_graph *g = call->graph;
    ipu_tensor y;

    if (call->inputs[0]->ndim > 4)
        return onnx__refuse(call, "of volumes it is not supported");
    IPU_TRY(convolve(call, 3, 2, 5, &y));
    if (bias)
        y = ipu_add(g, y, onnx__tensor(call, bias));
    if (call->inputs[0]->ndim == 3)
        y = ipu_squeeze(g, y, 1);
    return give_scaled(call, y, 1, 4, 6, -1, true);
}

#define WINDOW "auto_pad dilations group kernel_shape pads strides"
#define LONG_SUMS "sums of more than 4112 products are refused"

const struct ipu__onnx_operator onnx__quantized_rows[] = {
    {"ConvInteger", 10, WINDOW, 2, 4, build_conv_integer, NULL,
     LONG_SUMS "; so are other than 3 to 5 dimensions"},
    {"DequantizeLinear", 10, "axis", 2, 3, build_dequantize, NULL, NULL},
    {"DynamicQuantizeLinear", 11, "", 1, 1, build_dynamic, NULL, NULL},
    {"MatMulInteger", 10, "", 2, 4, build_matmul_integer, NULL, LONG_SUMS},
    {"QLinearConv", 10, WINDOW, 8, 9, build_qlinear_conv, NULL,
     LONG_SUMS "; so are other than 3 or 4 dimensions"},
    {"QLinearMatMul", 10, "", 8, 8, build_qlinear_matmul, NULL, LONG_SUMS},
    {"QuantizeLinear", 10, "axis", 2, 3, build_quantize, NULL, NULL},
    {.name = NULL},
};
