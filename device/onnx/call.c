/* SPDX-License-Identifier: Apache-2.0 */
/*
 * call.c - what operators ask for while they are built: attributes, known
 * elements, tensors of the graph, and outputs (build.h).
 */
#include <inttypes.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "onnx/builder.h"

/* Elements that nodes make while the graph is built may take this much, and
 * twice what the file has: a few bytes can ask for any number of them. */
static const size_t MOST_FOLDED = (size_t)64 << 20;

void onnx__note(struct ipu__onnx_call *call, const char *format, ...)
{
    char node[256], reason[512], text[800];
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(reason, sizeof reason, format, arguments);
    va_end(arguments);
    ipu__onnx_describe(call->node, node, sizeof node);
    snprintf(text, sizeof text, "%s: %s", node, reason);
    ipu__onnx_add_refusal(call->builder->model, text);
}

/* --------------------------------------------------------------- attributes */

static const struct ipu__onnx_attribute *find_attribute(
    const struct ipu__onnx_call *call, const char *name)
{
    const struct ipu__onnx_attributes *all = &call->node->attributes;

    for (size_t i = 0; i < all->count; i++)
        if (!strcmp(all->at[i].name, name))
            return &all->at[i];
    return NULL;
}

/* Finds one of a type. Files of the first version of the format do not say
 * which type an attribute has. */
static const struct ipu__onnx_attribute *attribute_of(
    struct ipu__onnx_call *call, const char *name, int64_t type)
{
    const struct ipu__onnx_attribute *a = find_attribute(call, name);

    if (!a || a->type == type || a->type == 0)
        return a;
    call->wrong_attribute = true;
    return NULL;
}

bool onnx__has_attribute(const struct ipu__onnx_call *call, const char *name)
{
    return find_attribute(call, name) != NULL;
}

int64_t onnx__int(struct ipu__onnx_call *call, const char *name, int64_t other)
{
    const struct ipu__onnx_attribute *a =
        attribute_of(call, name, IPU__ONNX_AN_INT);

    return a ? a->i : other;
}

double onnx__float(struct ipu__onnx_call *call, const char *name, double other)
{
    const struct ipu__onnx_attribute *a =
        attribute_of(call, name, IPU__ONNX_A_FLOAT);

    return a ? (double)a->f : other;
}

const struct ipu__onnx_ints *onnx__ints(struct ipu__onnx_call *call,
                                        const char *name)
{
    const struct ipu__onnx_attribute *a =
        attribute_of(call, name, IPU__ONNX_INTS);

    return a ? &a->ints : NULL;
}

const struct ipu__onnx_floats *onnx__floats(struct ipu__onnx_call *call,
                                            const char *name)
{
    const struct ipu__onnx_attribute *a =
        attribute_of(call, name, IPU__ONNX_FLOATS);

    return a ? &a->floats : NULL;
}

const struct ipu__onnx_texts *onnx__texts(struct ipu__onnx_call *call,
                                          const char *name)
{
    const struct ipu__onnx_attribute *a =
        attribute_of(call, name, IPU__ONNX_STRINGS);

    return a ? &a->texts : NULL;
}

const struct ipu__onnx_graph *onnx__attribute_graph(struct ipu__onnx_call *call,
                                                    const char *name)
{
    const struct ipu__onnx_attribute *a =
        attribute_of(call, name, IPU__ONNX_A_GRAPH);

    return a ? a->g : NULL;
}

const struct ipu__onnx_tensor *onnx__attribute_tensor(
    struct ipu__onnx_call *call, const char *name)
{
    const struct ipu__onnx_attribute *a =
        attribute_of(call, name, IPU__ONNX_A_TENSOR);

    return a ? a->t : NULL;
}

bool onnx__text_is(struct ipu__onnx_call *call, const char *name,
                   const char *value, const char *other)
{
    const struct ipu__onnx_attribute *a =
        attribute_of(call, name, IPU__ONNX_A_STRING);
    size_t n = strlen(value);

    if (!a)
        return !strcmp(value, other);
    return ipu__wire_left(&a->s) == n && !memcmp(a->s.at, value, n);
}

bool onnx__text(struct ipu__onnx_call *call, const char *name, char *text,
                size_t bytes)
{
    const struct ipu__onnx_attribute *a =
        attribute_of(call, name, IPU__ONNX_A_STRING);
    size_t n = a ? ipu__wire_left(&a->s) : bytes;

    if (n >= bytes || (n > 0 && memchr(a->s.at, 0, n)))
        return false;
    if (n > 0)
        memcpy(text, a->s.at, n);
    text[n] = '\0';
    return true;
}

