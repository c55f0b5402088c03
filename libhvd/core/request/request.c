/* SPDX-License-Identifier: Apache-2.0 */
/*
 * request.c - is what the program submits possible at all?
 *
 * Everything that one rank can judge alone is judged here, before anything
 * moves: sizes, ranges, NULL, overlap, what this version lacks. What only all
 * ranks together can judge (do they mean the same?) is negotiate.c's and
 * coordinator.c's. A message names the tensor, the argument and its value.
 */
#include "core/request/request.h"

#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/dtype.h"
#include "base/status.h"
#include "base/text.h"
#include "core/request/compress.h"
#include "core/request/fingerprint.h"
#include "core/world/set.h"
#include "transport/algo/algo.h"

/* No object is larger, and sums of two sizes do not wrap. */
#define BYTES_MAX ((uint64_t)PTRDIFF_MAX)

/* The least that a request of any version has: that of 0.1. */
#define FIRST_SIZE offsetof(hvd_request, process_set)

void hvd_request_init(hvd_request *request, size_t size)
{
    hvd_request defaults = {.size = (uint32_t)size,
                            .op = HVD_AVERAGE,
                            .prescale = 1,
                            .postscale = 1};

    if (!request)
        return;
    memset(request, 0, size);
    memcpy(request, &defaults, size < sizeof defaults ? size : sizeof defaults);
}

int hvd__request_copy(const hvd_request *given, hvd_request *request)
{
    if (!given)
        return hvd__fail(HVD_ERR_ARGUMENT, "the request is NULL");
    if (given->size < FIRST_SIZE)
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
    *request = (hvd_request){0};
    memcpy(request, given,
           given->size < sizeof *request ? given->size : sizeof *request);
    return HVD_OK;
}

void hvd__request_distrust(hvd_request *request)
{
    if (request->flags & HVD__OWN_FLAGS)
        request->flags |= HVD__FORGED;
}

/* Whether one of eight bytes is a control character (Mycroft's test, by which
 * a byte borrows from its neighbour only after one that is). */
static bool has_control(uint64_t word)
{
    const uint64_t ones = UINT64_C(0x0101010101010101), high = 0x80 * ones;
    uint64_t delete = word ^ 0x7f * ones;

    return (((word - 0x20 * ones) & ~word) | ((delete - ones) & ~delete)) &
           high;
}

static bool is_clean(const char *name, size_t bytes)
{
    uint64_t word;

    for (; bytes >= sizeof word; bytes -= sizeof word, name += sizeof word) {
        memcpy(&word, name, sizeof word);
        if (has_control(word))
            return false;
    }
    for (; bytes > 0; bytes--, name++)
        if ((unsigned char)*name < 0x20 || *name == 0x7f)
            return false;
    return true;
}

int hvd__request_check_name(const char *name)
{
    size_t bytes = strnlen(name, HVD_MAX_NAME + 1), i = 0;

    if (bytes > HVD_MAX_NAME)
        return hvd__fail(HVD_ERR_ARGUMENT,
                         "a name is longer than %d bytes: '%.32s...'",
                         HVD_MAX_NAME, name);
    if (is_clean(name, bytes))
        return (int)bytes;
    while ((unsigned char)name[i] >= 0x20 && name[i] != 0x7f)
        i++;
    return hvd__fail(HVD_ERR_ARGUMENT,
                     "byte %zu of the name '%.64s' is the control character "
                     "0x%02x",
                     i, name, (unsigned)(unsigned char)name[i]);
}

static int check_kind(const hvd_request *request)
{
    if (!hvd_kind_name(request->kind))
        return hvd__fail(HVD_ERR_UNSUPPORTED,
                         "kind %d is none that version %s knows",
                         (int)request->kind, HVD_VERSION_STRING);
    return HVD_OK;
}

static int check_flags(const hvd_request *request)
{
    const int32_t known = HVD_AVERAGE_CONTRIBUTORS | HVD__OWN_FLAGS;
    int32_t strange = request->flags & ~HVD_AVERAGE_CONTRIBUTORS;

    if (strange & HVD__OWN_FLAGS)
        strange &= ~HVD__FORGED; /* which is our mark */
    if (request->flags & ~known)
        return hvd__fail(HVD_ERR_UNSUPPORTED,
                         "flags 0x%x are none that version %s knows",
                         (unsigned)strange, HVD_VERSION_STRING);
    if (request->flags & HVD_AVERAGE_CONTRIBUTORS &&
        (!hvd__kind_has(request->kind, HVD__HAS_OP) ||
         request->op != HVD_AVERAGE))
        return hvd__fail(HVD_ERR_ARGUMENT,
                         "the flag HVD_AVERAGE_CONTRIBUTORS is for averages");
    return HVD_OK;
}

