/* SPDX-License-Identifier: Apache-2.0 */
#include "core/agree/replicated_log.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "core/agree/message.h"
#include "core/agree/ordered_parts.h"

/* --------------------------------------------------------------------- areas
 */

/* Data next to slots is never read before it is written, so it is not cleared.
 */
static struct hvd__area *area_new(void)
{
    struct hvd__area *area =
        aligned_alloc(_Alignof(struct hvd__area), sizeof *area);

    if (!area)
        return NULL;
    memset(area, 0, offsetof(struct hvd__area, payload));
    /* All ranks accept the first epoch (ordered.c). */
    atomic_store(&area->accepted, UINT64_C(1) << 1);
    return area;
}

struct hvd__replicated_log *hvd__replicated_log_new(int size)
{
    struct hvd__replicated_log *log = calloc(1, sizeof *log);
    size_t n = (size_t)size;

    if (!log)
        return NULL;
    log->size = size;
    log->accepted = UINT64_C(1) << 1;
    hvd__boundaries_init(&log->boundaries);
    log->areas = calloc(n, sizeof *log->areas);
    log->heard = calloc(n, sizeof *log->heard);
    for (int rank = 0; log->areas && rank < size; rank++)
        log->areas[rank] = area_new();
    if (log->heard && log->areas && log->areas[size - 1])
        return log;
    hvd__replicated_log_free(log);
    return NULL;
}

void hvd__replicated_log_free(struct hvd__replicated_log *log)
{
    if (!log)
        return;
    for (int rank = 0; log->areas && rank < log->size; rank++)
        free(log->areas[rank]);
    free(log->areas);
    free(log->heard);
    hvd__boundaries_fini(&log->boundaries);
    free(log);
}

/* ------------------------------------------------------------------- telling
 */

void hvd__replicated_log_begin(struct hvd__replicated_log *log)
{
    log->nsent = 0;
    log->read_bytes = 0;
}

/* Returns true if a rank's slot has the data that the request needs. */
static bool is_complete(const struct hvd__log_slot *slot, size_t bytes)
{
    bool beside = (slot->flags & HVD__SLOT_BESIDE) != 0;

    if (!(slot->flags & HVD__SLOT_DATA))
        return !beside;
    return bytes > HVD__INLINE_BYTES ? beside && slot->length == bytes
                                     : !beside;
}

int hvd__replicated_log_read(struct hvd__set *set,
                             const struct hvd__request *request,
                             uint64_t number)
{
    struct hvd__replicated_log *m = set->agreement->ordered.log;
    bool beside = false;

    for (int rank = 0; rank < set->team.size; rank++) {
        const struct hvd__log_slot *slot = hvd__slot_at(m->areas[rank], number);

        if (!is_complete(slot, request->bytes))
            return hvd__message_garbled(set, rank);
        beside |= (slot->flags & HVD__SLOT_BESIDE) != 0;
    }
    if (beside)
        m->read_bytes += (request->bytes + 63) / 64 * 64;
    return HVD_OK;
}

static int send_and_free(struct hvd__set *set, struct hvd__writer *out)
{
    int status = hvd__message_tell(set, out);

    hvd__writer_fini(out);
    return status;
}

static void write_slot(const struct hvd__area *own,
                       const struct hvd__log_slot *slot,
                       struct hvd__writer *out)
{
    hvd__write_key(out, slot->key);
    hvd__write_key(out, slot->fingerprint);
    hvd__write_int(out, (int32_t)slot->flags);
    hvd__write_long(out, slot->rows);
    if (slot->flags & HVD__SLOT_BESIDE) {
        hvd__write_int(out, (int32_t)slot->offset);
        hvd__write_int(out, (int32_t)slot->length);
        hvd__write_bytes(out, own->payload + slot->offset, slot->length);
    } else if (slot->flags & HVD__SLOT_DATA) {
        hvd__write_bytes(out, slot->data, sizeof slot->data);
    }
}

/* Returns true if enough was read to be worth a message, because others may be
 * short of room. */
static bool has_read_much(const struct hvd__ordered *x)
{
    const struct hvd__replicated_log *m = x->log;
    uint64_t consumed = atomic_load(&x->own->consumed);

    return consumed != m->consumed &&
           (m->read_bytes >= HVD__PAYLOAD_BYTES / 4 ||
            hvd__slots_of(x, consumed) - hvd__slots_of(x, m->consumed) >=
                HVD__LOG_SLOTS / 4);
}

static int send_slots(struct hvd__set *set,
                      const struct hvd__boundary *boundary)
{
    const struct hvd__ordered *x = &set->agreement->ordered;
    struct hvd__replicated_log *m = x->log;
    struct hvd__writer out = {0};

    m->accepted = atomic_load(&x->own->accepted);
    m->consumed = atomic_load(&x->own->consumed);
    m->read_bytes = 0;
    hvd__message_begin(set, &out);
    hvd__write_type(&out, HVD__POST);
    hvd__write_key(&out, m->accepted);
    hvd__write_key(&out, m->consumed);
    hvd__write_key(&out, boundary ? boundary->sequence : 0);
    hvd__write_long(&out, boundary ? (int64_t)boundary->threshold : 0);
    hvd__write_key(&out, hvd__sequence_of(x, m->nsent));
    hvd__write_int(&out, (int32_t)(x->posted - m->nsent));
    for (; m->nsent < x->posted; m->nsent++)
        write_slot(x->own, hvd__slot_at(x->own, m->nsent), &out);
    return send_and_free(set, &out);
}