int onnx__axis(struct ipu__onnx_call *call, int64_t axis, int32_t ndim,
               int32_t *found)
{
    if (axis < -ndim || axis >= ndim)
        return onnx__refuse(call, "axis %" PRId64 " is none of %d dimensions",
                            axis, (int)ndim);
    *found = (int32_t)(axis < 0 ? axis + ndim : axis);
    return IPU_OK;
}

/* ------------------------------------------------------------------- inputs */

bool onnx__known(struct ipu__onnx_call *call, struct ipu__onnx_value *value)
{
    struct ipu__onnx_builder *b = call->builder;
    struct ipu__onnx_elements e;
    int status;

    if (value->floats || value->wholes)
        return true;
    if (!value->initializer || value->use != IPU__ONNX_FREE || b->status < 0)
        return false;
    status = ipu__onnx_decode(&b->model->file, value->initializer, &e);
    if (status < 0) {
        ipu__onnx_end(b, status);
        return false;
    }
    value->floats = e.floats;
    value->wholes = e.wholes;
    return true;
}

bool onnx__all_known(struct ipu__onnx_call *call)
{
    for (int i = 0; i < call->ninputs; i++)
        if (call->inputs[i] && !onnx__known(call, call->inputs[i]))
            return false;
    return true;
}

bool onnx__bind(struct ipu__onnx_call *call, struct ipu__onnx_value *value)
{
    ipu_onnx *m = call->builder->model;
    const struct ipu__onnx_elements *offered;

    if (value->input < 0 || m->offered[value->input].type == 0)
        return false;
    offered = &m->offered[value->input];
    value->floats = offered->floats;
    value->wholes = offered->wholes;
    /* If ops already use it as an input, the graph has both. */
    m->bound[value->input] = value->tensor.id < 0;
    return true;
}

int onnx__need(struct ipu__onnx_call *call, int i, const char *what)
{
    struct ipu__onnx_value *value = onnx__in(call, i);

    if (!value)
        return onnx__refuse(call, "input %d (%s) is missing", i, what);
    if (onnx__fold_all(call, value))
        return IPU_OK;
    if (call->builder->status < 0)
        return call->builder->status;
    return onnx__refuse(call,
                        "its %s, '%s', must be known before it runs, and "
                        "depends on %s",
                        what, value->name,
                        value->input >= 0 ? "what an input will be" : "data");
}

int onnx__numbers(struct ipu__onnx_call *call, int i, const char *what,
                  const int64_t **numbers, int64_t *count)
{
    *count = 0;
    *numbers = NULL;
    if (!onnx__in(call, i))
        return IPU_OK;
    IPU_TRY(onnx__need(call, i, what));
    if (!call->inputs[i]->wholes || call->inputs[i]->ndim > 1)
        return onnx__refuse(call, "its %s is no list of integers", what);
    *numbers = call->inputs[i]->wholes;
    *count = onnx__size(call->inputs[i]);
    return IPU_OK;
}

int onnx__number(struct ipu__onnx_call *call, int i, const char *what,
                 double *number)
{
    const struct ipu__onnx_value *value = onnx__in(call, i);

    if (!value)
        return IPU_OK;
    IPU_TRY(onnx__need(call, i, what));
    if (onnx__size(value) != 1)
        return onnx__refuse(call, "its %s is not one number", what);
    *number =
        value->floats ? (double)value->floats[0] : (double)value->wholes[0];
    return IPU_OK;
}

/* -------------------------------------------------------- tensors of values */

/* Refuses integers that the device cannot hold. */
static ipu_tensor constant_of_wholes(struct ipu__onnx_call *call, int32_t ndim,
                                     const int64_t *extents,
                                     const int64_t *wholes)
{
    int64_t n = ipu__onnx_count(ndim, extents);
    int32_t *narrow;
    ipu_tensor t = {-1};
    int status = ipu__new_array(&narrow, (size_t)n, sizeof *narrow);

    if (status >= 0)
        status = ipu_onnx_to_device(IPU_ONNX_INT64, n, wholes, narrow);
    if (status >= 0)
        t = ipu_constant(call->graph, IPU_INT32, ndim, extents, narrow);
    else
        ipu__onnx_end(call->builder, status);
    free(narrow);
    return t;
}

ipu_tensor onnx__constant(struct ipu__onnx_call *call, int32_t type,
                          int32_t ndim, const int64_t *extents,
                          const float *floats, const int64_t *wholes)
{
    ipu_dtype dtype = ipu__onnx_kind(type)->dtype;
    ipu_tensor t;

    if (wholes)
        return constant_of_wholes(call, ndim, extents, wholes);
    t = ipu_constant(call->graph, IPU_FLOAT32, ndim, extents, floats);
    return dtype == IPU_FLOAT32 ? t : ipu_cast(call->graph, t, dtype);
}

