/* SPDX-License-Identifier: Apache-2.0 */
/*
 * thread_pool.h - threads that do several things at the same time and meet.
 * Pipelines and replicas use them.
 */
#ifndef IPU_ENGINE_THREAD_POOL_H
#define IPU_ENGINE_THREAD_POOL_H

#include <stdint.h>

struct ipu__thread_pool;

/* Makes a pool of as many threads as asked for (0: one a core), but no more
 * than lanes; the caller's thread is one of them. *pool stays NULL if one is
 * enough. */
int ipu__thread_pool_new(int32_t threads, int32_t lanes,
                         struct ipu__thread_pool **pool);
/* Returns the number of threads, with the caller's. */
int32_t ipu__thread_pool_threads(const struct ipu__thread_pool *pool);
void ipu__thread_pool_free(
    struct ipu__thread_pool *pool); /* NULL is accepted */

/* Calls do_lane for 0 to count - 1, on all threads; returns when all are done.
 * pool NULL: one after the other. */
void ipu__thread_pool_run(struct ipu__thread_pool *pool, int32_t count,
                          void (*do_lane)(void *context, int32_t lane),
                          void *context);

#endif