/* A flag, a scale or a root that means nothing to a kind is a mistake: the
 * program expects something of it. */
static int check_meaning(const hvd_request *request)
{
    const hvd_kind kind = request->kind;

    if (request->flags != 0)
        HVD_TRY(check_flags(request));
    if (!hvd__kind_has(kind, HVD__HAS_OP) &&
        (request->prescale != 1 || request->postscale != 1))
        return hvd__fail(HVD_ERR_ARGUMENT,
                         "prescale %g and postscale %g: %s scales nothing, and "
                         "both must be 1",
                         request->prescale, request->postscale,
                         hvd_kind_name(kind));
    if (request->root != 0 && !hvd__kind_has(kind, HVD__HAS_ROOT))
        return hvd__fail(HVD_ERR_ARGUMENT,
                         "root is %d: %s has no root, and it must be 0",
                         (int)request->root, hvd_kind_name(kind));
    return HVD_OK;
}

static int check_scales(const hvd_request *request)
{
    if (!isfinite(request->prescale) || !isfinite(request->postscale))
        return hvd__fail(HVD_ERR_ARGUMENT,
                         "prescale %g and postscale %g must be finite",
                         request->prescale, request->postscale);
    if (request->dtype == HVD_BOOL &&
        (request->prescale != 1 || request->postscale != 1))
        return hvd__fail(HVD_ERR_ARGUMENT, "bool cannot be scaled");
    return HVD_OK;
}

static bool is_floating(hvd_dtype dtype)
{
    return dtype == HVD_FLOAT16 || dtype == HVD_BFLOAT16 ||
           dtype == HVD_FLOAT32 || dtype == HVD_FLOAT64;
}

static int check_op(const hvd_request *request)
{
    if (!hvd_op_name(request->op))
        return hvd__fail(HVD_ERR_ARGUMENT,
                         "op %d is no reduction operation (0 to %d)",
                         (int)request->op, HVD_NUM_OPS - 1);
    if (request->op == HVD_ADASUM && request->kind != HVD_ALLREDUCE)
        return hvd__fail(HVD_ERR_UNSUPPORTED,
                         "adasum is an operation of allreduce only");
    if (request->op == HVD_ADASUM && !is_floating(request->dtype))
        return hvd__fail(HVD_ERR_ARGUMENT,
                         "adasum is for floating types, not %s",
                         hvd_dtype_name(request->dtype));
    if (request->op == HVD_AVERAGE && request->dtype == HVD_BOOL)
        return hvd__fail(HVD_ERR_ARGUMENT,
                         "bool has no average, which is the default op: the "
                         "logical or is sum or max, and is min or product");
    return check_scales(request);
}

static int check_compression(const hvd_request *request)
{
    const char *name;

    if (request->compression == HVD_COMPRESSION_NONE)
        return HVD_OK;
    name = hvd_compression_name(request->compression);
    if (!name)
        return hvd__fail(HVD_ERR_ARGUMENT,
                         "compression %d is neither one of the library's "
                         "nor registered",
                         (int)request->compression);
    if (request->kind != HVD_ALLREDUCE ||
        (request->op != HVD_SUM && request->op != HVD_AVERAGE))
        return hvd__fail(HVD_ERR_UNSUPPORTED,
                         "compression is for allreduces with sum or "
                         "average");
    if (request->dtype != HVD_FLOAT32 &&
        (request->dtype != HVD_FLOAT64 ||
         hvd__compression_encodes(request->compression)))
        return hvd__fail(HVD_ERR_ARGUMENT, "%s does not compress %s", name,
                         hvd_dtype_name(request->dtype));
    return HVD_OK;
}

