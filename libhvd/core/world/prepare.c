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

/* Returns the bytes of all blocks of a rank. Each rank has blocks for every
 * other, so blocks are smaller where there are many ranks. */
static size_t bounce_bytes(const struct hvd__set *set, size_t block, size_t all)
{
    size_t n = (size_t)set->team.size;

    if (block > all / n / HVD__BUFFERS)
        block = all / n / HVD__BUFFERS;
    block = (block < 64 ? 64 : block) / 64 * 64;
    return block * n * HVD__BUFFERS;
}

/* The most bytes of all blocks. Blocks that go over a network are
 * NETWORK_BLOCKS times larger: a few must keep it busy while ranks take turns.
 */
enum { BOUNCE_BYTES = 2 << 20 };
enum { NETWORK_BLOCKS = 8, NETWORK_BOUNCE_BYTES = 16 << 20 };

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

/* Makes the memory that members of one host share; the world has it on each
 * host. *all becomes true if all members are on this host. */
static int make_shm(struct hvd__set *set, const struct hvd__settings *settings,
                    struct hvd__heap *heap, bool *all)
{
    int n = 0, rank = 0;
    bool some;
    size_t block = settings->shm_block, most = BOUNCE_BYTES;

    if (heap && set->team.size > 1 && set->tag_slot < HVD__HEAP_DIRECTORY)
        n = find_locals(set, heap, &rank);
    *all = n > 0 && n == set->team.size;
    some = n > 0 && !*all && set->id == 0;
    if (some) {
        block *= NETWORK_BLOCKS;
        most = NETWORK_BOUNCE_BYTES;
    }
    if (!*all && !some)
        return HVD_OK;
    set->shm = hvd__shm_new(heap, set->locals, n, rank, set->tag_slot, set->id,
                            bounce_bytes(set, block, most));
    return set->shm ? HVD_OK : hvd__fail_memory(sizeof *set->shm);
}

int hvd__set_prepare(struct hvd__set *set, const struct hvd__settings *settings,
                     struct hvd__heap *heap)
{
    size_t n = (size_t)set->team.size;
    bool all;

    set->locals = calloc(n, sizeof *set->locals);
    if (!set->locals)
        return hvd__fail_memory(n * sizeof *set->locals);
    HVD_TRY(hvd__executor_new(set, settings->fusion_threshold));
    HVD_TRY(make_shm(set, settings, heap, &all));
    return hvd__agreement_new(set, settings, all);
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
