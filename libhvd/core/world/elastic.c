/* SPDX-License-Identifier: Apache-2.0 */
/* elastic.c - what the worlds of a process that may recover have in common. */
#include "core/world/elastic.h"

#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/status.h"
#include "core/world/world.h"

/* Gives the world's lobby, or its parent's, to what outlives it. */
static int take_lobby(struct hvd__world *world)
{
    const struct hvd__admission *a = world->admission;
    struct hvd__elastic *elastic = world->elastic;

    if (!a)
        return HVD_OK;
    elastic->lobby = world->parent ? world->parent->lobby : world->lobby;
    world->lobby = NULL;
    elastic->places = malloc((size_t)a->n * sizeof *a->ranks);
    if (!elastic->places)
        return hvd__fail_memory((size_t)a->n * sizeof *a->ranks);
    memcpy(elastic->places, a->ranks, (size_t)a->n * sizeof *a->ranks);
    elastic->generation = a->generation;
    return HVD_OK;
}

/* A world that has grown must be able to go on. */
static int be_rigid(const struct hvd__world *world)
{
    return world->admission && world->admission->generation > 0
               ? hvd__fail(HVD_ERR_UNSUPPORTED,
                           "a world grows only by processes that can recover: "
                           "see the warning above")
               : HVD_OK;
}

int hvd__elastic_read_spares(const struct hvd__settings *s, int size,
                             int *nspares)
{
    char *end;
    long value = strtol(s->spares, &end, 10);

    *nspares = (int)value;
    if (end == s->spares || *end || value < 0 || value >= size)
        return hvd__fail(HVD_ERR_CONFIG,
                         "HVD_SPARES='%s' is not a number of spare ranks: give "
                         "0 to %d, one less than there are ranks",
                         s->spares, size - 1);
    return value > 0 && !s->elastic
               ? hvd__fail(HVD_ERR_CONFIG,
                           "HVD_SPARES=%ld needs HVD_ELASTIC=1: spares replace "
                           "ranks that are lost",
                           value)
               : HVD_OK;
}

/* Finds out how many of the ranks are to wait. */
static int count_spares(const struct hvd__world *world, int *nspares)
{
    const int size = world->engine.transport->size;

    *nspares = 0;
    if (world->admission || size == 1) /* guests wait elsewhere */
        return HVD_OK;
    return hvd__elastic_read_spares(&world->engine.settings, size, nspares);
}

/* Ranks that are to wait must be able to. */
static int be_open(const struct hvd__world *world, int nspares)
{
    return nspares > 0
               ? hvd__fail(HVD_ERR_UNSUPPORTED,
                           "HVD_SPARES=%d: spare ranks cannot wait: see "
                           "the warning above",
                           nspares)
               : be_rigid(world);
}

int hvd__elastic_open(struct hvd__world *world,
                      const char *(*host)(const void *context, int rank),
                      const void *context)
{
    struct hvd__transport *t = world->engine.transport;
    const struct hvd__settings *s = &world->engine.settings;
    struct hvd__members_options options = {
        .heartbeat_ns = s->heartbeat_ns,
        .limit_ns = s->start_ns,
        .report_ns = s->stall_check_ns,
        .address = t->address,
        .nelders = world->admission ? world->admission->nold : 0,
    };
    struct hvd__members *members;

    if (world->elastic)
        return HVD_OK;
    HVD_TRY(count_spares(world, &options.nspares));
    if (!s->elastic || (t->size == 1 && !world->admission))
        return HVD_OK;
    HVD_TRY(hvd__members_open(&members, t, host, context, &options));
    if (!members)
        return be_open(world, options.nspares);
    world->elastic = calloc(1, sizeof *world->elastic);
    if (!world->elastic) {
        hvd__members_close(members);
        return hvd__fail_memory(sizeof *world->elastic);
    }
    world->elastic->members = members; /* the watch needs its beats */
    world->elastic->root = t;
    world->elastic->has_spares = options.nspares > 0;
    return take_lobby(world);
}

