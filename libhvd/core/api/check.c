/* SPDX-License-Identifier: Apache-2.0 */
/*
 * check.c - checks whether a request is possible at all.
 *
 * Everything that one rank can check alone is checked here, before anything
 * moves: sizes, ranges, NULL, overlap, and features that this version lacks.
 * coordinator.c checks whether all ranks mean the same. A message names the
 * argument and its value; api.c adds the tensor. api.c and quick.c call it, on
 * the thread that submits.
 */
#include "core/api/check.h"

#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/dtype.h"
#include "base/status.h"
#include "core/request/compress.h"
#include "core/table/set.h"
#include "transport/algo/algo.h"
#include "transport/hosts.h"

/* The most bytes of an object, so that sums of two sizes do not wrap. */
#define BYTES_MAX ((uint64_t)PTRDIFF_MAX)

/* The smallest size of a request in any version, which is that of 0.1. */
#define FIRST_SIZE offsetof(hvd_request, process_set)

void hvd_request_init(hvd_request *given, size_t size)
{
    hvd_request defaults = {.size = (uint32_t)size,
                            .op = HVD_AVERAGE,
                            .prescale = 1,
                            .postscale = 1};

    if (!given)
        return;
    memset(given, 0, size);
    memcpy(given, &defaults, size < sizeof defaults ? size : sizeof defaults);
}

int hvd__request_copy(const hvd_request *given, hvd_request *copy)
{
    if (!given)
        return hvd__fail(HVD_ERR_ARGUMENT, "the request is NULL");
    if (given->size < FIRST_SIZE)
        return hvd__fail(HVD_ERR_ARGUMENT,
                         "the request's size is %u, of version %s it is %zu: "
                         "fill it with hvd_request_init first",
                         (unsigned)given->size, HVD_VERSION_STRING,
                         sizeof *copy);
    for (size_t i = sizeof *copy; i < given->size; i++)
        if (((const unsigned char *)given)[i] != 0)
            return hvd__fail(HVD_ERR_UNSUPPORTED,
                             "the request sets a field that version %s does "
                             "not know: the program was compiled for a newer "
                             "libhvd",
                             HVD_VERSION_STRING);
    *copy = (hvd_request){0};
    memcpy(copy, given,
           given->size < sizeof *copy ? given->size : sizeof *copy);
    return HVD_OK;
}

void hvd__request_distrust(hvd_request *given)
{
    if (given->flags & HVD__OWN_FLAGS)
        given->flags |= HVD__FORGED;
}

static int check_kind(const hvd_request *given)
{
    if (!hvd_kind_name(given->kind))
        return hvd__fail(HVD_ERR_UNSUPPORTED,
                         "kind %d is none that version %s knows",
                         (int)given->kind, HVD_VERSION_STRING);
    return HVD_OK;
}

static int check_flags(const hvd_request *given)
{
    const int32_t known = HVD_AVERAGE_CONTRIBUTORS | HVD__OWN_FLAGS;
    int32_t strange = given->flags & ~HVD_AVERAGE_CONTRIBUTORS;

    if (strange & HVD__OWN_FLAGS)
        strange &= ~HVD__FORGED; /* the library's own mark */
    if (given->flags & ~known)
        return hvd__fail(HVD_ERR_UNSUPPORTED,
                         "flags 0x%x are none that version %s knows",
                         (unsigned)strange, HVD_VERSION_STRING);
    if (given->flags & HVD_AVERAGE_CONTRIBUTORS &&
        (!hvd__kind_has(given->kind, HVD__HAS_OP) || given->op != HVD_AVERAGE))
        return hvd__fail(HVD_ERR_ARGUMENT,
                         "the flag HVD_AVERAGE_CONTRIBUTORS is for averages");
    return HVD_OK;
}

/* A flag, a scale or a root that a kind does not use is a mistake, because the
 * program expects it to have an effect. */
static int check_meaning(const hvd_request *given)
{
    const hvd_kind kind = given->kind;

    if (given->flags != 0)
        HVD_TRY(check_flags(given));
    if (!hvd__kind_has(kind, HVD__HAS_OP) &&
        (given->prescale != 1 || given->postscale != 1))
        return hvd__fail(HVD_ERR_ARGUMENT,
                         "prescale %g and postscale %g: %s scales nothing, and "
                         "both must be 1",
                         given->prescale, given->postscale,
                         hvd_kind_name(kind));
    if (given->root != 0 && !hvd__kind_has(kind, HVD__HAS_ROOT))
        return hvd__fail(HVD_ERR_ARGUMENT,
                         "root is %d: %s has no root, and it must be 0",
                         (int)given->root, hvd_kind_name(kind));
    return HVD_OK;
}

