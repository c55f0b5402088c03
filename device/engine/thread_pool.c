/* SPDX-License-Identifier: Apache-2.0 */
/*
 * thread_pool.c - threads that do the lanes of a slot, and meet at its end.
 *
 * A slot is a number that goes up. A free thread takes the next lane, so that
 * fewer threads than IPUs will do, too; the caller is one of them. Within a
 * slot lanes have nothing to do with each other: data that goes from one to
 * another was made in the slot before, and the lock orders the two.
 */
#include "engine/thread_pool.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>

#include "base/error.h"

struct ipu__thread_pool {
    pthread_mutex_t lock;
    pthread_cond_t begun,
        done;           /* a slot has begun; all of its lanes are done */
    pthread_t *threads; /* owned */
    int32_t nthreads;
    /* The lock guards the rest: */
    int64_t slot;
    int32_t next, count, left; /* lanes */
    bool ends;
    void (*do_lane)(void *context, int32_t lane);
    void *context;
};

/* Take lanes until there are none; with the lock held. */
static void take_lanes(struct ipu__thread_pool *pool)
{
    while (pool->next < pool->count) {
        int32_t lane = pool->next++;

        pthread_mutex_unlock(&pool->lock);
        pool->do_lane(pool->context, lane);
        pthread_mutex_lock(&pool->lock);
        if (--pool->left == 0)
            pthread_cond_signal(&pool->done);
    }
}

static void *work_slots(void *argument)
{
    struct ipu__thread_pool *pool = argument;
    int64_t seen = 0;

    pthread_mutex_lock(&pool->lock);
    while (!pool->ends) {
        if (pool->slot == seen) {
            pthread_cond_wait(&pool->begun, &pool->lock);
            continue;
        }
        seen = pool->slot;
        take_lanes(pool);
    }
    pthread_mutex_unlock(&pool->lock);
    return NULL;
}

static int32_t cores(void)
{
    cpu_set_t set;

    return sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
}

/* Signals are for the program's own threads. Fewer threads will do, too. */
static void start_threads(struct ipu__thread_pool *pool, int32_t count)
{
    sigset_t all, before;

    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, &before);
    while (pool->nthreads < count &&
           pthread_create(&pool->threads[pool->nthreads], NULL, work_slots,
                          pool) == 0)
        pool->nthreads++;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
}

int ipu__thread_pool_new(int32_t threads, int32_t lanes,
                         struct ipu__thread_pool **made)
{
    struct ipu__thread_pool *pool;

    if (threads == 0)
        threads = cores();
    if (threads > lanes)
        threads = lanes;
    if (threads < 2)
        return IPU_OK;
    pool = calloc(1, sizeof *pool);
    if (pool)
        pool->threads = calloc((size_t)threads, sizeof *pool->threads);
    if (!pool || !pool->threads) {
        free(pool);
        return ipu__fail_memory((size_t)threads * sizeof *pool->threads);
    }
    pthread_mutex_init(&pool->lock, NULL);
    pthread_cond_init(&pool->begun, NULL);
    pthread_cond_init(&pool->done, NULL);
    start_threads(pool, threads - 1);
    *made = pool;
    return IPU_OK;
}

int32_t ipu__thread_pool_threads(const struct ipu__thread_pool *pool)
{
    return pool ? pool->nthreads + 1 : 1;
}

void ipu__thread_pool_free(struct ipu__thread_pool *pool)
{
    if (!pool)
        return;
    pthread_mutex_lock(&pool->lock);
    pool->ends = true;
    pthread_cond_broadcast(&pool->begun);
    pthread_mutex_unlock(&pool->lock);
    for (int32_t i = 0; i < pool->nthreads; i++)
        pthread_join(pool->threads[i], NULL);
    pthread_cond_destroy(&pool->begun);
    pthread_cond_destroy(&pool->done);
    pthread_mutex_destroy(&pool->lock);
    free(pool->threads);
    free(pool);
}

void ipu__thread_pool_run(struct ipu__thread_pool *pool, int32_t count,
                          void (*do_lane)(void *context, int32_t lane),
                          void *context)
{
    if (!pool) {
        for (int32_t lane = 0; lane < count; lane++)
            do_lane(context, lane);
        return;
    }
    pthread_mutex_lock(&pool->lock);
    pool->do_lane = do_lane;
    pool->context = context;
    pool->next = 0;
    pool->count = pool->left = count;
    pool->slot++;
    pthread_cond_broadcast(&pool->begun);
    take_lanes(pool);
    while (pool->left > 0)
        pthread_cond_wait(&pool->done, &pool->lock);
    pthread_mutex_unlock(&pool->lock);
}
