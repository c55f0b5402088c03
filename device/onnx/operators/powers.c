/* SPDX-License-Identifier: Apache-2.0 */
/*
 * powers.c - powers, and shifts of integers, which are products with powers of
 * 2 and quotients by them.
 *
 * The device raises floats to a power, with 24 bits. Powers of integers are
 * products of the squares that the bits of the exponent choose, so they are
 * exact as long as int32 holds them.
 */
#include "onnx/operators/rows.h"

static ipu_tensor whole(ipu_graph *g, double value)
{
    return ipu_fill(g, IPU_INT32, 0, NULL, value);
}

/* Returns a number below 32 with the same power: of larger ones, only powers of
 * -1, 0 and 1 are in int32, and those depend on whether the exponent is even.
 */
static ipu_tensor reduce_exponent(ipu_graph *g, ipu_tensor e)
{
    ipu_tensor size = ipu_maximum(g, e, ipu_subtract(g, whole(g, 0), e));
    ipu_tensor odd = onnx__remainder(g, size, whole(g, 2), false);

    return ipu_select(g, ipu_less(g, size, whole(g, 32)), size,
                      ipu_add(g, odd, whole(g, 30)));
}

/* Computes base to the power of e, both int32. With e below 0 it is rounded
 * towards 0. */
static ipu_tensor whole_power(ipu_graph *g, ipu_tensor base, ipu_tensor e)
{
    ipu_tensor rest = reduce_exponent(g, e), y = whole(g, 1), unit;

    for (int bit = 0; bit < 5; bit++) {
        /* Exact, as the number is less than 32. */
        ipu_tensor half = ipu_cast(
            g, ipu_scale(g, ipu_cast(g, rest, IPU_FLOAT32), 0.5, 0), IPU_INT32);
        ipu_tensor odd =
            ipu_subtract(g, rest, ipu_multiply(g, half, whole(g, 2)));

        y = ipu_multiply(g, y, ipu_select(g, odd, base, whole(g, 1)));
        base = ipu_multiply(g, base, base);
        rest = half;
    }
    unit = ipu_equal(g, ipu_multiply(g, y, y), whole(g, 1));
    return ipu_select(g, ipu_less(g, e, whole(g, 0)), ipu_multiply(g, y, unit),
                      y);
}

/* A base of integers and an exponent of floats: exact if that is whole. */
static ipu_tensor mixed_power(ipu_graph *g, ipu_tensor base, ipu_tensor e)
{
    ipu_tensor rounded, near;

    e = ipu_cast(g, e, IPU_FLOAT32);
    rounded = ipu_cast(g, e, IPU_INT32);
    near = ipu_power(g, ipu_cast(g, base, IPU_FLOAT32), e);
    return ipu_select(g, ipu_equal(g, ipu_cast(g, rounded, IPU_FLOAT32), e),
                      whole_power(g, base, rounded),
                      ipu_cast(g, near, IPU_INT32));
}

/* Returns the power of a known exponent of 2 or 3, of which products are
 * faster, their derivatives too; invalid: the exponent is another. */
static ipu_tensor simple_power(struct ipu__onnx_call *call, ipu_tensor base,
                               struct ipu__onnx_value *e)
{
    ipu_graph *g = call->graph;
    double number;

    if (e->ndim > 0 || !onnx__known(call, e))
        return (ipu_tensor){-1};
    number = e->floats ? (double)e->floats[0] : (double)e->wholes[0];
    if (number == 2)
        return ipu_square(g, base);
    return number == 3 ? ipu_multiply(g, ipu_square(g, base), base)
                       : (ipu_tensor){-1};
}

/* The result has the type of the base. */
static int build_pow(struct ipu__onnx_call *call)
{
    struct ipu__onnx_value *in[2] = {call->inputs[0]}, room;
    int32_t type = in[0]->type;
    ipu_graph *g = call->graph;
    ipu_tensor operands[2], y;
    bool last;

    IPU_TRY(onnx__old_broadcast(call, &room, &in[1]));
    if (onnx__is_whole(type) && type != IPU_ONNX_INT32 &&
        type != IPU_ONNX_INT64)
        return onnx__want_floats(call, 0);
    onnx__operands(call, 2, in, operands, &last);
    if (!onnx__is_whole(type) &&
        (y = simple_power(call, operands[0], in[1])).id >= 0) {
        /* simple_power has made y. */
    } else if (!onnx__is_whole(type)) {
        y = ipu_cast(g, operands[1], ipu__onnx_kind(type)->dtype);
        y = ipu_power(g, operands[0], y);
    } else if (onnx__is_whole(in[1]->type)) {
        y = whole_power(g, operands[0], operands[1]);
    } else {
        y = mixed_power(g, operands[0], operands[1]);
    }
    return onnx__give_as(call, type, y, last);
}

/* x / 2^count, where numbers of 31 bits leave nothing. */
static ipu_tensor shift_right(ipu_graph *g, ipu_tensor x, ipu_tensor count)
{
    ipu_tensor least = ipu_minimum(g, count, whole(g, 30));
    ipu_tensor power = whole_power(g, whole(g, 2), least);

    return ipu_select(g, ipu_less(g, count, whole(g, 31)),
                      onnx__quotient(g, x, power), whole(g, 0));
}

static int build_bit_shift(struct ipu__onnx_call *call)
{
    struct ipu__onnx_value *const *in = call->inputs;
    bool left = onnx__text_is(call, "direction", "LEFT", "");
    int32_t type = in[0]->type;
    ipu_graph *g = call->graph;
    ipu_tensor operands[2], y;
    bool last;

    if (!left && !onnx__text_is(call, "direction", "RIGHT", ""))
        return onnx__refuse(call, "there is no such direction");
    if (in[1]->type != type || !onnx__is_whole(type) ||
        ipu__onnx_kind(type)->least < 0 || type == IPU_ONNX_BOOL)
        return onnx__refuse(call, "it takes unsigned integers of one type");
    if (left && ipu_onnx_type_bytes(type) >= 4)
        return onnx__refuse(call, "to the left, of %s it is not supported",
                            ipu_onnx_type_name(type));
    onnx__operands(call, 2, in, operands, &last);
    if (left) {
        y = whole_power(g, whole(g, 2), operands[1]);
        y = onnx__wrap(call, type, ipu_multiply(g, operands[0], y));
    } else {
        y = shift_right(g, operands[0], operands[1]);
    }
    return onnx__give_as(call, type, y, last);
}

const struct ipu__onnx_operator onnx__power_rows[] = {
    {"BitShift", 11, "direction", 2, 2, build_bit_shift, NULL,
     "to the left, uint32 and uint64 are refused"},
    {"Pow", 1, "axis broadcast", 2, 2, build_pow, NULL, NULL},
    {.name = NULL},
};
