/* SPDX-License-Identifier: Apache-2.0 */
/* shared.c - functions that several families of operators call (rows.h). */
#include <inttypes.h>
#include <stdlib.h>

#include "onnx/operators/rows.h"

ipu_tensor onnx__operand(struct ipu__onnx_call *call,
                         struct ipu__onnx_value *value, bool *last)
{
    *last = onnx__is_last(value);
    return *last ? value->last : onnx__tensor(call, value);
}

int onnx__give_as(struct ipu__onnx_call *call, int32_t type, ipu_tensor tensor,
                  bool last)
{
    return last ? onnx__give_last(call, 0, type, tensor)
                : onnx__give(call, 0, type, tensor);
}

/* Returns the most dimensions if operands may all have their channels last: one
 * has, and each other one has as many dimensions or one element. */
static bool can_be_last(int n, struct ipu__onnx_value *const *values)
{
    bool any = false;
    int32_t most = 0;

    for (int i = 0; i < n; i++) {
        any |= onnx__is_last(values[i]);
        most = values[i]->ndim > most ? values[i]->ndim : most;
    }
    for (int i = 0; i < n; i++)
        if (values[i]->ndim != most && onnx__size(values[i]) != 1)
            return false;
    return any;
}

void onnx__operands(struct ipu__onnx_call *call, int n,
                    struct ipu__onnx_value *const *values, ipu_tensor *operands,
                    bool *last)
{
    *last = can_be_last(n, values);
    for (int i = 0; i < n; i++)
        operands[i] = *last && values[i]->ndim > 2
                          ? onnx__last(call, values[i])
                          : onnx__tensor(call, values[i]);
}

void onnx__extend(struct ipu__onnx_call *call, struct ipu__onnx_value *x,
                  int32_t ndim, struct ipu__onnx_value *room)
{
    bool known = onnx__known(call, x);

    *room = *x;
    for (int32_t d = x->ndim; d < ndim; d++)
        room->extents[d] = 1;
    room->ndim = ndim;
    room->tensor.id = room->last.id = -1;
    room->input = -1;
    if (!known)
        room->tensor = ipu_reshape(call->graph, onnx__tensor(call, x), ndim,
                                   room->extents);
}

int onnx__old_broadcast(struct ipu__onnx_call *call,
                        struct ipu__onnx_value *room,
                        struct ipu__onnx_value **pair)
{
    struct ipu__onnx_value *a = call->inputs[0], *b = call->inputs[1];
    bool broadcast = onnx__int(call, "broadcast", 0) != 0;
    int64_t axis = onnx__int(call, "axis", a->ndim - b->ndim);
    bool fits = b->ndim <= a->ndim, same = true;

    *pair = b;
    if (call->version >= 7) {
        if (onnx__has_attribute(call, "broadcast") ||
            onnx__has_attribute(call, "axis"))
            return onnx__refuse(call, "it has attributes of versions before 7");
        return IPU_OK;
    }
    axis += axis < 0 ? a->ndim : 0;
    fits = fits && axis >= 0 && axis + b->ndim <= a->ndim;
    for (int32_t d = 0; fits && d < b->ndim; d++) {
        same &= b->extents[d] == a->extents[axis + d];
        fits = b->extents[d] == a->extents[axis + d] || b->extents[d] == 1;
    }
    same &= a->ndim == b->ndim;
    if (!fits || (!broadcast && !same))
        return onnx__refuse(call, "the shapes of its inputs do not fit");
    if (axis + b->ndim < a->ndim) {
        onnx__extend(call, b, a->ndim - (int32_t)axis, room);
        *pair = room;
    }
    return IPU_OK;
}

int onnx__want_floats(struct ipu__onnx_call *call, int i)
{
    const struct ipu__onnx_value *x = onnx__in(call, i);

    if (x && onnx__is_whole(x->type))
        return onnx__refuse(call, "of %s it is not supported",
                            ipu_onnx_type_name(x->type));
    return IPU_OK;
}

