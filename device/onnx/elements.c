/* SPDX-License-Identifier: Apache-2.0 */
/*
 * elements.c - decodes the elements of tensors: raw bytes, or numbers in one of
 * the typed fields, in the forms of elements.h.
 */
#include "onnx/elements.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "ops/half.h"

static const struct ipu__onnx_kind kinds[] = {
    [IPU_ONNX_FLOAT] = {"float", 4, false, IPU_FLOAT32, 0, 0},
    [IPU_ONNX_UINT8] = {"uint8", 1, true, IPU_INT32, 0, UINT8_MAX},
    [IPU_ONNX_INT8] = {"int8", 1, true, IPU_INT32, INT8_MIN, INT8_MAX},
    [IPU_ONNX_UINT16] = {"uint16", 2, true, IPU_INT32, 0, UINT16_MAX},
    [IPU_ONNX_INT16] = {"int16", 2, true, IPU_INT32, INT16_MIN, INT16_MAX},
    [IPU_ONNX_INT32] = {"int32", 4, true, IPU_INT32, INT32_MIN, INT32_MAX},
    [IPU_ONNX_INT64] = {"int64", 8, true, IPU_INT32, INT64_MIN, INT64_MAX},
    [IPU_ONNX_STRING] = {"string", 0, false, IPU_FLOAT32, 0, 0},
    [IPU_ONNX_BOOL] = {"bool", 1, true, IPU_INT32, 0, 1},
    [IPU_ONNX_FLOAT16] = {"float16", 2, false, IPU_FLOAT16, 0, 0},
    [IPU_ONNX_DOUBLE] = {"double", 8, false, IPU_FLOAT32, 0, 0},
    [IPU_ONNX_UINT32] = {"uint32", 4, true, IPU_INT32, 0, UINT32_MAX},
    [IPU_ONNX_UINT64] = {"uint64", 8, true, IPU_INT32, 0, INT64_MAX},
    [IPU_ONNX_COMPLEX64] = {"complex64", 0, false, IPU_FLOAT32, 0, 0},
    [IPU_ONNX_COMPLEX128] = {"complex128", 0, false, IPU_FLOAT32, 0, 0},
    [IPU_ONNX_BFLOAT16] = {"bfloat16", 2, false, IPU_BFLOAT16, 0, 0},
};

const struct ipu__onnx_kind *ipu__onnx_kind(int64_t type)
{
    static const struct ipu__onnx_kind none;

    return type > 0 && type < (int64_t)(sizeof kinds / sizeof *kinds)
               ? &kinds[type]
               : &none;
}

int64_t ipu__onnx_count(int32_t ndim, const int64_t *extents)
{
    int64_t n = 1;

    for (int32_t i = 0; i < ndim; i++)
        n *= extents[i];
    return n;
}

int ipu__onnx_set_shape(const char *what, size_t ndim, const int64_t *extents,
                        struct ipu__onnx_elements *elements)
{
    struct ipu__shape shape;

    if (ndim > IPU_MAX_DIMS)
        return ipu__fail(IPU_ERR_SHAPE,
                         "%s has %zu dimensions; this device has at most %d",
                         what, ndim, IPU_MAX_DIMS);
    /* The device has no element that is wider than a float32. */
    IPU_TRY(ipu__shape_make(what, IPU_FLOAT32, (int32_t)ndim,
                            ndim ? extents : NULL, &shape));
    elements->ndim = (int32_t)ndim;
    memcpy(elements->extents, shape.extents, sizeof shape.extents);
    return IPU_OK;
}

/* -------------------------------------------------------- bytes and numbers */

static int64_t whole_at(int32_t type, const void *from, int64_t i)
{
    switch (type) {
    case IPU_ONNX_UINT8: return ((const uint8_t *)from)[i];
    case IPU_ONNX_BOOL: return ((const uint8_t *)from)[i] != 0;
    case IPU_ONNX_INT8: return ((const int8_t *)from)[i];
    case IPU_ONNX_UINT16: return ((const uint16_t *)from)[i];
    case IPU_ONNX_INT16: return ((const int16_t *)from)[i];
    case IPU_ONNX_INT32: return ((const int32_t *)from)[i];
    case IPU_ONNX_UINT32: return ((const uint32_t *)from)[i];
    default: return ((const int64_t *)from)[i];
    }
}

void ipu__onnx_unpack(int32_t type, int64_t count, const void *from,
                      float *floats, int64_t *wholes)
{
    if (ipu__onnx_kind(type)->whole) {
        for (int64_t i = 0; i < count; i++)
            wholes[i] = whole_at(type, from, i);
    } else if (type == IPU_ONNX_FLOAT) {
        memcpy(floats, from, (size_t)count * sizeof *floats);
    } else if (type == IPU_ONNX_DOUBLE) {
        for (int64_t i = 0; i < count; i++)
            floats[i] = (float)((const double *)from)[i];
    } else {
        ipu__widen(ipu__onnx_kind(type)->dtype, floats, from, count);
    }
}