static int check_shape(const hvd_request *request, struct hvd__entry *entry)
{
    uint64_t element = hvd__dtype_bytes(request->dtype), bytes = element;
    bool empty = false;

    if (request->ndim < 0 || request->ndim > HVD_MAX_DIMS)
        return hvd__fail(HVD_ERR_ARGUMENT,
                         "%d dimensions, a tensor has 0 to %d",
                         (int)request->ndim, HVD_MAX_DIMS);
    if (request->ndim > 0 && !request->shape)
        return hvd__fail(HVD_ERR_ARGUMENT, "the shape of %d dimensions is NULL",
                         (int)request->ndim);
    if (request->ndim == 0 && hvd__kind_has(request->kind, HVD__HAS_ROWS))
        return hvd__fail(HVD_ERR_ARGUMENT,
                         "a scalar has no rows; give it the shape [1]");
    for (int32_t i = 0; i < request->ndim; i++) {
        int64_t extent = request->shape[i];

        if (extent < 0)
            return hvd__fail(HVD_ERR_ARGUMENT,
                             "dimension %d is %lld, less than 0", (int)i,
                             (long long)extent);
        entry->signature.shape[i] = extent;
        empty |= extent == 0;
    }
    for (int32_t i = 0; i < request->ndim && !empty; i++)
        if (__builtin_mul_overflow(bytes, (uint64_t)request->shape[i],
                                   &bytes) ||
            bytes > BYTES_MAX)
            return hvd__fail(HVD_ERR_ARGUMENT,
                             "dimensions up to number %d make more bytes "
                             "than memory can hold",
                             (int)i);
    entry->signature.ndim = request->ndim;
    entry->bytes = empty ? 0 : (size_t)bytes;
    entry->count = (int64_t)(entry->bytes / element);
    entry->rows = request->ndim > 0 ? request->shape[0] : 1;
    return HVD_OK;
}

static int check_splits(const hvd_request *request, const struct hvd__set *set,
                        struct hvd__entry *entry)
{
    int n = set->team.size;
    int64_t sum = 0;

    if (!request->splits) {
        if (entry->rows % n != 0)
            return hvd__fail(HVD_ERR_ARGUMENT,
                             "%lld rows are no multiple of %d ranks: give "
                             "splits",
                             (long long)entry->rows, n);
        return HVD_OK;
    }
    entry->splits = malloc((size_t)n * sizeof *entry->splits);
    if (!entry->splits)
        return hvd__fail_memory((size_t)n * sizeof *entry->splits);
    for (int i = 0; i < n; i++) {
        entry->splits[i] = request->splits[i];
        if (request->splits[i] < 0)
            return hvd__fail(HVD_ERR_ARGUMENT, "split %d is %lld, less than 0",
                             i, (long long)request->splits[i]);
        if (__builtin_add_overflow(sum, request->splits[i], &sum) ||
            sum > entry->rows)
            return hvd__fail(HVD_ERR_ARGUMENT,
                             "splits up to number %d are more than the "
                             "%lld rows",
                             i, (long long)entry->rows);
    }
    return HVD_OK;
}

/* Bytes of what this rank gets, as far as it is known. */
static size_t output_bytes(const struct hvd__entry *entry,
                           const struct hvd__set *set)
{
    const struct hvd__signature *s = &entry->signature;

    switch (s->kind) {
    case HVD_ALLGATHER:
    case HVD_GATHER: return entry->bytes * (size_t)set->team.size;
    case HVD_REDUCESCATTER:
        return (size_t)hvd__slice_of(entry->rows, set->team.rank,
                                     set->team.size)
                   .count *
               hvd__signature_row_bytes(s);
    default: return entry->bytes;
    }
}

/* Whether this rank gets a result. */
static bool gets(const struct hvd__entry *entry, const struct hvd__set *set)
{
    const struct hvd__signature *s = &entry->signature;

    return (s->kind != HVD_GATHER && s->kind != HVD_REDUCE) ||
           s->root == set->team.world[set->team.rank];
}

static int check_overlap(const struct hvd__set *set, struct hvd__entry *entry)
{
    const struct hvd__signature *s = &entry->signature;
    uintptr_t in = (uintptr_t)entry->input, out = (uintptr_t)entry->output;
    size_t bytes = output_bytes(entry, set);
    bool gathers = s->kind == HVD_ALLGATHER || s->kind == HVD_GATHER;
    uintptr_t own = out + (size_t)set->team.rank * entry->bytes;

    if (hvd__signature_varies(s))
        bytes = (size_t)entry->capacity * hvd__dtype_bytes(s->dtype);
    if (in >= out + bytes || out >= in + entry->bytes)
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
                         (long long)entry->count * set->team.rank);
    if (in != out)
        return hvd__fail(HVD_ERR_ARGUMENT,
                         "input and output overlap by a part: give the "
                         "same pointer twice, or memory of its own to each");
    return HVD_OK;
}