ipu_tensor onnx__scalar(struct ipu__onnx_call *call, int32_t type, double value)
{
    return ipu_fill(call->graph, ipu__onnx_kind(type)->dtype, 0, NULL, value);
}

/* Returns the order that brings the channels to the end, or back. */
static const int32_t *channel_order(int32_t ndim, bool back, int32_t *order)
{
    order[0] = 0;
    for (int32_t i = 1; i < ndim; i++)
        order[i] =
            back ? (i == 1 ? ndim - 1 : i - 1) : (i == ndim - 1 ? 1 : i + 1);
    return order;
}

/* Makes the constant or the variable of an initialiser whose elements the host
 * does not use. */
static void make_held(struct ipu__onnx_call *call,
                      struct ipu__onnx_value *value)
{
    struct ipu__onnx_builder *b = call->builder;
    struct ipu__onnx_elements e;
    int status = IPU_OK;

    if (value->use == IPU__ONNX_TRAINED) {
        value->tensor = ipu_variable(call->graph, value->name,
                                     ipu__onnx_kind(value->type)->dtype,
                                     value->ndim, value->extents);
        status = ipu__onnx_add_variable(b->model, value);
    } else {
        status = ipu__onnx_decode(&b->model->file, value->initializer, &e);
        if (status >= 0)
            value->tensor = onnx__constant(call, e.type, e.ndim, e.extents,
                                           e.floats, e.wholes);
    }
    if (status < 0)
        ipu__onnx_end(b, status);
}

/* Makes the tensor of a value that has none in either order. */
static void make_tensor(struct ipu__onnx_call *call,
                        struct ipu__onnx_value *value)
{
    if (value->initializer && value->use != IPU__ONNX_FREE) {
        make_held(call, value);
    } else if (onnx__known(call, value)) {
        value->tensor =
            onnx__constant(call, value->type, value->ndim, value->extents,
                           value->floats, value->wholes);
    } else if (value->input >= 0) {
        value->tensor = ipu_input(call->graph, value->name,
                                  ipu__onnx_kind(value->type)->dtype,
                                  value->ndim, value->extents);
        call->builder->model->bound[value->input] = false;
    }
}

ipu_tensor onnx__tensor(struct ipu__onnx_call *call,
                        struct ipu__onnx_value *value)
{
    int32_t order[IPU_MAX_DIMS];

    if (value->tensor.id < 0 && value->last.id >= 0)
        value->tensor = ipu_transpose(call->graph, value->last,
                                      channel_order(value->ndim, true, order));
    else if (value->tensor.id < 0)
        make_tensor(call, value);
    return value->tensor;
}

ipu_tensor onnx__last(struct ipu__onnx_call *call,
                      struct ipu__onnx_value *value)
{
    int32_t order[IPU_MAX_DIMS];

    if (value->last.id < 0)
        value->last = ipu_transpose(call->graph, onnx__tensor(call, value),
                                    channel_order(value->ndim, false, order));
    return value->last;
}

/* ------------------------------------------------------------------ outputs */

/* Returns the failure of the graph's op, with the name of the node. */
static int fail_op(struct ipu__onnx_call *call)
{
    char node[256], text[IPU__MESSAGE_MAX];

    if (call->builder->status < 0)
        return call->builder->status;
    ipu__onnx_describe(call->node, node, sizeof node);
    snprintf(text, sizeof text, "%s: %s: %s", call->builder->model->file.path,
             node, ipu_last_error());
    return ipu__onnx_end(call->builder,
                         ipu__fail_explained(IPU_ERR_SHAPE, text));
}

int onnx__give(struct ipu__onnx_call *call, int i, int32_t type,
               ipu_tensor tensor)
{
    struct ipu__onnx_value *value;

    if (tensor.id < 0)
        return fail_op(call);
    if (!onnx__wants(call, i))
        return IPU_OK;
    value = call->outputs[i];
    value->type = type;
    value->tensor = tensor;
    value->ndim =
        ipu_tensor_info(call->graph, tensor, NULL, value->extents, NULL);
    value->state = IPU__ONNX_MADE;
    return IPU_OK;
}

int onnx__give_last(struct ipu__onnx_call *call, int i, int32_t type,
                    ipu_tensor tensor)
{
    int64_t extents[IPU_MAX_DIMS];
    struct ipu__onnx_value *value;

    IPU_TRY(onnx__give(call, i, type, tensor));
    if (!onnx__wants(call, i))
        return IPU_OK;
    value = call->outputs[i];
    value->last = tensor;
    value->tensor.id = -1;
    memcpy(extents, value->extents, sizeof extents);
    value->extents[1] = extents[value->ndim - 1];
    for (int32_t d = 2; d < value->ndim; d++)
        value->extents[d] = extents[d - 1];
    return IPU_OK;
}

