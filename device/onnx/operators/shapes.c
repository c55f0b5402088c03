/* SPDX-License-Identifier: Apache-2.0 */
/* Operators on shapes and types, and sources: what they make is mostly known
 * when the model is loaded. */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "onnx/builder.h"
#include "onnx/operators/rows.h"

/* Gives x another shape of as many elements. */
static int give_reshaped(struct ipu__onnx_call *call, int32_t ndim,
                         const int64_t *extents)
{
    struct ipu__onnx_value *x = call->inputs[0];
    const char *name;

    IPU_TRY(onnx__check_shape(call, ndim, extents));
    if (ipu__onnx_count(ndim, extents) != onnx__size(x))
        return onnx__refuse(call, "%" PRId64 " elements do not become %" PRId64,
                            onnx__size(x), ipu__onnx_count(ndim, extents));
    if (!onnx__known(call, x))
        return onnx__give(
            call, 0, x->type,
            ipu_reshape(call->graph, onnx__tensor(call, x), ndim, extents));
    /* The elements are shared, and become a constant if an op needs one. */
    name = call->outputs[0]->name;
    *call->outputs[0] = (struct ipu__onnx_value){.name = name,
                                                 .type = x->type,
                                                 .ndim = ndim,
                                                 .floats = x->floats,
                                                 .wholes = x->wholes,
                                                 .tensor = {-1},
                                                 .last = {-1},
                                                 .input = -1,
                                                 .state = IPU__ONNX_MADE};
    if (ndim > 0)
        memcpy(call->outputs[0]->extents, extents,
               (size_t)ndim * sizeof *extents);
    return IPU_OK;
}

/* ------------------------------------------------------------------ reshape */

static int build_reshape(struct ipu__onnx_call *call)
{
    const struct ipu__onnx_value *x = call->inputs[0];
    bool keep_zero = onnx__int(call, "allowzero", 0) != 0;
    int64_t extents[IPU_MAX_DIMS], rest = 1, count;
    const int64_t *shape;
    int32_t open = -1;

    if (!onnx__in(call, 1))
        return onnx__refuse(call, "its shape is missing");
    IPU_TRY(onnx__numbers(call, 1, "shape", &shape, &count));
    if (count > IPU_MAX_DIMS)
        return onnx__refuse(call, "%" PRId64 " dimensions; this device has %d",
                            count, IPU_MAX_DIMS);
    for (int32_t d = 0; d < count; d++) {
        extents[d] = shape[d];
        if (shape[d] == 0 && !keep_zero && d >= x->ndim)
            return onnx__refuse(call, "dimension %d has none to copy", (int)d);
        if (shape[d] == 0 && !keep_zero)
            extents[d] = x->extents[d];
        if (shape[d] < -1 || (shape[d] == -1 && open >= 0))
            return onnx__refuse(call, "its shape is wrong");
        if (shape[d] == -1)
            open = d;
        else if (__builtin_mul_overflow(rest, extents[d], &rest))
            return onnx__refuse(call, "its shape is too large");
    }
    if (open >= 0 && (rest == 0 || onnx__size(x) % rest != 0))
        return onnx__refuse(call, "its shape does not fit its elements");
    if (open >= 0)
        extents[open] = onnx__size(x) / rest;
    return give_reshaped(call, (int32_t)count, extents);
}

static int build_flatten(struct ipu__onnx_call *call)
{
    const struct ipu__onnx_value *x = call->inputs[0];
    int64_t axis = onnx__int(call, "axis", 1), extents[2];

    if (axis < -x->ndim || axis > x->ndim)
        return onnx__refuse(call, "axis %" PRId64 " is none of its input",
                            axis);
    axis += axis < 0 ? x->ndim : 0;
    extents[0] = ipu__onnx_count((int32_t)axis, x->extents);
    extents[1] = ipu__onnx_count(x->ndim - (int32_t)axis, x->extents + axis);
    return give_reshaped(call, 2, extents);
}