static int mark_axes(struct ipu__onnx_call *call, const int64_t *numbers,
                     int64_t count, int32_t ndim, bool *axes)
{
    for (int64_t i = 0; i < count; i++) {
        int32_t axis;

        IPU_TRY(onnx__axis(call, numbers[i], ndim, &axis));
        if (axes[axis])
            return onnx__refuse(call, "axis %" PRId64 " occurs twice",
                                numbers[i]);
        axes[axis] = true;
    }
    return IPU_OK;
}

int onnx__axes(struct ipu__onnx_call *call, const char *attribute, int i,
               int32_t ndim, bool *axes, bool *given)
{
    const struct ipu__onnx_ints *list = onnx__ints(call, attribute);
    const int64_t *numbers = list ? list->at : NULL;
    int64_t count = list ? (int64_t)list->count : 0;

    for (int32_t d = 0; d < IPU_MAX_DIMS; d++)
        axes[d] = false;
    if (i >= 0 && onnx__in(call, i))
        IPU_TRY(onnx__numbers(call, i, attribute, &numbers, &count));
    *given = count > 0;
    return mark_axes(call, numbers, count, ndim, axes);
}

ipu_tensor onnx__truncate(ipu_graph *g, ipu_tensor x)
{
    return ipu_multiply(g, ipu_sign(g, x), ipu_floor(g, ipu_abs(g, x)));
}

/* Copies floats into another order. */
static void permute(const struct ipu__onnx_value *x, const int32_t *order,
                    const int64_t *extents, float *to)
{
    int64_t own[IPU_MAX_DIMS], index[IPU_MAX_DIMS] = {0}, at = 0;

    onnx__strides(x->ndim, x->extents, own);
    for (int64_t i = 0; i < onnx__size(x); i++) {
        to[i] = x->floats[at];
        for (int32_t d = x->ndim - 1; d >= 0; d--) {
            at += own[order[d]];
            if (++index[d] < extents[d])
                break;
            at -= own[order[d]] * extents[d];
            index[d] = 0;
        }
    }
}

ipu_tensor onnx__permuted(struct ipu__onnx_call *call,
                          struct ipu__onnx_value *x, const int32_t *order)
{
    int64_t extents[IPU_MAX_DIMS] = {0};
    float *to = NULL;
    ipu_tensor t;

    for (int32_t d = 0; d < x->ndim; d++)
        extents[d] = x->extents[order[d]];
    if (!onnx__known(call, x) || !x->floats)
        return ipu_transpose(call->graph, onnx__tensor(call, x), order);
    if (ipu__new_array(&to, (size_t)onnx__size(x), sizeof *to) < 0)
        return (ipu_tensor){-1};
    permute(x, order, extents, to);
    t = onnx__constant(call, x->type, x->ndim, extents, to, NULL);
    free(to);
    return t;
}

ipu_tensor onnx__pad(ipu_graph *g, ipu_tensor x, const int64_t *before,
                     const int64_t *after, double value)
{
    ipu_dtype dtype = IPU_FLOAT32;
    int64_t extents[IPU_MAX_DIMS] = {0};
    int32_t ndim = ipu_tensor_info(g, x, &dtype, extents, NULL);

    if (dtype != IPU_INT32)
        return ipu_pad(g, x, before, after, value);
    for (int32_t d = 0; d < ndim; d++) {
        int64_t own = extents[d];
        ipu_tensor parts[3] = {{-1}, x, {-1}};

        extents[d] = before[d];
        parts[0] = ipu_fill(g, dtype, ndim, extents, value);
        extents[d] = after[d];
        parts[2] = ipu_fill(g, dtype, ndim, extents, value);
        extents[d] = own + before[d] + after[d];
        if (before[d] > 0 || after[d] > 0)
            x = ipu_concat(g, 3, parts, d);
    }
    return x;
}