/* Where it is known beforehand what the output must hold. Where the others'
 * rows count, that is judged when they have come. */
static int check_capacity(const struct hvd__set *set,
                          const struct hvd__entry *entry)
{
    const struct hvd__signature *s = &entry->signature;
    int64_t needed;

    if (entry->capacity == 0 || hvd__kind_has(s->kind, HVD__MAY_VARY))
        return HVD_OK;
    needed = (int64_t)(output_bytes(entry, set) / hvd__dtype_bytes(s->dtype));
    if (entry->capacity >= needed)
        return HVD_OK;
    return hvd__fail(HVD_ERR_ARGUMENT,
                     "capacity %lld is too small: the output needs %lld "
                     "elements",
                     (long long)entry->capacity, (long long)needed);
}

static int check_buffers(const hvd_request *request, const struct hvd__set *set,
                         struct hvd__entry *entry)
{
    const struct hvd__signature *s = &entry->signature;
    bool may_be_ours = hvd__kind_has(s->kind, HVD__HAS_ROWS);

    if (hvd__kind_has(s->kind, HVD__HAS_ROWS) &&
        entry->bytes > BYTES_MAX / (size_t)set->team.size)
        return hvd__fail(HVD_ERR_ARGUMENT,
                         "so much of every rank is more bytes than memory "
                         "can hold");
    entry->output = gets(entry, set) ? request->output : NULL;
    entry->counts = request->counts;
    if (request->capacity < 0)
        return hvd__fail(HVD_ERR_ARGUMENT, "capacity %lld is less than 0",
                         (long long)request->capacity);
    entry->capacity = entry->output ? request->capacity : 0;
    HVD_TRY(check_capacity(set, entry));
    if (entry->count > 0 && !entry->output && gets(entry, set) && !may_be_ours)
        return hvd__fail(HVD_ERR_ARGUMENT,
                         "the output of %lld elements is NULL",
                         (long long)entry->count);
    if (!hvd__kind_has(s->kind, HVD__HAS_INPUT))
        return HVD_OK;
    if (entry->count > 0 && !request->input)
        return hvd__fail(HVD_ERR_ARGUMENT, "the input of %lld elements is NULL",
                         (long long)entry->count);
    entry->input = request->input;
    return HVD_OK;
}

/* -------------------------------------------------------- memory of its own */

static int take_memory(void **memory, size_t bytes)
{
    *memory = malloc(bytes > 0 ? bytes : 1);
    return *memory ? HVD_OK : hvd__fail_memory(bytes);
}

/* In place where the algorithm is not: the input is copied, or the output
 * made elsewhere first. */
static int make_room(const struct hvd__set *set, struct hvd__entry *entry)
{
    const struct hvd__signature *s = &entry->signature;

    if (s->op == HVD_ADASUM && s->kind == HVD_ALLREDUCE && set->team.size > 1)
        HVD_TRY(take_memory(
            &entry->scratch,
            hvd__adasum_scratch(s->dtype, entry->count, set->team.size)));
    if (s->kind == HVD_ALLTOALL && entry->input == entry->output &&
        entry->bytes > 0) {
        HVD_TRY(take_memory(&entry->own_input, entry->bytes));
        memcpy(entry->own_input, entry->input, entry->bytes);
        entry->input = entry->own_input;
    }
    if (s->kind == HVD_REDUCESCATTER && !entry->output) {
        entry->own_output = hvd_malloc(output_bytes(entry, set));
        entry->output = entry->own_output;
        if (!entry->output)
            return HVD_ERR_MEMORY;
    } else if (s->kind == HVD_REDUCESCATTER && entry->input == entry->output) {
        HVD_TRY(take_memory(&entry->scratch, output_bytes(entry, set)));
    }
    return HVD_OK;
}

/* ------------------------------------------------------------------ a check */

