/* SPDX-License-Identifier: Apache-2.0 */
/*
 * engine.c - what a world does between its beginning and its end (world.c): the
 * table of its sets, a step of those that are moved, and how nothing moves any
 * more. Who makes the steps is progress.c's.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/status.h"
#include "core/agree/negotiate.h"
#include "core/agree/replicated_log.h"
#include "core/request/compress.h"
#include "core/run/complete.h"
#include "core/world/world.h"

/* ---------------------------------------------------------------- the sets */

/* Where in the table the first set is whose id is not less. The lock is held.
 */
static int find_set(const struct hvd__world *world, int32_t id)
{
    int low = 0, high = world->nsets;

    while (low < high) {
        int middle = low + (high - low) / 2;

        if (world->sets[middle]->id < id)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

struct hvd__set *hvd__world_set(struct hvd__world *world, int32_t id)
{
    struct hvd__set *set = NULL;
    int i;

    /* The one of everybody never changes. */
    if (id == 0)
        return world->everybody;
    hvd__mutex_lock(&world->table.lock);
    i = find_set(world, id);
    if (i < world->nsets && world->sets[i]->id == id) {
        set = world->sets[i];
        hvd__set_use(set);
    }
    hvd__mutex_unlock(&world->table.lock);
    return set;
}

void hvd__world_put_set(struct hvd__set *set)
{
    if (!set || !hvd__set_leave(set))
        return;
    hvd__compress_forget_set(set->id);
    hvd__set_free(set);
}

struct hvd__set *hvd__world_next_set(struct hvd__world *world,
                                     struct hvd__set *set)
{
    struct hvd__set *next = NULL;
    int i;

    hvd__mutex_lock(&world->table.lock);
    i = set ? find_set(world, set->id + 1) : 0;
    if (i < world->nsets) {
        next = world->sets[i];
        hvd__set_use(next);
    }
    hvd__mutex_unlock(&world->table.lock);
    hvd__world_put_set(set);
    return next;
}

/* The lock is held. */
static bool has_room(struct hvd__world *world)
{
    int capacity = 2 * world->sets_capacity + 8;
    struct hvd__set **grown;

    if (world->nsets < world->sets_capacity)
        return true;
    grown = realloc(world->sets, (size_t)capacity * sizeof(struct hvd__set *));
    if (!grown)
        return false;
    world->sets = grown;
    world->sets_capacity = capacity;
    return true;
}

int hvd__world_add_set(struct hvd__world *world, struct hvd__set *set)
{
    bool added;

    set->metrics = &world->metrics;
    hvd__mutex_lock(&world->table.lock);
    added = has_room(world);
    if (added) {
        if (set->id == 0)
            world->everybody = set;
        world->sets[world->nsets++] = set;
    }
    hvd__mutex_unlock(&world->table.lock);
    return added ? HVD_OK
                 : hvd__fail_memory((size_t)world->nsets * sizeof(set));
}

void hvd__world_remove_set(struct hvd__world *world, struct hvd__set *set)
{
    int i;

    hvd__mutex_lock(&world->table.lock);
    i = find_set(world, set->id);
    world->nsets--;
    memmove(&world->sets[i], &world->sets[i + 1],
            (size_t)(world->nsets - i) * sizeof(struct hvd__set *));
    /* No request is like one of this set again. */
    hvd__recycled_forget_set(&world->table.recycled, set);
    hvd__mutex_unlock(&world->table.lock);
    hvd__world_put_set(set); /* the table's */
}

void hvd__world_move_set(struct hvd__world *world, struct hvd__set *set)
{
    set->next = atomic_load(&world->added);
    while (!atomic_compare_exchange_weak(&world->added, &set->next, set))
        continue;
}

/* ------------------------------------------------------------------ a step */

/* Sets that were made since the last step. */
static void absorb(struct hvd__world *world)
{
    struct hvd__set *set;

    /* Nearly always there is none, and to look is cheaper. */
    if (!atomic_load(&world->added))
        return;
    set = atomic_exchange(&world->added, NULL);
    while (set) {
        struct hvd__set *next = set->next;

        set->next = world->live;
        world->live = set;
        set = next;
    }
}

/* Nothing comes any more. */
static bool is_closed(const struct hvd__set *set)
{
    const struct hvd__replicated_log *log = set->ordered.log;

    return set->heard_close && set->executor.nunfinished == 0 &&
           (!log || hvd__replicated_log_is_left(log));
}

/* Move the lanes of all sets; drop those that all members have left. */
static int execute(struct hvd__world *world, bool sending, bool *moved)
{
    struct hvd__set **link = &world->live, *set;

    while ((set = *link)) {
        HVD_TRY(hvd__execute_step(world, set, moved));
        if (!sending && is_closed(set)) {
            *link = set->next;
            atomic_store(&set->closed, true);
        } else {
            link = &set->next;
        }
    }
    if (!world->live && !atomic_load(&world->added))
        atomic_store(&world->closed, true);
    return HVD_OK;
}

bool hvd__world_step(struct hvd__world *world)
{
    bool moved = false;
    int status;

    if (atomic_load(&world->broken))
        return false;
    absorb(world);
    status = atomic_load(&world->abort_status);
    if (status < 0)
        hvd__fail_text(status, world->abort_text);
    else
        status = hvd__negotiate_step(world, &moved);
    atomic_store_explicit(&world->sending, status > 0, memory_order_relaxed);
    if (status >= 0)
        status = execute(world, status > 0, &moved);
    if (status < 0)
        hvd__world_break(world, status, hvd_last_error());
    return moved;
}

void hvd__world_post(struct hvd__world *world,
                     struct hvd__submission *submission)
{
    if (atomic_load(&world->broken) || atomic_load(&world->abort_status) < 0)
        return;
    absorb(world);
    if (hvd__negotiate_post(world, submission) < 0)
        hvd__world_break(world, HVD_ERR_MEMORY, hvd_last_error());
}

/* ------------------------------------------------------------- breaking off */

void hvd__world_break(struct hvd__world *world, int status, const char *text)
{
    char reason[HVD__MESSAGE_MAX]; /* text may be the last error */
    struct hvd__submission *submission;
    struct hvd__set *set = NULL;

    /* From another rank, which may not have reached our watchdog yet. */
    snprintf(reason, sizeof reason, "%s%s",
             hvd__end_is_of(text, world->transport->rank) ? HVD__GIVEN_UP : "",
             text);
    if (atomic_load(&world->abort_status) == HVD_OK) /* else it has been told */
        hvd__log(HVD__LOG_ERROR, "%s: %s", hvd_strerror(status), reason);
    world->break_status = status;
    world->break_message = strdup(reason);
    while ((set = hvd__world_next_set(world, set)))
        hvd__table_close(&world->table, set, status, reason);
    atomic_store(&world->broken, true);
    hvd__negotiate_break(world, status, reason);
    for (set = world->live; set; set = set->next)
        hvd__ordered_drop(&set->ordered);
    /* Those that are queued are in flight too, unless they were refused. */
    for (submission = hvd__table_take(&world->table); submission;) {
        struct hvd__submission *next = submission->next;
        if (submission->status < 0)
            hvd__submission_free(submission);
        submission = next;
    }
    while ((set = hvd__world_next_set(world, set)))
        while ((submission = hvd__table_any(&world->table, set)))
            hvd__complete_submission(world, submission, status, reason);
}
