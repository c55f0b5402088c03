/* SPDX-License-Identifier: Apache-2.0 */
#include "core/world/set.h"

#include <stdlib.h>

#include "base/status.h"
#include "base/text.h"

struct hvd__set *hvd__set_new(struct hvd__transport *transport, int32_t id,
                              int *ranks, int n, int tag_slot)
{
    struct hvd__set *set = calloc(1, sizeof *set);

    if (!set) {
        free(ranks);
        return NULL;
    }
    set->id = id;
    atomic_init(&set->nusers, 1);
    set->ranks = ranks;
    set->team = (struct hvd__team){
        .transport = transport, .world = ranks, .rank = -1, .size = n};
    set->team.rank = hvd__set_find(set, transport->rank);
    set->tag_slot = tag_slot;
    set->first_tag = tag_slot * HVD__SET_TAGS;
    return set;
}

/* Bytes of the blocks of a rank: smaller blocks where there are many ranks,
 * each with a place for every other. */
static size_t bounce_bytes(const struct hvd__set *set, size_t block, size_t all)
{
    size_t n = (size_t)set->team.size;

    if (block > all / n / HVD__BUFFERS)
        block = all / n / HVD__BUFFERS;
    block = (block < 64 ? 64 : block) / 64 * 64;
    return block * n * HVD__BUFFERS;
}

/* Most bytes of all blocks; and for those that go over a network, which are
 * larger, by so much: a few must keep it busy while ranks take turns. */
enum { BOUNCE_BYTES = 2 << 20 };
enum { NETWORK_BLOCKS = 8, NETWORK_BOUNCE_BYTES = 16 << 20 };

/* The members on this host, into locals; ours is *rank among them. */
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

/* Ranks of one host share memory. Those of the world do so on each host.
 * Ordered mode needs all to share it, or sends messages. */
static int make_shm(struct hvd__set *set, const struct hvd__settings *settings,
                    struct hvd__heap *heap)
{
    int n = 0, rank = 0;
    bool all, some;
    size_t block = settings->shm_block, most = BOUNCE_BYTES;
    struct hvd__replicated_log *log = NULL;

    if (heap && set->team.size > 1 && set->tag_slot < HVD__HEAP_DIRECTORY)
        n = find_locals(set, heap, &rank);
    all = n > 0 && n == set->team.size;
    some = n > 0 && !all && set->id == 0;
    if (some) {
        block *= NETWORK_BLOCKS;
        most = NETWORK_BOUNCE_BYTES;
    }
    if (all || some) {
        set->shm = hvd__shm_new(heap, set->locals, n, rank, set->tag_slot,
                                set->id, bounce_bytes(set, block, most));
        if (!set->shm)
            return hvd__fail_memory(sizeof *set->shm);
    }
    /* Those who see each other's slots agree by them, or few send them. */
    if (!all && set->team.size > 1 && set->team.size <= HVD__REPLICATED_RANKS) {
        log = hvd__replicated_log_new(set->team.size);
        if (!log)
            return hvd__fail_memory(sizeof *log);
    }
    return hvd__ordered_init(&set->ordered, all ? set->shm : NULL, log,
                             set->team.rank, set->team.size);
}

int hvd__set_prepare(struct hvd__set *set, const struct hvd__settings *settings,
                     struct hvd__heap *heap)
{
    size_t fusion_threshold = settings->fusion_threshold;
    size_t n = (size_t)set->team.size;

    set->scratch = calloc(n, sizeof *set->scratch);
    set->locals = calloc(n, sizeof *set->locals);
    if (!set->scratch || !set->locals)
        return hvd__fail_memory(n * sizeof *set->scratch);
    HVD_TRY(
        hvd__executor_init(&set->executor, set->team.size, fusion_threshold));
    HVD_TRY(make_shm(set, settings, heap));
    if (set->team.rank != 0)
        return HVD_OK;
    set->coordinator =
        hvd__coordinator_new(set->ranks, set->team.size, fusion_threshold);
    if (!set->coordinator)
        return hvd__fail_memory(1);
    /* Its messages begin with this (negotiate.c). */
    hvd__write_int(hvd__coordinator_decide(set->coordinator, 0), set->id);
    return HVD_OK;
}

void hvd__set_retire(struct hvd__set *set)
{
    hvd__coordinator_free(set->coordinator);
    set->coordinator = NULL;
    hvd__executor_fini(&set->executor);
    hvd__ordered_fini(&set->ordered);
    set->team.shm = NULL;
    set->team.hosts = NULL;
    hvd__hosts_free(set->hosts);
    set->hosts = NULL;
    hvd__shm_retire(set->shm);
    set->shm = NULL;
    hvd__writer_fini(&set->out);
    hvd__tune_fini(&set->tune);
    free(set->scratch);
    set->scratch = NULL;
}

void hvd__set_free(struct hvd__set *set)
{
    if (!set)
        return;
    hvd__set_table_fini(&set->requests);
    free(set->ranks);
    free(set->locals);
    free(set);
}

int hvd__set_find(const struct hvd__set *set, int rank)
{
    int low = 0, high = set->team.size;

    while (low < high) {
        int middle = low + (high - low) / 2;

        if (set->ranks[middle] < rank)
            low = middle + 1;
        else
            high = middle;
    }
    return low < set->team.size && set->ranks[low] == rank ? low : -1;
}

const char *hvd__set_print(const struct hvd__set *set, char *text, size_t size)
{
    struct hvd__text out = hvd__text_at(text, size);

    if (set->id == 0) {
        hvd__text_add(&out, "the world of %d ranks", set->team.size);
        return text;
    }
    hvd__text_add(&out, "process set %d (ranks", (int)set->id);
    for (int i = 0; i < set->team.size; i++)
        hvd__text_add(&out, "%s%d", i ? "," : " ", set->ranks[i]);
    hvd__text_add(&out, ")");
    return text;
}
