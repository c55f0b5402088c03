/* SPDX-License-Identifier: Apache-2.0 */
/*
 * grow.c - a world takes in more ranks (docs/ELASTIC.md).
 *
 * Guests wait in the lobbies of the world's ranks (transport/tcp/lobby.c). In
 * hvd_grow all ranks agree on their tickets by an allreduce, leave the old
 * world in good order, and come to a round of its register, as after a loss
 * (recover.c). On the transport of those who are left they compare plans, since
 * one of them may have failed before it knew of the guests: only if all have
 * the same plan do they close that transport, tell the guests, and meet with
 * them as ranks of a world that has a register of its own.
 *
 * Until that world stands, both registers count. Each of its ranks says that it
 * has started, or that it cannot; the first to say anything decides
 * (watch/members_settle.c has how, also between hosts). So it cannot be that
 * some go on in the new world and others in the old register, whoever dies: a
 * rank that fails after another one has started belongs to the new world, and
 * finds it broken. A new world that was decided against is nobody's; its old
 * ranks go on without guests, and the guests wait again.
 */
#include "core/world/grow.h"

#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/fingerprint.h"
#include "base/status.h"
#include "transport/fault.h"

/* ----------------------------------------------------------------- the plan */

int hvd__grow_list(struct hvd__world *world, int64_t **tickets)
{
    struct hvd__lobby *lobby = world->elastic ? world->elastic->lobby : NULL;
    int n, status;

    if (!lobby || !world->elastic->places || hvd__lobby_room(lobby) == 0)
        return 0;
    n = hvd__lobby_size(lobby);
    *tickets = calloc((size_t)n, sizeof **tickets);
    if (!*tickets)
        return hvd__fail_memory((size_t)n * sizeof **tickets);
    while (!hvd__progress_take(world))
        sched_yield();
    status = hvd__lobby_drive(lobby);
    if (status == HVD_OK)
        hvd__lobby_list(lobby, *tickets);
    hvd__progress_give(world);
    if (status == HVD_OK)
        return n;
    free(*tickets);
    return status;
}

int hvd__grow_count(struct hvd__world *world)
{
    struct hvd__lobby *lobby = world->elastic ? world->elastic->lobby : NULL;

    if (!lobby || !world->elastic->places || hvd__lobby_room(lobby) == 0)
        return 0;
    if (hvd__progress_take(world)) {
        hvd__lobby_drive(lobby);
        hvd__progress_give(world);
    }
    return hvd__lobby_count(lobby);
}

int hvd__grow_plan(const struct hvd__elastic *elastic, const int64_t *tickets,
                   struct hvd__admission *a)
{
    const int size = hvd__lobby_size(elastic->lobby);
    int n;
    const int *list = hvd__members_list(elastic->members, &n);

    a->ranks = calloc((size_t)size, sizeof *a->ranks);
    if (!a->ranks)
        return hvd__fail_memory((size_t)size * sizeof *a->ranks);
    a->n = a->nold = n;
    a->generation = elastic->generation + hvd__members_round(elastic->members);
    a->number = hvd__mix((uint64_t)a->generation);
    for (int i = 0; i < n; i++)
        a->ranks[i] = elastic->places[list[i]];
    for (int rank = 0; rank < size; rank++) {
        a->number = hvd__mix(a->number ^ (uint64_t)tickets[rank]);
        if (tickets[rank] != 0 && a->n < n + hvd__lobby_room(elastic->lobby))
            a->ranks[a->n++] = rank;
    }
    return HVD_OK;
}

/* ---------------------------------------------------------------- the start */

static struct hvd__lobby_limits limits_of(const struct hvd__settings *s,
                                          int64_t limit_ns)
{
    return (struct hvd__lobby_limits){
        .limit_ns = limit_ns,
        .report_ns = s->stall_check_ns,
        .grace_ns = s->heartbeat_ns + HVD__FAULT_GRACE_NS,
    };
}

/* Connects this rank with all that are admitted. It waits for nobody else, and
 * the guests among them have answered a moment ago. */
static int connect_all(struct hvd__world *world, struct hvd__lobby *lobby,
                       const struct hvd__admission *admission,
                       const struct hvd__asked *asked)
{
    const struct hvd__settings *s = &world->engine.settings;
    const struct hvd__lobby_limits limits =
        limits_of(s, s->heartbeat_ns ? s->heartbeat_ns : s->start_ns);

    world->admission = admission;
    HVD_TRY(hvd__lobby_connect(lobby, admission, &limits, asked,
                               &world->engine.transport));
    world->connected_ns = hvd__now_ns();
    return HVD_OK;
}

/* Returns whether a rank has said nothing for too long since all were
 * connected. Before the watchdogs of the new world run, nobody else misses a
 * rank that is stopped or whose host is cut off. */
static bool is_late(const struct hvd__world *world)
{
    int64_t limit = world->engine.settings.heartbeat_ns;

    return limit > 0 && world->connected_ns > 0 && !world->watch &&
           hvd__now_ns() - world->connected_ns > limit;
}

int hvd__grow_enter(struct hvd__world *world, const struct hvd__origin *origin,
                    const struct hvd__asked *asked)
{
    return connect_all(world, world->lobby, origin->admission, asked);
}

/* Sets *same to whether all ranks have this plan: its number, or 0 for none. */
static int compare_plans(struct hvd__transport *t, uint64_t mine, bool *same)
{
    uint64_t *all = calloc((size_t)t->size, sizeof *all);
    int status;

    if (!all)
        return hvd__fail_memory((size_t)t->size * sizeof *all);
    status = t->exchange(t, &mine, all, sizeof mine);
    *same = mine != 0;
    for (int rank = 0; rank < t->size && status == HVD_OK; rank++)
        *same &= all[rank] == mine;
    free(all);
    return status;
}