static void put_whole(int32_t type, int64_t value, void *to, int64_t i)
{
    switch (ipu__onnx_kind(type)->bytes) {
    case 1: ((uint8_t *)to)[i] = (uint8_t)value; break;
    case 2: ((uint16_t *)to)[i] = (uint16_t)value; break;
    case 4: ((uint32_t *)to)[i] = (uint32_t)value; break;
    default: ((int64_t *)to)[i] = value;
    }
}

int64_t ipu__onnx_pack(int32_t type, int64_t count, const float *floats,
                       const int64_t *wholes, void *to)
{
    const struct ipu__onnx_kind *kind = ipu__onnx_kind(type);

    if (kind->whole) {
        for (int64_t i = 0; i < count; i++) {
            if (wholes[i] < kind->least || wholes[i] > kind->most)
                return i;
            put_whole(type, wholes[i], to, i);
        }
    } else if (type == IPU_ONNX_FLOAT) {
        memcpy(to, floats, (size_t)count * sizeof *floats);
    } else if (type == IPU_ONNX_DOUBLE) {
        for (int64_t i = 0; i < count; i++)
            ((double *)to)[i] = floats[i];
    } else {
        ipu__narrow(kind->dtype, to, floats, count);
    }
    return -1;
}

/* ----------------------------------------------------------- typed elements */

/* A tensor that is being decoded. */
struct decoder {
    struct ipu__onnx_file *file;
    const struct ipu__onnx_tensor *tensor;
    int32_t type;
    int64_t count;
    float *floats;
    int64_t *wholes;
    const float *in_place; /* not NULL: the floats, where they were read */
    char what[512];        /* names it in errors */
};

static uint32_t typed_field(int32_t type)
{
    switch (type) {
    case IPU_ONNX_FLOAT: return 4;
    case IPU_ONNX_INT64: return 7;
    case IPU_ONNX_DOUBLE: return 10;
    case IPU_ONNX_UINT32:
    case IPU_ONNX_UINT64: return 11;
    default: return 5;
    }
}

static void put_typed(struct decoder *d, int64_t i, uint64_t bits)
{
    uint32_t low = (uint32_t)bits;
    uint16_t half = (uint16_t)bits;
    double wide;

    switch (d->type) {
    case IPU_ONNX_FLOAT: memcpy(&d->floats[i], &low, sizeof low); break;
    case IPU_ONNX_DOUBLE:
        memcpy(&wide, &bits, sizeof wide);
        d->floats[i] = (float)wide;
        break;
    case IPU_ONNX_FLOAT16:
    case IPU_ONNX_BFLOAT16:
        ipu__widen(ipu__onnx_kind(d->type)->dtype, &d->floats[i], &half, 1);
        break;
    case IPU_ONNX_BOOL: d->wholes[i] = bits != 0; break;
    default: d->wholes[i] = (int64_t)bits;
    }
}

/* Reads one number of the typed field. */
static bool next_number(int32_t type, struct ipu__wire *packed, uint64_t *bits)
{
    if (type == IPU_ONNX_FLOAT)
        return ipu__wire_fixed(packed, 4, bits);
    if (type == IPU_ONNX_DOUBLE)
        return ipu__wire_fixed(packed, 8, bits);
    return ipu__wire_varint(packed, bits);
}

/* Adds the elements of one field to the n that there are. */
static int add_field(struct decoder *d, const struct ipu__wire_field *field,
                     int64_t *n)
{
    struct ipu__wire packed = field->bytes;
    uint64_t bits = field->value;

    if (field->type != IPU__WIRE_BYTES) {
        if ((*n)++ < d->count)
            put_typed(d, *n - 1, bits);
        return IPU_OK;
    }
    while (packed.at < packed.end) {
        if (!next_number(d->type, &packed, &bits))
            return ipu__fail(IPU_ERR_DATA, "%s: an element is not complete",
                             d->what);
        if ((*n)++ < d->count)
            put_typed(d, *n - 1, bits);
    }
    return IPU_OK;
}

static int decode_typed(struct decoder *d)
{
    struct ipu__wire w = d->tensor->self;
    struct ipu__wire_field field;
    int64_t n = 0;

    while (ipu__wire_next(&w, &field) > 0)
        if (field.number == typed_field(d->type))
            IPU_TRY(add_field(d, &field, &n));
    if (n != d->count)
        return ipu__fail(IPU_ERR_DATA,
                         "%s has %" PRId64 " elements, and its shape asks for "
                         "%" PRId64,
                         d->what, n, d->count);
    return IPU_OK;
}

