/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ordered_post.c - fills this rank's slots and finds out when they are free
 * again (ordered.h).
 *
 * A slot is published by its sequence number (release), which
 * hvd__ordered_compare loads (acquire) on all ranks. A slot is reused when the
 * field consumed of all areas (stored by hvd__ordered_consume, loaded here with
 * acquire order) has passed it.
 */
#include <string.h>

#include "core/agree/ordered_parts.h"

/* The most bytes of one request that a rank sends with its slot, to all others
 * together: they take no longer to arrive than one more message would. Between
 * two ranks no other way sends fewer bytes. */
enum { SENT_BYTES = 8 << 10 };

/* Finds which of this rank's slots all ranks have read. These slots, and the
 * data next to them, may be reused. */
static void look_who_read(struct hvd__set *set)
{
    struct hvd__ordered *x = &set->agreement->ordered;
    uint64_t read = hvd__slots_read(x);

    for (int rank = 0; rank < set->team.size; rank++) {
        uint64_t there = hvd__slots_of(
            x,
            atomic_load_explicit(&set->agreement->ordered.areas[rank]->consumed,
                                 memory_order_acquire));
        if (there < read)
            read = there;
    }
    if (read > x->read) {
        x->payload_free = x->pending[(read - 1) % HVD__LOG_SLOTS].payload_end;
        x->read = read;
    }
}

/* Returns the most bytes that may lie next to a slot. All ranks read them. */
static size_t most_beside(const struct hvd__engine *engine,
                          const struct hvd__set *set,
                          const struct hvd__request *request)
{
    size_t n = (size_t)set->team.size;
    /* Several must fit into the ring, whatever the setting says. */
    size_t most = HVD__PAYLOAD_BYTES / 8;

    if (set->agreement->ordered.log)
        return n == 2 ? most : SENT_BYTES / (n - 1);
    if (most > engine->settings.shm_small)
        most = engine->settings.shm_small;
    if (request->signature.kind == HVD_BROADCAST)
        return most;
    /* Every rank reads the data of all. In heaps each could reduce a share. */
    most = 2 * most / n;
    if (request->signature.kind == HVD_ALLREDUCE &&
        hvd__heap_place(set->shm->heap, request->output, request->bytes))
        most /= 8;
    return most;
}

/* Returns the bytes of data that go with a slot; -1: none do. */
static int64_t count_data(const struct hvd__engine *engine,
                          const struct hvd__set *set,
                          const struct hvd__request *request)
{
    const struct hvd__signature *s = &request->signature;
    bool goes;

    if (s->kind == HVD_BROADCAST)
        goes = s->root == set->team.world[set->team.rank];
    else
        goes = hvd__ordered_may_move(request) ||
               (s->kind == HVD_ALLREDUCE && s->op != HVD_ADASUM &&
                s->compression == HVD_COMPRESSION_NONE);
    return goes && request->bytes <= most_beside(engine, set, request)
               ? (int64_t)request->bytes
               : -1;
}

/* Returns the number that count_data returns. It is computed once and does not
 * change when the request is repeated. */
static int64_t data_bytes(const struct hvd__engine *engine,
                          const struct hvd__set *set,
                          struct hvd__request *request)
{
    if (!request->has_data_bytes) {
        request->data_bytes = (int32_t)count_data(engine, set, request);
        request->has_data_bytes = true;
    }
    return request->data_bytes;
}

/* Allocates bytes in the ring, as one piece. Returns their offset, or -1 if
 * there is no room now. */
static int64_t take_payload(struct hvd__ordered *x, size_t bytes)
{
    uint64_t at = x->payload_next, offset = at % HVD__PAYLOAD_BYTES;

    bytes = (bytes + 63) / 64 * 64;
    if (offset + bytes > HVD__PAYLOAD_BYTES)
        at += HVD__PAYLOAD_BYTES - offset;
    if (at + bytes - x->payload_free > HVD__PAYLOAD_BYTES)
        return -1;
    x->payload_next = at + bytes;
    return (int64_t)(at % HVD__PAYLOAD_BYTES);
}

