/* SPDX-License-Identifier: Apache-2.0 */
/*
 * exclude.c - whom a program keeps out of the next world. hvd_exclude names a
 * rank that lives: the next commit makes that the wish of all ranks
 * (state/commit.c), or this rank's next hvd_recover. hvd_dismiss_spares leaves
 * spares where they are.
 */
#include "core/world/exclude.h"

#include <sched.h>
#include <stdio.h>

#include "base/status.h"
#include "core/world/elastic.h"
#include "core/world/world.h"
#include "hvd_elastic.h"

int hvd_exclude(int rank)
{
    struct hvd__world *world;
    int size;

    HVD_TRY(hvd__world_get(&world));
    size = world->engine.transport->size;
    if (!world->elastic || size == 1)
        return hvd__fail(HVD_ERR_UNSUPPORTED,
                         "no rank of this world can be excluded: it needs "
                         "HVD_ELASTIC=1 on rank 0, and two ranks or more");
    if (rank < 0 || rank >= size)
        return hvd__fail(HVD_ERR_ARGUMENT,
                         "rank %d cannot be excluded: there are ranks 0 to %d",
                         rank, size - 1);
    atomic_store(&world->excluded, rank + 1);
    return HVD_OK;
}

int hvd_dismiss_spares(void)
{
    struct hvd__world *world;

    HVD_TRY(hvd__world_get(&world));
    if (world->elastic)
        hvd__members_dismiss_spares(world->elastic->members);
    return HVD_OK;
}

int hvd__world_excluded(void)
{
    struct hvd__world *world;

    return hvd__world_get(&world) < 0 ? -1 : atomic_load(&world->excluded) - 1;
}

int hvd__world_exclude(int rank)
{
    struct hvd__world *world;
    char text[HVD__MESSAGE_MAX];
    const int *list;
    int n;

    HVD_TRY(hvd__world_get(&world));
    list = hvd__members_list(world->elastic->members, &n);
    hvd__elastic_exclude(world->elastic, list[rank]);
    snprintf(text, sizeof text, "%srank %d was excluded by hvd_exclude",
             rank == world->engine.transport->rank ? HVD__GIVEN_UP : "", rank);
    while (!hvd__progress_take(world))
        sched_yield();
    if (!atomic_load(&world->broken))
        hvd__world_break(world, HVD_ERR_LOST, text);
    hvd__progress_give(world);
    return hvd__fail_text(HVD_ERR_LOST, text);
}
