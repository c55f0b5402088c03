/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ledger.c - the books of one rank.
 *
 * An entry is in up to three of them at once:
 *
 *     queue       from submit until it is announced
 *     in_flight   from submit until its operation is over; finds duplicates,
 *                 and the entry that a decision is about
 *     slots       from submit until hvd_wait, if the program has a handle
 *
 * A handle is the slot's number and its generation, which grows each time
 * the slot is given out: a stale handle is told from a live one until a slot
 * has been reused 2^31 times.
 */
#include "core/ledger.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "core/text.h"

int hvd__ledger_init(struct hvd__ledger *ledger)
{
    *ledger = (struct hvd__ledger){.first_free = -1};
    ledger->queue_tail = &ledger->queue;
    if (pthread_mutex_init(&ledger->lock, NULL) != 0)
        return hvd__fail(HVD_ERR_MEMORY, "no memory for a lock");
    return HVD_OK;
}

void hvd__ledger_fini(struct hvd__ledger *ledger)
{
    struct hvd__entry *entry, *following;

    while ((entry = ledger->queue)) {
        ledger->queue = entry->next;
        if (entry->status < 0)
            hvd__entry_free(entry);
    }
    HASH_ITER (hh, ledger->in_flight, entry, following) {
        HASH_DEL(ledger->in_flight, entry);
        if (entry->slot < 0)
            hvd__entry_free(entry);
    }
    for (int32_t i = 0; i < ledger->nslots; i++)
        hvd__entry_free(ledger->slots[i].entry);
    free(ledger->slots);
    pthread_mutex_destroy(&ledger->lock);
}

/* ------------------------------------------------------------------ handles */

static int grow_slots(struct hvd__ledger *ledger)
{
    int32_t nslots = ledger->nslots ? 2 * ledger->nslots : 64;
    struct hvd__slot *slots =
        realloc(ledger->slots, (size_t)nslots * sizeof *slots);

    if (!slots)
        return hvd__fail_memory((size_t)nslots * sizeof *slots);
    ledger->slots = slots;
    for (int32_t i = nslots - 1; i >= ledger->nslots; i--) {
        slots[i] = (struct hvd__slot){.next_free = ledger->first_free};
        ledger->first_free = i;
    }
    ledger->nslots = nslots;
    return HVD_OK;
}

static hvd_handle open_slot(struct hvd__ledger *ledger,
                            struct hvd__entry *entry)
{
    int32_t i = ledger->first_free;
    struct hvd__slot *slot = &ledger->slots[i];

    ledger->first_free = slot->next_free;
    slot->entry = entry;
    slot->generation = (slot->generation + 1) & INT32_MAX;
    entry->slot = i;
    return (hvd_handle)slot->generation << 32 | (i + 1);
}

int hvd__ledger_find(struct hvd__ledger *ledger, hvd_handle handle, bool claim,
                     struct hvd__entry **entry)
{
    int64_t i = (handle & UINT32_MAX) - 1;
    struct hvd__entry *found = NULL;

    pthread_mutex_lock(&ledger->lock);
    if (i >= 0 && i < ledger->nslots &&
        ledger->slots[i].generation == handle >> 32)
        found = ledger->slots[i].entry;
    if (found && claim) {
        bool taken = found->claimed;
        found->claimed = true;
        if (taken)
            found = NULL;
    }
    pthread_mutex_unlock(&ledger->lock);
    if (!found)
        return hvd__fail(HVD_ERR_HANDLE,
                         "handle 0x%" PRIx64 " is not of a request in flight: "
                         "it was already waited for, or never given out",
                         (uint64_t)handle);
    *entry = found;
    return HVD_OK;
}

void hvd__ledger_reap(struct hvd__ledger *ledger, struct hvd__entry *entry)
{
    pthread_mutex_lock(&ledger->lock);
    ledger->slots[entry->slot].entry = NULL;
    ledger->slots[entry->slot].next_free = ledger->first_free;
    ledger->first_free = entry->slot;
    pthread_mutex_unlock(&ledger->lock);
    hvd__entry_free(entry);
}

/* ---------------------------------------------------------------- requests */

static void enqueue(struct hvd__ledger *ledger, struct hvd__entry *entry)
{
    entry->next = NULL;
    *ledger->queue_tail = entry;
    ledger->queue_tail = &entry->next;
    atomic_fetch_add(&ledger->busy, 1);
}

