/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pack_gather.c - packs blocks from each rank to each other rank. They belong
 * to gathers, to alltoalls, and to allreduces whose data is sent as codes
 * (every rank then gets every code).
 *
 *                 this rank sends to rank r    this rank receives from rank r
 *     allgather   its whole input              r's rows, into the output
 *     gather      its whole input, to root     r's rows, on root
 *     alltoall    the rows of its split r      the rows of r's split for it
 *     codes       its code                     r's code, into a temporary
 *
 * Several allgathers are fused: the data from one rank lies together in the
 * fusion buffer and is copied to the outputs at the end. A rank's block to
 * itself lies at its final place if possible. An alltoall in place is sent from
 * a copy in the fusion buffer, except in shared memory.
 *
 * If the output of the caller turns out to be too small, the rows go to memory
 * of the library, and the request fails. The other ranks are not affected.
 */
#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "core/request/compress.h"
#include "core/run/pack.h"
#include "core/table/set.h"

int64_t hvd__rows_from(const struct hvd__request *request, int rank)
{
    if (request->state.carried)
        return request->state.carried[rank];
    return request->signature.kind == HVD_ALLTOALL
               ? request->rows / request->submission->set->team.size
               : request->rows;
}

unsigned char *hvd__request_output(const struct hvd__request *request)
{
    return request->own_output ? request->own_output : request->output;
}

static size_t bytes_of(const struct hvd__request *request, int64_t rows)
{
    return (size_t)rows * hvd__signature_row_bytes(&request->signature);
}

static bool is_too_small(const struct hvd__request *request, size_t bytes)
{
    size_t element = hvd__dtype_bytes(request->signature.dtype);

    return request->output && hvd__signature_varies(&request->signature) &&
           bytes / element > (size_t)request->capacity;
}

/* Sets *memory to an output of rows rows: the caller's memory if it suffices,
 * else new memory. */
static int make_output(struct hvd__request *request, int64_t rows,
                       unsigned char **memory)
{
    size_t bytes = bytes_of(request, rows);

    request->out_rows = rows;
    *memory = request->output;
    if (request->output && !is_too_small(request, bytes))
        return HVD_OK;
    *memory = request->own_output = hvd_malloc(bytes);
    return *memory ? HVD_OK : HVD_ERR_MEMORY;
}

/* Checks whether the output suffices, now that its size is known. If the caller
 * gave none, memory of the library becomes the output. */
static void judge_output(struct hvd__request *request)
{
    size_t bytes = bytes_of(request, request->out_rows);

    if (is_too_small(request, bytes))
        hvd__request_fail(request, HVD_ERR_ARGUMENT,
                          "the output holds %lld elements, and %zu came",
                          (long long)request->capacity,
                          bytes / hvd__dtype_bytes(request->signature.dtype));
    else if (!request->output)
        request->output = request->own_output;
}

/* ---------------------------------------------------------------- allgather */

/* Several allgathers go through the buffer; one, or a gather, goes from the
 * input to the output. */
static int pack_gathers(struct hvd__lane *lane)
{
    struct hvd__request *first = lane->batch->requests;
    struct hvd__collective *c = &lane->collective;
    const int n = lane->set->team.size, us = lane->set->team.rank;
    const bool to_root = first->signature.kind == HVD_GATHER;
    const bool receives = hvd__set_gets_result(lane->set, &first->signature);
    struct hvd__block own = {.bytes = first->bytes};
    unsigned char *at = NULL;
    size_t bytes = 0;

    for (struct hvd__request *e = first; receives && e; e = e->state.next) {
        int64_t rows = 0;

        for (int rank = 0; rank < n; rank++)
            rows += hvd__rows_from(e, rank);
        HVD_TRY(make_output(e, rows, &at));
        bytes += bytes_of(e, rows);
    }
    if (first->state.next) {
        HVD_TRY(hvd__lane_room(lane, bytes));
        at = lane->buffer;
    }
    for (int rank = 0; rank < n; rank++) {
        c->from[rank] = (struct hvd__block){.data = at};
        for (struct hvd__request *e = first; receives && e; e = e->state.next)
            c->from[rank].bytes += bytes_of(e, hvd__rows_from(e, rank));
        at += c->from[rank].bytes;
    }
    /* The input is sent and never written to. */
    memcpy(&own.data, &first->input, sizeof own.data);
    if (lane->buffer) {
        own = c->from[us];
        hvd__copy_parts(lane, own.data, us, true);
    }
    for (int rank = 0; rank < n; rank++)
        c->to[rank] = to_root && rank != c->root ? (struct hvd__block){0} : own;
    return HVD_OK;
}

/* Divides all rows of an average, which only gathers of sparse rows have. */
static void scale_gathered(const struct hvd__set *set,
                           struct hvd__request *request)
{
    const struct hvd__signature *s = &request->signature;
    const void *data = hvd__request_output(request);
    struct hvd__reduction reduction = {.dtype = s->dtype,
                                       .op = HVD_AVERAGE,
                                       .prescale = 1,
                                       .postscale = 1,
                                       .divisor = set->team.size};
    size_t bytes = bytes_of(request, request->out_rows);

    if (s->op == HVD_AVERAGE && s->flags == HVD__SPARSE && data)
        hvd__reduce(&reduction, hvd__request_output(request), &data, 1,
                    (int64_t)(bytes / hvd__dtype_bytes(s->dtype)));
}

/* ----------------------------------------------------------------- alltoall */