int hvd__elastic_check(struct hvd__world *world)
{
    if (!world->elastic || world->watch || world->engine.transport->size == 1)
        return HVD_OK;
    if (hvd__elastic_has_lost(world->elastic))
        return hvd__fail(HVD_ERR_MEMORY, "the survivors cannot watch each "
                                         "other: see the warning above");
    HVD_TRY(be_rigid(world));
    world->elastic->root = NULL; /* it stays the world's */
    world->lobby = world->elastic->lobby;
    world->elastic->lobby = NULL;
    hvd__elastic_close(world->elastic);
    world->elastic = NULL;
    return HVD_OK;
}

/* Returns whether this rank joins those of another world. */
static bool is_guest(const struct hvd__world *world)
{
    return world->admission &&
           world->engine.transport->rank >= world->admission->nold;
}

int hvd__elastic_begin(struct hvd__world *world)
{
    struct hvd__transport *t = world->engine.transport;
    struct hvd__members *members;
    char mine = 1, *all;
    int status;

    if (!world->elastic)
        return HVD_OK;
    members = world->elastic->members;
    hvd__members_start(members);
    if (hvd__members_is_complete(members) || atomic_load(&world->broken))
        return HVD_OK;
    all = malloc((size_t)t->size);
    status = all ? t->exchange(t, &mine, all, sizeof mine)
                 : hvd__fail_memory((size_t)t->size);
    free(all);
    if (status == HVD_OK)
        hvd__members_complete(members);
    else if (is_guest(world))
        return status; /* it may come again */
    else
        hvd__world_break(world, status, hvd_last_error());
    return HVD_OK;
}

void hvd__elastic_leave(struct hvd__elastic *elastic, bool in_good_order)
{
    if (elastic)
        hvd__members_leave(elastic->members, in_good_order);
}

static const char *words_of(hvd_lost_reason reason)
{
    return reason == HVD_LOST_ENDED    ? "has ended"
           : reason == HVD_LOST_FROZEN ? "is frozen"
                                       : "is silent, or its host is cut off";
}

void hvd__elastic_hand_over(struct hvd__world *world)
{
    struct hvd__members *members = world->elastic->members;
    int n, self = world->engine.transport->rank;
    const int *list = hvd__members_list(members, &n);

    for (int rank = 0; rank < n && world->watch && world->host_of; rank++) {
        hvd_lost_reason reason = hvd__watch_reason(world->watch, rank);

        /* The register itself knows which ranks of this host have ended. They
         * are not cut off from this one, whoever else has found that. */
        if (reason != 0 && rank != self &&
            (reason == HVD_LOST_FROZEN ||
             world->host_of[rank] != world->host_of[self]))
            hvd__members_lose(members, list[rank], reason, words_of(reason));
    }
}

void hvd__elastic_exclude(struct hvd__elastic *elastic, int member)
{
    hvd__members_lose(elastic->members, member, HVD_LOST_EXCLUDED,
                      "was excluded by hvd_exclude");
}

void hvd__elastic_close(struct hvd__elastic *elastic)
{
    if (!elastic)
        return;
    if (elastic->root) {
        elastic->root->is_broken |= hvd__elastic_has_lost(elastic);
        elastic->root->close(elastic->root);
    }
    hvd__lobby_close(elastic->lobby);
    hvd__members_close(elastic->members);
    free(elastic->places);
    free(elastic->lost);
    free(elastic);
}

bool hvd__elastic_has_lost(const struct hvd__elastic *elastic)
{
    return elastic && elastic->members &&
           hvd__members_has_lost(elastic->members);
}

bool hvd__elastic_is_assembly(const struct hvd__world *world)
{
    return world->elastic && world->elastic->has_spares &&
           world->elastic->root == world->engine.transport;
}