static int build_squeeze(struct ipu__onnx_call *call)
{
    const struct ipu__onnx_value *x = call->inputs[0];
    int64_t extents[IPU_MAX_DIMS];
    bool axes[MOST_AXES], given;
    int32_t n = 0;

    IPU_TRY(onnx__axes(call, "axes", 1, x->ndim, axes, &given));
    for (int32_t d = 0; d < x->ndim; d++) {
        bool drop = given ? axes[d] : x->extents[d] == 1;

        if (drop && x->extents[d] != 1)
            return onnx__refuse(call, "dimension %d has %" PRId64 " elements",
                                (int)d, x->extents[d]);
        if (!drop)
            extents[n++] = x->extents[d];
    }
    return give_reshaped(call, n, extents);
}

static int build_unsqueeze(struct ipu__onnx_call *call)
{
    const struct ipu__onnx_value *x = call->inputs[0];
    const struct ipu__onnx_ints *list = onnx__ints(call, "axes");
    int64_t count = list ? (int64_t)list->count : 0, extents[IPU_MAX_DIMS];
    const int64_t *numbers = list ? list->at : NULL;
    bool axes[MOST_AXES], given;
    int32_t ndim, n = 0;

    if (onnx__in(call, 1))
        IPU_TRY(onnx__numbers(call, 1, "axes", &numbers, &count));
    if (count > IPU_MAX_DIMS - x->ndim)
        return onnx__refuse(call, "too many dimensions: this device has %d",
                            IPU_MAX_DIMS);
    ndim = x->ndim + (int32_t)count;
    IPU_TRY(onnx__axes(call, "axes", 1, ndim, axes, &given));
    for (int32_t d = 0; d < ndim; d++)
        extents[d] = axes[d] ? 1 : x->extents[n++];
    return give_reshaped(call, ndim, extents);
}

static int build_identity(struct ipu__onnx_call *call)
{
    IPU_TRY(onnx__give_same(call, 0, call->inputs[0]));
    if (onnx__wants(call, 0) && call->inputs[0]->initializer)
        ipu__onnx_pass_on(call->builder->model, call->node, call->outputs[0]);
    return IPU_OK;
}

/* ------------------------------------------------------------------ queries */

static int64_t clamp(int64_t i, int64_t most)
{
    i += i < 0 ? most : 0;
    return i < 0 ? 0 : i > most ? most : i;
}

static int give_wholes(struct ipu__onnx_call *call, int32_t ndim, int64_t count,
                       const int64_t *values)
{
    int64_t *wholes;
    float *floats;

    if (!onnx__room(call, 0, IPU_ONNX_INT64, ndim, &count, &floats, &wholes))
        return onnx__refuse(call, "its output takes too much memory");
    for (int64_t i = 0; i < count; i++)
        wholes[i] = values[i];
    return IPU_OK;
}

static int build_shape(struct ipu__onnx_call *call)
{
    const struct ipu__onnx_value *x = call->inputs[0];
    int64_t start = clamp(onnx__int(call, "start", 0), x->ndim);
    int64_t end = clamp(onnx__int(call, "end", x->ndim), x->ndim);

    return give_wholes(call, 1, end > start ? end - start : 0,
                       x->extents + start);
}

static int build_size(struct ipu__onnx_call *call)
{
    int64_t size = onnx__size(call->inputs[0]);

    return give_wholes(call, 0, 1, &size);
}

/* ---------------------------------------------------------------- constants */

static int give_elements(struct ipu__onnx_call *call,
                         const struct ipu__onnx_elements *e)
{
    struct ipu__onnx_value *y = call->outputs[0];

    y->type = e->type;
    y->ndim = e->ndim;
    memcpy(y->extents, e->extents, sizeof e->extents);
    y->floats = e->floats;
    y->wholes = e->wholes;
    y->state = IPU__ONNX_MADE;
    return IPU_OK;
}

static int decode(struct ipu__onnx_call *call,
                  const struct ipu__onnx_tensor *tensor,
                  struct ipu__onnx_elements *e)
{
    int status = ipu__onnx_decode(&call->builder->model->file, tensor, e);

    if (status == IPU_ERR_SHAPE)
        return onnx__refuse(call, "%s", ipu_last_error());
    return status < 0 ? ipu__onnx_end(call->builder, status) : status;
}

