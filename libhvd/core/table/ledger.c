/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ledger.c - the books of one rank.
 *
 * A unit or its entries are in up to three of them at once:
 *
 *     queue       units from submit until they are announced
 *     in_flight   units, a table a process set, from submit until they are
 *                 over; finds duplicates, and what a decision is about
 *     slots       entries from submit until hvd_wait, if the program has a
 *                 handle
 *
 * A handle is the slot's number and its generation, which grows each time
 * the slot is given out: a stale handle is told from a live one until a slot
 * has been reused 2^31 times.
 */
#include "core/table/ledger.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "core/request/fingerprint.h"
#include "core/world/set.h"
#include "trace/metrics.h"

void hvd__ledger_init(struct hvd__ledger *ledger)
{
    *ledger = (struct hvd__ledger){.first_free = -1};
    ledger->queue_tail = &ledger->queue;
}

void hvd__ledger_fini(struct hvd__ledger *ledger)
{
    struct hvd__unit *unit;

    while ((unit = ledger->queue)) {
        ledger->queue = unit->next;
        if (unit->status < 0)
            hvd__unit_free(unit);
    }
    for (int32_t i = 0; i < ledger->nslots; i++)
        hvd__entry_free(ledger->slots[i].entry);
    free(ledger->slots);
    hvd__spares_fini(&ledger->spares);
}

void hvd__book_fini(struct hvd__book *book)
{
    struct hvd__unit *unit;

    /* Entries with a handle go with their slots. */
    while ((unit = book->in_flight.oldest)) {
        int n = unit->nentries;

        hvd__in_flight_remove(&book->in_flight, unit);
        for (int i = 0; i < n; i++) {
            struct hvd__entry *entry = &unit->entries[i];
            bool last = atomic_load(&unit->nrefs) == 1;

            if (entry->slot >= 0 || atomic_load(&entry->done))
                continue;
            hvd__entry_free(entry);
            if (last)
                break;
        }
    }
    hvd__in_flight_fini(&book->in_flight);
    free(book->message);
    book->message = NULL;
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
    ledger->nfree += nslots - ledger->nslots;
    ledger->nslots = nslots;
    return HVD_OK;
}

static hvd_handle open_slot(struct hvd__ledger *ledger,
                            struct hvd__entry *entry)
{
    int32_t i = ledger->first_free;
    struct hvd__slot *slot = &ledger->slots[i];

    ledger->first_free = slot->next_free;
    ledger->nfree--;
    slot->entry = entry;
    slot->generation = (slot->generation + 1) & INT32_MAX;
    entry->slot = i;
    return (hvd_handle)slot->generation << 32 | (i + 1);
}

/* The entry of a handle, or NULL. The lock is held. */
static struct hvd__entry *find(const struct hvd__ledger *ledger,
                               hvd_handle handle)
{
    int64_t i = (handle & UINT32_MAX) - 1;

    if (i >= 0 && i < ledger->nslots &&
        ledger->slots[i].generation == handle >> 32)
        return ledger->slots[i].entry;
    return NULL;
}

static int no_such_handle(hvd_handle handle)
{
    return hvd__fail(HVD_ERR_HANDLE,
                     "handle 0x%" PRIx64 " is not of a request in flight: "
                     "it was already waited for, or never given out",
                     (uint64_t)handle);
}

/* The lock is held. */
static void close_slot(struct hvd__ledger *ledger, int32_t slot)
{
    ledger->slots[slot].entry = NULL;
    ledger->slots[slot].next_free = ledger->first_free;
    ledger->first_free = slot;
    ledger->nfree++;
}

/* What is over, all well: it is given back if it owns nothing. The lock is
 * held. */
static bool give_clean(struct hvd__ledger *ledger,
                       const struct hvd__entry *entry)
{
    return entry->unit->may_recur && !entry->carried && !entry->message &&
           hvd__spares_give(&ledger->spares, entry->unit);
}

