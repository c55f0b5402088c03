/* SPDX-License-Identifier: Apache-2.0 */
#include "core/api/kept_sets.h"

#include <stdlib.h>

#include "base/log.h"
#include "base/status.h"
#include "core/api/submit.h"

static int64_t count_words(const struct hvd__table *table)
{
    int64_t n = 0;

    for (int i = 0; i < table->nsets; i++)
        if (table->sets[i]->id != 0)
            n += 2 + table->sets[i]->team.size;
    return n;
}

static void write_words(const struct hvd__world *world, int64_t *words)
{
    const struct hvd__table *table = &world->engine.table;

    for (int i = 0; i < table->nsets; i++) {
        const struct hvd__set *set = table->sets[i];

        if (set->id == 0)
            continue;
        *words++ = set->id;
        *words++ = set->team.size;
        for (int k = 0; k < set->team.size; k++)
            *words++ = (int64_t)world->processes[set->ranks[k]];
    }
}

void hvd__kept_sets_list(struct hvd__kept_sets *sets)
{
    struct hvd__world *world;

    *sets = (struct hvd__kept_sets){.words = NULL};
    if (hvd__world_get(&world) < 0)
        return;
    hvd__mutex_lock(&world->engine.table.lock);
    sets->nwords = count_words(&world->engine.table);
    if (sets->nwords > 0)
        sets->words = malloc((size_t)sets->nwords * sizeof *sets->words);
    if (sets->words)
        write_words(world, sets->words);
    hvd__mutex_unlock(&world->engine.table.lock);
    if (sets->nwords > 0 && !sets->words)
        sets->nwords = -1;
}

void hvd__kept_sets_free(struct hvd__kept_sets *sets)
{
    free(sets->words);
    *sets = (struct hvd__kept_sets){.words = NULL};
}

/* Writes which ranks of this world are among n processes. Returns how many. */
static int32_t find_ranks(const struct hvd__world *world,
                          const int64_t *processes, int64_t n, int32_t *ranks)
{
    int32_t nranks = 0;

    for (int rank = 0; rank < world->engine.transport->size; rank++)
        for (int64_t i = 0; i < n; i++)
            if (processes[i] == (int64_t)world->processes[rank])
                ranks[nranks++] = rank;
    return nranks;
}

/* Says what has become of a set, on one rank. */
static void tell(const struct hvd__world *world, int32_t id, int32_t left,
                 int64_t n)
{
    if (world->engine.transport->rank != 0 || left == n)
        return;
    if (left == 0)
        hvd__log(HVD__LOG_WARNING, "process set %d is lost with all its ranks",
                 (int)id);
    else
        hvd__log(HVD__LOG_WARNING,
                 "process set %d goes on with %d of %lld ranks", (int)id,
                 (int)left, (long long)n);
}

/* words: one set of a list. */
static int make(struct hvd__world *world, const int64_t *words, int32_t *ranks)
{
    const int32_t id = (int32_t)words[0];
    struct hvd__set *there = hvd__table_find_set(&world->engine.table, id);
    int32_t nranks;

    if (there) {
        hvd__set_put(there);
        return HVD_OK;
    }
    nranks = find_ranks(world, words + 2, words[1], ranks);
    tell(world, id, nranks, words[1]);
    return nranks > 0 ? hvd__set_make_again(world, id, ranks, nranks) : HVD_OK;
}

int hvd__kept_sets_make(const struct hvd__kept_sets *sets)
{
    struct hvd__world *world;
    int32_t *ranks;
    int status = HVD_OK;

    if (sets->nwords == 0)
        return HVD_OK;
    HVD_TRY(hvd__world_get(&world));
    ranks = malloc((size_t)world->engine.transport->size * sizeof *ranks);
    if (!ranks)
        return hvd__fail(HVD_ERR_MEMORY,
                         "no memory for the ranks of process sets");
    for (int64_t at = 0; at < sets->nwords && status == HVD_OK;
         at += 2 + sets->words[at + 1])
        status = make(world, sets->words + at, ranks);
    free(ranks);
    return status;
}
