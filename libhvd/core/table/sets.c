/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sets.c - the process sets that the request table knows, by id.
 *
 * A caller that looks up a set becomes one of its users and must give it back
 * with hvd__set_put: the last user frees a set that was removed meanwhile. Any
 * thread may call these functions; the table's lock guards the list.
 */
#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "core/request/compress.h"
#include "core/table/set.h"

/* Returns the index of the first set whose id is not less than id. The caller
 * holds the lock. */
static int find_set(const struct hvd__table *table, int32_t id)
{
    int low = 0, high = table->nsets;

    while (low < high) {
        int middle = low + (high - low) / 2;

        if (table->sets[middle]->id < id)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

struct hvd__set *hvd__table_find_set(struct hvd__table *table, int32_t id)
{
    struct hvd__set *set = NULL;
    int i;

    /* Set 0 never changes. */
    if (id == 0)
        return table->everybody;
    hvd__mutex_lock(&table->lock);
    i = find_set(table, id);
    if (i < table->nsets && table->sets[i]->id == id) {
        set = table->sets[i];
        hvd__set_use(set);
    }
    hvd__mutex_unlock(&table->lock);
    return set;
}

void hvd__set_put(struct hvd__set *set)
{
    if (!set || !hvd__set_leave(set))
        return;
    hvd__compress_forget_set(set->id);
    hvd__set_free(set);
}

struct hvd__set *hvd__table_next_set(struct hvd__table *table,
                                     struct hvd__set *set)
{
    struct hvd__set *next = NULL;
    int i;

    hvd__mutex_lock(&table->lock);
    i = set ? find_set(table, set->id + 1) : 0;
    if (i < table->nsets) {
        next = table->sets[i];
        hvd__set_use(next);
    }
    hvd__mutex_unlock(&table->lock);
    hvd__set_put(set);
    return next;
}

/* The caller holds the lock. */
static bool has_room(struct hvd__table *table)
{
    int capacity = 2 * table->sets_capacity + 8;
    struct hvd__set **grown;

    if (table->nsets < table->sets_capacity)
        return true;
    grown = realloc(table->sets, (size_t)capacity * sizeof(struct hvd__set *));
    if (!grown)
        return false;
    table->sets = grown;
    table->sets_capacity = capacity;
    return true;
}

int hvd__table_add_set(struct hvd__table *table, struct hvd__set *set)
{
    bool added;

    hvd__mutex_lock(&table->lock);
    added = has_room(table);
    if (added) {
        if (set->id == 0)
            table->everybody = set;
        table->sets[table->nsets++] = set;
    }
    hvd__mutex_unlock(&table->lock);
    return added ? HVD_OK
                 : hvd__fail_memory((size_t)table->nsets * sizeof(set));
}

void hvd__table_remove_set(struct hvd__table *table, struct hvd__set *set)
{
    int i;

    hvd__mutex_lock(&table->lock);
    i = find_set(table, set->id);
    table->nsets--;
    memmove(&table->sets[i], &table->sets[i + 1],
            (size_t)(table->nsets - i) * sizeof(struct hvd__set *));
    /* Requests of this set must not be found again. */
    hvd__recycled_forget_set(&table->recycled, set);
    hvd__mutex_unlock(&table->lock);
    hvd__set_put(set); /* gives back the table's own use */
}
