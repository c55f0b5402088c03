/* SPDX-License-Identifier: Apache-2.0 */
/*
 * request table.c - the request table of one rank.
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
#include "core/table/table.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "core/request/fingerprint.h"
#include "core/world/set.h"
#include "trace/metrics.h"

void hvd__table_init(struct hvd__table *table)
{
    *table = (struct hvd__table){.first_free = -1};
    table->queue_tail = &table->queue;
}

void hvd__table_fini(struct hvd__table *table)
{
    struct hvd__unit *unit;

    while ((unit = table->queue)) {
        table->queue = unit->next;
        if (unit->status < 0)
            hvd__unit_free(unit);
    }
    for (int32_t i = 0; i < table->nslots; i++)
        hvd__entry_free(table->slots[i].entry);
    free(table->slots);
    hvd__recycled_fini(&table->recycled);
}

void hvd__set_table_fini(struct hvd__set_table *requests)
{
    struct hvd__unit *unit;

    /* Entries with a handle go with their slots. */
    while ((unit = requests->in_flight.oldest)) {
        int n = unit->nentries;

        hvd__in_flight_remove(&requests->in_flight, unit);
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
    hvd__in_flight_fini(&requests->in_flight);
    free(requests->message);
    requests->message = NULL;
}

/* ------------------------------------------------------------------ handles */

static int grow_slots(struct hvd__table *table)
{
    int32_t nslots = table->nslots ? 2 * table->nslots : 64;
    struct hvd__slot *slots =
        realloc(table->slots, (size_t)nslots * sizeof *slots);

    if (!slots)
        return hvd__fail_memory((size_t)nslots * sizeof *slots);
    table->slots = slots;
    for (int32_t i = nslots - 1; i >= table->nslots; i--) {
        slots[i] = (struct hvd__slot){.next_free = table->first_free};
        table->first_free = i;
    }
    table->nfree += nslots - table->nslots;
    table->nslots = nslots;
    return HVD_OK;
}

static hvd_handle open_slot(struct hvd__table *table, struct hvd__entry *entry)
{
    int32_t i = table->first_free;
    struct hvd__slot *slot = &table->slots[i];

    table->first_free = slot->next_free;
    table->nfree--;
    slot->entry = entry;
    slot->generation = (slot->generation + 1) & INT32_MAX;
    entry->slot = i;
    return (hvd_handle)slot->generation << 32 | (i + 1);
}