static struct hvd__log_slot *next_slot(struct hvd__set *set)
{
    struct hvd__ordered *x = &set->agreement->ordered;

    if (x->posted - x->read >= HVD__LOG_SLOTS)
        look_who_read(set);
    if (x->posted - x->read >= HVD__LOG_SLOTS)
        return NULL;
    return hvd__slot_at(set->agreement->ordered.own, x->posted);
}

static void publish_slot(struct hvd__ordered *x, struct hvd__log_slot *slot,
                         struct hvd__request *request)
{
    x->pending[x->posted % HVD__LOG_SLOTS] =
        (struct hvd__pending_slot){request, x->payload_next};
    atomic_store_explicit(&slot->sequence, hvd__sequence_of(x, x->posted),
                          memory_order_release);
    x->posted++;
}

/* Posts a slot that differs from all others. */
static bool post_fallback(struct hvd__set *set, struct hvd__request *request)
{
    struct hvd__log_slot *slot = next_slot(set);

    if (!slot)
        return false;
    slot->flags = HVD__SLOT_FALLBACK;
    publish_slot(&set->agreement->ordered, slot, request);
    return true;
}

static bool post_request(const struct hvd__engine *engine, struct hvd__set *set,
                         struct hvd__request *request)
{
    struct hvd__ordered *x = &set->agreement->ordered;
    struct hvd__log_slot *slot = next_slot(set);
    int64_t bytes = data_bytes(engine, set, request), offset = 0;
    const void *data = request->signature.kind == HVD_BROADCAST
                           ? request->output
                           : request->input;

    if (!slot)
        return false;
    if (bytes > HVD__INLINE_BYTES) {
        offset = take_payload(x, (size_t)bytes);
        if (offset < 0) {
            look_who_read(set);
            offset = take_payload(x, (size_t)bytes);
        }
        if (offset < 0)
            return false;
    }
    slot->key = request->submission->key;
    slot->fingerprint = request->submission->fingerprint;
    slot->rows = request->rows;
    slot->flags = bytes >= 0 ? HVD__SLOT_DATA : 0;
    if (bytes > HVD__INLINE_BYTES) {
        slot->flags |= HVD__SLOT_BESIDE;
        slot->offset = (uint32_t)offset;
        slot->length = (uint64_t)bytes;
        memcpy(x->own->payload + offset, data, (size_t)bytes);
    } else if (bytes > 0) {
        memcpy(slot->data, data, (size_t)bytes);
    }
    if (bytes < 0 && x->log) {
        hvd__boundaries_expect(&x->log->boundaries, &request->signature);
    } else if (bytes < 0) {
        slot->input =
            hvd__heap_place(set->shm->heap, request->input, request->bytes);
        slot->output =
            hvd__heap_place(set->shm->heap, request->output, request->bytes);
    }
    publish_slot(x, slot, request);
    return true;
}

static bool needs_fallback(const struct hvd__submission *submission)
{
    return submission->state.status < 0 || submission->priority != 0 ||
           submission->state.nrequests > HVD__LOG_SLOTS / 2 ||
           submission->requests[0].signature.kind == HVD_JOIN;
}

bool hvd__ordered_post_submission(const struct hvd__engine *engine,
                                  struct hvd__set *set,
                                  struct hvd__submission *submission)
{
    if (needs_fallback(submission))
        return post_fallback(set, &submission->requests[0]);
    for (; submission->state.nposted < submission->state.nrequests;
         submission->state.nposted++)
        if (!post_request(engine, set,
                          &submission->requests[submission->state.nposted]))
            return false;
    return true;
}

void hvd__ordered_post(struct hvd__engine *engine, struct hvd__set *set)
{
    struct hvd__ordered *x = &set->agreement->ordered;

    while (x->waiting &&
           hvd__ordered_post_submission(engine, set, x->waiting)) {
        x->waiting = x->waiting->state.next;
        if (!x->waiting)
            x->waiting_tail = &x->waiting;
    }
}

bool hvd__ordered_post_end(struct hvd__set *set)
{
    return post_fallback(set, NULL);
}
