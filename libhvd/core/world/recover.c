/* SPDX-License-Identifier: Apache-2.0 */
/*
 * recover.c - makes a world of the survivors of another one (docs/ELASTIC.md).
 *
 * A survivor first stops using the old world: nothing moves any more, no thread
 * of the library runs, what MPI has under way is taken back, and the memory
 * that the ranks shared is unmapped. Only then is it ready for a round of the
 * register (watch/members.h), which decides who is left. So when a rank knows
 * the next world, no survivor can write to memory or send in the old one. The
 * next world starts as the first one did, but for its transport, which is made
 * of the first world's, and for who watches: while it starts, every wait asks
 * the register. If one more rank is lost meanwhile, there is another round.
 *
 * A rank that was stopped may go on at any time and finish what it was at. It
 * knows memory of hvd_malloc that others still use, so that becomes private to
 * them. If MPI holds a transfer with such a rank, or a dead one, the memory of
 * the old world's buffers is left to it.
 *
 * If some of the processes that have met are spares, the first world, too, is
 * one of a round: the others come to it at once, and the spares wait for a
 * later one (watch/members_spares.c).
 */
#include "core/world/recover.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/status.h"
#include "core/world/ending.h"
#include "core/world/grow.h"
#include "transport/shm/heap.h"
#include "watch/watch.h"

/* ------------------------------------------------------ leaving the old one */

/* A world that is being left. */
struct leaving {
    struct hvd__world *world;         /* owned; NULL: it has been freed */
    struct hvd__elastic *elastic;     /* borrowed */
    struct hvd__transport *transport; /* owned, unless it is the root */
    int *members;                     /* owned, [size]: its ranks' members */
    int rank, size;
    const int64_t *tickets; /* borrowed, of those who are to join; NULL: none */
    bool was_growing;       /* the last round was to let them in */
    bool stands_by;         /* this is a spare that no round has called yet */
};

/* Returns whether a rank of the old transport is lost. */
static bool is_lost(const void *context, int rank)
{
    const struct leaving *leaving = context;

    return hvd__members_is_doubted(leaving->elastic->members,
                                   leaving->members[rank]);
}

/* Makes the world one in which nothing moves, also if only this rank wants
 * that: the others are then told. */
static void stop_moving(struct hvd__world *world)
{
    hvd__progress_stop(world);
    while (!hvd__progress_take(world))
        sched_yield();
    if (!atomic_load(&world->closed))
        hvd__world_step(world);
    if (!atomic_load(&world->broken) && !atomic_load(&world->closed))
        hvd__world_break(world, HVD_ERR_LOST,
                         "a rank has called hvd_recover, to go on without "
                         "those that are lost");
    hvd__progress_give(world);
}

/* The watch of the old world is closed: from now on this thread looks. */
static void hand_over(struct leaving *leaving)
{
    struct hvd__world *world = leaving->world;
    const int excluded = atomic_load(&world->excluded);

    hvd__elastic_hand_over(world);
    if (excluded > 0)
        hvd__elastic_exclude(leaving->elastic, leaving->members[excluded - 1]);
    hvd__watch_close(world->watch);
    world->watch = NULL;
}

static int leaving_init(struct leaving *leaving, struct hvd__world *world)
{
    struct hvd__transport *t = world->engine.transport;
    int n;
    const int *list = hvd__members_list(world->elastic->members, &n);

    *leaving = (struct leaving){.world = world,
                                .elastic = world->elastic,
                                .rank = t->rank,
                                .size = t->size};
    leaving->members = malloc((size_t)n * sizeof *leaving->members);
    if (!leaving->members)
        return hvd__fail_memory((size_t)n * sizeof *leaving->members);
    memcpy(leaving->members, list, (size_t)n * sizeof *list);
    stop_moving(world);
    world->elastic->last_id = world->last_id;
    hand_over(leaving);
    if (strcmp(t->name, "ucx") == 0)
        t = hvd__ucx_drop(t);
    world->engine.transport = NULL;
    leaving->transport = t;
    return HVD_OK;
}

static void leaving_fini(struct leaving *leaving)
{
    struct hvd__transport *t = leaving->transport;

    if (leaving->world) {
        leaving->world->keeps_memory = true;
        leaving->world->elastic = NULL;
        hvd__world_destroy(leaving->world);
    }
    if (t && t != leaving->elastic->root)
        t->close(t);
    free(leaving->members);
}