static ipu_tensor move_axis(ipu_graph *g, ipu_tensor x, int32_t axis, bool back)
{
    int32_t ndim = ipu_tensor_info(g, x, NULL, NULL, NULL);
    int32_t order[IPU_MAX_DIMS];

    if (ndim <= 0 || axis == ndim - 1)
        return x;
    for (int32_t d = 0; d < ndim; d++)
        order[d] = back ? (d < axis    ? d
                           : d == axis ? ndim - 1
                                       : d - 1)
                        : (d < axis        ? d
                           : d == ndim - 1 ? axis
                                           : d + 1);
    return ipu_transpose(g, x, order);
}

ipu_tensor onnx__axis_last(ipu_graph *g, ipu_tensor x, int32_t axis)
{
    return move_axis(g, x, axis, false);
}

ipu_tensor onnx__axis_back(ipu_graph *g, ipu_tensor x, int32_t axis)
{
    return move_axis(g, x, axis, true);
}

/* ---------------------------------------------------------- whole quotients */

/*
 * The device divides floats only. A float has 24 bits, so the first quotient of
 * int32 numbers may be wrong by some hundreds; that of what is left then is
 * wrong by 1 at most, which a comparison sets right.
 */
static ipu_tensor estimate(ipu_graph *g, ipu_tensor a, ipu_tensor b)
{
    return ipu_cast(
        g,
        ipu_divide(g, ipu_cast(g, a, IPU_FLOAT32), ipu_cast(g, b, IPU_FLOAT32)),
        IPU_INT32);
}

static ipu_tensor whole(ipu_graph *g, double value)
{
    return ipu_fill(g, IPU_INT32, 0, NULL, value);
}

/* Sets the quotient that is rounded down, and what is left. */
static void divide_down(ipu_graph *g, ipu_tensor a, ipu_tensor b,
                        ipu_tensor *quotient, ipu_tensor *rest)
{
    ipu_tensor negative = ipu_less(g, b, whole(g, 0)), size, q, r, change;

    size = ipu_select(g, negative, ipu_subtract(g, whole(g, 0), b), b);
    q = estimate(g, a, b);
    r = ipu_subtract(g, a, ipu_multiply(g, q, b));
    q = ipu_add(g, q, estimate(g, r, b));
    r = ipu_subtract(g, a, ipu_multiply(g, q, b));
    r = ipu_select(g, negative, ipu_subtract(g, whole(g, 0), r), r);
    change = ipu_subtract(g, ipu_greater_equal(g, r, size),
                          ipu_less(g, r, whole(g, 0)));
    *quotient = ipu_add(g, q, change);
    r = ipu_subtract(g, r, ipu_multiply(g, change, size));
    *rest = ipu_select(g, negative, ipu_subtract(g, whole(g, 0), r), r);
}

/* Returns 1 where something is left, and the signs of a and b differ. */
static ipu_tensor is_below(ipu_graph *g, ipu_tensor a, ipu_tensor b,
                           ipu_tensor rest)
{
    ipu_tensor differ = ipu_not_equal(g, ipu_less(g, a, whole(g, 0)),
                                      ipu_less(g, b, whole(g, 0)));

    return ipu_multiply(g, differ, ipu_not_equal(g, rest, whole(g, 0)));
}

ipu_tensor onnx__quotient(ipu_graph *g, ipu_tensor a, ipu_tensor b)
{
    ipu_tensor quotient, rest;

    divide_down(g, a, b, &quotient, &rest);
    return ipu_add(g, quotient, is_below(g, a, b, rest));
}

ipu_tensor onnx__remainder(ipu_graph *g, ipu_tensor a, ipu_tensor b,
                           bool of_dividend)
{
    ipu_tensor quotient, rest;

    divide_down(g, a, b, &quotient, &rest);
    if (!of_dividend)
        return rest;
    return ipu_subtract(g, rest, ipu_multiply(g, is_below(g, a, b, rest), b));
}
