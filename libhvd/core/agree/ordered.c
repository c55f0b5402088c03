/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ordered.c - the epochs of ordered mode, and the comparison of slots
 * (ordered.h). step.c calls it, with the role of the driver.
 *
 * A rank stores in its area, with release order: accepted (hvd__ordered_open;
 * loaded in try_open) and consumed (hvd__ordered_consume; loaded in
 * ordered_post.c before slots are reused). Both hold an epoch: accepted is the
 * epoch times 2, plus 1 if it is refused; consumed is a sequence number.
 */
#include "core/agree/ordered.h"

#include <stdlib.h>

#include "base/clock.h"
#include "base/status.h"
#include "core/agree/by_name.h"
#include "core/agree/ordered_parts.h"

/* An epoch was worth its opening if more slots than this were decided in it. */
enum { GOOD_EPOCH = 64, PATIENCE_MAX = 1 << 16 };

/* ------------------------------------------------------------ life of a set */

int hvd__ordered_init(struct hvd__ordered *x, struct hvd__shm *shm,
                      struct hvd__replicated_log *log, int rank, int size)
{
    size_t n = (size_t)size;

    *x = (struct hvd__ordered){.patience = 1};
    x->waiting_tail = &x->waiting;
    x->unfinished_tail = &x->unfinished;
    x->over_tail = &x->over;
    if (!shm && !log)
        return HVD_OK;
    x->log = log;
    x->areas = log ? log->areas : shm->areas;
    x->own = log ? log->areas[rank] : shm->own;
    x->pending = calloc(HVD__LOG_SLOTS, sizeof *x->pending);
    x->sources = calloc(n, sizeof *x->sources);
    x->targets = calloc(n, sizeof *x->targets);
    x->nheard = calloc(n, sizeof *x->nheard);
    if (!x->pending || !x->sources || !x->targets || !x->nheard) {
        hvd__ordered_fini(x);
        return hvd__fail_memory(HVD__LOG_SLOTS * sizeof *x->pending);
    }
    x->state = HVD__ORDERED_OPENING;
    x->epoch = 1;
    if (x->own)
        atomic_store(&x->own->accepted, (uint64_t)x->epoch << 1);
    return HVD_OK;
}

static void forget_refused(struct hvd__submission *submission)
{
    if (submission->state.status < 0)
        hvd__submission_free(submission);
}

void hvd__ordered_drop(struct hvd__ordered *x)
{
    struct hvd__submission *submission = x->waiting;

    for (uint64_t slot = x->decided; slot < x->posted; slot++) {
        struct hvd__request *request =
            x->pending[slot % HVD__LOG_SLOTS].request;

        if (request && request == request->submission->requests)
            forget_refused(request->submission);
    }
    while (submission) {
        struct hvd__submission *next = submission->state.next;
        forget_refused(submission);
        submission = next;
    }
    x->waiting = NULL;
    x->waiting_tail = &x->waiting;
    x->over = x->unfinished = NULL;
    x->over_tail = &x->over;
    x->unfinished_tail = &x->unfinished;
    x->now = (struct hvd__in_place){0};
    x->posted = x->decided = 0;
    x->state = HVD__ORDERED_OFF;
}

void hvd__ordered_fini(struct hvd__ordered *x)
{
    if (x->pending)
        hvd__ordered_drop(x);
    free(x->pending);
    free(x->sources);
    free(x->targets);
    free(x->nheard);
    hvd__replicated_log_free(x->log);
    *x = (struct hvd__ordered){0};
}

void hvd__ordered_submit(struct hvd__ordered *x,
                         struct hvd__submission *submission)
{
    submission->state.next = NULL;
    *x->waiting_tail = submission;
    x->waiting_tail = &submission->state.next;
}

bool hvd__ordered_is_free(const struct hvd__ordered *x)
{
    return x->state == HVD__ORDERED_OPEN && !x->log && !x->waiting &&
           !x->ending && x->decided == x->posted && !x->now.request &&
           !x->unfinished;
}

