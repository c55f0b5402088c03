/* SPDX-License-Identifier: Apache-2.0 */
/*
 * table.c - the request table of one rank.
 *
 * A submission or its requests are in up to three places at once:
 *
 * queue       submissions, from submit until they are announced
 *     in_flight   submissions, a table for each process set, from submit until
 *                 they complete; finds duplicates and the subject of a decision
 *     slots       requests, from submit until hvd_wait, if the program has a
 *                 handle
 *
 * A handle is the number of a slot and its generation, which grows each time
 * the slot is reused: a stale handle differs from a live one until a slot has
 * been used 2^31 times.
 *
 * Threads that submit and wait call it, and so does the driver. nentered and
 * nover are read without the lock (hvd__table_busy).
 */
#include "core/table/table.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/fingerprint.h"
#include "base/status.h"
#include "core/request/sampling.h"
#include "core/table/set.h"
#include "trace/metrics.h"

void hvd__table_init(struct hvd__table *table)
{
    *table = (struct hvd__table){.first_free = -1};
    table->queue_tail = &table->queue;
}

void hvd__table_fini(struct hvd__table *table)
{
    struct hvd__submission *submission;

    /* While those in use, which it may name too, are still there. */
    hvd__recycled_fini(&table->recycled);
    while ((submission = table->queue)) {
        table->queue = submission->state.next;
        if (submission->state.status < 0)
            hvd__submission_free(submission);
    }
    /* Sets first: they look at requests in flight that have handles. */
    for (int i = 0; i < table->nsets; i++)
        hvd__set_free(table->sets[i]);
    free(table->sets);
    for (int32_t i = 0; i < table->nslots; i++)
        hvd__request_free(table->slots[i].request);
    free(table->slots);
}

