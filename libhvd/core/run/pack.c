/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pack.c - packs reductions and broadcasts; pack_gather.c packs gathers and
 * exchanges. execute.c calls both.
 *
 * A batch becomes one collective over the elements of all its tensors, in the
 * order that the decision gives. Each rank chooses by itself how to join the
 * tensors into one array of elements, because the other ranks do not depend on
 * it:
 *
 *     one tensor, or neighbours in memory    they are used in place
 *     anything else                          they are packed into the lane's
 *                                            fusion buffer, and the result is
 *                                            unpacked afterwards
 *
 * The gradients of a strategy are always neighbours in memory. A compressed
 * tensor is converted while it is packed, unless the algorithm converts only
 * the data that goes between hosts. A reducescatter is packed share by share,
 * so that the data for one rank lies together; its result lies behind the
 * shares.
 */
#include "core/run/pack.h"

#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "core/request/compress.h"
#include "core/table/set.h"

int hvd__lane_divisor(const struct hvd__set *set, const struct hvd__lane *lane)
{
    return lane->batch->requests->signature.flags & HVD_AVERAGE_CONTRIBUTORS
               ? lane->team.size
               : set->team.size;
}

int hvd__lane_room(struct hvd__lane *lane, size_t bytes)
{
    lane->buffer = lane->fusion;
    if (bytes <= lane->fusion_bytes)
        return HVD_OK;
    lane->buffer = lane->temporary = malloc(bytes);
    return lane->buffer ? HVD_OK : hvd__fail_memory(bytes);
}

/* ------------------------------------------------------------- reductions */

/* Returns the first request from this one on that has elements, or the last: an
 * empty tensor may lie anywhere. */
static const struct hvd__request *first_full(const struct hvd__request *request)
{
    while (request->bytes == 0 && request->state.next)
        request = request->state.next;
    return request;
}

/* Returns true if the inputs, and the outputs, follow each other in memory.
 * Either may be missing on some ranks. */
static bool are_neighbours(const struct hvd__request *request)
{
    const struct hvd__request *next;

    for (request = first_full(request); request->state.next; request = next) {
        next = first_full(request->state.next);
        if (next->bytes > 0 &&
            ((request->input &&
              (const char *)request->input + request->bytes != next->input) ||
             (request->output &&
              (char *)request->output + request->bytes != next->output)))
            return false;
    }
    return true;
}

/* Packs tensors into a buffer, or unpacks them. All have one dtype, or none is
 * converted. */
static void copy_tensors(unsigned char *at, const struct hvd__request *request,
                         hvd_dtype wire, bool packs)
{
    const hvd_dtype dtype = request->signature.dtype;

    for (; request; request = request->state.next) {
        const void *from = packs ? request->input : at;
        void *to = packs ? at : request->output;
        size_t bytes = request->bytes;

        if (wire != dtype) {
            hvd__convert(packs ? wire : dtype, to, packs ? dtype : wire, from,
                         request->count, 1);
            bytes = (size_t)request->count * hvd__dtype_bytes(wire);
        } else if (bytes > 0 && to)
            memcpy(to, from, bytes);
        at += bytes;
    }
}

/* Sets input and output of the collective to the tensors, if they can be used
 * in place, or to a buffer of bytes, into which they are packed if sends is
 * true. */
static int join_tensors(struct hvd__lane *lane, hvd_dtype wire, size_t bytes,
                        bool sends)
{
    const struct hvd__request *first = lane->batch->requests;
    struct hvd__collective *c = &lane->collective;

    c->input = first_full(first)->input;
    c->output = first_full(first)->output;
    if (wire == first->signature.dtype && are_neighbours(first))
        return HVD_OK;
    HVD_TRY(hvd__lane_room(lane, bytes));
    if (sends)
        copy_tensors(lane->buffer, first, wire, true);
    c->input = c->output = lane->buffer;
    return HVD_OK;
}

static int64_t count_all(const struct hvd__request *request)
{
    int64_t count = 0;

    for (; request; request = request->state.next)
        count += request->count;
    return count;
}

static int pack_reduction(struct hvd__lane *lane)
{
    const struct hvd__request *first = lane->batch->requests;
    struct hvd__collective *c = &lane->collective;

    c->motion = first->signature.kind == HVD_REDUCE ? HVD__REDUCE_TO_ROOT
                                                    : HVD__REDUCE_TO_ALL;
    c->count = count_all(first);
    c->scratch = first->scratch;
    c->wire = hvd__compression_wire(first->signature.compression,
                                    first->signature.dtype);
    if (c->wire != first->signature.dtype) {
        c->narrows = hvd__collective_can_narrow(c);
        if (!c->narrows)
            c->reduction.dtype = c->wire;
    }
    return join_tensors(lane, c->reduction.dtype,
                        (size_t)c->count * hvd__dtype_bytes(c->reduction.dtype),
                        true);
}

/* ---------------------------------------------------------- reducescatters */

/* Returns the elements of a request that belong to a rank of the set. */
static struct hvd__slice share_of(const struct hvd__set *set,
                                  const struct hvd__request *request, int rank)
{
    struct hvd__slice slice =
        hvd__slice_of(request->rows, rank, set->team.size);
    int64_t row = (int64_t)(hvd__signature_row_bytes(&request->signature) /
                            hvd__dtype_bytes(request->signature.dtype));

    return (struct hvd__slice){slice.start * row, slice.count * row};
}