static int check_root(const hvd_request *request, const struct hvd__set *set)
{
    char text[128];

    if (hvd__set_find(set, request->root) >= 0)
        return HVD_OK;
    return hvd__fail(HVD_ERR_ARGUMENT, "root %d is not a rank of %s",
                     (int)request->root,
                     hvd__set_print(set, text, sizeof text));
}

/* Shapes may differ in their rows where the output does not say otherwise. */
static void let_vary(const struct hvd__entry *entry, bool has_output,
                     bool asked, struct hvd__signature *s)
{
    if (hvd__kind_has(s->kind, HVD__MAY_VARY) &&
        (!has_output || entry->capacity > 0 || entry->splits || asked))
        s->shape[0] = HVD__VARIES;
}

static int check_tensor(const hvd_request *request, const struct hvd__set *set,
                        struct hvd__entry *entry)
{
    struct hvd__signature *s = &entry->signature;

    if (!hvd_dtype_name(request->dtype))
        return hvd__fail(HVD_ERR_ARGUMENT, "dtype %d is none (0 to %d)",
                         (int)request->dtype, HVD_NUM_DTYPES - 1);
    s->dtype = request->dtype;
    HVD_TRY(check_shape(request, entry));
    if (hvd__kind_has(s->kind, HVD__HAS_ROOT)) {
        HVD_TRY(check_root(request, set));
        s->root = request->root;
    }
    if (s->kind == HVD_ALLTOALL)
        HVD_TRY(check_splits(request, set, entry));
    HVD_TRY(check_buffers(request, set, entry));
    if (hvd__kind_has(s->kind, HVD__HAS_OP)) {
        HVD_TRY(check_op(request));
        s->op = request->op;
        s->prescale = request->prescale;
        s->postscale = request->postscale;
        s->flags = request->flags;
    }
    if (s->kind == HVD_ALLGATHER && request->flags == HVD__SPARSE) {
        s->op = request->op;
        s->flags = request->flags;
    }
    HVD_TRY(check_compression(request));
    s->compression = request->compression;
    /* Only the root of a gather has an output, but all must vary alike. */
    let_vary(entry,
             s->kind == HVD_GATHER ? request->capacity == 0
                                   : request->output != NULL,
             request->flags == HVD__OWN_ROWS, s);
    if (hvd__kind_has(s->kind, HVD__HAS_INPUT) && entry->output)
        HVD_TRY(check_overlap(set, entry));
    return make_room(set, entry);
}

int hvd__request_check(const hvd_request *request, const struct hvd__set *set,
                       struct hvd__entry *entry)
{
    HVD_TRY(check_kind(request));
    HVD_TRY(check_meaning(request));
    entry->signature.kind = request->kind;
    if (hvd__kind_has(request->kind, HVD__HAS_TENSOR))
        return check_tensor(request, set, entry);
    entry->output = request->output; /* of a join: the last rank */
    if (request->kind == HVD_JOIN)
        entry->signature.flags = request->flags & HVD__OF_STRATEGY;
    return HVD_OK;
}

/* ------------------------------------------------------------------- a life */

static void begin(struct hvd__unit *unit, int n)
{
    unit->nentries = unit->nleft = n;
    atomic_init(&unit->nrefs, n);
    for (int i = 0; i < n; i++) {
        unit->entries[i].unit = unit;
        unit->entries[i].slot = -1;
    }
}

void hvd__unit_reset(struct hvd__unit *unit)
{
    memset(unit, 0, offsetof(struct hvd__unit, name) + 1);
    memset(unit->entries, 0, sizeof *unit->entries);
    begin(unit, 1);
}

void hvd__unit_remember(struct hvd__unit *unit, const hvd_request *given,
                        size_t bytes)
{
    const struct hvd__entry *entry = &unit->entries[0];

    /* Rows and codes are counted each time, some memory is taken. The
     * library's own names are not for programs to find. */
    if (unit->name[0] == HVD__OWN || given->kind == HVD_JOIN ||
        hvd__kind_has(given->kind, HVD__HAS_ROWS) ||
        given->compression != HVD_COMPRESSION_NONE || entry->scratch)
        return;
    unit->may_recur = true;
    unit->name_bytes = (uint16_t)bytes;
    unit->given = *given;
}

