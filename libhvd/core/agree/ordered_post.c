/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ordered_post.c - fills this rank's slots and finds out when they are free
 * again (ordered.h).
 *
 * A slot is published by its sequence number, which hvd__ordered_compare loads
 * on all ranks. It is reused when the field consumed of all areas, stored by
 * hvd__ordered_consume, has passed it.
 */
#include <string.h>

#include "base/prefetch.h"
#include "core/agree/agreement.h"

/* Finds which of this rank's slots all ranks have read. These slots, and the
 * data next to them, may be reused. */
static void look_who_read(struct hvd__ordered *x)
{
    uint64_t read = hvd__slots_read(x);

    for (int i = 0; i < x->nareas; i++) {
        uint64_t there =
            hvd__slots_of(x, hvd__word_get(&x->areas[i]->consumed));

        if (there < read)
            read = there;
    }
    if (read > x->read) {
        x->payload_free = x->pending[(read - 1) % HVD__LOG_SLOTS].payload_end;
        x->read = read;
    }
}

/* Returns the bytes of data that go with this rank's slot; -1: none do. The
 * slot of a speaker has room for the result, which the round writes. */
static int64_t count_data(const struct hvd__ordered *x,
                          const struct hvd__request *request)
{
    enum hvd__way way = (enum hvd__way)request->way;

    if (way == HVD__WAY_NONE)
        return -1;
    if (x->round)
        return (int64_t)hvd__way_result_bytes(way, request, x->hosts);
    if (way == HVD__WAY_SPLITS)
        return x->set->team.size * (int64_t)sizeof *request->splits;
    if (way == HVD__WAY_ROWS ||
        (way == HVD__WAY_ROOT &&
         !hvd__set_is_root(x->set, &request->signature)))
        return -1;
    return (int64_t)request->bytes;
}

/* Asks for the cache lines of a later slot and of its data, in good time before
 * they are written: other ranks have read them last. */
static void fetch_lines(const struct hvd__ordered *x, size_t bytes)
{
    enum { SLOTS = 4, PAYLOAD = 1024, MOST = 512 };
    const char *slot = (const char *)hvd__slot_at(x->own, x->posted + SLOTS);
    const unsigned char *data =
        x->own->payload + (x->payload_next + PAYLOAD) % HVD__PAYLOAD_BYTES;

    hvd__prefetch_write(slot);
    hvd__prefetch_write(slot + HVD__CACHE_LINE);
    for (size_t i = 0; i < bytes && i < MOST; i += HVD__CACHE_LINE)
        hvd__prefetch_write(data + i);
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
        look_who_read(x);
    if (at + bytes - x->payload_free > HVD__PAYLOAD_BYTES)
        return -1;
    x->payload_next = at + bytes;
    return (int64_t)(at % HVD__PAYLOAD_BYTES);
}

static struct hvd__log_slot *next_slot(struct hvd__ordered *x)
{
    if (x->posted - x->read >= HVD__LOG_SLOTS)
        look_who_read(x);
    if (x->posted - x->read >= HVD__LOG_SLOTS)
        return NULL;
    return hvd__slot_at(x->own, x->posted);
}

static void publish_slot(struct hvd__ordered *x, struct hvd__log_slot *slot,
                         struct hvd__request *request)
{
    x->pending[x->posted % HVD__LOG_SLOTS] =
        (struct hvd__pending_slot){request, x->payload_next};
    hvd__word_set(&slot->sequence, hvd__sequence_of(x, x->posted));
    x->posted++;
}

bool hvd__ordered_post_fallback(struct hvd__ordered *x,
                                struct hvd__request *request)
{
    struct hvd__log_slot *slot = next_slot(x);

    if (!slot)
        return false;
    slot->flags = HVD__SLOT_FALLBACK;
    publish_slot(x, slot, request);
    return true;
}

static bool post_request(struct hvd__ordered *x, struct hvd__request *request)
{
    struct hvd__log_slot *slot = next_slot(x);
    int64_t bytes, offset = 0;
    unsigned char *data;
    bool beside;

    if (!slot)
        return false;
    if (!request->has_data_bytes) { /* it holds when the request comes again */
        request->way = (uint8_t)hvd__way_of(x->set, request);
        request->data_bytes = (int32_t)count_data(x, request);
        request->has_data_bytes = true;
    }
    bytes = request->data_bytes;
    beside = bytes > HVD__INLINE_BYTES;
    if (beside)
        offset = take_payload(x, (size_t)bytes);
    if (offset < 0)
        return false;
    slot->key = request->submission->key;
    slot->fingerprint = request->submission->fingerprint;
    slot->rows = request->rows;
    slot->flags = bytes < 0 ? 0
                  : beside  ? HVD__SLOT_DATA | HVD__SLOT_BESIDE
                            : HVD__SLOT_DATA;
    slot->offset = (uint32_t)offset;
    /* hvd__slot_data would read what was just written, and wait for it. */
    data = beside ? x->own->payload + offset : slot->data;
    if (request->way == HVD__WAY_SPLITS)
        hvd__request_write_splits(request, x->set->team.size, data);
    else if (bytes > 0 && !x->round)
        memcpy(data, request->input, (size_t)bytes);
    if (bytes < 0 && !x->hosts) {
        slot->input =
            hvd__heap_place(x->set->shm->heap, request->input, request->bytes);
        slot->output =
            hvd__heap_place(x->set->shm->heap, request->output, request->bytes);
    }
    publish_slot(x, slot, request);
    fetch_lines(x, beside ? (size_t)bytes : 0);
    return true;
}

/* Returns true if a submission cannot be agreed on by order; on several hosts,
 * also if the numbers that the ranks carry do not fit into a round. */
static bool needs_fallback(const struct hvd__submission *submission)
{
    const struct hvd__set *set = submission->set;
    const struct hvd__request *requests = submission->requests;

    for (int i = 0; set->hosts && i < submission->state.nrequests; i++)
        if (hvd__way_bytes(HVD__WAY_ROWS, &requests[i], set->team.size) >
                HVD__PAYLOAD_BYTES / 8 &&
            hvd__signature_carries(&requests[i].signature))
            return true;
    return submission->state.status < 0 || submission->priority != 0 ||
           submission->state.nrequests > HVD__LOG_SLOTS / 2 ||
           requests[0].signature.kind == HVD_JOIN;
}

bool hvd__ordered_post_submission(struct hvd__ordered *x,
                                  struct hvd__submission *submission)
{
    if (needs_fallback(submission))
        return hvd__ordered_post_fallback(x, &submission->requests[0]);
    for (; submission->state.nposted < submission->state.nrequests;
         submission->state.nposted++)
        if (!post_request(x, &submission->requests[submission->state.nposted]))
            return false;
    return true;
}

void hvd__ordered_post(struct hvd__ordered *x)
{
    while (x->waiting && hvd__ordered_post_submission(x, x->waiting))
        x->waiting = x->waiting->state.next;
}