/* Unnamed requests are matched by number; refused ones count. */
static void number_unnamed(struct hvd__ledger *ledger, struct hvd__entry *entry)
{
    if (!entry->key[0])
        snprintf(entry->key, sizeof entry->key, "%c%" PRIu64, HVD__UNNAMED,
                 ledger->nunnamed++);
}

static int enter(struct hvd__ledger *ledger, struct hvd__entry *entry,
                 hvd_handle *handle)
{
    struct hvd__entry *other;

    if (ledger->status < 0)
        return hvd__fail_text(ledger->status, ledger->message);
    if (handle && ledger->first_free < 0)
        HVD_TRY(grow_slots(ledger));
    number_unnamed(ledger, entry);
    HASH_FIND_STR(ledger->in_flight, entry->key, other);
    if (other)
        return hvd__fail(HVD_ERR_DUPLICATE,
                         "'%s' was submitted again while it is in flight: "
                         "wait for the first, or use another name",
                         entry->key);
    HASH_ADD_STR(ledger->in_flight, key, entry);
    if (!entry->hh.tbl)
        return hvd__fail_memory(sizeof *entry);
    if (handle)
        *handle = open_slot(ledger, entry);
    enqueue(ledger, entry);
    return HVD_OK;
}

int hvd__ledger_submit(struct hvd__ledger *ledger, struct hvd__entry *entry,
                       hvd_handle *handle)
{
    int status;

    entry->slot = -1;
    pthread_mutex_lock(&ledger->lock);
    status = enter(ledger, entry, handle);
    pthread_mutex_unlock(&ledger->lock);
    return status;
}

void hvd__ledger_refuse(struct hvd__ledger *ledger, struct hvd__entry *entry)
{
    bool closed;

    entry->slot = -1;
    pthread_mutex_lock(&ledger->lock);
    closed = ledger->status < 0;
    if (!closed) {
        number_unnamed(ledger, entry);
        enqueue(ledger, entry);
    }
    pthread_mutex_unlock(&ledger->lock);
    if (closed)
        hvd__entry_free(entry);
}

void hvd__ledger_close(struct hvd__ledger *ledger, int status,
                       const char *message)
{
    pthread_mutex_lock(&ledger->lock);
    if (ledger->status >= 0) {
        ledger->status = status;
        snprintf(ledger->message, sizeof ledger->message, "%s", message);
    }
    pthread_mutex_unlock(&ledger->lock);
}

struct hvd__entry *hvd__ledger_take(struct hvd__ledger *ledger)
{
    struct hvd__entry *queue;

    pthread_mutex_lock(&ledger->lock);
    queue = ledger->queue;
    ledger->queue = NULL;
    ledger->queue_tail = &ledger->queue;
    /* The refused are done with; the others stay busy until removed. */
    for (const struct hvd__entry *e = queue; e; e = e->next)
        if (e->status < 0)
            atomic_fetch_sub(&ledger->busy, 1);
    pthread_mutex_unlock(&ledger->lock);
    return queue;
}

struct hvd__entry *hvd__ledger_decide(struct hvd__ledger *ledger,
                                      const char *key)
{
    struct hvd__entry *entry;

    pthread_mutex_lock(&ledger->lock);
    HASH_FIND_STR(ledger->in_flight, key, entry);
    if (entry && entry->decided)
        entry = NULL;
    if (entry)
        entry->decided = true;
    pthread_mutex_unlock(&ledger->lock);
    return entry;
}

struct hvd__entry *hvd__ledger_any(struct hvd__ledger *ledger)
{
    struct hvd__entry *entry;

    pthread_mutex_lock(&ledger->lock);
    entry = ledger->in_flight;
    pthread_mutex_unlock(&ledger->lock);
    return entry;
}

void hvd__ledger_remove(struct hvd__ledger *ledger, struct hvd__entry *entry)
{
    pthread_mutex_lock(&ledger->lock);
    HASH_DEL(ledger->in_flight, entry);
    pthread_mutex_unlock(&ledger->lock);
}

void hvd__ledger_finish(struct hvd__ledger *ledger, struct hvd__entry *entry)
{
    bool detached = entry->slot < 0;

    /* Publishes status and message; the waiter may free the entry at once. */
    atomic_store_explicit(&entry->done, true, memory_order_release);
    atomic_fetch_sub(&ledger->busy, 1);
    if (detached)
        hvd__entry_free(entry);
}