/* Whether two requests have the same in all fields from one to another. */
#define SAME(a, b, first, last)                                                \
    (memcmp(&(a)->first, &(b)->first,                                          \
            offsetof(hvd_request, last) + sizeof(a)->last -                    \
                offsetof(hvd_request, first)) == 0)
_Static_assert(sizeof(hvd_request) == 128, "a new field is compared below");

bool hvd__unit_is_like(const struct hvd__unit *unit, const hvd_request *request,
                       const char *name)
{
    const int64_t *shape = unit->entries[0].signature.shape;

    /* All but the callback; of scales too, what has the same bits is the
     * same. There is nothing in between these fields. */
    if (!SAME(&unit->given, request, size, ndim) ||
        !SAME(&unit->given, request, input, postscale) ||
        !SAME(&unit->given, request, process_set, counts) ||
        (request->ndim > 0 && !request->shape))
        return false;
    for (int32_t i = 0; i < request->ndim; i++)
        if (shape[i] != request->shape[i])
            return false;
    /* Its own name is a number, if it was given none. */
    return unit->name_bytes > 0 ? strcmp(unit->name, name) == 0
                                : name[0] == '\0';
}

void hvd__unit_renew(struct hvd__unit *unit, const hvd_request *request)
{
    struct hvd__entry *entry = &unit->entries[0];

    memset(&unit->next, 0,
           offsetof(struct hvd__unit, name) - offsetof(struct hvd__unit, next));
    memset(&entry->next, 0,
           offsetof(struct hvd__entry, capacity) -
               offsetof(struct hvd__entry, next));
    unit->name[unit->name_bytes] = '\0';
    entry->callback = request->callback;
    entry->callback_context = request->callback_context;
    begin(unit, 1);
}

struct hvd__unit *hvd__unit_new(int n)
{
    size_t bytes =
        sizeof(struct hvd__unit) + (size_t)n * sizeof(struct hvd__entry);
    struct hvd__unit *unit = aligned_alloc(HVD__LINE, bytes);

    if (!unit)
        return NULL;
    memset(unit, 0, bytes);
    begin(unit, n);
    return unit;
}

void hvd__unit_begin(struct hvd__unit *unit, bool timed, int64_t number)
{
    unit->timed = timed || hvd__request_is_timed((uint64_t)number,
                                                 unit->entries[0].bytes);
    unit->submitted_ns = unit->timed ? hvd__now_ns() : hvd__coarse_ns();
    unit->since_ns = unit->submitted_ns;
}

/* Nearly all own nothing: not worth a call each. */
static inline void drop(void *memory)
{
    if (memory)
        free(memory);
}

struct hvd__unit *hvd__entry_fini(struct hvd__entry *entry)
{
    struct hvd__unit *unit = entry->unit;

    drop(entry->splits);
    drop(entry->carried);
    drop(entry->label);
    drop(entry->message);
    if (entry->own_output)
        hvd_free(entry->own_output);
    drop(entry->own_input);
    drop(entry->scratch);
    /* Who is alone with it needs no more than a look. */
    if (atomic_load(&unit->nrefs) > 1 && atomic_fetch_sub(&unit->nrefs, 1) > 1)
        return NULL;
    drop(unit->message);
    return unit;
}

void hvd__entry_free(struct hvd__entry *entry)
{
    if (entry)
        free(hvd__entry_fini(entry));
}

void hvd__unit_free(struct hvd__unit *unit)
{
    int n = unit ? unit->nentries : 0;

    for (int i = 0; i < n; i++)
        hvd__entry_free(&unit->entries[i]);
}

uint64_t hvd__join_key(void)
{
    return hvd__fingerprint(0, HVD__JOIN_NAME, strlen(HVD__JOIN_NAME));
}

void hvd__text_add_name(struct hvd__text *text, const char *name)
{
    if (name[0] == HVD__UNNAMED)
        hvd__text_add(text, "unnamed operation %s", name + 1);
    else
        hvd__text_add(text, "'%s'", name[0] == HVD__OWN ? name + 1 : name);
}

const char *hvd__entry_label(const struct hvd__entry *entry, char *text,
                             size_t size)
{
    struct hvd__text out = hvd__text_at(text, size);

    hvd__text_add_name(&out, entry->unit->name);
    if (entry->label)
        hvd__text_add(&out, " member '%s'", entry->label);
    return text;
}