/* Gives one number, or a list of them, that stand in attributes. */
static int give_numbers(struct ipu__onnx_call *call, int32_t type, int32_t ndim,
                        size_t count, const float *from,
                        const int64_t *wholes_from)
{
    int64_t n = (int64_t)count, *wholes;
    float *floats;

    if (!onnx__room(call, 0, type, ndim, &n, &floats, &wholes))
        return onnx__refuse(call, "it takes too much memory");
    for (size_t i = 0; i < count; i++) {
        if (wholes && wholes_from)
            wholes[i] = wholes_from[i];
        else if (floats && from)
            floats[i] = from[i];
    }
    return IPU_OK;
}

static int build_constant(struct ipu__onnx_call *call)
{
    const struct ipu__onnx_tensor *tensor =
        onnx__attribute_tensor(call, "value");
    const struct ipu__onnx_floats *floats = onnx__floats(call, "value_floats");
    const struct ipu__onnx_ints *ints = onnx__ints(call, "value_ints");
    struct ipu__onnx_elements e;
    int64_t whole = onnx__int(call, "value_int", 0);
    float number = (float)onnx__float(call, "value_float", 0);

    if (call->node->attributes.count != 1 || !onnx__wants(call, 0))
        return onnx__refuse(call, "it has not one value");
    if (tensor) {
        IPU_TRY(decode(call, tensor, &e));
        return give_elements(call, &e);
    }
    if (floats)
        return give_numbers(call, IPU_ONNX_FLOAT, 1, floats->count, floats->at,
                            NULL);
    if (ints)
        return give_numbers(call, IPU_ONNX_INT64, 1, ints->count, NULL,
                            ints->at);
    if (onnx__has_attribute(call, "value_int"))
        return give_numbers(call, IPU_ONNX_INT64, 0, 1, NULL, &whole);
    return give_numbers(call, IPU_ONNX_FLOAT, 0, 1, &number, NULL);
}

static int build_constant_of_shape(struct ipu__onnx_call *call)
{
    const struct ipu__onnx_tensor *tensor =
        onnx__attribute_tensor(call, "value");
    struct ipu__onnx_elements e = {.type = IPU_ONNX_FLOAT};
    static const float none = 0;
    const int64_t *shape;
    int64_t count, *wholes;
    float *floats;

    e.floats = &none;
    IPU_TRY(onnx__numbers(call, 0, "shape", &shape, &count));
    IPU_TRY(onnx__check_shape(call, count, shape));
    if (tensor)
        IPU_TRY(decode(call, tensor, &e));
    if (tensor && ipu__onnx_count(e.ndim, e.extents) != 1)
        return onnx__refuse(call, "its value is not one number");
    if (!onnx__room(call, 0, e.type, (int32_t)count, shape, &floats, &wholes))
        return onnx__give(
            call, 0, e.type,
            ipu_fill(call->graph, ipu__onnx_kind(e.type)->dtype, (int32_t)count,
                     shape,
                     e.floats ? (double)e.floats[0] : (double)e.wholes[0]));
    for (int64_t i = 0; i < onnx__size(call->outputs[0]); i++) {
        if (wholes && e.wholes)
            wholes[i] = e.wholes[0];
        else if (floats && e.floats)
            floats[i] = e.floats[0];
    }
    return IPU_OK;
}

static int build_range(struct ipu__onnx_call *call)
{
    static const char *const what[] = {"start", "limit", "delta"};
    int32_t type = call->inputs[0]->type;
    double number[3] = {0, 0, 0}, n;
    int64_t count, *wholes;
    float *floats;

    for (int i = 0; i < 3; i++)
        IPU_TRY(onnx__number(call, i, what[i], &number[i]));
    n = ceil((number[1] - number[0]) / number[2]);
    if (!(fabs(n) < 1e9))
        return onnx__refuse(call,
                            "its limits make no range, or too long a one");
    count = n > 0 ? (int64_t)n : 0;
    if (!onnx__room(call, 0, type, 1, &count, &floats, &wholes))
        return onnx__give(call, 0, type,
                          ipu_range(call->graph, ipu__onnx_kind(type)->dtype,
                                    count, number[0], number[2]));
    for (int64_t i = 0; i < count; i++) {
        double value = number[0] + (double)i * number[2];

        if (wholes)
            wholes[i] = (int64_t)value;
        else
            floats[i] = (float)value;
    }
    return IPU_OK;
}