bool hvd__ordered_is_busy(const struct hvd__ordered *x)
{
    return x->state == HVD__ORDERED_OPEN &&
           (x->decided < x->posted || x->unfinished || x->now.request);
}

/* --------------------------------------------------------- by name, after all
 */

static int announce_waiting(struct hvd__set *set)
{
    struct hvd__ordered *x = &set->agreement->ordered;

    while (x->waiting) {
        struct hvd__submission *submission = x->waiting;

        x->waiting = submission->state.next;
        HVD_TRY(hvd__announce(set, submission));
    }
    x->waiting_tail = &x->waiting;
    return HVD_OK;
}

/* Ends the epoch: everything that is not decided is agreed on by name. */
static int end_epoch(struct hvd__set *set, enum hvd__ordered_state state,
                     bool *moved)
{
    struct hvd__ordered *x = &set->agreement->ordered;

    x->state = state;
    x->patience = x->decided > GOOD_EPOCH ? 1 : 2 * x->patience;
    if (x->patience > PATIENCE_MAX)
        x->patience = PATIENCE_MAX;
    x->closed_at = x->nannounced;
    *moved = true;
    for (; x->decided < x->posted; x->decided++) {
        struct hvd__request *request =
            x->pending[x->decided % HVD__LOG_SLOTS].request;

        /* A submission that is posted in part still waits too. */
        if (request && request == request->submission->requests &&
            request->submission != x->waiting)
            HVD_TRY(hvd__announce(set, request->submission));
    }
    return announce_waiting(set);
}

bool hvd__ordered_may_open(const struct hvd__ordered *x)
{
    return x->state == HVD__ORDERED_CLOSED &&
           x->nannounced - x->closed_at >= x->patience;
}

void hvd__ordered_open(struct hvd__set *set, uint32_t epoch, int64_t nheard)
{
    struct hvd__ordered *x = &set->agreement->ordered;
    bool refused = nheard != x->nannounced || x->state == HVD__ORDERED_OPEN;

    x->epoch = epoch;
    x->state = refused ? HVD__ORDERED_CLOSED : HVD__ORDERED_OPENING;
    if (refused)
        x->closed_at = x->nannounced;
    if (x->own)
        atomic_store_explicit(&x->own->accepted, (uint64_t)epoch << 1 | refused,
                              memory_order_release);
}

/* Opens the epoch if all ranks have accepted it. */
static int try_open(const struct hvd__engine *engine, struct hvd__set *set,
                    bool *moved)
{
    struct hvd__ordered *x = &set->agreement->ordered;
    int ready = x->log ? 1 : hvd__shm_ready(set->shm);
    bool refused = false;

    if (ready == 0)
        return HVD_OK;
    if (ready < 0)
        return end_epoch(set, HVD__ORDERED_OFF, moved);
    if (!x->log)
        set->team.shm = set->shm;
    if (!engine->settings.ordered)
        return end_epoch(set, HVD__ORDERED_CLOSED, moved);
    for (int rank = 0; rank < set->team.size; rank++) {
        uint64_t accepted =
            atomic_load_explicit(&set->agreement->ordered.areas[rank]->accepted,
                                 memory_order_acquire);

        if (accepted >> 1 < x->epoch)
            return HVD_OK;
        refused |= (accepted & 1) != 0;
    }
    x->posted = x->decided = x->read = 0;
    x->payload_free = x->payload_next;
    if (x->log)
        hvd__replicated_log_begin(x->log);
    if (refused)
        return end_epoch(set, HVD__ORDERED_CLOSED, moved);
    x->state = HVD__ORDERED_OPEN;
    *moved = true;
    return HVD_OK;
}

/* ------------------------------------------------------------------- deciding
 */

