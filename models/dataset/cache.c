/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cache.c - keeps elements in memory. The node has the store, so that all
 * iterators share it; where each worker has files of its own, there is a store
 * for each of them that was asked for. It is filled under a lock when a stage
 * is opened, by another stage of the input, and does not change afterwards.
 */
#include "dataset/stage.h"

#include "output/problem.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

struct store {
    struct store *next;
    int workers, worker; /* whose files; 0: all files */
    char *elements;      /* owned, each of step bytes */
    size_t step;
    int64_t count, room;
};

struct cache {
    pthread_mutex_t lock;
    struct store *stores; /* owned, behind lock */
};

static int grow_store(struct store *store)
{
    int64_t room = store->room ? 2 * store->room : 256;
    size_t bytes;
    char *grown = NULL;

    /* Elements lie at multiples of 64 bytes from the first, which malloc puts
     * at multiples of 16: enough for every dtype. */
    if (!__builtin_mul_overflow((size_t)room, store->step, &bytes))
        grown = realloc(store->elements, bytes);
    if (!grown)
        return problem_fail(HVD_ERR_MEMORY,
                            "data set: no memory to cache %lld elements of %zu "
                            "bytes",
                            (long long)room, store->step);
    store->elements = grown;
    store->room = room;
    return 0;
}

static int fill_store(struct stage *input, struct store *store)
{
    void *out[HVD_MAX_COMPONENTS];
    int status = stage_begin(input, 0);

    store->step = stage_lay_out(input, NULL, NULL);
    while (status == 0) {
        if (store->count == store->room && grow_store(store) < 0)
            return HVD_ERR_MEMORY;
        stage_lay_out(
            input, store->elements + (size_t)store->count * store->step, out);
        status = stage_next(input, out);
        store->count += status == 0;
    }
    return status < 0 ? status : 0;
}

static void free_store(struct store *store)
{
    free(store->elements);
    free(store);
}

static struct store *find_store(const struct cache *cache,
                                const struct share *share)
{
    int workers = share->by_file ? share->workers : 0;
    struct store *store = cache->stores;

    while (store && (store->workers != workers ||
                     (workers && store->worker != share->worker)))
        store = store->next;
    return store;
}

static int64_t count_cached(const hvd_dataset *set, const struct share *share)
{
    struct cache *cache = set->parameters;

    pthread_mutex_lock(&cache->lock);
    const struct store *store = find_store(cache, share);
    int64_t count = store ? store->count : -1;
    pthread_mutex_unlock(&cache->lock);
    return count >= 0 ? count : node_count(set->inputs[0], share);
}

/* Finds the store of a worker, or makes it. */
static int make_store(struct stage *stage, struct cache *cache)
{
    const struct share *share = &stage->run->share;
    struct store *store = find_store(cache, share);

    if (!store) {
        store = calloc(1, sizeof *store);
        int status = store ? fill_store(stage->inputs[0], store)
                           : problem_fail(HVD_ERR_MEMORY,
                                          "data set: no memory for a cache");
        if (status < 0) {
            if (store)
                free_store(store);
            return status;
        }
        store->workers = share->by_file ? share->workers : 0;
        store->worker = share->worker;
        store->next = cache->stores;
        cache->stores = store;
    }
    *(const struct store **)stage->state = store;
    stage->count = store->count;
    return 0;
}

static int open_cache(struct stage *stage)
{
    struct cache *cache = stage->set->parameters;

    stage->state = calloc(1, sizeof(struct store *));
    if (!stage->state)
        return problem_fail(HVD_ERR_MEMORY, "data set: no memory for a cache");
    pthread_mutex_lock(&cache->lock);
    int status = make_store(stage, cache);
    pthread_mutex_unlock(&cache->lock);
    return status;
}

static int look_cached(struct stage *stage, int64_t index, const void **at)
{
    const struct store *store = *(const struct store **)stage->state;
    void *out[HVD_MAX_COMPONENTS];

    stage_lay_out(stage, store->elements + (size_t)index * store->step, out);
    for (int32_t i = 0; i < stage->set->ncomponents; i++)
        at[i] = out[i];
    return 0;
}

/* The input has nothing to do any more. */
static int begin_cached(struct stage *stage, int64_t epoch)
{
    (void)stage;
    (void)epoch;
    return 0;
}

static void free_cache(hvd_dataset *set)
{
    struct cache *cache = set->parameters;

    while (cache->stores) {
        struct store *store = cache->stores;

        cache->stores = store->next;
        free_store(store);
    }
    pthread_mutex_destroy(&cache->lock);
}

static const struct kind cache_kind = {.name = "cache",
                                       .count = count_cached,
                                       .open = open_cache,
                                       .begin = begin_cached,
                                       .look = look_cached,
                                       .free = free_cache};

hvd_dataset *hvd_dataset_cache(hvd_dataset *dataset)
{
    if (dataset && (dataset->endless || dataset->batched))
        return node_fail(dataset, HVD_ERR_ARGUMENT,
                         "data set: %s cannot be cached: put the cache before "
                         "that",
                         dataset->batched ? "batches"
                                          : "what is repeated for ever");
    hvd_dataset *set =
        node_make(&cache_kind, 1, &dataset, sizeof(struct cache));
    if (set) {
        pthread_mutex_init(&((struct cache *)set->parameters)->lock, NULL);
        set->random = true;
    }
    return set;
}