static int check_scales(const hvd_request *given)
{
    if (!isfinite(given->prescale) || !isfinite(given->postscale))
        return hvd__fail(HVD_ERR_ARGUMENT,
                         "prescale %g and postscale %g must be finite",
                         given->prescale, given->postscale);
    if (given->dtype == HVD_BOOL &&
        (given->prescale != 1 || given->postscale != 1))
        return hvd__fail(HVD_ERR_ARGUMENT, "bool cannot be scaled");
    return HVD_OK;
}

static int check_op(const hvd_request *given)
{
    if (!hvd_op_name(given->op))
        return hvd__fail(HVD_ERR_ARGUMENT,
                         "op %d is no reduction operation (0 to %d)",
                         (int)given->op, HVD_NUM_OPS - 1);
    if (given->op == HVD_ADASUM && given->kind != HVD_ALLREDUCE)
        return hvd__fail(HVD_ERR_UNSUPPORTED,
                         "adasum is an operation of allreduce only");
    if (given->op == HVD_ADASUM && !hvd__dtype_is_float(given->dtype))
        return hvd__fail(HVD_ERR_ARGUMENT,
                         "adasum is for floating types, not %s",
                         hvd_dtype_name(given->dtype));
    if (given->op == HVD_AVERAGE && given->dtype == HVD_BOOL)
        return hvd__fail(HVD_ERR_ARGUMENT,
                         "bool has no average, which is the default op: the "
                         "logical or is sum or max, and is min or product");
    return check_scales(given);
}

static int check_compression(const hvd_request *given)
{
    const char *name;

    if (given->compression == HVD_COMPRESSION_NONE)
        return HVD_OK;
    name = hvd_compression_name(given->compression);
    if (!name)
        return hvd__fail(HVD_ERR_ARGUMENT,
                         "compression %d is neither one of the library's "
                         "nor registered",
                         (int)given->compression);
    if (given->kind != HVD_ALLREDUCE ||
        (given->op != HVD_SUM && given->op != HVD_AVERAGE))
        return hvd__fail(HVD_ERR_UNSUPPORTED,
                         "compression is for allreduces with sum or "
                         "average");
    if (given->dtype != HVD_FLOAT32 &&
        (given->dtype != HVD_FLOAT64 ||
         hvd__compression_encodes(given->compression)))
        return hvd__fail(HVD_ERR_ARGUMENT, "%s does not compress %s", name,
                         hvd_dtype_name(given->dtype));
    return HVD_OK;
}

static int check_shape(const hvd_request *given, struct hvd__request *request)
{
    uint64_t element = hvd__dtype_bytes(given->dtype), bytes = element;
    bool empty = false;

    if (given->ndim < 0 || given->ndim > HVD_MAX_DIMS)
        return hvd__fail(HVD_ERR_ARGUMENT,
                         "%d dimensions, a tensor has 0 to %d",
                         (int)given->ndim, HVD_MAX_DIMS);
    if (given->ndim > 0 && !given->shape)
        return hvd__fail(HVD_ERR_ARGUMENT, "the shape of %d dimensions is NULL",
                         (int)given->ndim);
    if (given->ndim == 0 && hvd__kind_has(given->kind, HVD__HAS_ROWS))
        return hvd__fail(HVD_ERR_ARGUMENT,
                         "a scalar has no rows; give it the shape [1]");
    for (int32_t i = 0; i < given->ndim; i++) {
        int64_t extent = given->shape[i];

        if (extent < 0)
            return hvd__fail(HVD_ERR_ARGUMENT,
                             "dimension %d is %lld, less than 0", (int)i,
                             (long long)extent);
        request->signature.shape[i] = extent;
        empty |= extent == 0;
    }
    for (int32_t i = 0; i < given->ndim && !empty; i++)
        if (__builtin_mul_overflow(bytes, (uint64_t)given->shape[i], &bytes) ||
            bytes > BYTES_MAX)
            return hvd__fail(HVD_ERR_ARGUMENT,
                             "dimensions up to number %d make more bytes "
                             "than memory can hold",
                             (int)i);
    request->signature.ndim = given->ndim;
    request->bytes = empty ? 0 : (size_t)bytes;
    request->count = (int64_t)(request->bytes / element);
    request->rows = given->ndim > 0 ? given->shape[0] : 1;
    return HVD_OK;
}

static int check_splits(const hvd_request *given, const struct hvd__set *set,
                        struct hvd__request *request)
{
    int n = set->team.size;
    int64_t sum = 0;

