/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ordered.c - the epochs of ordered mode, and the comparison of slots
 * (ordered.h). step.c calls it, with the role of the driver.
 *
 * A rank stores in its area accepted, the epoch times 2, plus 1 if it is
 * refused (loaded by hvd__ordered_hear_accepted), and consumed, the sequence
 * number of the last slot that it has read (ordered_post.c).
 */
#include "core/agree/ordered.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/status.h"
#include "core/agree/agreement.h"

/* An epoch was worth its opening if more slots than this were decided in it. */
enum { GOOD_EPOCH = 64, PATIENCE_MAX = 1 << 16 };

/* ------------------------------------------------------------ life of a set */

/* Allocates the area of a rank that shares memory with no other member. Data
 * next to slots is never read before it is written, so it is not cleared. */
static bool make_lone_area(struct hvd__ordered *x)
{
    x->lone = aligned_alloc(_Alignof(struct hvd__area), sizeof *x->lone);
    if (!x->lone)
        return false;
    memset(x->lone, 0, offsetof(struct hvd__area, payload));
    x->own = x->lone;
    x->areas = &x->lone;
    x->nareas = 1;
    return true;
}

int hvd__ordered_init(struct hvd__ordered *x, struct hvd__set *set)
{
    size_t n = (size_t)set->team.size;
    bool speaks = set->hosts && hvd__hosts_speaks(set->hosts, set->team.rank);

    *x = (struct hvd__ordered){.set = set, .patience = 1};
    if (!set->shm && !set->hosts)
        return HVD_OK;
    x->hosts = set->hosts;
    if (set->shm && set->shm->own) {
        x->areas = set->shm->areas;
        x->nareas = set->shm->size;
        x->own = set->shm->own;
    }
    HVD_TRY(hvd__allocate(&x->pending, HVD__LOG_SLOTS, sizeof *x->pending));
    HVD_TRY(hvd__allocate(&x->sources, n, sizeof *x->sources));
    HVD_TRY(hvd__allocate(&x->targets, n, sizeof *x->targets));
    if (speaks)
        x->round = hvd__round_new(&set->team, set->hosts,
                                  set->first_tag + HVD__ROUND_TAG,
                                  &set->engine->metrics);
    if ((!x->own && !make_lone_area(x)) || (speaks && !x->round))
        return hvd__fail_memory(sizeof *x->lone);
    x->state = HVD__ORDERED_OPENING;
    x->epoch = 1;
    atomic_store(&x->own->accepted, (uint64_t)x->epoch << 1);
    return HVD_OK;
}

/* Takes the next submission that is posted and not decided or, behind these,
 * that waits. Returns NULL if there is none. One that is posted in part still
 * waits. */
static struct hvd__submission *take_undecided(struct hvd__ordered *x)
{
    struct hvd__submission *waiting = x->waiting;

    while (x->decided < x->posted) {
        struct hvd__request *request =
            x->pending[x->decided++ % HVD__LOG_SLOTS].request;

        if (request && request == request->submission->requests &&
            request->submission != waiting)
            return request->submission;
    }
    if (waiting)
        x->waiting = waiting->state.next;
    return waiting;
}

void hvd__ordered_drop(struct hvd__ordered *x)
{
    struct hvd__submission *submission;

    while ((submission = take_undecided(x)))
        if (submission->state.status < 0)
            hvd__submission_free(submission);
    x->over = x->unfinished = x->piece = (struct hvd__request_list){0};
    x->now = (struct hvd__in_place){0};
    x->state = HVD__ORDERED_OFF;
}

void hvd__ordered_fini(struct hvd__ordered *x)
{
    if (x->pending)
        hvd__ordered_drop(x);
    free(x->pending);
    free(x->sources);
    free(x->targets);
    free(x->lone);
    hvd__round_free(x->round);
    *x = (struct hvd__ordered){0};
}

void hvd__ordered_submit(struct hvd__ordered *x,
                         struct hvd__submission *submission)
{
    submission->state.next = NULL;
    if (x->waiting)
        x->last_waiting->state.next = submission;
    else
        x->waiting = submission;
    x->last_waiting = submission;
}