/* Lets what is under way come to its end, then frees the world. Returns more
 * than 0 when that is done; MPI is moved also afterwards, because others may
 * still wait for what this rank has sent. */
static int leave(void *context)
{
    struct leaving *leaving = context;
    int quiet = leaving->transport->quiet(leaving->transport, is_lost, leaving);

    if (quiet <= 0 || !leaving->world)
        return quiet;
    leaving->world->keeps_memory = quiet == 2;
    leaving->world->elastic = NULL;
    hvd__world_destroy(leaving->world);
    leaving->world = NULL;
    return quiet;
}

/* ------------------------------------------------------ starting the next */

/* The first world has that of elastic, also if it took a few rounds. */
static int32_t generation_of(const struct hvd__elastic *elastic)
{
    int founded = hvd__members_founded(elastic->members);

    if (founded == 0 && elastic->has_spares)
        return elastic->generation;
    return elastic->generation + hvd__members_round(elastic->members) - founded;
}

/* Writes down whom the survivors have left out, and who this rank was. Spares
 * have higher numbers than the ranks before, and those that are taken than
 * those that were taken earlier. */
static int compare(struct leaving *old, hvd_recovery *recovery)
{
    struct hvd__elastic *elastic = old->elastic;
    int n, at = 0;
    const int *list = hvd__members_list(elastic->members, &n);

    free(elastic->lost);
    elastic->nlost = 0;
    elastic->lost = calloc((size_t)old->size + 1, sizeof *elastic->lost);
    if (!elastic->lost)
        return hvd__fail_memory((size_t)old->size * sizeof *elastic->lost);
    for (int rank = 0; rank < old->size; rank++) {
        int member = old->members[rank];

        if (at < n && list[at] == member)
            at++;
        else
            elastic->lost[elastic->nlost++] = (hvd_lost_rank){
                rank, hvd__members_fate(elastic->members, member)};
    }
    *recovery = (hvd_recovery){
        .generation = generation_of(elastic),
        .old_rank = old->rank,
        .old_size =
            old->size > 0 ? old->size : hvd__members_old_size(elastic->members),
        .nlost = elastic->nlost,
    };
    return HVD_OK;
}

/* Writes down who has joined. A process behind the first of them that some
 * world had, but not with all of its ranks, is as new as that one. */
static void note_joined(const struct hvd__world *made, hvd_recovery *recovery)
{
    const struct hvd__transport *t = made->engine.transport;

    recovery->njoined = made->njoined;
    if (t->rank >= t->size - made->njoined)
        recovery->old_rank = -1;
}

/* A rank that was stopped may still write to memory of this one. */
static void shut_out_frozen(const struct hvd__elastic *elastic)
{
    for (int i = 0; i < elastic->nlost; i++)
        if (elastic->lost[i].reason != HVD_LOST_ENDED) {
            hvd__heap_make_private();
            return;
        }
}

/* Makes a world of those who are left and, once, of those who want to join, if
 * nobody is lost. */
static int create(struct leaving *old, struct hvd__origin *origin,
                  struct hvd__world **made)
{
    struct hvd__elastic *elastic = old->elastic;
    struct hvd__admission plan = {.ranks = NULL};
    int status;

    old->was_growing = old->tickets && elastic->nlost == 0;
    if (old->was_growing) {
        HVD_TRY(hvd__grow_plan(elastic, old->tickets, &plan));
        /* The plan is used only while the world is made. */
        /* cppcheck-suppress autoVariables */
        origin->admission = &plan;
        origin->tickets = old->tickets;
    }
    old->tickets = NULL;
    status = hvd__world_create(origin, made);
    origin->admission = NULL;
    free(plan.ranks);
    if (status < 0 && elastic->lobby)
        hvd__lobby_settle(elastic->lobby);
    return status;
}