int hvd__replicated_log_send(struct hvd__set *set)
{
    const struct hvd__ordered *x = &set->agreement->ordered;
    struct hvd__replicated_log *m = x->log;
    struct hvd__boundary boundary;
    bool is_new =
        set->agreement->coordinator && hvd__boundaries_make(set, &boundary);

    if (is_new)
        HVD_TRY(hvd__boundaries_add(&m->boundaries, &boundary));
    if (is_new || m->nsent < x->posted || has_read_much(x) ||
        m->accepted != atomic_load(&x->own->accepted))
        HVD_TRY(send_slots(set, is_new ? &boundary : NULL));
    return hvd__boundaries_run(set);
}

/* ------------------------------------------------------------------- hearing
 */

/* Returns true if a slot follows the last one, or is the first slot of an
 * epoch. */
static bool follows(uint64_t sequence, uint64_t before)
{
    return sequence == before + 1 ||
           ((sequence & HVD__SEQUENCE_SLOTS) == 1 &&
            sequence >> HVD__EPOCH_SHIFT > before >> HVD__EPOCH_SHIFT);
}

static void read_beside(struct hvd__area *area, struct hvd__log_slot *slot,
                        struct hvd__reader *in)
{
    int32_t offset = hvd__read_int(in), length = hvd__read_int(in);

    in->failed |= offset < 0 || length <= HVD__INLINE_BYTES ||
                  offset > HVD__PAYLOAD_BYTES - length;
    if (in->failed)
        return;
    slot->offset = (uint32_t)offset;
    slot->length = (uint64_t)length;
    hvd__read_bytes(in, area->payload + offset, (size_t)length);
}

static void read_slot(struct hvd__area *area, uint64_t sequence,
                      struct hvd__reader *in)
{
    struct hvd__log_slot *slot =
        hvd__slot_at(area, (sequence & HVD__SEQUENCE_SLOTS) - 1);

    slot->key = hvd__read_key(in);
    slot->fingerprint = hvd__read_key(in);
    slot->flags = (uint32_t)hvd__read_int(in);
    slot->rows = hvd__read_long(in);
    in->failed |= slot->flags > HVD__SLOT_ALL;
    if (slot->flags & HVD__SLOT_BESIDE)
        read_beside(area, slot, in);
    else if (slot->flags & HVD__SLOT_DATA)
        hvd__read_bytes(in, slot->data, sizeof slot->data);
    if (!in->failed)
        atomic_store_explicit(&slot->sequence, sequence, memory_order_release);
}

/* The fewest bytes of a slot in a message. */
enum { CELL_BYTES = 28 };

static int hear_slots(struct hvd__set *set, int peer, struct hvd__reader *in)
{
    struct hvd__replicated_log *m = set->agreement->ordered.log;
    struct hvd__area *area = m->areas[peer];
    uint64_t accepted = hvd__read_key(in), consumed = hvd__read_key(in);
    struct hvd__boundary boundary = {.sequence = hvd__read_key(in),
                                     .threshold = (size_t)hvd__read_long(in),
                                     .direct_max = set->agreement->direct_max};
    uint64_t sequence = hvd__read_key(in);
    int32_t n = hvd__read_count(in, CELL_BYTES);

    in->failed |= (n > 0 && !follows(sequence, m->heard[peer])) ||
                  n > HVD__LOG_SLOTS || (boundary.sequence && peer != 0);
    for (int32_t i = 0; i < n && !in->failed; i++, sequence++) {
        read_slot(area, sequence, in);
        m->heard[peer] = sequence;
    }
    if (in->failed)
        return hvd__message_garbled(set, peer);
    atomic_store_explicit(&area->accepted, accepted, memory_order_release);
    atomic_store_explicit(&area->consumed, consumed, memory_order_release);
    if (boundary.sequence)
        HVD_TRY(hvd__boundaries_add(&m->boundaries, &boundary));
    return hvd__boundaries_run(set);
}

int hvd__replicated_log_hear(struct hvd__set *set, int peer,
                             struct hvd__reader *in)
{
    struct hvd__replicated_log *m = set->agreement->ordered.log;
    enum hvd__record_type type = hvd__read_type(in);

    if (!m || in->failed)
        return hvd__message_garbled(set, peer);
    if (type == HVD__POST)
        return hear_slots(set, peer, in);
    m->nfarewells++;
    return HVD_OK;
}

/* -------------------------------------------------------------------- the end
 */

int hvd__replicated_log_leave(struct hvd__set *set)
{
    struct hvd__replicated_log *m = set->agreement->ordered.log;
    struct hvd__writer out = {0};

    if (m->said_farewell)
        return HVD_OK;
    m->said_farewell = true;
    hvd__message_begin(set, &out);
    hvd__write_type(&out, HVD__FAREWELL);
    return send_and_free(set, &out);
}

bool hvd__replicated_log_is_left(const struct hvd__replicated_log *log)
{
    return log->said_farewell && log->nfarewells == log->size - 1;
}