    if (!given->splits) {
        if (request->rows % n != 0)
            return hvd__fail(HVD_ERR_ARGUMENT,
                             "%lld rows are no multiple of %d ranks: give "
                             "splits",
                             (long long)request->rows, n);
        return HVD_OK;
    }
    request->splits = malloc((size_t)n * sizeof *request->splits);
    if (!request->splits)
        return hvd__fail_memory((size_t)n * sizeof *request->splits);
    for (int i = 0; i < n; i++) {
        request->splits[i] = given->splits[i];
        if (given->splits[i] < 0)
            return hvd__fail(HVD_ERR_ARGUMENT, "split %d is %lld, less than 0",
                             i, (long long)given->splits[i]);
        if (__builtin_add_overflow(sum, given->splits[i], &sum) ||
            sum > request->rows)
            return hvd__fail(HVD_ERR_ARGUMENT,
                             "splits up to number %d are more than the "
                             "%lld rows",
                             i, (long long)request->rows);
    }
    return HVD_OK;
}

/* Returns the bytes that this rank receives, as far as they are known. */
static size_t output_bytes(const struct hvd__request *request,
                           const struct hvd__set *set)
{
    const struct hvd__signature *s = &request->signature;

    switch (s->kind) {
    case HVD_ALLGATHER:
    case HVD_GATHER: return request->bytes * (size_t)set->team.size;
    case HVD_REDUCESCATTER:
        return (size_t)hvd__slice_of(request->rows, set->team.rank,
                                     set->team.size)
                   .count *
               hvd__signature_row_bytes(s);
    default: return request->bytes;
    }
}

static int check_overlap(const struct hvd__set *set,
                         struct hvd__request *request)
{
    const struct hvd__signature *s = &request->signature;
    uintptr_t in = (uintptr_t)request->input, out = (uintptr_t)request->output;
    size_t bytes = output_bytes(request, set);
    bool gathers = s->kind == HVD_ALLGATHER || s->kind == HVD_GATHER;
    uintptr_t own = out + (size_t)set->team.rank * request->bytes;

    if (hvd__signature_varies(s))
        bytes = (size_t)request->capacity * hvd__dtype_bytes(s->dtype);
    if (in >= out + bytes || out >= in + request->bytes)
        return HVD_OK;
    if (hvd__signature_varies(s))
        return hvd__fail(HVD_ERR_ARGUMENT,
                         "input and output overlap, where each rank may have "
                         "its own number of rows: give memory of its own to "
                         "each");
    if (gathers && in == own)
        return HVD_OK;
    if (gathers)
        return hvd__fail(HVD_ERR_ARGUMENT,
                         "input lies in the output, but not where it "
                         "belongs: put it at element %lld, or elsewhere",
                         (long long)request->count * set->team.rank);
    if (in != out)
        return hvd__fail(HVD_ERR_ARGUMENT,
                         "input and output overlap by a part: give the "
                         "same pointer twice, or memory of its own to each");
    return HVD_OK;
}

/* Checks the capacity if the size of the result is known beforehand. If it
 * depends on the rows of other ranks, pack_gather.c checks it when they are
 * known. */
static int check_capacity(const struct hvd__set *set,
                          const struct hvd__request *request)
{
    const struct hvd__signature *s = &request->signature;
    int64_t needed;

    if (request->capacity == 0 || hvd__kind_has(s->kind, HVD__MAY_VARY))
        return HVD_OK;
    needed = (int64_t)(output_bytes(request, set) / hvd__dtype_bytes(s->dtype));
    if (request->capacity >= needed)
        return HVD_OK;
    return hvd__fail(HVD_ERR_ARGUMENT,
                     "capacity %lld is too small: the output needs %lld "
                     "elements",
                     (long long)request->capacity, (long long)needed);
}

static int check_buffers(const hvd_request *given, const struct hvd__set *set,
                         struct hvd__request *request)
{
    const struct hvd__signature *s = &request->signature;
    const bool has_rows = hvd__kind_has(s->kind, HVD__HAS_ROWS);
    const bool gets_result = hvd__set_gets_result(set, s);

    if (has_rows && request->bytes > BYTES_MAX / (size_t)set->team.size)
        return hvd__fail(HVD_ERR_ARGUMENT,
                         "so much of every rank is more bytes than memory "
                         "can hold");
    request->output = gets_result ? given->output : NULL;
    request->counts = given->counts;
    if (given->capacity < 0)
        return hvd__fail(HVD_ERR_ARGUMENT, "capacity %lld is less than 0",
                         (long long)given->capacity);
    request->capacity = request->output ? given->capacity : 0;
    HVD_TRY(check_capacity(set, request));
    if (request->count > 0 && !request->output && gets_result && !has_rows)
        return hvd__fail(HVD_ERR_ARGUMENT,
                         "the output of %lld elements is NULL",
                         (long long)request->count);
    request->input = request->output; /* what a broadcast sends is there */
    if (!hvd__kind_has(s->kind, HVD__HAS_INPUT))
        return HVD_OK;
    if (request->count > 0 && !given->input)
        return hvd__fail(HVD_ERR_ARGUMENT, "the input of %lld elements is NULL",
                         (long long)request->count);
    request->input = given->input;
    return HVD_OK;
}