/* --------------------------------------------------------------------- cast */

/* Converts a float to an integer as C does where that is defined. */
static int64_t whole_of(float x)
{
    if (!(x == x))
        return 0;
    return x >= 0x1p63f ? INT64_MAX : x < -0x1p63f ? INT64_MIN : (int64_t)x;
}

static int64_t wrap_whole(int32_t type, int64_t x)
{
    switch (type) {
    case IPU_ONNX_BOOL: return x != 0;
    case IPU_ONNX_INT8: return (int8_t)x;
    case IPU_ONNX_UINT8: return (uint8_t)x;
    case IPU_ONNX_INT16: return (int16_t)x;
    case IPU_ONNX_UINT16: return (uint16_t)x;
    case IPU_ONNX_INT32: return (int32_t)x;
    case IPU_ONNX_UINT32: return (uint32_t)x;
    default: return x;
    }
}

/* Converts known element i of x to a float of the type. */
static float cast_to_float(const struct ipu__onnx_value *x, int64_t i,
                           int32_t type)
{
    float value = x->floats ? x->floats[i] : (float)x->wholes[i];
    uint16_t half;

    if (ipu_onnx_type_bytes(type) != sizeof half)
        return value;
    ipu__onnx_pack(type, 1, &value, NULL, &half);
    ipu__onnx_unpack(type, 1, &half, &value, NULL);
    return value;
}

static int64_t cast_to_whole(const struct ipu__onnx_value *x, int64_t i,
                             int32_t type)
{
    if (!x->floats)
        return wrap_whole(type, x->wholes[i]);
    return type == IPU_ONNX_BOOL ? x->floats[i] != 0
                                 : wrap_whole(type, whole_of(x->floats[i]));
}

static bool fold_cast(struct ipu__onnx_call *call, int32_t type)
{
    struct ipu__onnx_value *x = call->inputs[0];
    int64_t *wholes;
    float *floats;

    if (!onnx__known(call, x) ||
        !onnx__room(call, 0, type, x->ndim, x->extents, &floats, &wholes))
        return false;
    for (int64_t i = 0; i < onnx__size(x); i++) {
        if (wholes)
            wholes[i] = cast_to_whole(x, i, type);
        else
            floats[i] = cast_to_float(x, i, type);
    }
    return true;
}

static bool holds(const struct ipu__onnx_kind *type,
                  const struct ipu__onnx_kind *other)
{
    return other->whole && other->least >= type->least &&
           other->most <= type->most;
}

/* Numbers that may not be in uint32 or uint64 are refused: the device would
 * keep them as they are. */
static int check_cast(struct ipu__onnx_call *call, int32_t from, int32_t to)
{
    const struct ipu__onnx_kind *a = ipu__onnx_kind(from);
    const struct ipu__onnx_kind *b = ipu__onnx_kind(to);

    if (b->bytes == 0)
        return onnx__refuse(call, "to %s it is not supported",
                            b->name ? b->name : "an unknown type");
    if ((to == IPU_ONNX_UINT32 || to == IPU_ONNX_UINT64) && !holds(b, a) &&
        from != IPU_ONNX_UINT32 && from != IPU_ONNX_UINT64)
        return onnx__refuse(call, "from %s to %s it is not supported", a->name,
                            b->name);
    return IPU_OK;
}