void hvd__set_table_fini(struct hvd__set_table *requests)
{
    struct hvd__submission *submission;

    /* Requests with a handle are freed with their slots. */
    while ((submission = requests->in_flight.oldest)) {
        int n = submission->state.nrequests;

        hvd__in_flight_remove(&requests->in_flight, submission);
        for (int i = 0; i < n; i++) {
            struct hvd__request *request = &submission->requests[i];
            bool last = atomic_load(&submission->state.nrefs) == 1;

            if (request->state.slot >= 0 || atomic_load(&request->state.done))
                continue;
            hvd__request_free(request);
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
    struct hvd__handle_slot *slots =
        realloc(table->slots, (size_t)nslots * sizeof *slots);

    if (!slots)
        return hvd__fail_memory((size_t)nslots * sizeof *slots);
    table->slots = slots;
    for (int32_t i = nslots - 1; i >= table->nslots; i--) {
        slots[i] = (struct hvd__handle_slot){.next_free = table->first_free};
        table->first_free = i;
    }
    table->nfree += nslots - table->nslots;
    table->nslots = nslots;
    return HVD_OK;
}

static hvd_handle open_slot(struct hvd__table *table,
                            struct hvd__request *request)
{
    int32_t i = table->first_free;
    struct hvd__handle_slot *slot = &table->slots[i];

    table->first_free = slot->next_free;
    table->nfree--;
    slot->request = request;
    slot->generation = (slot->generation + 1) & INT32_MAX;
    request->state.slot = i;
    return (hvd_handle)slot->generation << 32 | (i + 1);
}

/* Returns the request of a handle, or NULL. The caller holds the lock. */
static struct hvd__request *find_request(const struct hvd__table *table,
                                         hvd_handle handle)
{
    int64_t i = (handle & UINT32_MAX) - 1;

    if (i >= 0 && i < table->nslots &&
        table->slots[i].generation == handle >> 32)
        return table->slots[i].request;
    return NULL;
}

static int no_such_handle(hvd_handle handle)
{
    return hvd__fail(HVD_ERR_HANDLE,
                     "handle 0x%" PRIx64 " is not of a request in flight: "
                     "it was already waited for, or never given out",
                     (uint64_t)handle);
}

/* The caller holds the lock. */
static void close_slot(struct hvd__table *table, int32_t slot)
{
    table->slots[slot].request = NULL;
    table->slots[slot].next_free = table->first_free;
    table->first_free = slot;
    table->nfree++;
}

/* Recycles a request that is complete without an error, if it owns nothing. The
 * caller holds the lock. */
static bool give_clean(struct hvd__table *table,
                       const struct hvd__request *request)
{
    return request->submission->may_recur && !request->state.carried &&
           !request->state.message &&
           hvd__recycled_give(&table->recycled, request->submission);
}

int hvd__table_claim(struct hvd__table *table, hvd_handle handle, bool wanted,
                     struct hvd__request **request)
{
    struct hvd__request *found;
    bool done = false;

    hvd__mutex_lock(&table->lock);
    found = find_request(table, handle);
    if (found && found->state.claimed)
        found = NULL;
    if (found) {
        found->state.claimed = true;
        done = atomic_load_explicit(&found->state.done, memory_order_acquire);
        if (done)
            close_slot(table, found->state.slot);
    }
    *request = found;
    if (done && found->state.status == HVD_OK && !wanted &&
        give_clean(table, found))
        *request = NULL;
    hvd__mutex_unlock(&table->lock);
    return found ? done : no_such_handle(handle);
}

int hvd__table_poll(struct hvd__table *table, hvd_handle handle)
{
    const struct hvd__request *found;
    int done = -1;

    hvd__mutex_lock(&table->lock);
    found = find_request(table, handle);
    if (found)
        done = atomic_load_explicit(&found->state.done, memory_order_acquire);
    hvd__mutex_unlock(&table->lock);
    return done < 0 ? no_such_handle(handle) : done;
}

void hvd__table_release(struct hvd__table *table,
                        const struct hvd__request *request)
{
    hvd__mutex_lock(&table->lock);
    close_slot(table, request->state.slot);
    hvd__mutex_unlock(&table->lock);
}

/* -------------------------------------------------------------------
 * submissions */

void hvd__table_queue(struct hvd__table *table,
                      struct hvd__submission *submission)
{
    submission->state.next = NULL;
    *table->queue_tail = submission;
    table->queue_tail = &submission->state.next;
}

/* Writes a number in decimal and returns its end. Every unnamed request comes
 * here, and printf would be slow. */
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

/* Numbers a submission without a name. Ranks match unnamed submissions by
 * number; refused ones count. A rank that has joined misses some, so all ranks
 * start counting again when a join is over. */
static uint64_t number_submission(struct hvd__submission *submission)
{
    struct hvd__set_table *requests = &submission->set->requests;
    uint64_t words[] = {HVD__UNNAMED, requests->nunnamed, requests->njoins};

    submission->key = hvd__fingerprint(0, words, sizeof words);
    return requests->nunnamed++;
}

/* Writes the name of a submission that has only a number. */
static void write_name(struct hvd__submission *submission, uint64_t number)
{
    static const char after[] = " after join ";
    uint64_t njoins = submission->set->requests.njoins;
    char *at = submission->name;

    *at++ = HVD__UNNAMED;
    at = write_number(at, number);
    if (njoins > 0) {
        memcpy(at, after, sizeof after - 1);
        at = write_number(at + sizeof after - 1, njoins);
    }
    *at = '\0';
}

static void complete_name(struct hvd__submission *submission)
{
    if (!submission->name[0])
        write_name(submission, number_submission(submission));
    else if (submission->key == 0)
        submission->key =
            hvd__fingerprint(0, submission->name, strlen(submission->name));
}

/* Returns the error that keeps every submission to the set out. */
static int check_set(const struct hvd__set_table *requests,
                     const struct hvd__submission *submission)
{
    if (requests->status < 0)
        return hvd__fail_text(requests->status, requests->message);
    if (requests->joined && strcmp(submission->name, HVD__SETS_NAME) != 0)
        return hvd__fail(HVD_ERR_JOINED,
                         "this rank has joined: it can submit nothing until "
                         "all ranks have");
    return HVD_OK;
}

/* Counts a submission. The caller holds the lock, so these counters have no
 * other writers. */
static inline void count_submitted(const struct hvd__table *table,
                                   const struct hvd__submission *submission)
{
    if (!table->metrics || hvd__request_is_own(&submission->requests[0]))
        return;
    for (int i = 0; i < submission->state.nrequests; i++)
        hvd__count_alone(
            &table->metrics->kinds[submission->requests[i].signature.kind]
                 .submitted,
            1);
}

bool hvd__table_number(struct hvd__table *table,
                       struct hvd__submission *submission, uint64_t *number)
{
    const struct hvd__set_table *requests = &submission->set->requests;
    bool free;

    hvd__mutex_lock(&table->lock);
    free = hvd__table_busy(table) == 0 && !table->queue &&
           requests->status >= 0 && !requests->joined;
    if (free) {
        *number = number_submission(submission);
        count_submitted(table, submission);
    }
    hvd__mutex_unlock(&table->lock);
    return free;
}

/* Makes room for a submission, and for its handles if it gets some. */
static int make_room(struct hvd__table *table,
                     const struct hvd__submission *submission, bool handles)
{
    while (handles && table->nfree < submission->state.nrequests)
        HVD_TRY(grow_slots(table));
    return hvd__in_flight_reserve(&submission->set->requests.in_flight);
}

/* Adds a submission for which there is room. */
static void add_submission(struct hvd__table *table,
                           struct hvd__submission *submission,
                           hvd_handle *handles)
{
    struct hvd__set_table *requests = &submission->set->requests;

    hvd__in_flight_add(&requests->in_flight, submission);
    if (submission->requests[0].signature.kind == HVD_JOIN)
        requests->joined = true;
    for (int i = 0; handles && i < submission->state.nrequests; i++)
        handles[i] = open_slot(table, &submission->requests[i]);
    hvd__count_alone(&table->nentered, submission->state.nrequests);
}

int hvd__table_adopt(struct hvd__table *table,
                     struct hvd__submission *submission, uint64_t number,
                     hvd_handle *handle)
{
    int status;

    hvd__mutex_lock(&table->lock);
    write_name(submission, number);
    status = make_room(table, submission, true);
    if (status == HVD_OK)
        add_submission(table, submission, handle);
    hvd__mutex_unlock(&table->lock);
    return status;
}

struct hvd__submission *hvd__table_reuse(struct hvd__table *table)
{
    struct hvd__submission *submission;

    hvd__mutex_lock(&table->lock);
    submission = hvd__recycled_take(&table->recycled);
    hvd__mutex_unlock(&table->lock);
    if (!submission)
        return hvd__submission_new(1);
    hvd__submission_reset(submission);
    return submission;
}

void hvd__table_recycle(struct hvd__table *table, struct hvd__request *request)
{
    struct hvd__submission *submission = hvd__request_fini(request);
    bool kept;

    if (!submission)
        return;
    hvd__mutex_lock(&table->lock);
    kept = hvd__recycled_give(&table->recycled, submission);
    hvd__mutex_unlock(&table->lock);
    if (!kept)
        free(submission);
}

/* A submission that cannot be entered gets no number, so that one that is tried
 * again does not get two. */
int hvd__table_enter(struct hvd__table *table,
                     struct hvd__submission *submission, hvd_handle *handles)
{
    const struct hvd__set_table *requests = &submission->set->requests;

    HVD_TRY(check_set(requests, submission));
    HVD_TRY(make_room(table, submission, handles != NULL));
    complete_name(submission);
    if (hvd__in_flight_find(&requests->in_flight, submission->key))
        return hvd__fail(HVD_ERR_DUPLICATE,
                         "'%s' was submitted again while it is in flight: "
                         "wait for the first, or use another name",
                         submission->name);
    add_submission(table, submission, handles);
    count_submitted(table, submission);
    if (submission->may_recur && submission->place == 0)
        hvd__recycled_remember(&table->recycled, submission);
    return HVD_OK;
}

struct hvd__submission *hvd__table_reenter(struct hvd__table *table,
                                           const hvd_request *given,
                                           const char *name, bool timed,
                                           hvd_handle *handle)
{
    struct hvd__submission *submission =
        hvd__recycled_recall(&table->recycled, given, name);

    if (!submission)
        return NULL;
    hvd__sampling_start(submission, timed, table->nentered);
    if (hvd__table_enter(table, submission, handle) == HVD_OK)
        return submission;
    hvd__recycled_give(&table->recycled, submission);
    return NULL;
}

void hvd__table_refuse(struct hvd__table *table,
                       struct hvd__submission *submission)
{
    bool closed;

    hvd__mutex_lock(&table->lock);
    closed = submission->set->requests.status < 0;
    if (!closed) {
        submission->key = 0; /* its name is final now */
        complete_name(submission);
        hvd__table_queue(table, submission);
        hvd__count_alone(&table->nentered, submission->state.nrequests);
    }
    hvd__mutex_unlock(&table->lock);
    if (closed)
        hvd__submission_free(submission);
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

struct hvd__submission *hvd__table_take(struct hvd__table *table)
{
    struct hvd__submission *queue;

    hvd__mutex_lock(&table->lock);
    queue = table->queue;
    table->queue = NULL;
    table->queue_tail = &table->queue;
    /* Refused submissions are over; the others stay busy until they are
     * finished. */
    for (const struct hvd__submission *u = queue; u; u = u->state.next)
        if (u->state.status < 0)
            hvd__count_alone(&table->nover, u->state.nrequests);
    hvd__mutex_unlock(&table->lock);
    return queue;
}

struct hvd__submission *hvd__table_look(struct hvd__table *table,
                                        struct hvd__set *set, uint64_t key)
{
    struct hvd__submission *submission;

    hvd__mutex_lock(&table->lock);
    submission = hvd__in_flight_find(&set->requests.in_flight, key);
    hvd__mutex_unlock(&table->lock);
    return submission;
}

struct hvd__submission *hvd__table_any(struct hvd__table *table,
                                       struct hvd__set *set)
{
    struct hvd__submission *submission;

    hvd__mutex_lock(&table->lock);
    submission = set->requests.in_flight.oldest;
    hvd__mutex_unlock(&table->lock);
    return submission;
}

/* The caller holds the lock. */
static void strike_submission(struct hvd__submission *submission)
{
    hvd__in_flight_remove(&submission->set->requests.in_flight, submission);
    if (submission->requests[0].signature.kind == HVD_JOIN) {
        submission->set->requests.joined = false;
        submission->set->requests.njoins++;
        submission->set->requests.nunnamed = 0;
    }
}

void hvd__table_remove(struct hvd__table *table,
                       const struct hvd__request *requests)
{
    hvd__mutex_lock(&table->lock);
    for (const struct hvd__request *request = requests; request;
         request = request->state.next)
        if (--request->submission->state.nleft == 0)
            strike_submission(request->submission);
    hvd__mutex_unlock(&table->lock);
}

void hvd__table_finish(struct hvd__table *table, struct hvd__request *request)
{
    bool detached = request->state.slot < 0;

    /* The store of done releases status and message to the load in hvd__wait
     * and hvd__table_claim. The waiter may free the request at once. */
    atomic_store_explicit(&request->state.done, true, memory_order_release);
    hvd__count_alone(&table->nover, 1);
    if (detached)
        hvd__table_recycle(table, request);
}