/* The entry of a handle, or NULL. The lock is held. */
static struct hvd__entry *find(const struct hvd__table *table,
                               hvd_handle handle)
{
    int64_t i = (handle & UINT32_MAX) - 1;

    if (i >= 0 && i < table->nslots &&
        table->slots[i].generation == handle >> 32)
        return table->slots[i].entry;
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
static void close_slot(struct hvd__table *table, int32_t slot)
{
    table->slots[slot].entry = NULL;
    table->slots[slot].next_free = table->first_free;
    table->first_free = slot;
    table->nfree++;
}

/* What is over, all well: it is given back if it owns nothing. The lock is
 * held. */
static bool give_clean(struct hvd__table *table, const struct hvd__entry *entry)
{
    return entry->unit->may_recur && !entry->carried && !entry->message &&
           hvd__recycled_give(&table->recycled, entry->unit);
}

int hvd__table_claim(struct hvd__table *table, hvd_handle handle, bool wanted,
                     struct hvd__entry **entry)
{
    struct hvd__entry *found;
    bool done = false;

    hvd__mutex_lock(&table->lock);
    found = find(table, handle);
    if (found && found->claimed)
        found = NULL;
    if (found) {
        found->claimed = true;
        done = atomic_load_explicit(&found->done, memory_order_acquire);
        if (done)
            close_slot(table, found->slot);
    }
    *entry = found;
    if (done && found->status == HVD_OK && !wanted && give_clean(table, found))
        *entry = NULL;
    hvd__mutex_unlock(&table->lock);
    return found ? done : no_such_handle(handle);
}

int hvd__table_poll(struct hvd__table *table, hvd_handle handle)
{
    const struct hvd__entry *found;
    int done = -1;

    hvd__mutex_lock(&table->lock);
    found = find(table, handle);
    if (found)
        done = atomic_load_explicit(&found->done, memory_order_acquire);
    hvd__mutex_unlock(&table->lock);
    return done < 0 ? no_such_handle(handle) : done;
}

void hvd__table_release(struct hvd__table *table,
                        const struct hvd__entry *entry)
{
    hvd__mutex_lock(&table->lock);
    close_slot(table, entry->slot);
    hvd__mutex_unlock(&table->lock);
}

/* ------------------------------------------------------------------- units */

static void enqueue(struct hvd__table *table, struct hvd__unit *unit)
{
    unit->next = NULL;
    *table->queue_tail = unit;
    table->queue_tail = &unit->next;
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
    struct hvd__set_table *requests = &unit->set->requests;
    uint64_t words[] = {HVD__UNNAMED, requests->nunnamed, requests->njoins};

    unit->key = hvd__fingerprint(0, words, sizeof words);
    return requests->nunnamed++;
}

/* What it is called then. */
static void write_name(struct hvd__unit *unit, uint64_t number)
{
    static const char after[] = " after join ";
    uint64_t njoins = unit->set->requests.njoins;
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
static int check(const struct hvd__set_table *requests,
                 const struct hvd__unit *unit)
{
    if (requests->status < 0)
        return hvd__fail_text(requests->status, requests->message);
    if (requests->joined && strcmp(unit->name, HVD__SETS_NAME) != 0)
        return hvd__fail(HVD_ERR_JOINED,
                         "this rank has joined: it can submit nothing until "
                         "all ranks have");
    if (hvd__in_flight_find(&requests->in_flight, unit->key))
        return hvd__fail(HVD_ERR_DUPLICATE,
                         "'%s' was submitted again while it is in flight: "
                         "wait for the first, or use another name",
                         unit->name);
    return HVD_OK;
}

/* The lock is held: these counters have no other writers. */
static inline void count_submitted(const struct hvd__table *table,
                                   const struct hvd__unit *unit)
{
    if (!table->metrics || hvd__entry_is_own(&unit->entries[0]))
        return;
    for (int i = 0; i < unit->nentries; i++)
        hvd__count_alone(
            &table->metrics->kinds[unit->entries[i].signature.kind].submitted,
            1);
}

bool hvd__table_number(struct hvd__table *table, struct hvd__unit *unit,
                       uint64_t *number)
{
    const struct hvd__set_table *requests = &unit->set->requests;
    bool free;

    hvd__mutex_lock(&table->lock);
    free = hvd__table_busy(table) == 0 && !table->queue &&
           requests->status >= 0 && !requests->joined;
    if (free) {
        *number = number_unit(unit);
        count_submitted(table, unit);
    }
    hvd__mutex_unlock(&table->lock);
    return free;
}

static int enter(struct hvd__table *table, struct hvd__unit *unit,
                 hvd_handle *handles)
{
    struct hvd__set_table *requests = &unit->set->requests;

    while (handles && table->nfree < unit->nentries)
        HVD_TRY(grow_slots(table));
    HVD_TRY(hvd__in_flight_add(&requests->in_flight, unit));
    if (unit->entries[0].signature.kind == HVD_JOIN)
        requests->joined = true;
    for (int i = 0; handles && i < unit->nentries; i++)
        handles[i] = open_slot(table, &unit->entries[i]);
    hvd__count_alone(&table->nentered, unit->nentries);
    return HVD_OK;
}

int hvd__table_adopt(struct hvd__table *table, struct hvd__unit *unit,
                     uint64_t number, hvd_handle *handle)
{
    int status;

    hvd__mutex_lock(&table->lock);
    write_name(unit, number);
    status = enter(table, unit, handle);
    hvd__mutex_unlock(&table->lock);
    return status;
}

struct hvd__unit *hvd__table_reuse(struct hvd__table *table)
{
    struct hvd__unit *unit;

    hvd__mutex_lock(&table->lock);
    unit = hvd__recycled_take(&table->recycled);
    hvd__mutex_unlock(&table->lock);
    if (!unit)
        return hvd__unit_new(1);
    hvd__unit_reset(unit);
    return unit;
}

void hvd__table_recycle(struct hvd__table *table, struct hvd__entry *entry)
{
    struct hvd__unit *unit = hvd__entry_fini(entry);
    bool kept;

    if (!unit)
        return;
    hvd__mutex_lock(&table->lock);
    kept = hvd__recycled_give(&table->recycled, unit);
    hvd__mutex_unlock(&table->lock);
    if (!kept)
        free(unit);
}

/* The lock is held. */
static inline int submit(struct hvd__table *table, struct hvd__unit *unit,
                         hvd_handle *handles, bool *direct)
{
    complete_name(unit);
    HVD_TRY(check(&unit->set->requests, unit));
    HVD_TRY(enter(table, unit, handles));
    count_submitted(table, unit);
    if (direct)
        *direct = *direct && !table->queue;
    if (!direct || !*direct)
        enqueue(table, unit);
    return HVD_OK;
}

int hvd__table_submit(struct hvd__table *table, struct hvd__unit *unit,
                      hvd_handle *handles, bool *direct)
{
    int status;

    hvd__mutex_lock(&table->lock);
    status = submit(table, unit, handles, direct);
    if (status == HVD_OK && unit->may_recur)
        hvd__recycled_remember(&table->recycled, unit);
    hvd__mutex_unlock(&table->lock);
    return status;
}

int hvd__table_resubmit(struct hvd__table *table,
                        struct hvd__resubmission *resubmission, bool *direct)
{
    int status = HVD_OK;
    struct hvd__unit *unit;

    hvd__mutex_lock(&table->lock);
    unit = hvd__recycled_recall(&table->recycled, resubmission->request,
                                resubmission->name);
    if (unit) {
        hvd__unit_begin(unit, resubmission->timed, table->nentered);
        resubmission->submitted_ns = unit->submitted_ns;
        status = submit(table, unit, resubmission->handle, direct);
        if (status < 0) {
            hvd__recycled_forget(&table->recycled, unit);
            resubmission->refused_by = unit->set;
            hvd__set_use(unit->set);
        }
    }
    hvd__mutex_unlock(&table->lock);
    resubmission->unit = unit;
    return status;
}

void hvd__table_refuse(struct hvd__table *table, struct hvd__unit *unit)
{
    bool closed;

    hvd__mutex_lock(&table->lock);
    closed = unit->set->requests.status < 0;
    if (!closed) {
        unit->key = 0; /* it is called what it is called by now */
        complete_name(unit);
        enqueue(table, unit);
        hvd__count_alone(&table->nentered, unit->nentries);
    }
    hvd__mutex_unlock(&table->lock);
    if (closed)
        hvd__unit_free(unit);
}

void hvd__table_close(struct hvd__table *table, struct hvd__set *set,
                      int status, const char *message)
{
    char *copy = strdup(message);

    hvd__mutex_lock(&table->lock);
    if (set->requests.status >= 0 && copy) {
        set->requests.status = status;
        set->requests.message = copy;
        copy = NULL;
    }
    hvd__mutex_unlock(&table->lock);
    free(copy);
}

struct hvd__unit *hvd__table_take(struct hvd__table *table)
{
    struct hvd__unit *queue;

    hvd__mutex_lock(&table->lock);
    queue = table->queue;
    table->queue = NULL;
    table->queue_tail = &table->queue;
    /* The refused are done with; the others stay busy until finished. */
    for (const struct hvd__unit *u = queue; u; u = u->next)
        if (u->status < 0)
            hvd__count_alone(&table->nover, u->nentries);
    hvd__mutex_unlock(&table->lock);
    return queue;
}

struct hvd__unit *hvd__table_look(struct hvd__table *table,
                                  struct hvd__set *set, uint64_t key)
{
    struct hvd__unit *unit;

    hvd__mutex_lock(&table->lock);
    unit = hvd__in_flight_find(&set->requests.in_flight, key);
    hvd__mutex_unlock(&table->lock);
    return unit;
}

struct hvd__unit *hvd__table_any(struct hvd__table *table, struct hvd__set *set)
{
    struct hvd__unit *unit;

    hvd__mutex_lock(&table->lock);
    unit = set->requests.in_flight.oldest;
    hvd__mutex_unlock(&table->lock);
    return unit;
}

/* The lock is held. */
static void strike(struct hvd__unit *unit)
{
    hvd__in_flight_remove(&unit->set->requests.in_flight, unit);
    if (unit->entries[0].signature.kind == HVD_JOIN) {
        unit->set->requests.joined = false;
        unit->set->requests.njoins++;
        unit->set->requests.nunnamed = 0;
    }
}

void hvd__table_remove(struct hvd__table *table, struct hvd__unit *unit)
{
    hvd__mutex_lock(&table->lock);
    strike(unit);
    hvd__mutex_unlock(&table->lock);
}

void hvd__table_remove_all(struct hvd__table *table,
                           const struct hvd__entry *entries)
{
    hvd__mutex_lock(&table->lock);
    for (const struct hvd__entry *entry = entries; entry; entry = entry->next)
        if (--entry->unit->nleft == 0)
            strike(entry->unit);
    hvd__mutex_unlock(&table->lock);
}

void hvd__table_finish(struct hvd__table *table, struct hvd__entry *entry)
{
    bool detached = entry->slot < 0;

    /* Publishes status and message; the waiter may free the entry at once. */
    atomic_store_explicit(&entry->done, true, memory_order_release);
    hvd__count_alone(&table->nover, 1);
    if (detached)
        hvd__table_recycle(table, entry);
}