/* ------------------------------------------------------------------- tensor */

static int check_range(const struct decoder *d)
{
    const struct ipu__onnx_kind *kind = ipu__onnx_kind(d->type);

    for (int64_t i = 0; kind->whole && i < d->count; i++)
        if (d->wholes[i] < kind->least || d->wholes[i] > kind->most)
            return ipu__fail(IPU_ERR_DATA,
                             "%s: element %" PRId64 " is %" PRId64
                             ", which %s does not hold here",
                             d->what, i, d->wholes[i], kind->name);
    return IPU_OK;
}

static int decode_raw(struct decoder *d, struct ipu__wire raw)
{
    size_t bytes = (size_t)d->count * ipu__onnx_kind(d->type)->bytes;
    const void *aligned = raw.at;

    if (ipu__wire_left(&raw) != bytes)
        return ipu__fail(IPU_ERR_DATA,
                         "%s has %zu bytes, and its shape asks for %zu",
                         d->what, ipu__wire_left(&raw), bytes);
    if (bytes == 0)
        return IPU_OK;
    if ((uintptr_t)raw.at % sizeof(int64_t) != 0) {
        void *copy = ipu__onnx_keep(d->file, bytes);

        if (!copy)
            return IPU_ERR_DATA;
        aligned = memcpy(copy, raw.at, bytes);
    }
    if (d->type == IPU_ONNX_FLOAT)
        d->in_place = aligned;
    else
        ipu__onnx_unpack(d->type, d->count, aligned, d->floats, d->wholes);
    return IPU_OK;
}

/* Counts the bytes that elements in the typed fields take, at least. A shape
 * that asks for more is refused before memory is allocated for it. */
static int check_size(const struct decoder *d)
{
    size_t room = ipu__wire_left(&d->tensor->self);

    if ((uint64_t)d->count > room)
        return ipu__fail(IPU_ERR_DATA,
                         "%s: its shape asks for %" PRId64
                         " elements, which are more than the file has",
                         d->what, d->count);
    return IPU_OK;
}

static int allocate(struct decoder *d, bool in_raw)
{
    size_t n = d->count > 0 ? (size_t)d->count : 1;

    if (ipu__onnx_kind(d->type)->whole)
        d->wholes = ipu__onnx_keep(d->file, n * sizeof *d->wholes);
    else if (!in_raw || d->type != IPU_ONNX_FLOAT || d->count == 0)
        d->floats = ipu__onnx_keep(d->file, n * sizeof *d->floats);
    else
        return IPU_OK; /* they stay where they are read */
    return d->wholes || d->floats ? IPU_OK : IPU_ERR_DATA;
}

static int decode_elements(struct decoder *d)
{
    struct ipu__wire raw = d->tensor->raw;

    if (d->tensor->location == 1)
        IPU_TRY(ipu__onnx_external(
            d->file, d->tensor,
            (size_t)d->count * ipu__onnx_kind(d->type)->bytes, &raw));
    else
        IPU_TRY(check_size(d));
    IPU_TRY(allocate(d, raw.at != NULL));
    IPU_TRY(raw.at ? decode_raw(d, raw) : decode_typed(d));
    return check_range(d);
}

int ipu__onnx_decode(struct ipu__onnx_file *file,
                     const struct ipu__onnx_tensor *tensor,
                     struct ipu__onnx_elements *elements)
{
    const struct ipu__onnx_kind *kind = ipu__onnx_kind(tensor->type);
    struct decoder d = {.file = file, .tensor = tensor};

    memset(elements, 0, sizeof *elements);
    snprintf(d.what, sizeof d.what, "%s: tensor '%s'", file->path,
             tensor->name);
    if (kind->bytes == 0)
        return ipu__fail(IPU_ERR_SHAPE,
                         "%s has elements of type %s (%" PRId64
                         "), which this device does not have",
                         d.what, kind->name ? kind->name : "unknown",
                         tensor->type);
    if (tensor->segment.at)
        return ipu__fail(IPU_ERR_DATA, "%s is a part of a tensor only", d.what);
    d.type = elements->type = (int32_t)tensor->type;
    IPU_TRY(ipu__onnx_set_shape(d.what, tensor->dims.count, tensor->dims.at,
                                elements));
    d.count = ipu__onnx_count(elements->ndim, elements->extents);
    IPU_TRY(decode_elements(&d));
    elements->floats = d.in_place ? d.in_place : d.floats;
    elements->wholes = d.wholes;
    return IPU_OK;
}
