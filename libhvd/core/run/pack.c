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

int hvd__lane_divisor(const struct hvd__lane *lane)
{
    return lane->batch->requests->signature.flags & HVD_AVERAGE_CONTRIBUTORS
               ? lane->team.size
               : lane->set->team.size;
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

/* Returns a rank's part of a tensor: what it gets of the input, or what the
 * output gets from it. */
static struct hvd__block part_of(const struct hvd__request *e, int rank,
                                 bool sent)
{
    const void *data = sent ? e->input : hvd__request_output(e);
    size_t row = hvd__signature_row_bytes(&e->signature);
    struct hvd__block part = {NULL, e->bytes};
    struct hvd__slice rows = {0};

    memcpy(&part.data, &data, sizeof data); /* an input is only read */
    if (e->signature.kind == HVD_REDUCESCATTER) {
        rows = hvd__slice_of(e->rows, rank, e->submission->set->team.size);
        if (!sent)
            rows.start = 0;
    } else if (e->signature.kind == HVD_ALLGATHER && !sent) {
        for (int r = 0; r < rank; r++)
            rows.start += hvd__rows_from(e, r);
        rows.count = hvd__rows_from(e, rank);
    } else
        return part;
    if (rows.count > 0)
        part.data += (size_t)rows.start * row;
    part.bytes = (size_t)rows.count * row;
    return part;
}

unsigned char *hvd__copy_parts(const struct hvd__lane *lane, unsigned char *at,
                               int rank, bool sent)
{
    const struct hvd__request *e = lane->batch->requests;
    const hvd_dtype dtype = e->signature.dtype,
                    wire = lane->collective.reduction.dtype;
    const bool converts =
        hvd__kind_has(e->signature.kind, HVD__HAS_OP) && wire != dtype;

    for (; e; e = e->state.next) {
        struct hvd__block part = part_of(e, rank, sent);
        void *from = sent ? part.data : at, *to = sent ? at : part.data;

        if (converts) {
            hvd__convert(sent ? wire : dtype, to, sent ? dtype : wire, from,
                         e->count, 1);
            part.bytes = (size_t)e->count * hvd__dtype_bytes(wire);
        } else if (part.bytes > 0 && part.data)
            memcpy(to, from, part.bytes);
        at += part.bytes;
    }
    return at;
}

/* Sets input and output of the collective to the tensors, if they can be used
 * in place, or to a buffer of bytes, into which they are packed if sends is
 * true. */
static int join_tensors(struct hvd__lane *lane, bool converts, bool sends)
{
    const struct hvd__request *first = lane->batch->requests;
    struct hvd__collective *c = &lane->collective;

    c->input = first_full(first)->input;
    c->output = first_full(first)->output;
    if (!converts && are_neighbours(first))
        return HVD_OK;
    HVD_TRY(hvd__lane_room(lane, (size_t)c->count *
                                     hvd__dtype_bytes(c->reduction.dtype)));
    if (sends)
        hvd__copy_parts(lane, lane->buffer, lane->set->team.rank, true);
    c->input = c->output = lane->buffer;
    return HVD_OK;
}

/* Returns the elements of all tensors; of broadcasts, whose types may differ,
 * the bytes. */
static int64_t count_all(const struct hvd__request *e)
{
    int64_t count = 0;

    for (; e; e = e->state.next)
        count +=
            e->signature.kind == HVD_BROADCAST ? (int64_t)e->bytes : e->count;
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
    return join_tensors(lane, c->reduction.dtype != first->signature.dtype,
                        true);
}

static int pack_reducescatter(struct hvd__lane *lane)
{
    struct hvd__request *first = lane->batch->requests;
    struct hvd__collective *c = &lane->collective;
    const int n = lane->set->team.size, us = lane->set->team.rank;
    size_t element = hvd__dtype_bytes(first->signature.dtype);
    int64_t start = 0;

    c->motion = HVD__REDUCE_TO_SHARES;
    c->count = count_all(first);
    c->shares = lane->shares;
    for (struct hvd__request *e = first; e; e = e->state.next)
        e->out_rows = hvd__slice_of(e->rows, us, n).count;
    for (int i = 0; i < lane->team.size; i++) {
        struct hvd__block part = part_of(first, lane->members[i], true);

        /* One tensor is not packed: shares of others may lie in between. */
        if (part.bytes > 0 && !first->state.next)
            start = (part.data - (const unsigned char *)first->input) /
                    (int64_t)element;
        for (struct hvd__request *e = first; (e = e->state.next);)
            part.bytes += part_of(e, lane->members[i], true).bytes;
        lane->shares[i] =
            (struct hvd__slice){start, (int64_t)(part.bytes / element)};
        start += lane->shares[i].count;
    }
    c->input = first->input;
    c->output = first->scratch ? first->scratch : first->output;
    if (!first->state.next)
        return HVD_OK;
    HVD_TRY(hvd__lane_room(lane, 2 * (size_t)c->count * element));
    c->output = lane->buffer;
    for (int i = 0; i < lane->team.size; i++)
        c->output = hvd__copy_parts(lane, c->output, lane->members[i], true);
    c->input = lane->buffer;
    return HVD_OK;
}

/* ----------------------------------------------------------------- the door */

int hvd__pack(struct hvd__lane *lane)
{
    const struct hvd__signature *s = &lane->batch->requests->signature;
    struct hvd__collective *c = &lane->collective;

    lane->buffer = NULL;
    if (hvd__kind_has(s->kind, HVD__HAS_ROOT))
        for (c->root = 0; lane->team.world[c->root] != s->root;)
            c->root++;
    if (s->kind == HVD_BROADCAST) {
        c->motion = HVD__SEND_FROM_ROOT;
        c->reduction = (struct hvd__reduction){.dtype = HVD_UINT8};
        c->count = count_all(lane->batch->requests);
        return join_tensors(lane, false, lane->team.rank == c->root);
    }
    if (!hvd__kind_has(s->kind, HVD__HAS_OP) ||
        hvd__compression_encodes(s->compression))
        return hvd__pack_gather(lane);
    c->reduction = hvd__reduction_of(s, hvd__lane_divisor(lane));
    return s->kind == HVD_REDUCESCATTER ? pack_reducescatter(lane)
                                        : pack_reduction(lane);
}

void hvd__unpack(struct hvd__lane *lane)
{
    const struct hvd__signature *s = &lane->batch->requests->signature;
    const struct hvd__collective *c = &lane->collective;
    unsigned char *result = lane->buffer;

    if (hvd__compression_encodes(s->compression) ||
        (s->kind != HVD_BROADCAST && !hvd__kind_has(s->kind, HVD__HAS_OP))) {
        hvd__unpack_gather(lane);
        return;
    }
    if (s->kind == HVD_REDUCESCATTER)
        result = c->output == lane->batch->requests->output ? NULL : c->output;
    if (result && !(s->kind == HVD_BROADCAST && lane->team.rank == c->root))
        hvd__copy_parts(lane, result, lane->set->team.rank, false);
}