/* One round. Returns HVD_ERR_LOST if there must be another one. */
static int try_once(struct leaving *old, struct hvd__world **made)
{
    struct hvd__elastic *elastic = old->elastic;
    struct hvd__origin origin = {.elastic = elastic};
    hvd_recovery recovery;

    old->was_growing = false;
    if (old->stands_by)
        HVD_TRY(hvd__members_stand_by(elastic->members));
    else
        HVD_TRY(hvd__members_agree(elastic->members, leave, old));
    old->stands_by = false;
    HVD_TRY(compare(old, &recovery));
    elastic->is_new = old->rank < 0;
    shut_out_frozen(elastic);
    origin.ranks = hvd__members_list(elastic->members, &origin.nranks);
    HVD_TRY(create(old, &origin, made));
    if ((*made)->elastic == elastic) {
        note_joined(*made, &recovery);
        (*made)->recovery = recovery;
    }
    return HVD_OK;
}

/* Returns whether a failure is that of another rank, of which the next round
 * takes care. */
static bool may_try_again(const struct hvd__elastic *elastic, int status,
                          int self)
{
    char text[HVD__MESSAGE_MAX];
    bool again;

    if (status != HVD_ERR_LOST && status != HVD_ERR_STALLED)
        return false;
    snprintf(text, sizeof text, "%s", hvd_last_error());
    again = hvd__members_fate(elastic->members, self) == 0 &&
            hvd__members_look(elastic->members) < 0;
    hvd__fail_text(status, text);
    return again;
}

/* Frees what a world has in common with those before it when the next one has
 * such a thing of its own. */
static void replace_elastic(struct hvd__elastic *elastic,
                            const struct hvd__world *made)
{
    if (made->elastic == elastic)
        return;
    elastic->lobby = NULL; /* it is the new world's */
    if (!hvd__members_is_complete(made->elastic->members)) {
        hvd__members_follow(made->elastic->members, elastic->members);
        elastic->members = NULL;
    }
    hvd__elastic_close(elastic);
}

int hvd__world_recover(struct hvd__world *world, const int64_t *tickets,
                       struct hvd__world **made)
{
    struct hvd__elastic *elastic = world->elastic;
    struct leaving old;
    int self, status;

    HVD_TRY(leaving_init(&old, world));
    old.tickets = tickets;
    self = old.members[old.rank];
    do
        status = try_once(&old, made);
    while (status < 0 &&
           (old.was_growing || may_try_again(elastic, status, self)));
    leaving_fini(&old);
    if (status == HVD_OK) {
        replace_elastic(elastic, *made);
        return HVD_OK;
    }
    /* The others must not wait for this rank. */
    hvd__members_lose(elastic->members, self, HVD_LOST_ABSENT,
                      "has failed in hvd_recover");
    hvd__elastic_close(elastic);
    return status;
}

/* Nobody has left a world: all that the root has moved is over. */
static int meeting_init(struct leaving *meeting, struct hvd__elastic *elastic)
{
    const int n = elastic->root->size;

    *meeting = (struct leaving){
        .elastic = elastic,
        .transport = elastic->root,
        .rank = -1,
        .stands_by = hvd__members_is_spare(elastic->members),
    };
    meeting->members = malloc((size_t)n * sizeof *meeting->members);
    if (!meeting->members)
        return hvd__fail_memory((size_t)n * sizeof *meeting->members);
    for (int rank = 0; rank < n; rank++)
        meeting->members[rank] = rank;
    return HVD_OK;
}

/* Ends what hvd_init has begun in a process that comes into no world, and says
 * how it may leave MPI: MPI_Finalize would wait for ranks that are lost. */
static void end_unstarted(struct hvd__elastic *elastic, int self, int status)
{
    bool is_lost = status != HVD_ERR_SHUTDOWN;

    if (is_lost)
        hvd__members_lose(elastic->members, self, HVD_LOST_ABSENT,
                          "has failed in hvd_init");
    is_lost = hvd__elastic_has_lost(elastic);
    hvd__ending_set(is_lost, is_lost ? hvd_last_error() : "");
    hvd__ending_resume();
    hvd__elastic_close(elastic);
}

int hvd__world_found(struct hvd__elastic *elastic, struct hvd__world **made)
{
    const int self = elastic->root->rank;
    struct leaving meeting;
    int status = meeting_init(&meeting, elastic);

    if (status == HVD_OK)
        do
            status = try_once(&meeting, made);
        while (status < 0 && !meeting.stands_by &&
               may_try_again(elastic, status, self));
    leaving_fini(&meeting);
    if (status < 0)
        end_unstarted(elastic, self, status);
    return status;
}
