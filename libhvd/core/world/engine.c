/* SPDX-License-Identifier: Apache-2.0 */
/*
 * engine.c - moves a world between its start and its end (world.c). It steps
 * all live sets, and it breaks the world, after which nothing moves. progress.c
 * and core/api/quick.c call it with the role of the driver; any thread may call
 * hvd__world_move_set.
 *
 * added is a list of sets that other threads push (hvd__world_move_set) and the
 * driver takes as a whole (absorb). The exchange there acquires what the push
 * releases.
 */
#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "base/status.h"
#include "core/agree/agree.h"
#include "core/run/complete.h"
#include "core/run/execute.h"
#include "core/table/set.h"
#include "core/world/world.h"

void hvd__world_move_set(struct hvd__world *world, struct hvd__set *set)
{
    set->next = atomic_load(&world->engine.added);
    while (!atomic_compare_exchange_weak(&world->engine.added, &set->next, set))
        continue;
}

/* ------------------------------------------------------------------ a step */

/* Adds the sets that were made since the last step to the live ones. */
static void absorb_sets(struct hvd__world *world)
{
    struct hvd__set *set;

    /* A load is cheaper than an exchange, and nearly always finds no set. */
    if (!atomic_load(&world->engine.added))
        return;
    set = atomic_exchange(&world->engine.added, NULL);
    while (set) {
        struct hvd__set *next = set->next;

        set->next = world->engine.live;
        world->engine.live = set;
        set = next;
    }
}

/* Returns true if nothing more will come for the set. */
static bool is_closed(const struct hvd__set *set)
{
    return hvd__executor_is_idle(set) && hvd__agree_is_over(set);
}

/* Closes the world, once all ranks have come to its end if the transport wants
 * that. The background thread leaves it to the thread that ends the world if
 * the transport wants that, too. */
static int part(struct hvd__world *world)
{
    struct hvd__transport *t = world->engine.transport;
    int parted = 1;

    if (t->parts_by_program && hvd__progress_is_own_thread())
        return 0;
    if (t->parts)
        parted = t->part(t);
    if (parted > 0)
        atomic_store(&world->closed, true);
    return parted;
}

/* Moves the lanes of all sets and drops sets that all members have left. */
static int execute_sets(struct hvd__world *world, bool sending, bool *moved)
{
    struct hvd__set **link = &world->engine.live, *set;

    while ((set = *link)) {
        HVD_TRY(hvd__execute_step(set, moved));
        if (!sending && is_closed(set)) {
            *link = set->next;
            atomic_store(&set->closed, true);
        } else {
            link = &set->next;
        }
    }
    if (!world->engine.live && !atomic_load(&world->engine.added) &&
        !atomic_load(&world->closed))
        HVD_TRY(part(world));
    return HVD_OK;
}

bool hvd__world_step(struct hvd__world *world)
{
    bool moved = false;
    int status;

    if (atomic_load(&world->broken))
        return false;
    absorb_sets(world);
    status = atomic_load(&world->abort_status);
    if (status < 0)
        hvd__fail_text(status, world->abort_text);
    else
        status = hvd__agree_step(&world->engine, &moved);
    atomic_store_explicit(&world->engine.sending, status > 0,
                          memory_order_relaxed);
    if (status >= 0)
        status = execute_sets(world, status > 0, &moved);
    if (status < 0)
        hvd__world_break(world, status, hvd_last_error());
    return moved;
}

static bool is_ending(const struct hvd__world *world)
{
    return atomic_load(&world->broken) || atomic_load(&world->abort_status) < 0;
}

void hvd__world_post(struct hvd__world *world)
{
    if (is_ending(world))
        return;
    absorb_sets(world);
    if (hvd__agree_post(&world->engine) < 0)
        hvd__world_break(world, HVD_ERR_MEMORY, hvd_last_error());
}

bool hvd__world_pass(struct hvd__world *world,
                     struct hvd__submission *submission, bool may_post)
{
    struct hvd__table *table = &world->engine.table;
    const struct hvd__request *request = &submission->requests[0];

    hvd__watch_doing(world->watch,
                     request->label ? HVD__GROUP : request->signature.kind,
                     submission->name, submission->state.submitted_ns);
    if (may_post && !table->queue && !is_ending(world) &&
        hvd__agree_post_one(submission))
        return true;
    hvd__table_queue(table, submission);
    return false;
}

/* ------------------------------------------------------------- breaking off */

void hvd__world_break(struct hvd__world *world, int status, const char *text)
{
    char reason[HVD__MESSAGE_MAX]; /* a copy, because text may be the last error
                                    */
    struct hvd__submission *submission;
    struct hvd__set *set;

    /* The text is another rank's if that rank's watchdog was faster. */
    snprintf(reason, sizeof reason, "%s%s",
             hvd__end_is_of(text, world->engine.transport->rank) ? HVD__GIVEN_UP
                                                                 : "",
             text);
    if (atomic_load(&world->abort_status) ==
        HVD_OK) /* otherwise the other ranks know already */
        hvd__log(HVD__LOG_ERROR, "%s: %s", hvd_strerror(status), reason);
    world->engine.transport->is_broken = true;
    world->break_status = status;
    world->break_message = strdup(reason);
    for (set = world->engine.live; set; set = set->next)
        if (set->shm)
            hvd__shm_give_up(set->shm);
    set = NULL;
    while ((set = hvd__table_next_set(&world->engine.table, set)))
        hvd__table_close(&world->engine.table, set, status, reason);
    atomic_store(&world->broken, true);
    hvd__agree_break(&world->engine, status, reason);
    for (set = world->engine.live; set; set = set->next)
        hvd__agree_drop(set);
    /* Queued submissions are in flight too, except refused ones. */
    for (submission = hvd__table_take(&world->engine.table); submission;) {
        struct hvd__submission *next = submission->state.next;
        if (submission->state.status < 0)
            hvd__submission_free(submission);
        submission = next;
    }
    while ((set = hvd__table_next_set(&world->engine.table, set)))
        while ((submission = hvd__table_any(&world->engine.table, set)))
            hvd__complete_submission(&world->engine, submission, status,
                                     reason);
}
