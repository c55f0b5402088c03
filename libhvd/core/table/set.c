/* SPDX-License-Identifier: Apache-2.0 */
#include "core/table/set.h"

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