static void pack_shares(const struct hvd__set *set, struct hvd__lane *lane)
{
    unsigned char *to = lane->buffer;
    int64_t start = 0;

    for (int i = 0; i < lane->team.size; i++) {
        int rank = lane->members[i];

        lane->shares[i].start = start;
        for (const struct hvd__request *e = lane->batch->requests; e;
             e = e->state.next) {
            size_t element = hvd__dtype_bytes(e->signature.dtype);
            struct hvd__slice s = share_of(set, e, rank);

            if (s.count > 0)
                memcpy(to, (const char *)e->input + (size_t)s.start * element,
                       (size_t)s.count * element);
            to += (size_t)s.count * element;
            start += s.count;
        }
        lane->shares[i].count = start - lane->shares[i].start;
    }
}

static int pack_reducescatter(const struct hvd__set *set,
                              struct hvd__lane *lane)
{
    struct hvd__request *first = lane->batch->requests;
    struct hvd__collective *c = &lane->collective;
    size_t bytes =
        (size_t)count_all(first) * hvd__dtype_bytes(first->signature.dtype);

    c->motion = HVD__REDUCE_TO_SHARES;
    c->count = count_all(first);
    c->shares = lane->shares;
    for (struct hvd__request *e = first; e; e = e->state.next)
        e->out_rows =
            hvd__slice_of(e->rows, set->team.rank, set->team.size).count;
    if (!first->state.next) {
        for (int i = 0; i < lane->team.size; i++)
            lane->shares[i] = share_of(set, first, lane->members[i]);
        c->input = first->input;
        c->output = first->scratch ? first->scratch : first->output;
        return HVD_OK;
    }
    HVD_TRY(hvd__lane_room(lane, 2 * bytes));
    pack_shares(set, lane);
    c->input = lane->buffer;
    c->output = lane->buffer + bytes;
    return HVD_OK;
}

static void unpack_reducescatter(const struct hvd__set *set,
                                 struct hvd__lane *lane)
{
    const struct hvd__request *request = lane->batch->requests;
    const unsigned char *from = lane->collective.output;

    if (from == request->output)
        return;
    for (; request; request = request->state.next) {
        size_t bytes = (size_t)share_of(set, request, set->team.rank).count *
                       hvd__dtype_bytes(request->signature.dtype);

        if (bytes > 0)
            memcpy(request->output, from, bytes);
        from += bytes;
    }
}

/* -------------------------------------------------------------- broadcasts */

static int pack_broadcast(struct hvd__lane *lane)
{
    const struct hvd__request *first = lane->batch->requests;
    struct hvd__collective *c = &lane->collective;
    size_t bytes = 0;

    for (const struct hvd__request *e = first; e; e = e->state.next)
        bytes += e->bytes;
    c->motion = HVD__SEND_FROM_ROOT;
    c->reduction = (struct hvd__reduction){.dtype = HVD_UINT8};
    c->count = (int64_t)bytes;
    return join_tensors(lane, first->signature.dtype, bytes,
                        lane->team.rank == c->root);
}

/* ----------------------------------------------------------------- the door */

int hvd__pack(const struct hvd__set *set, struct hvd__lane *lane)
{
    const struct hvd__signature *s = &lane->batch->requests->signature;
    struct hvd__collective *c = &lane->collective;

    lane->buffer = NULL;
    if (hvd__kind_has(s->kind, HVD__HAS_OP) &&
        !hvd__compression_encodes(s->compression))
        c->reduction = hvd__reduction_of(s, hvd__lane_divisor(set, lane));
    if (hvd__kind_has(s->kind, HVD__HAS_ROOT))
        for (c->root = 0; lane->team.world[c->root] != s->root;)
            c->root++;
    switch (s->kind) {
    case HVD_ALLREDUCE:
    case HVD_REDUCE:
        return hvd__compression_encodes(s->compression)
                   ? hvd__pack_gather(set, lane)
                   : pack_reduction(lane);
    case HVD_REDUCESCATTER: return pack_reducescatter(set, lane);
    case HVD_BROADCAST: return pack_broadcast(lane);
    default: return hvd__pack_gather(set, lane);
    }
}

void hvd__unpack(const struct hvd__set *set, struct hvd__lane *lane)
{
    const struct hvd__signature *s = &lane->batch->requests->signature;

    switch (s->kind) {
    case HVD_ALLREDUCE:
    case HVD_REDUCE:
        if (hvd__compression_encodes(s->compression))
            hvd__unpack_gather(set, lane);
        else if (lane->buffer)
            copy_tensors(lane->buffer, lane->batch->requests,
                         lane->collective.reduction.dtype, false);
        break;
    case HVD_REDUCESCATTER: unpack_reducescatter(set, lane); break;
    case HVD_BROADCAST:
        if (lane->buffer && lane->team.rank != lane->collective.root)
            copy_tensors(lane->buffer, lane->batch->requests, s->dtype, false);
        break;
    default: hvd__unpack_gather(set, lane);
    }
}