int hvd__ledger_claim(struct hvd__ledger *ledger, hvd_handle handle,
                      bool wanted, struct hvd__entry **entry)
{
    struct hvd__entry *found;
    bool done = false;

    hvd__mutex_lock(&ledger->lock);
    found = find(ledger, handle);
    if (found && found->claimed)
        found = NULL;
    if (found) {
        found->claimed = true;
        done = atomic_load_explicit(&found->done, memory_order_acquire);
        if (done)
            close_slot(ledger, found->slot);
    }
    *entry = found;
    if (done && found->status == HVD_OK && !wanted && give_clean(ledger, found))
        *entry = NULL;
    hvd__mutex_unlock(&ledger->lock);
    return found ? done : no_such_handle(handle);
}

int hvd__ledger_poll(struct hvd__ledger *ledger, hvd_handle handle)
{
    const struct hvd__entry *found;
    int done = -1;

    hvd__mutex_lock(&ledger->lock);
    found = find(ledger, handle);
    if (found)
        done = atomic_load_explicit(&found->done, memory_order_acquire);
    hvd__mutex_unlock(&ledger->lock);
    return done < 0 ? no_such_handle(handle) : done;
}

void hvd__ledger_release(struct hvd__ledger *ledger,
                         const struct hvd__entry *entry)
{
    hvd__mutex_lock(&ledger->lock);
    close_slot(ledger, entry->slot);
    hvd__mutex_unlock(&ledger->lock);
}

/* ------------------------------------------------------------------- units */

static void enqueue(struct hvd__ledger *ledger, struct hvd__unit *unit)
{
    unit->next = NULL;
    *ledger->queue_tail = unit;
    ledger->queue_tail = &unit->next;
}

/* A number in decimal; returns its end. Not printf: this is on the way of
 * every request without a name. */
static char *write_number(char *at, uint64_t number)
{
    char digits[20];
    int n = 0;

    do
        digits[n++] = (char)('0' + number % 10);
    while ((number /= 10) > 0);
    while (n > 0)
        *at++ = digits[--n];
    return at;
}

/* Unnamed units are matched by number; refused ones count. A rank that has
 * joined misses some: all count anew when a join is over. */
static uint64_t number_unit(struct hvd__unit *unit)
{
    struct hvd__book *book = &unit->set->book;
    uint64_t words[] = {HVD__UNNAMED, book->nunnamed, book->njoins};

    unit->key = hvd__fingerprint(0, words, sizeof words);
    return book->nunnamed++;
}

/* What it is called then. */
static void write_name(struct hvd__unit *unit, uint64_t number)
{
    static const char after[] = " after join ";
    uint64_t njoins = unit->set->book.njoins;
    char *at = unit->name;

    *at++ = HVD__UNNAMED;
    at = write_number(at, number);
    if (njoins > 0) {
        memcpy(at, after, sizeof after - 1);
        at = write_number(at + sizeof after - 1, njoins);
    }
    *at = '\0';
}

static void complete_name(struct hvd__unit *unit)
{
    if (!unit->name[0])
        write_name(unit, number_unit(unit));
    else if (unit->key == 0)
        unit->key = hvd__fingerprint(0, unit->name, strlen(unit->name));
}

/* What keeps a unit out; the name is complete. */
static int check(const struct hvd__book *book, const struct hvd__unit *unit)
{
    if (book->status < 0)
        return hvd__fail_text(book->status, book->message);
    if (book->joined && strcmp(unit->name, HVD__SETS_NAME) != 0)
        return hvd__fail(HVD_ERR_JOINED,
                         "this rank has joined: it can submit nothing until "
                         "all ranks have");
    if (hvd__in_flight_find(&book->in_flight, unit->key))
        return hvd__fail(HVD_ERR_DUPLICATE,
                         "'%s' was submitted again while it is in flight: "
                         "wait for the first, or use another name",
                         unit->name);
    return HVD_OK;
}

