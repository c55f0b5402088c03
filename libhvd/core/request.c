/* SPDX-License-Identifier: Apache-2.0 */
/*
 * request.c - is what the program submits possible at all?
 *
 * Everything that one rank can judge alone is judged here, before anything
 * moves: sizes, ranges, NULL, overlap, what this version lacks. What only all
 * ranks together can judge (do they mean the same?) is negotiate.c's and
 * coordinator.c's. A message names the tensor, the argument and its value.
 */
#include "core/request.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/dtype.h"
#include "base/status.h"

/* No object is larger, and sums of two sizes do not wrap. */
#define BYTES_MAX ((uint64_t)PTRDIFF_MAX)

void hvd_request_init(hvd_request *request, size_t size)
{
    hvd_request defaults = {
        .size = (uint32_t)size, .op = HVD_SUM, .prescale = 1, .postscale = 1};

    if (!request)
        return;
    memset(request, 0, size);
    memcpy(request, &defaults, size < sizeof defaults ? size : sizeof defaults);
}

int hvd__request_copy(const hvd_request *given, hvd_request *request)
{
    if (!given)
        return hvd__fail(HVD_ERR_ARGUMENT, "the request is NULL");
    if (given->size < sizeof *request)
        return hvd__fail(HVD_ERR_ARGUMENT,
                         "the request's size is %u, of version %s it is %zu: "
                         "fill it with hvd_request_init first",
                         (unsigned)given->size, HVD_VERSION_STRING,
                         sizeof *request);
    for (size_t i = sizeof *request; i < given->size; i++)
        if (((const unsigned char *)given)[i] != 0)
            return hvd__fail(HVD_ERR_UNSUPPORTED,
                             "the request sets a field that version %s does "
                             "not know: the program was compiled for a newer "
                             "libhvd",
                             HVD_VERSION_STRING);
    *request = *given;
    return HVD_OK;
}

int hvd__request_check_name(const char *name)
{
    size_t bytes = strnlen(name, HVD_MAX_NAME + 1);

    if (bytes > HVD_MAX_NAME)
        return hvd__fail(HVD_ERR_ARGUMENT,
                         "a name is longer than %d bytes: '%.32s...'",
                         HVD_MAX_NAME, name);
    for (size_t i = 0; i < bytes; i++)
        if ((unsigned char)name[i] < 0x20 || name[i] == 0x7f)
            return hvd__fail(HVD_ERR_ARGUMENT,
                             "byte %zu of the name '%.64s' is the control "
                             "character 0x%02x",
                             i, name, (unsigned)(unsigned char)name[i]);
    return HVD_OK;
}

static int check_kind(const hvd_request *request, const char *what)
{
    if (!hvd_kind_name(request->kind))
        return hvd__fail(HVD_ERR_UNSUPPORTED,
                         "%s: kind %d is none that version %s knows", what,
                         (int)request->kind, HVD_VERSION_STRING);
    return HVD_OK;
}

static int check_op(const hvd_request *request, const char *what)
{
    const char *op = hvd_op_name(request->op);

    if (!op)
        return hvd__fail(HVD_ERR_ARGUMENT,
                         "%s: op %d is no reduction operation (0 to %d)", what,
                         (int)request->op, HVD_NUM_OPS - 1);
    if (request->op == HVD_ADASUM)
        return hvd__fail(HVD_ERR_UNSUPPORTED,
                         "%s: version %s has no adasum; average or sum instead",
                         what, HVD_VERSION_STRING);
    if (request->op == HVD_AVERAGE && request->dtype == HVD_BOOL)
        return hvd__fail(HVD_ERR_ARGUMENT,
                         "%s: bool has no average; convert to another dtype",
                         what);
    if (!isfinite(request->prescale) || !isfinite(request->postscale))
        return hvd__fail(HVD_ERR_ARGUMENT,
                         "%s: prescale %g and postscale %g must be finite",
                         what, request->prescale, request->postscale);
    if (request->dtype == HVD_BOOL &&
        (request->prescale != 1 || request->postscale != 1))
        return hvd__fail(HVD_ERR_ARGUMENT, "%s: bool cannot be scaled", what);
    return HVD_OK;
}