bool hvd__ordered_is_busy(const struct hvd__ordered *x)
{
    return x->state == HVD__ORDERED_OPEN &&
           (x->decided < x->posted || x->unfinished.first || x->now.request);
}

/* ------------------------------------------------------- by name, after all */

static int announce_undecided(struct hvd__ordered *x)
{
    struct hvd__submission *submission;

    while ((submission = take_undecided(x)))
        HVD_TRY(hvd__announce(x->set, submission));
    return HVD_OK;
}

/* Ends the epoch: everything that is not decided is agreed on by name. */
static int end_epoch(struct hvd__ordered *x, enum hvd__ordered_state state,
                     bool *moved)
{
    x->state = state;
    x->patience = x->decided > GOOD_EPOCH ? 1 : 2 * x->patience;
    if (x->patience > PATIENCE_MAX)
        x->patience = PATIENCE_MAX;
    x->closed_at = x->nannounced;
    *moved = true;
    return announce_undecided(x);
}

bool hvd__ordered_may_open(const struct hvd__ordered *x)
{
    return x->state == HVD__ORDERED_CLOSED &&
           x->nannounced - x->closed_at >= x->patience;
}

int hvd__ordered_open(struct hvd__set *set, uint32_t epoch, bool refused)
{
    struct hvd__ordered *x = &set->agreement->ordered;

    HVD_TRY(hvd__relay_open(set, epoch, refused));
    refused |= x->state == HVD__ORDERED_OPEN;
    /* On several hosts all must hear of a refusal (speaker.c). */
    x->epoch = epoch;
    x->state =
        refused && !x->hosts ? HVD__ORDERED_CLOSED : HVD__ORDERED_OPENING;
    if (refused)
        x->closed_at = x->nannounced;
    hvd__word_set(&x->own->accepted, (uint64_t)epoch << 1 | refused);
    return HVD_OK;
}

bool hvd__ordered_hear_accepted(const struct hvd__ordered *x, bool *refused)
{
    for (int i = 0; i < x->nareas; i++) {
        uint64_t accepted = hvd__word_get(&x->areas[i]->accepted);

        if (accepted >> 1 < x->epoch)
            return false;
        *refused |= (accepted & 1) != 0;
    }
    return true;
}

/* Returns the result of opening the epoch, as the speaker publishes it (shm.h),
 * or that of an earlier one if it is not yet known. On one host every rank
 * finds it out by itself. */
static uint64_t result_of_opening(const struct hvd__ordered *x)
{
    bool refused = !x->set->engine->settings.ordered;

    if (x->hosts)
        return hvd__word_get(x->round ? &x->own->opened : &x->areas[0]->opened);
    return hvd__ordered_hear_accepted(x, &refused) || refused
               ? (uint64_t)x->epoch << 2 | refused
               : 0;
}

/* Opens the epoch if all ranks have accepted it. wanted is true if this rank
 * has something to submit. A speaker whose host shares no memory must end the
 * round too, for the other hosts wait for its messages. */
static int try_open(struct hvd__ordered *x, bool wanted, bool *moved)
{
    /* -1: this rank will never see the areas of the members on its host */
    int ready = x->set->shm             ? hvd__shm_ready(x->set->shm)
                : x->hosts->widest == 1 ? 1
                                        : -1;
    uint64_t how;

    if (ready == 0)
        return HVD_OK;
    if (x->round)
        HVD_TRY(hvd__speaker_open(x, wanted, ready > 0, moved));
    else if (ready < 0)
        return end_epoch(x, HVD__ORDERED_OFF, moved);
    how = result_of_opening(x);
    if (how >> 2 != x->epoch)
        return HVD_OK;
    if (how & 2)
        return end_epoch(x, HVD__ORDERED_OFF, moved);
    /* From now on collectives may use the memory that the ranks of each host
     * share. */
    if (x->hosts)
        x->set->team.hosts = x->set->hosts;
    else
        x->set->team.shm = x->set->shm;
    x->posted = x->decided = x->read = 0;
    x->payload_free = x->payload_next;
    if (how & 1)
        return end_epoch(x, HVD__ORDERED_CLOSED, moved);
    x->state = HVD__ORDERED_OPEN;
    *moved = true;
    return HVD_OK;
}

