/* SPDX-License-Identifier: Apache-2.0 */
/*
 * shape.c - dtypes and shapes: names, sizes, and the check that every shape
 * passes before anything else uses it.
 *
 * A shape that ipu__shape_make accepts has extents of 0 or more, and bytes that
 * fit into memory, so that products of its extents cannot overflow. Builders,
 * feeds and the reader of files call it.
 */
#include "base/shape.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"

static const struct {
    const char *name;
    size_t bytes;
} dtypes[IPU_NUM_DTYPES] = {
    [IPU_FLOAT32] = {"float32", 4},
    [IPU_INT32] = {"int32", 4},
    [IPU_FLOAT16] = {"float16", 2},
    [IPU_BFLOAT16] = {"bfloat16", 2},
};

const char *ipu__dtype_name(ipu_dtype dtype)
{
    return dtype >= 0 && dtype < IPU_NUM_DTYPES ? dtypes[dtype].name : NULL;
}

size_t ipu__dtype_bytes(ipu_dtype dtype)
{
    return dtype >= 0 && dtype < IPU_NUM_DTYPES ? dtypes[dtype].bytes : 0;
}

bool ipu__is_half(ipu_dtype dtype)
{
    return dtype == IPU_FLOAT16 || dtype == IPU_BFLOAT16;
}

int ipu__shape_make(const char *what, ipu_dtype dtype, int32_t ndim,
                    const int64_t *extents, struct ipu__shape *shape)
{
    struct ipu__shape made = {.dtype = dtype, .ndim = ndim};
    size_t bytes = ipu__dtype_bytes(dtype);

    if (bytes == 0)
        return ipu__fail(IPU_ERR_ARGUMENT, "%s: dtype %d is none (0 to %d)",
                         what, (int)dtype, IPU_NUM_DTYPES - 1);
    if (ndim < 0 || ndim > IPU_MAX_DIMS)
        return ipu__fail(IPU_ERR_SHAPE,
                         "%s: %d dimensions, a tensor has 0 to %d", what,
                         (int)ndim, IPU_MAX_DIMS);
    if (ndim > 0 && !extents)
        return ipu__fail(IPU_ERR_ARGUMENT, "%s: the shape is NULL", what);
    for (int32_t i = 0; i < ndim; i++) {
        if (extents[i] < 0)
            return ipu__fail(IPU_ERR_SHAPE,
                             "%s: dimension %d is %" PRId64 ", less than 0",
                             what, (int)i, extents[i]);
        if (__builtin_mul_overflow(bytes, extents[i] ? (size_t)extents[i] : 1,
                                   &bytes) ||
            bytes > PTRDIFF_MAX / 4)
            return ipu__fail(IPU_ERR_SHAPE,
                             "%s: dimensions up to number %d make more bytes "
                             "than memory can hold",
                             what, (int)i);
        made.extents[i] = extents[i];
    }
    *shape = made;
    return IPU_OK;
}

bool ipu__shape_equal(const struct ipu__shape *a, const struct ipu__shape *b)
{
    return a->dtype == b->dtype && a->ndim == b->ndim &&
           memcmp(a->extents, b->extents,
                  (size_t)a->ndim * sizeof *a->extents) == 0;
}

int64_t ipu__shape_span(const struct ipu__shape *shape, int32_t first,
                        int32_t end)
{
    int64_t count = 1;

    for (int32_t i = first; i < end; i++)
        count *= shape->extents[i];
    return count;
}

int64_t ipu__shape_count(const struct ipu__shape *shape)
{
    return ipu__shape_span(shape, 0, shape->ndim);
}

size_t ipu__shape_bytes(const struct ipu__shape *shape)
{
    return (size_t)ipu__shape_count(shape) * ipu__dtype_bytes(shape->dtype);
}

struct ipu__shape_text ipu__shape_print(const struct ipu__shape *shape)
{
    struct ipu__shape_text made;
    size_t size = sizeof made.text;
    int used = snprintf(made.text, size, "%s [", ipu__dtype_name(shape->dtype));

    for (int32_t i = 0; i < shape->ndim; i++)
        used += snprintf(made.text + used, size - (size_t)used, "%s%" PRId64,
                         i ? "," : "", shape->extents[i]);
    snprintf(made.text + used, size - (size_t)used, "]");
    return made;
}