static int check_shape(const hvd_request *request, const char *what,
                       struct hvd__entry *entry)
{
    uint64_t bytes = hvd__dtype_bytes(request->dtype);
    bool empty = false;

    if (request->ndim < 0 || request->ndim > HVD_MAX_DIMS)
        return hvd__fail(HVD_ERR_ARGUMENT,
                         "%s: %d dimensions, a tensor has 0 to %d", what,
                         (int)request->ndim, HVD_MAX_DIMS);
    if (request->ndim > 0 && !request->shape)
        return hvd__fail(HVD_ERR_ARGUMENT,
                         "%s: the shape of %d dimensions is NULL", what,
                         (int)request->ndim);
    for (int32_t i = 0; i < request->ndim; i++) {
        int64_t extent = request->shape[i];

        if (extent < 0)
            return hvd__fail(HVD_ERR_ARGUMENT,
                             "%s: dimension %d is %lld, less than 0", what,
                             (int)i, (long long)extent);
        entry->signature.shape[i] = extent;
        empty |= extent == 0;
    }
    for (int32_t i = 0; i < request->ndim && !empty; i++)
        if (__builtin_mul_overflow(bytes, (uint64_t)request->shape[i],
                                   &bytes) ||
            bytes > BYTES_MAX)
            return hvd__fail(HVD_ERR_ARGUMENT,
                             "%s: dimensions up to number %d make more bytes "
                             "than memory can hold",
                             what, (int)i);
    entry->signature.ndim = request->ndim;
    entry->bytes = empty ? 0 : (size_t)bytes;
    entry->count = (int64_t)(entry->bytes / hvd__dtype_bytes(request->dtype));
    return HVD_OK;
}

static int check_buffers(const hvd_request *request, const char *what,
                         struct hvd__entry *entry)
{
    uintptr_t in = (uintptr_t)request->input;
    uintptr_t out = (uintptr_t)request->output;

    if (entry->count > 0 && !request->output)
        return hvd__fail(HVD_ERR_ARGUMENT,
                         "%s: the output of %lld elements is NULL", what,
                         (long long)entry->count);
    entry->output = request->output;
    if (request->kind == HVD_BROADCAST)
        return HVD_OK;
    if (entry->count > 0 && !request->input)
        return hvd__fail(HVD_ERR_ARGUMENT,
                         "%s: the input of %lld elements is NULL", what,
                         (long long)entry->count);
    if (in != out && in < out + entry->bytes && out < in + entry->bytes)
        return hvd__fail(HVD_ERR_ARGUMENT,
                         "%s: input and output overlap by a part: give the "
                         "same pointer twice, or memory of its own to each",
                         what);
    entry->input = request->input;
    return HVD_OK;
}

int hvd__request_check(const hvd_request *request, int size, const char *what,
                       struct hvd__entry *entry)
{
    struct hvd__signature *signature = &entry->signature;

    HVD_TRY(check_kind(request, what));
    signature->kind = request->kind;
    if (request->kind == HVD_BARRIER)
        return HVD_OK;
    if (!hvd_dtype_name(request->dtype))
        return hvd__fail(HVD_ERR_ARGUMENT, "%s: dtype %d is none (0 to %d)",
                         what, (int)request->dtype, HVD_NUM_DTYPES - 1);
    signature->dtype = request->dtype;
    HVD_TRY(check_shape(request, what, entry));
    HVD_TRY(check_buffers(request, what, entry));
    if (request->kind == HVD_BROADCAST) {
        if (request->root < 0 || request->root >= size)
            return hvd__fail(HVD_ERR_ARGUMENT,
                             "%s: root %d is not one of the %d ranks", what,
                             (int)request->root, size);
        signature->root = request->root;
        return HVD_OK;
    }
    HVD_TRY(check_op(request, what));
    signature->op = request->op;
    signature->prescale = request->prescale;
    signature->postscale = request->postscale;
    return HVD_OK;
}

void hvd__entry_free(struct hvd__entry *entry)
{
    if (entry)
        free(entry->message);
    free(entry);
}