/* The lock is held: these counters have no other writers. */
static inline void count_submitted(const struct hvd__ledger *ledger,
                                   const struct hvd__unit *unit)
{
    if (!ledger->metrics || hvd__entry_is_own(&unit->entries[0]))
        return;
    for (int i = 0; i < unit->nentries; i++)
        hvd__count_alone(
            &ledger->metrics->kinds[unit->entries[i].signature.kind].submitted,
            1);
}

bool hvd__ledger_number(struct hvd__ledger *ledger, struct hvd__unit *unit,
                        uint64_t *number)
{
    const struct hvd__book *book = &unit->set->book;
    bool free;

    hvd__mutex_lock(&ledger->lock);
    free = hvd__ledger_busy(ledger) == 0 && !ledger->queue &&
           book->status >= 0 && !book->joined;
    if (free) {
        *number = number_unit(unit);
        count_submitted(ledger, unit);
    }
    hvd__mutex_unlock(&ledger->lock);
    return free;
}

static int enter(struct hvd__ledger *ledger, struct hvd__unit *unit,
                 hvd_handle *handles)
{
    struct hvd__book *book = &unit->set->book;

    while (handles && ledger->nfree < unit->nentries)
        HVD_TRY(grow_slots(ledger));
    HVD_TRY(hvd__in_flight_add(&book->in_flight, unit));
    if (unit->entries[0].signature.kind == HVD_JOIN)
        book->joined = true;
    for (int i = 0; handles && i < unit->nentries; i++)
        handles[i] = open_slot(ledger, &unit->entries[i]);
    hvd__count_alone(&ledger->nentered, unit->nentries);
    return HVD_OK;
}

int hvd__ledger_adopt(struct hvd__ledger *ledger, struct hvd__unit *unit,
                      uint64_t number, hvd_handle *handle)
{
    int status;

    hvd__mutex_lock(&ledger->lock);
    write_name(unit, number);
    status = enter(ledger, unit, handle);
    hvd__mutex_unlock(&ledger->lock);
    return status;
}

struct hvd__unit *hvd__ledger_spare(struct hvd__ledger *ledger)
{
    struct hvd__unit *unit;

    hvd__mutex_lock(&ledger->lock);
    unit = hvd__spares_take(&ledger->spares);
    hvd__mutex_unlock(&ledger->lock);
    if (!unit)
        return hvd__unit_new(1);
    hvd__unit_reset(unit);
    return unit;
}

void hvd__ledger_give(struct hvd__ledger *ledger, struct hvd__entry *entry)
{
    struct hvd__unit *unit = hvd__entry_fini(entry);
    bool kept;

    if (!unit)
        return;
    hvd__mutex_lock(&ledger->lock);
    kept = hvd__spares_give(&ledger->spares, unit);
    hvd__mutex_unlock(&ledger->lock);
    if (!kept)
        free(unit);
}

/* The lock is held. */
static inline int submit(struct hvd__ledger *ledger, struct hvd__unit *unit,
                         hvd_handle *handles, bool *direct)
{
    complete_name(unit);
    HVD_TRY(check(&unit->set->book, unit));
    HVD_TRY(enter(ledger, unit, handles));
    count_submitted(ledger, unit);
    if (direct)
        *direct = *direct && !ledger->queue;
    if (!direct || !*direct)
        enqueue(ledger, unit);
    return HVD_OK;
}

int hvd__ledger_submit(struct hvd__ledger *ledger, struct hvd__unit *unit,
                       hvd_handle *handles, bool *direct)
{
    int status;

    hvd__mutex_lock(&ledger->lock);
    status = submit(ledger, unit, handles, direct);
    if (status == HVD_OK && unit->may_recur)
        hvd__spares_remember(&ledger->spares, unit);
    hvd__mutex_unlock(&ledger->lock);
    return status;
}

int hvd__ledger_resubmit(struct hvd__ledger *ledger, struct hvd__again *again,
                         bool *direct)
{
    int status = HVD_OK;
    struct hvd__unit *unit;

    hvd__mutex_lock(&ledger->lock);
    unit = hvd__spares_recall(&ledger->spares, again->request, again->name);
    if (unit) {
        hvd__unit_begin(unit, again->timed, ledger->nentered);
        again->submitted_ns = unit->submitted_ns;
        status = submit(ledger, unit, again->handle, direct);
        if (status < 0) {
            hvd__spares_forget(&ledger->spares, unit);
            again->refused_by = unit->set;
            hvd__set_use(unit->set);
        }
    }
    hvd__mutex_unlock(&ledger->lock);
    again->unit = unit;
    return status;
}