int hvd__grow_open(struct hvd__world *world, const struct hvd__origin *origin,
                   const struct hvd__asked *asked)
{
    struct hvd__transport *t = world->engine.transport;
    bool same = false;

    HVD_TRY(compare_plans(t, origin->admission ? origin->admission->number : 0,
                          &same));
    if (!same)
        return HVD_OK;
    world->parent = origin->elastic;
    world->elastic = NULL;
    world->engine.transport = NULL;
    t->quiet(t, NULL, NULL);
    t->close(t);
    hvd__lobby_admit(world->parent->lobby, origin->tickets, origin->admission);
    return connect_all(world, world->parent->lobby, origin->admission, asked);
}

/* Returns the members whose register decides whether there is the new world:
 * all of them, or those before, who share it; NULL: there are none. */
static struct hvd__members *judges_of(const struct hvd__world *world)
{
    if (world->elastic && hvd__members_share_host(world->elastic->members))
        return world->elastic->members;
    return world->elastic && world->parent &&
                   hvd__members_share_host(world->parent->members)
               ? world->parent->members
               : NULL;
}

/* Returns 1 if the new world was decided on, -1 against, 0 if not yet. */
static int settled(const struct hvd__world *world)
{
    const struct hvd__members *judges = judges_of(world);

    return judges ? hvd__members_settled(judges) : 0;
}

/* Returns whether there is the new world. */
static bool settle(struct hvd__world *world, bool has_started)
{
    struct hvd__members *judges = judges_of(world);

    if (judges)
        return hvd__members_settle(judges, has_started);
    return world->parent
               ? hvd__members_settle_in_letters(world->parent->members,
                                                world->elastic->members,
                                                has_started)
               : has_started;
}

int hvd__grow_find_end(const struct hvd__world *world)
{
    const struct hvd__lobby *lobby =
        world->parent ? world->parent->lobby : world->lobby;

    if (!world->admission)
        return HVD_OK;
    if (world->parent)
        HVD_TRY(hvd__members_look(world->parent->members));
    if (settled(world) == 0 && is_late(world))
        return hvd__fail(HVD_ERR_LOST,
                         "the ranks of a world that grows have not all met in "
                         "%.0f s (HVD_HEARTBEAT_TIME)",
                         (double)world->engine.settings.heartbeat_ns * 1e-9);
    if (world->elastic)
        lobby = world->elastic->places ? world->elastic->lobby : NULL;
    /* Between hosts, whoever has started does not need the lobby any more. */
    if (world->elastic && !judges_of(world))
        return HVD_OK;
    if (settled(world) < 0)
        return hvd__fail(HVD_ERR_LOST, "another rank could not start");
    if (settled(world) == 0 && lobby && hvd__lobby_look(lobby) < 0 &&
        settled(world) <= 0)
        return HVD_ERR_LOST;
    return HVD_OK;
}

/* ------------------------------------------------------ when it has started */

static void begin(struct hvd__world *world)
{
    const struct hvd__admission *a = world->admission;
    int rank = world->engine.transport->rank;

    world->recovery = (hvd_recovery){
        .generation = a->generation,
        .old_rank = rank < a->nold ? rank : -1,
        .old_size = a->nold,
        .njoined = a->nold > 0 ? a->n - a->nold : 0,
    };
    hvd__lobby_settle(world->elastic->lobby);
}

/* Tells the lobby who is in. */
static int list_members(const struct hvd__elastic *elastic)
{
    int n;
    const int *list = hvd__members_list(elastic->members, &n);
    int *ranks = malloc((size_t)n * sizeof *ranks);

    if (!ranks)
        return hvd__fail_memory((size_t)n * sizeof *ranks);
    for (int i = 0; i < n; i++)
        ranks[i] = elastic->places[list[i]];
    hvd__lobby_members(elastic->lobby, ranks, n);
    free(ranks);
    return HVD_OK;
}

/* Nobody is let in. */
static void close_lobby(struct hvd__world *world)
{
    struct hvd__lobby *lobby =
        world->elastic ? world->elastic->lobby : world->lobby;

    hvd__lobby_settle(lobby);
    hvd__lobby_shut(lobby);
}

int hvd__grow_settle(struct hvd__world *world, int status)
{
    struct hvd__elastic *elastic = world->elastic;
    bool exists;

    if (!elastic || !elastic->places) {
        if (world->admission)
            close_lobby(world);
        return status;
    }
    if (status == HVD_OK)
        status = list_members(elastic);
    if (!world->admission)
        return status;
    exists = settle(world, status == HVD_OK);
    if (exists && status < 0)
        hvd__world_break(world, status, hvd_last_error());
    if (!exists)
        return status < 0
                   ? status
                   : hvd__fail(HVD_ERR_LOST, "another rank could not start");
    begin(world);
    return HVD_OK;
}

void hvd__grow_cancel(struct hvd__world *world)
{
    struct hvd__members *members;

    if (!world->admission || !world->elastic)
        return;
    members = world->elastic->members;
    if (judges_of(world))
        hvd__members_settle(judges_of(world), false);
    /* Ranks of other hosts hear of it at once; otherwise they would wait until
     * this rank seems frozen. */
    if (!hvd__members_share_host(members))
        hvd__members_withdraw(members, "could not start");
    if (world->parent)
        world->elastic->lobby = NULL; /* it stays the parent's */
}