/* -------------------------------------------------------- memory of its own */

static int take_memory(void **memory, size_t bytes)
{
    *memory = malloc(bytes > 0 ? bytes : 1);
    return *memory ? HVD_OK : hvd__fail_memory(bytes);
}

/* Allocates memory for in-place requests whose algorithm does not work in
 * place: the output is made elsewhere first. */
static int make_room(const struct hvd__set *set, struct hvd__request *request)
{
    const struct hvd__signature *s = &request->signature;

    if (s->op == HVD_ADASUM && s->kind == HVD_ALLREDUCE && set->team.size > 1)
        HVD_TRY(take_memory(
            &request->scratch,
            hvd__adasum_scratch(s->dtype, request->count, set->team.size,
                                set->hosts ? set->hosts->widest : 1)));
    if (!request->output && hvd__set_gets_result(set, s) &&
        (s->kind == HVD_REDUCESCATTER ||
         (s->kind == HVD_GATHER && !hvd__signature_varies(s)))) {
        request->own_output = hvd_malloc(output_bytes(request, set));
        request->output = request->own_output;
        if (!request->output)
            return HVD_ERR_MEMORY;
    } else if (s->kind == HVD_REDUCESCATTER &&
               request->input == request->output) {
        HVD_TRY(take_memory(&request->scratch, output_bytes(request, set)));
    }
    return HVD_OK;
}

/* ------------------------------------------------------------------ a check */

static int check_root(const hvd_request *given, const struct hvd__set *set)
{
    char text[128];

    if (hvd__set_find(set, given->root) >= 0)
        return HVD_OK;
    return hvd__fail(HVD_ERR_ARGUMENT, "root %d is not a rank of %s",
                     (int)given->root, hvd__set_print(set, text, sizeof text));
}

/* The rows of the shapes may differ unless the output excludes it. */
static void let_vary(const struct hvd__request *request, bool has_output,
                     bool asked, struct hvd__signature *s)
{
    if (hvd__kind_has(s->kind, HVD__MAY_VARY) &&
        (!has_output || request->capacity > 0 || request->splits || asked))
        s->shape[0] = HVD__VARIES;
}

static int check_tensor(const hvd_request *given, const struct hvd__set *set,
                        struct hvd__request *request)
{
    struct hvd__signature *s = &request->signature;

    if (!hvd_dtype_name(given->dtype))
        return hvd__fail(HVD_ERR_ARGUMENT, "dtype %d is none (0 to %d)",
                         (int)given->dtype, HVD_NUM_DTYPES - 1);
    s->dtype = given->dtype;
    HVD_TRY(check_shape(given, request));
    if (hvd__kind_has(s->kind, HVD__HAS_ROOT)) {
        HVD_TRY(check_root(given, set));
        s->root = given->root;
    }
    if (s->kind == HVD_ALLTOALL)
        HVD_TRY(check_splits(given, set, request));
    HVD_TRY(check_buffers(given, set, request));
    if (hvd__kind_has(s->kind, HVD__HAS_OP)) {
        HVD_TRY(check_op(given));
        s->op = given->op;
        s->prescale = given->prescale;
        s->postscale = given->postscale;
        s->flags = given->flags;
    }
    if (s->kind == HVD_ALLGATHER && given->flags == HVD__SPARSE) {
        s->op = given->op;
        s->flags = given->flags;
    }
    HVD_TRY(check_compression(given));
    s->compression = given->compression;
    /* All ranks must agree whether rows vary, although only the root of a
     * gather has an output. */
    let_vary(request,
             s->kind == HVD_GATHER ? given->capacity == 0
                                   : given->output != NULL,
             given->flags == HVD__OWN_ROWS, s);
    if (hvd__kind_has(s->kind, HVD__HAS_INPUT) && request->output)
        HVD_TRY(check_overlap(set, request));
    return make_room(set, request);
}

int hvd__request_check(const hvd_request *given, const struct hvd__set *set,
                       struct hvd__request *request)
{
    HVD_TRY(check_kind(given));
    HVD_TRY(check_meaning(given));
    request->signature.kind = given->kind;
    if (hvd__kind_has(given->kind, HVD__HAS_TENSOR))
        return check_tensor(given, set, request);
    request->output = given->output; /* a join writes the last rank here */
    if (given->kind == HVD_JOIN)
        request->signature.flags = given->flags & HVD__OF_STRATEGY;
    return HVD_OK;
}
