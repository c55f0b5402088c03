/* SPDX-License-Identifier: Apache-2.0 */
/*
 * prepare.c - prepares a process set of which this process is a member: memory
 * that it shares with members of its host, lanes (core/run) and an agreement
 * (core/agree). All of it exists before the set is used and is freed when
 * nothing moves on the set any more. world.c and core/api/process_sets.c call
 * it.
 */
#include <stdlib.h>

#include "base/status.h"
#include "core/agree/agree.h"
#include "core/run/execute.h"
#include "core/world/world.h"
#include "transport/hosts.h"
#include "transport/shm/shm.h"

/* Writes the members on this host to set->locals and returns their number.
 * *rank becomes this rank's place among them. */
static int find_locals(struct hvd__set *set, const struct hvd__heap *heap,
                       int *rank)
{
    int n = 0;

    for (int i = 0; i < set->team.size; i++) {
        if (!hvd__heap_is_local(heap, set->ranks[i]))
            continue;
        if (i == set->team.rank)
            *rank = n;
        set->locals[n++] = set->ranks[i];
    }
    return n;
}

/* Groups the members by the memory that they share: all ranks come to the same
 * groups. A host whose ranks should share memory and cannot, which other hosts
 * do not know, makes ordered mode impossible (core/agree/speaker.c). */
static int find_hosts(const struct hvd__world *world, struct hvd__set *set)
{
    const int *host_of = world->host_of;
    bool apart = world->engine.settings.shm_size == 0 ||
                 set->tag_slot >= HVD__HEAP_DIRECTORY;
    int *hosts;

    if (set->team.size == 1)
        return HVD_OK;
    hosts = calloc((size_t)set->team.size, sizeof *hosts);
    if (!hosts)
        return hvd__fail_memory((size_t)set->team.size * sizeof *hosts);
    set->team.is_near = true;
    for (int i = 1; i < set->team.size; i++)
        set->team.is_near &= host_of[set->ranks[i]] == host_of[set->ranks[0]];
    apart |= set->team.is_near && !world->heap;
    for (int i = 0; i < set->team.size; i++)
        hosts[i] = apart ? i : host_of[set->ranks[i]];
    set->hosts = hvd__hosts_new(set->team.size, set->team.rank, hosts);
    free(hosts);
    if (!set->hosts)
        return hvd__fail_memory(sizeof *set->hosts);
    set->hosts->is_one = set->hosts->n > 1 && set->team.is_near;
    return HVD_OK;
}

/* Makes the memory that members of one host share, if any do. */
static int make_shm(const struct hvd__world *world, struct hvd__set *set)
{
    const struct hvd__settings *settings = &world->engine.settings;
    int n, rank = 0;
    bool one = set->hosts && set->hosts->n == 1;
    size_t bounce = hvd__shm_bounce_bytes(settings->shm_block, set->team.size,
                                          !one && set->id == 0);

    if (set->hosts && set->hosts->widest == 1)
        return hvd__hosts_be_alone(set->hosts, bounce)
                   ? HVD_OK
                   : hvd__fail_memory(sizeof *set->hosts->shm);
    if (!set->hosts || !world->heap)
        return HVD_OK;
    n = find_locals(set, world->heap, &rank);
    set->shm = hvd__shm_new(world->heap, set->locals, n, rank, set->tag_slot,
                            set->id, bounce);
    if (!set->shm)
        return hvd__fail_memory(sizeof *set->shm);
    set->hosts->shm = set->shm;
    if (one) {
        hvd__hosts_free(set->hosts);
        set->hosts = NULL;
    }
    return HVD_OK;
}

int hvd__set_prepare(struct hvd__world *world, struct hvd__set *set)
{
    size_t n = (size_t)set->team.size;

    set->engine = &world->engine;
    set->team.costs = &world->engine.costs;
    set->locals = calloc(n, sizeof *set->locals);
    if (!set->locals)
        return hvd__fail_memory(n * sizeof *set->locals);
    HVD_TRY(hvd__executor_new(set));
    HVD_TRY(find_hosts(world, set));
    HVD_TRY(make_shm(world, set));
    return hvd__agreement_new(set);
}

void hvd__set_retire(struct hvd__set *set)
{
    hvd__executor_free(set);
    hvd__agreement_free(set);
    set->team.shm = NULL;
    set->team.hosts = NULL;
    hvd__hosts_free(set->hosts);
    set->hosts = NULL;
    hvd__shm_retire(set->shm);
    set->shm = NULL;
}