static int cast_to(struct ipu__onnx_call *call, int64_t number)
{
    struct ipu__onnx_value *x = call->inputs[0];
    int32_t type = ipu__onnx_kind(number)->name ? (int32_t)number : 0;
    ipu_dtype dtype = ipu__onnx_kind(type)->dtype;
    ipu_graph *g = call->graph;
    bool last;
    ipu_tensor t;

    IPU_TRY(check_cast(call, x->type, type));
    if (type == x->type)
        return onnx__give_same(call, 0, x);
    if (fold_cast(call, type))
        return IPU_OK;
    t = onnx__operand(call, x, &last);
    if (type == IPU_ONNX_BOOL)
        t = ipu_not_equal(g, t, onnx__scalar(call, x->type, 0));
    else if (dtype != ipu__onnx_kind(x->type)->dtype)
        t = ipu_cast(g, t, dtype);
    if (onnx__is_whole(type) && ipu_onnx_type_bytes(type) < 4 &&
        type != IPU_ONNX_BOOL &&
        !holds(ipu__onnx_kind(type), ipu__onnx_kind(x->type)))
        t = onnx__wrap(call, type, t);
    return onnx__give_as(call, type, t, last);
}

static int build_cast(struct ipu__onnx_call *call)
{
    if (!onnx__has_attribute(call, "to"))
        return onnx__refuse(call, "it does not say to which type");
    return cast_to(call, onnx__int(call, "to", 0));
}

static int build_cast_like(struct ipu__onnx_call *call)
{
    return cast_to(call, call->inputs[1]->type);
}

/* ------------------------------------------------------------------- expand */

static int build_expand(struct ipu__onnx_call *call)
{
    struct ipu__onnx_value *x = call->inputs[0];
    int64_t extents[IPU_MAX_DIMS], own[IPU_MAX_DIMS], strides[IPU_MAX_DIMS];
    const int64_t *shape;
    int64_t count;
    int32_t ndim;

    IPU_TRY(onnx__numbers(call, 1, "shape", &shape, &count));
    IPU_TRY(onnx__check_shape(call, count, shape));
    ndim = (int32_t)count;
    for (int32_t d = 0; d < ndim; d++)
        extents[d] = shape[d];
    if (!onnx__broadcast(&ndim, extents, x->ndim, x->extents))
        return onnx__refuse(call, "its shape does not fit its input");
    IPU_TRY(onnx__check_shape(call, ndim, extents));
    onnx__strides(x->ndim, x->extents, own);
    for (int32_t d = 0; d < ndim; d++) {
        int32_t at = d - (ndim - x->ndim);

        strides[d] = at < 0 || x->extents[at] == 1 ? 0 : own[at];
    }
    if (onnx__view(call, 0, x, ndim, extents, strides, 0))
        return IPU_OK;
    return onnx__give(
        call, 0, x->type,
        ipu_broadcast(call->graph, onnx__tensor(call, x), ndim, extents));
}

#define CAST_LIMITS "to uint32 and uint64 only from types that they hold"

const struct ipu__onnx_operator onnx__shape_rows[] = {
    {"Cast", 6, "to", 1, 1, build_cast, NULL, CAST_LIMITS},
    {"CastLike", 15, "", 2, 2, build_cast_like, NULL, CAST_LIMITS},
    {"Constant", 1, "value value_float value_floats value_int value_ints", 0, 0,
     build_constant, NULL, "strings and sparse tensors are refused"},
    {"ConstantOfShape", 9, "value", 1, 1, build_constant_of_shape, NULL,
     "the shape must be known"},
    {"Expand", 8, "", 2, 2, build_expand, NULL, "the shape must be known"},
    {"Flatten", 1, "axis", 1, 1, build_flatten, NULL, NULL},
    {"Identity", 1, "", 1, 1, build_identity, NULL, "tensors only"},
    {"Range", 11, "", 3, 3, build_range, NULL, "its numbers must be known"},
    {"Reshape", 5, "allowzero", 2, 2, build_reshape, NULL,
     "the shape must be known"},
    {"Shape", 1, "start end", 1, 1, build_shape, NULL, NULL},
    {"Size", 1, "", 1, 1, build_size, NULL, NULL},
    {"Squeeze", 1, "axes", 1, 2, build_squeeze, NULL, "axes must be known"},
    {"Unsqueeze", 1, "axes", 1, 2, build_unsqueeze, NULL, "axes must be known"},
    {.name = NULL},
};