void onnx__copy_value(struct ipu__onnx_value *to,
                      const struct ipu__onnx_value *from)
{
    const char *name = to->name;

    *to = *from;
    to->name = name;
    to->input = -1;
}

int onnx__give_same(struct ipu__onnx_call *call, int i,
                    struct ipu__onnx_value *value)
{
    if (!onnx__wants(call, i))
        return IPU_OK;
    if (value->input >= 0 && value->tensor.id < 0 && !value->floats &&
        !value->wholes)
        return onnx__give(call, i, value->type, onnx__tensor(call, value));
    onnx__copy_value(call->outputs[i], value);
    return IPU_OK;
}

bool onnx__room(struct ipu__onnx_call *call, int i, int32_t type, int32_t ndim,
                const int64_t *extents, float **floats, int64_t **wholes)
{
    struct ipu__onnx_builder *b = call->builder;
    size_t n = (size_t)ipu__onnx_count(ndim, extents), bytes;
    size_t most = MOST_FOLDED + 2 * b->model->file.size;
    struct ipu__onnx_value *value;
    void *room;

    *floats = NULL;
    *wholes = NULL;
    if (n > most / sizeof(int64_t) || !onnx__wants(call, i))
        return false;
    bytes = (n ? n : 1) *
            (onnx__is_whole(type) ? sizeof **wholes : sizeof **floats);
    if (bytes > most - b->folded)
        return false;
    room = ipu__onnx_keep_outside(&b->model->file, bytes);
    if (!room)
        return false;
    b->folded += bytes;
    value = call->outputs[i];
    value->type = type;
    value->ndim = ndim;
    if (ndim > 0)
        memcpy(value->extents, extents, (size_t)ndim * sizeof *extents);
    value->state = IPU__ONNX_MADE;
    if (onnx__is_whole(type))
        value->wholes = *wholes = room;
    else
        value->floats = *floats = room;
    return true;
}

void onnx__strides(int32_t ndim, const int64_t *extents, int64_t *strides)
{
    int64_t stride = 1;

    for (int32_t i = ndim - 1; i >= 0; i--) {
        strides[i] = stride;
        stride *= extents[i];
    }
}

/* Moves to the next element of a tensor, and returns its number in x. */
static int64_t next_element(int32_t ndim, const int64_t *extents,
                            const int64_t *strides, int64_t *index, int64_t at)
{
    for (int32_t d = ndim - 1; d >= 0; d--) {
        at += strides[d];
        if (++index[d] < extents[d])
            return at;
        at -= strides[d] * extents[d];
        index[d] = 0;
    }
    return at;
}

bool onnx__view(struct ipu__onnx_call *call, int i, struct ipu__onnx_value *x,
                int32_t ndim, const int64_t *extents, const int64_t *strides,
                int64_t first)
{
    int64_t index[IPU_MAX_DIMS] = {0}, n = ipu__onnx_count(ndim, extents);
    float *floats;
    int64_t *wholes;

    if (!onnx__known(call, x) ||
        !onnx__room(call, i, x->type, ndim, extents, &floats, &wholes))
        return false;
    for (int64_t j = 0, at = first; j < n; j++) {
        if (wholes)
            wholes[j] = x->wholes[at];
        else
            floats[j] = x->floats[at];
        at = next_element(ndim, extents, strides, index, at);
    }
    return true;
}

int onnx__check_shape(struct ipu__onnx_call *call, int64_t ndim,
                      const int64_t *extents)
{
    struct ipu__onnx_elements shape;

    if (ndim < 0 || ndim > IPU_MAX_DIMS)
        return onnx__refuse(call, "%" PRId64 " dimensions; this device has %d",
                            ndim, IPU_MAX_DIMS);
    if (ipu__onnx_set_shape("its output", (size_t)ndim, extents, &shape) < 0)
        return onnx__refuse(call, "%s", ipu_last_error());
    return IPU_OK;
}

bool onnx__broadcast(int32_t *ndim, int64_t *extents, int32_t other_ndim,
                     const int64_t *other)
{
    int64_t made[IPU_MAX_DIMS] = {0};
    int32_t n = *ndim > other_ndim ? *ndim : other_ndim;

    for (int32_t i = 0; i < n; i++) {
        int32_t at = i - (n - *ndim), there = i - (n - other_ndim);
        int64_t a = at < 0 ? 1 : extents[at];
        int64_t b = there < 0 ? 1 : other[there];

        if (a != b && a != 1 && b != 1)
            return false;
        made[i] = a == 1 ? b : a;
    }
    memcpy(extents, made, (size_t)n * sizeof *made);
    *ndim = n;
    return true;
}
