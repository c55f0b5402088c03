/* SPDX-License-Identifier: Apache-2.0 */
/* elastic.c - what the worlds of a process that may recover have in common. */
#include "core/world/elastic.h"

#include <stdlib.h>

#include "base/log.h"
#include "base/status.h"
#include "core/world/world.h"

int hvd__elastic_open(struct hvd__world *world,
                      const char *(*host)(const void *context, int rank),
                      const void *context)
{
    struct hvd__transport *t = world->engine.transport;
    const struct hvd__settings *s = &world->engine.settings;
    const struct hvd__members_options options = {
        .heartbeat_ns = s->heartbeat_ns,
        .limit_ns = s->start_ns,
        .report_ns = s->stall_check_ns,
        .address = t->address,
    };
    struct hvd__members *members;

    if (!s->elastic || t->size == 1 || world->elastic)
        return HVD_OK;
    HVD_TRY(hvd__members_open(&members, t, host, context, &options));
    if (!members)
        return HVD_OK;
    world->elastic = calloc(1, sizeof *world->elastic);
    if (!world->elastic) {
        hvd__members_close(members);
        return hvd__fail_memory(sizeof *world->elastic);
    }
    world->elastic->members = members; /* the watch needs its beats */
    world->elastic->root = t;
    return HVD_OK;
}

int hvd__elastic_check(struct hvd__world *world)
{
    if (!world->elastic || world->watch || world->engine.transport->size == 1)
        return HVD_OK;
    if (hvd__elastic_has_lost(world->elastic))
        return hvd__fail(HVD_ERR_MEMORY, "the survivors cannot watch each "
                                         "other: see the warning above");
    world->elastic->root = NULL; /* it stays the world's */
    hvd__elastic_close(world->elastic);
    world->elastic = NULL;
    return HVD_OK;
}

void hvd__elastic_close(struct hvd__elastic *elastic)
{
    if (!elastic)
        return;
    if (elastic->root) {
        elastic->root->is_broken |= hvd__elastic_has_lost(elastic);
        elastic->root->close(elastic->root);
    }
    hvd__members_close(elastic->members);
    free(elastic->lost);
    free(elastic);
}

bool hvd__elastic_has_lost(const struct hvd__elastic *elastic)
{
    return elastic && hvd__members_round(elastic->members) > 0;
}