enum hvd__verdict hvd__ordered_compare(const struct hvd__set *set)
{
    const struct hvd__ordered *x = &set->agreement->ordered;
    const struct hvd__log_slot *own =
        hvd__slot_at(set->agreement->ordered.own, x->decided);
    uint64_t sequence = hvd__sequence_of(x, x->decided);
    enum hvd__verdict verdict = HVD__AGREED;

    if (own->flags & HVD__SLOT_FALLBACK)
        return HVD__DIFFERENT;
    for (int rank = 0; rank < set->team.size; rank++) {
        const struct hvd__log_slot *slot =
            hvd__slot_at(set->agreement->ordered.areas[rank], x->decided);

        if (slot == own)
            continue;
        if (atomic_load_explicit(&slot->sequence, memory_order_acquire) !=
            sequence)
            verdict = HVD__UNKNOWN;
        else if (slot->flags & HVD__SLOT_FALLBACK || slot->key != own->key ||
                 slot->fingerprint != own->fingerprint)
            return HVD__DIFFERENT;
    }
    return verdict;
}

void hvd__ordered_consume(struct hvd__set *set)
{
    const struct hvd__ordered *x = &set->agreement->ordered;
    uint64_t read = hvd__slots_read(x);

    if (read > 0)
        atomic_store_explicit(&set->agreement->ordered.own->consumed,
                              hvd__sequence_of(x, read - 1),
                              memory_order_release);
}

static int decide_slots(struct hvd__engine *engine, struct hvd__set *set,
                        bool *moved)
{
    struct hvd__ordered *x = &set->agreement->ordered;
    uint64_t before = x->decided;
    enum hvd__verdict verdict = HVD__UNKNOWN;
    int64_t now = 0;

    while (x->decided < x->posted && !x->now.request &&
           (verdict = hvd__ordered_compare(set)) == HVD__AGREED) {
        uint64_t slot = x->decided++;

        now = now ? now : hvd__now_ns();
        HVD_TRY(hvd__ordered_run(
            engine, set, x->pending[slot % HVD__LOG_SLOTS].request, slot, now));
        if (x->now.request)
            hvd__ordered_reduce_share(set);
    }
    if (x->decided > before) {
        *moved = true;
        hvd__ordered_consume(set);
    }
    return verdict == HVD__DIFFERENT
               ? end_epoch(set, HVD__ORDERED_CLOSED, moved)
               : HVD_OK;
}

/* -------------------------------------------------------------------- a step
 */

static void post_waiting(struct hvd__engine *engine, struct hvd__set *set,
                         bool leaving, bool *moved)
{
    struct hvd__ordered *x = &set->agreement->ordered;
    uint64_t before = x->posted;

    hvd__ordered_post(engine, set);
    *moved |= x->posted != before;
    if (leaving && !x->waiting && !x->ending)
        x->ending = hvd__ordered_post_end(set);
}

int hvd__ordered_step(struct hvd__engine *engine, struct hvd__set *set,
                      bool leaving, bool *moved)
{
    struct hvd__ordered *x = &set->agreement->ordered;

    if (x->state == HVD__ORDERED_OPENING && (x->waiting || leaving))
        HVD_TRY(try_open(engine, set, moved));
    if (x->state == HVD__ORDERED_CLOSED)
        HVD_TRY(announce_waiting(set));
    if (x->state == HVD__ORDERED_OPEN && (x->waiting || leaving))
        post_waiting(engine, set, leaving, moved);
    if (x->log)
        HVD_TRY(hvd__replicated_log_send(set));
    if (x->now.request) {
        *moved = true;
        if (!hvd__ordered_reduce_share(set))
            return HVD_OK;
    }
    if (x->state == HVD__ORDERED_OPEN && x->decided < x->posted)
        HVD_TRY(decide_slots(engine, set, moved));
    hvd__ordered_finish(engine, set, moved);
    return x->log ? hvd__replicated_log_send(set) : HVD_OK;
}
