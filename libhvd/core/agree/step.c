/* SPDX-License-Identifier: Apache-2.0 */
/*
 * step.c - a step of agreement: routes each submission to ordered mode
 * (ordered.c) or to agreement by name, takes in messages, and lets the
 * coordinator decide. Each process set does so by itself. The engine
 * (core/world/engine.c) calls it.
 *
 * Agreement by name:
 *
 *     member     request table --ANNOUNCE--> its parent --> ... --> coordinator
 *                  hear.c                      hear.c, relay.c        hear.c
 *                lanes         <----BATCH--- its parent <-- ... <--
 *                request table <-----END----   follow.c               follow.c
 *
 * All members follow the coordinator's decisions in the order in which it sent
 * them, so all run the same batches in the same order although they submitted
 * in different ones. Leaving is a record too (GONE); when all have left, CLOSE
 * ends the set.
 */
#include "core/agree/agree.h"

#include <stdlib.h>

#include "base/status.h"
#include "core/agree/agreement.h"

/* ---------------------------------------------------------- what we submit */

/* Passes each submission to ordered mode or to agreement by name. */
static int route_submissions(struct hvd__submission *submission)
{
    int status = HVD_OK;

    while (submission) {
        struct hvd__submission *next = submission->state.next;

        if (submission->set->agreement->ordered.state != HVD__ORDERED_OFF)
            hvd__ordered_submit(&submission->set->agreement->ordered,
                                submission);
        else if (status == HVD_OK)
            status = hvd__announce(submission->set, submission);
        else if (submission->state.status < 0)
            hvd__submission_free(submission);
        submission = next;
    }
    return status;
}

bool hvd__agree_post_one(struct hvd__submission *submission)
{
    const struct hvd__ordered *x = &submission->set->agreement->ordered;

    return x->state == HVD__ORDERED_OPEN && !x->waiting &&
           hvd__ordered_post_submission(&submission->set->agreement->ordered,
                                        submission);
}

int hvd__agree_post(struct hvd__engine *engine)
{
    HVD_TRY(route_submissions(hvd__table_take(&engine->table)));
    for (struct hvd__set *set = engine->live; set; set = set->next)
        if (set->agreement->ordered.state == HVD__ORDERED_OPEN)
            hvd__ordered_post(&set->agreement->ordered);
    return HVD_OK;
}

static int announce_all(struct hvd__engine *engine, bool *moved)
{
    struct hvd__submission *submission;

    /* The flag is loaded first: whatever was submitted before it was set is in
     * the queue by then, and so is announced before the leave. The store is in
     * core/world or core/api/process_sets.c. */
    for (struct hvd__set *set = engine->live; set; set = set->next)
        set->agreement->heard_leaving = atomic_load(&set->leaving);
    submission = hvd__table_take(&engine->table);
    *moved |= submission != NULL;
    HVD_TRY(route_submissions(submission));
    for (struct hvd__set *set = engine->live; set; set = set->next) {
        if (set->agreement->ordered.state != HVD__ORDERED_OFF)
            HVD_TRY(hvd__ordered_step(&set->agreement->ordered,
                                      set->agreement->heard_leaving, moved));
        if (set->agreement->heard_leaving &&
            set->agreement->ordered.state <= HVD__ORDERED_CLOSED)
            HVD_TRY(hvd__announce_leave(set));
    }
    return HVD_OK;
}

/* ---------------------------------------------------------- what others say */

static int hear_message(struct hvd__engine *engine, int rank,
                        const void *message, size_t bytes)
{
    struct hvd__reader in = {.data = message, .bytes = bytes};
    struct hvd__set *set =
        hvd__table_find_set(&engine->table, hvd__read_int(&in));
    int member = set && hvd__set_has_us(set) ? hvd__set_find(set, rank) : -1;
    struct hvd__relay_child *child;
    int status;

    if (member < 0 || in.failed || !set->agreement->scratch)
        /* This rank may have removed the set while the world broke. */
        status = !in.failed && hvd__read_type(&in) == HVD__BREAK && !in.failed
                     ? hvd__hear_break(engine, &in)
                     : hvd__fail(HVD_ERR_INTERNAL,
                                 "rank %d sent a message about a process set "
                                 "that we do not share",
                                 rank);
    else if (member == set->agreement->relay.parent)
        status = hvd__follow(set, &in);
    else if ((child = hvd__relay_child(&set->agreement->relay, member)))
        status = hvd__hear(set, child, &in);
    else
        status = hvd__reader_fail(&in);
    hvd__set_put(set);
    return status == HVD_OK && in.failed
               ? hvd__fail(HVD_ERR_INTERNAL,
                           "rank %d sent a message that makes no sense", rank)
               : status;
}

static int hear_messages(struct hvd__engine *engine, bool *moved)
{
    struct hvd__transport *t = engine->transport;
    void *message;
    size_t bytes;
    int rank, status;

    while ((status = t->poll(t, &rank, &message, &bytes)) == 1) {
        *moved = true;
        status = hear_message(engine, rank, message, bytes);
        free(message);
        if (status < 0)
            break;
    }
    return status;
}

/* In ordered mode messages are rare, and polling for them takes longer than all
 * the rest. */
enum { STEPS_WITHOUT_MESSAGES = 16 };

static bool may_skip_messages(struct hvd__engine *engine)
{
    bool busy = false;

    if (atomic_load_explicit(&engine->sending, memory_order_relaxed))
        return false;
    for (struct hvd__set *set = engine->live; set; set = set->next) {
        if (!hvd__executor_is_idle(set) || set->agreement->relay.out.bytes > 0)
            return false;
        busy |= hvd__ordered_is_busy(&set->agreement->ordered);
    }
    return busy && ++engine->nskipped < STEPS_WITHOUT_MESSAGES;
}

int hvd__agree_step(struct hvd__engine *engine, bool *moved)
{
    int npending = 0, status;

    HVD_TRY(announce_all(engine, moved));
    if (may_skip_messages(engine))
        return 0;
    engine->nskipped = 0;
    HVD_TRY(hear_messages(engine, moved));
    for (struct hvd__set *set = engine->live; set; set = set->next) {
        if (set->agreement->coordinator)
            HVD_TRY(hvd__decide(set));
        HVD_TRY(hvd__relay_step(set));
        status = hvd__round_pending(set->agreement->ordered.round);
        if (status < 0)
            return status;
        npending += status + (set->agreement->relay.held_since_ns > 0);
    }
    status = engine->transport->pending(engine->transport);
    return status < 0 ? status : npending + status;
}
