/* SPDX-License-Identifier: Apache-2.0 */
/*
 * own_sets.c - process sets that their members make among themselves.
 *
 * An id and a place, from which tags and the number in the directory of shared
 * memory follow, must be the same on all members, and must be no other set's
 * on any of them. Sets that have no rank in common may have the same: none of
 * their messages meet. So members share which places they have and how far
 * their ids are, and take the lowest place that is free on all, and the id
 * after the highest. While they do that, another thread may take the place or
 * the id on one of them. Then that rank's part fails, its members hear of it,
 * and all drop the set.
 *
 * A set that is left stays in the table, and keeps its place, until all members
 * have left it. No rank waits for that: the memory is freed when the next set
 * is made, or at the end of the world.
 */
#include "core/api/own_sets.h"

#include <string.h>

#include "base/status.h"
#include "core/api/submit.h"
#include "transport/shm/shm.h"

enum { PLACES = 64 };

/* How often the engine is moved before a set is made, so that sets that were
 * left become closed. */
enum { STEPS = 4 };

static pthread_mutex_t changing = PTHREAD_MUTEX_INITIALIZER;

static void remove_set(struct hvd__world *world, struct hvd__set *set)
{
    hvd__set_retire(set);
    hvd__table_remove_set(&world->engine.table, set);
}

/* Returns true if some set has been left that is not closed yet. */
static bool sweep(struct hvd__world *world)
{
    struct hvd__table *table = &world->engine.table;
    bool more = false;

    for (int i = table->nsets - 1; i > 0; i--) {
        if (atomic_load(&table->sets[i]->closed))
            remove_set(world, table->sets[i]);
        else
            more |= atomic_load(&table->sets[i]->leaving);
    }
    return more;
}

int hvd__own_host(int rank)
{
    struct hvd__world *world;

    HVD_TRY(hvd__world_get(&world));
    return rank >= 0 && rank < world->engine.transport->size
               ? world->host_of[rank]
               : HVD_ERR_ARGUMENT;
}

bool hvd__own_is_over_ucx(void)
{
    struct hvd__world *world;

    return hvd__world_get(&world) == HVD_OK &&
           strcmp(world->engine.transport->name, "ucx") == 0;
}

struct hvd__own_offer hvd__own_offer(void)
{
    struct hvd__own_offer offer = {UINT64_MAX, 0};
    struct hvd__world *world;

    if (hvd__world_get(&world) < 0)
        return offer;
    pthread_mutex_lock(&changing);
    for (int i = 0; sweep(world) && i < STEPS; i++)
        hvd__progress_once(world);
    offer.taken = 0;
    for (int i = 0; i < world->engine.table.nsets; i++)
        offer.taken |= UINT64_C(1) << world->engine.table.sets[i]->tag_slot;
    offer.newest = (uint64_t)world->last_id;
    pthread_mutex_unlock(&changing);
    return offer;
}

/* Returns the lowest place that no member has; PLACES: there is none. */
static int find_place(uint64_t taken)
{
    int place = 0;

    while (place < PLACES && taken >> place & 1)
        place++;
    return place;
}

static bool has_place(const struct hvd__world *world, int place)
{
    for (int i = 0; i < world->engine.table.nsets; i++)
        if (world->engine.table.sets[i]->tag_slot == place)
            return true;
    return false;
}

static int check_new(const struct hvd__world *world,
                     const struct hvd__new_set *new_set)
{
    if (new_set->tag_slot == PLACES || new_set->id <= world->last_id ||
        has_place(world, new_set->tag_slot))
        return hvd__fail(HVD_ERR_UNSUPPORTED,
                         "there is no place for process set %d",
                         (int)new_set->id);
    return HVD_OK;
}

static int enter(struct hvd__world *world, const struct hvd__new_set *new_set)
{
    struct hvd__set *set = NULL;

    HVD_TRY(check_new(world, new_set));
    HVD_TRY(hvd__set_enter(world, new_set, &set));
    if (set->shm && !set->shm->own) {
        remove_set(world, set);
        return hvd__fail(HVD_ERR_MEMORY, "there is no shared memory for a "
                                         "process set");
    }
    world->last_id = new_set->id;
    return HVD_OK;
}

int32_t hvd__own_set_make(const struct hvd__own_offer *all,
                          const int32_t *ranks, int32_t nranks)
{
    const struct hvd__new_set new_set = {(int32_t)(all->newest + 1), ranks,
                                         nranks, find_place(all->taken)};
    struct hvd__world *world;
    int status;

    if (all->newest >= INT32_MAX)
        return hvd__fail(HVD_ERR_UNSUPPORTED, "all ids have been used");
    HVD_TRY(hvd__world_get(&world));
    pthread_mutex_lock(&changing);
    status = enter(world, &new_set);
    pthread_mutex_unlock(&changing);
    return status < 0 ? status : new_set.id;
}

/* Finds a set, which the caller gives back. Returns NULL if there is none. */
static struct hvd__set *find(int32_t id, struct hvd__world **world)
{
    if (hvd__world_get(world) < 0)
        return NULL;
    return hvd__table_find_set(&(*world)->engine.table, id);
}

void hvd__own_set_begin(int32_t id)
{
    struct hvd__world *world;
    struct hvd__set *set = find(id, &world);

    if (set)
        hvd__world_move_set(world, set);
    hvd__set_put(set);
}

void hvd__own_set_drop(int32_t id)
{
    struct hvd__world *world;
    struct hvd__set *set = find(id, &world);

    if (!set)
        return;
    pthread_mutex_lock(&changing);
    remove_set(world, set);
    pthread_mutex_unlock(&changing);
    hvd__set_put(set);
}

void hvd__own_set_leave(int32_t id)
{
    struct hvd__world *world;
    struct hvd__set *set = find(id, &world);

    if (!set)
        return;
    hvd__table_close(&world->engine.table, set, HVD_ERR_PROCESS_SET,
                     "the communicator has been freed");
    atomic_store(&set->leaving, true);
    hvd__progress_wake(world);
    hvd__set_put(set);
}