int hvd__pack_counts(struct hvd__lane *lane)
{
    struct hvd__request *request = lane->batch->requests;
    struct hvd__collective *c = &lane->collective;
    const size_t each = sizeof *request->state.carried;
    size_t n = (size_t)lane->set->team.size;

    c->motion = HVD__EXCHANGE;
    c->count = (int64_t)each;
    HVD_TRY(hvd__lane_room(lane, n * each));
    hvd__request_write_splits(request, lane->set->team.size, lane->buffer);
    HVD_TRY(hvd__allocate(&request->state.carried, n, each));
    for (size_t rank = 0; rank < n; rank++) {
        c->to[rank] = (struct hvd__block){lane->buffer + rank * each, each};
        c->from[rank] = (struct hvd__block){
            (unsigned char *)&request->state.carried[rank], each};
    }
    return HVD_OK;
}

static int pack_alltoall(struct hvd__lane *lane)
{
    struct hvd__request *request = lane->batch->requests;
    struct hvd__collective *c = &lane->collective;
    size_t row = hvd__signature_row_bytes(&request->signature);
    int n = lane->set->team.size;
    unsigned char *in, *out;
    int64_t rows = 0;

    memcpy(&in, &request->input, sizeof in);
    /* If the result will take the input's place while it is sent, a copy is
     * sent. In shared memory ranks exchange in place (shared_exchange.c). */
    if (request->input == request->output && request->bytes > 0 &&
        !lane->team.shm) {
        HVD_TRY(hvd__lane_room(lane, request->bytes));
        memcpy(lane->buffer, in, request->bytes);
        in = lane->buffer;
    }
    for (int rank = 0; rank < n; rank++) {
        int64_t come = hvd__rows_from(request, rank);

        if (come < 0 || __builtin_add_overflow(rows, come, &rows) ||
            (row > 0 && (uint64_t)rows > (uint64_t)PTRDIFF_MAX / row))
            return hvd__fail(HVD_ERR_MEMORY,
                             "an alltoall brings more bytes than memory can "
                             "hold");
    }
    HVD_TRY(make_output(request, rows, &out));
    if (!hvd__signature_varies(&request->signature))
        c->count = (int64_t)((size_t)hvd__request_split(request, 0, n) * row);
    for (int rank = 0; rank < n; rank++) {
        size_t to = (size_t)hvd__request_split(request, rank, n) * row;
        size_t from = (size_t)hvd__rows_from(request, rank) * row;

        c->to[rank] = (struct hvd__block){in, to};
        c->from[rank] = (struct hvd__block){out, from};
        in += to;
        out += from;
    }
    return HVD_OK;
}

/* -------------------------------------------------------------------- codes */

static int pack_codes(struct hvd__lane *lane)
{
    struct hvd__request *request = lane->batch->requests;
    struct hvd__collective *c = &lane->collective;
    int us = lane->set->team.rank;
    size_t bytes = 0;
    unsigned char *at;

    for (int i = 0; i < lane->team.size; i++)
        bytes += (size_t)request->state.carried[lane->members[i]];
    HVD_TRY(hvd__lane_room(lane, bytes));
    at = lane->buffer;
    for (int i = 0; i < lane->team.size; i++) {
        int rank = lane->members[i];

        c->to[i] = (struct hvd__block){request->own_input,
                                       (size_t)request->state.carried[us]};
        c->from[i] =
            (struct hvd__block){at, (size_t)request->state.carried[rank]};
        at += c->from[i].bytes;
    }
    return HVD_OK;
}

static void unpack_codes(struct hvd__lane *lane)
{
    struct hvd__request *request = lane->batch->requests;
    const struct hvd__signature *s = &request->signature;
    int divisor = s->op == HVD_AVERAGE ? hvd__lane_divisor(lane) : 1;

    if (request->bytes > 0)
        memset(request->output, 0, request->bytes);
    for (int i = 0; i < lane->team.size && request->state.status == HVD_OK;
         i++) {
        const struct hvd__block *code = &lane->collective.from[i];

        request->state.status =
            hvd__compress_add(s->compression, code->data, (int64_t)code->bytes,
                              request->output, request->count);
    }
    if (request->state.status < 0)
        request->state.message = strdup(hvd_last_error());
    hvd__convert(s->dtype, request->output, s->dtype, request->output,
                 request->count, s->postscale / divisor);
}

/* ----------------------------------------------------------------- the door */

int hvd__pack_gather(struct hvd__lane *lane)
{
    hvd_kind kind = lane->batch->requests->signature.kind;

    lane->collective.motion = kind == HVD_ALLTOALL || kind == HVD_GATHER
                                  ? HVD__EXCHANGE
                                  : HVD__GATHER_TO_ALL;
    switch (kind) {
    case HVD_ALLREDUCE: return pack_codes(lane);
    case HVD_ALLTOALL: return pack_alltoall(lane);
    default: return pack_gathers(lane);
    }
}

void hvd__unpack_gather(struct hvd__lane *lane)
{
    struct hvd__request *first = lane->batch->requests;
    const int n = lane->set->team.size;
    unsigned char *at = lane->buffer;

    if (first->signature.kind == HVD_ALLREDUCE) {
        unpack_codes(lane);
        return;
    }
    for (int rank = 0; first->state.next && rank < n; rank++)
        at = hvd__copy_parts(lane, at, rank, false);
    for (struct hvd__request *e = first; e; e = e->state.next) {
        for (int rank = 0; e->counts && rank < n; rank++)
            e->counts[rank] = hvd__rows_from(e, rank);
        if (hvd__set_gets_result(lane->set, &e->signature)) {
            scale_gathered(lane->set, e);
            judge_output(e);
        }
    }
}