void hvd__ledger_refuse(struct hvd__ledger *ledger, struct hvd__unit *unit)
{
    bool closed;

    hvd__mutex_lock(&ledger->lock);
    closed = unit->set->book.status < 0;
    if (!closed) {
        unit->key = 0; /* it is called what it is called by now */
        complete_name(unit);
        enqueue(ledger, unit);
        hvd__count_alone(&ledger->nentered, unit->nentries);
    }
    hvd__mutex_unlock(&ledger->lock);
    if (closed)
        hvd__unit_free(unit);
}

void hvd__ledger_close(struct hvd__ledger *ledger, struct hvd__set *set,
                       int status, const char *message)
{
    char *copy = strdup(message);

    hvd__mutex_lock(&ledger->lock);
    if (set->book.status >= 0 && copy) {
        set->book.status = status;
        set->book.message = copy;
        copy = NULL;
    }
    hvd__mutex_unlock(&ledger->lock);
    free(copy);
}

struct hvd__unit *hvd__ledger_take(struct hvd__ledger *ledger)
{
    struct hvd__unit *queue;

    hvd__mutex_lock(&ledger->lock);
    queue = ledger->queue;
    ledger->queue = NULL;
    ledger->queue_tail = &ledger->queue;
    /* The refused are done with; the others stay busy until finished. */
    for (const struct hvd__unit *u = queue; u; u = u->next)
        if (u->status < 0)
            hvd__count_alone(&ledger->nover, u->nentries);
    hvd__mutex_unlock(&ledger->lock);
    return queue;
}

struct hvd__unit *hvd__ledger_look(struct hvd__ledger *ledger,
                                   struct hvd__set *set, uint64_t key)
{
    struct hvd__unit *unit;

    hvd__mutex_lock(&ledger->lock);
    unit = hvd__in_flight_find(&set->book.in_flight, key);
    hvd__mutex_unlock(&ledger->lock);
    return unit;
}

struct hvd__unit *hvd__ledger_any(struct hvd__ledger *ledger,
                                  struct hvd__set *set)
{
    struct hvd__unit *unit;

    hvd__mutex_lock(&ledger->lock);
    unit = set->book.in_flight.oldest;
    hvd__mutex_unlock(&ledger->lock);
    return unit;
}

/* The lock is held. */
static void strike(struct hvd__unit *unit)
{
    hvd__in_flight_remove(&unit->set->book.in_flight, unit);
    if (unit->entries[0].signature.kind == HVD_JOIN) {
        unit->set->book.joined = false;
        unit->set->book.njoins++;
        unit->set->book.nunnamed = 0;
    }
}

void hvd__ledger_remove(struct hvd__ledger *ledger, struct hvd__unit *unit)
{
    hvd__mutex_lock(&ledger->lock);
    strike(unit);
    hvd__mutex_unlock(&ledger->lock);
}

void hvd__ledger_remove_all(struct hvd__ledger *ledger,
                            const struct hvd__entry *entries)
{
    hvd__mutex_lock(&ledger->lock);
    for (const struct hvd__entry *entry = entries; entry; entry = entry->next)
        if (--entry->unit->nleft == 0)
            strike(entry->unit);
    hvd__mutex_unlock(&ledger->lock);
}

void hvd__ledger_finish(struct hvd__ledger *ledger, struct hvd__entry *entry)
{
    bool detached = entry->slot < 0;

    /* Publishes status and message; the waiter may free the entry at once. */
    atomic_store_explicit(&entry->done, true, memory_order_release);
    hvd__count_alone(&ledger->nover, 1);
    if (detached)
        hvd__ledger_give(ledger, entry);
}