/* ----------------------------------------------------------------- deciding */

enum hvd__verdict hvd__ordered_compare(const struct hvd__ordered *x,
                                       uint64_t number)
{
    const struct hvd__log_slot *own = hvd__slot_at(x->own, number);
    uint64_t sequence = hvd__sequence_of(x, number);
    enum hvd__verdict verdict = HVD__AGREED;

    if (own->flags & HVD__SLOT_FALLBACK)
        return HVD__DIFFERENT;
    for (int i = 0; i < x->nareas; i++) {
        const struct hvd__log_slot *slot = hvd__slot_at(x->areas[i], number);

        if (slot == own)
            continue;
        if (hvd__word_get(&slot->sequence) != sequence)
            verdict = HVD__UNKNOWN;
        else if (slot->flags & HVD__SLOT_FALLBACK || slot->key != own->key ||
                 slot->fingerprint != own->fingerprint)
            return HVD__DIFFERENT;
    }
    return verdict;
}

void hvd__ordered_consume(struct hvd__ordered *x)
{
    uint64_t read = hvd__slots_read(x);

    if (read > 0)
        hvd__word_set(&x->own->consumed, hvd__sequence_of(x, read - 1));
}

enum hvd__verdict hvd__ordered_judge(const struct hvd__ordered *x)
{
    uint64_t ended;

    if (!x->hosts)
        return x->decided < x->posted ? hvd__ordered_compare(x, x->decided)
                                      : HVD__UNKNOWN;
    ended = hvd__word_get(&x->areas[0]->ended);
    if (x->decided < hvd__slots_of(x, hvd__word_get(&x->areas[0]->agreed)))
        return HVD__AGREED;
    return ended == x->epoch ? HVD__DIFFERENT : HVD__UNKNOWN;
}

static int decide_slots(struct hvd__ordered *x, bool *moved)
{
    uint64_t before = x->decided;
    enum hvd__verdict verdict = HVD__UNKNOWN;
    int64_t now = 0;

    while (!x->now.request &&
           (verdict = hvd__ordered_judge(x)) == HVD__AGREED) {
        uint64_t slot = x->decided++;

        now = now ? now : hvd__now_ns();
        HVD_TRY(hvd__ordered_run(x, x->pending[slot % HVD__LOG_SLOTS].request,
                                 slot, now));
        if (x->now.request)
            hvd__ordered_reduce_share(x);
        if (x->hosts)
            HVD_TRY(hvd__ordered_end_piece(x, slot));
    }
    if (x->decided > before) {
        *moved = true;
        hvd__ordered_consume(x);
    }
    return verdict == HVD__DIFFERENT ? end_epoch(x, HVD__ORDERED_CLOSED, moved)
                                     : HVD_OK;
}

/* ------------------------------------------------------------------- a step */

int hvd__ordered_step(struct hvd__ordered *x, bool leaving, bool *moved)
{
    bool wanted = x->waiting || leaving;
    uint64_t before = x->posted;

    if (x->state == HVD__ORDERED_OPENING && (wanted || x->round))
        HVD_TRY(try_open(x, wanted, moved));
    if (x->state == HVD__ORDERED_CLOSED)
        HVD_TRY(announce_undecided(x));
    if (x->state == HVD__ORDERED_OPEN)
        hvd__ordered_post(x);
    if (x->state == HVD__ORDERED_OPEN && leaving && !x->waiting && !x->ending)
        x->ending = hvd__ordered_post_fallback(x, NULL);
    *moved |= x->posted > before;
    if (x->round && x->state == HVD__ORDERED_OPEN)
        HVD_TRY(hvd__speaker_step(x, moved));
    if (x->now.request) {
        *moved = true;
        if (!hvd__ordered_reduce_share(x))
            return HVD_OK;
    }
    if (x->state == HVD__ORDERED_OPEN)
        HVD_TRY(decide_slots(x, moved));
    hvd__ordered_finish(x, moved);
    return HVD_OK;
}
