/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mutex.h - a lock that is held for a moment and seldom wanted by two threads
 * at once: then it takes a few instructions, where a pthread_mutex_t takes a
 * hundred. A thread that finds it held sleeps until it is free (U. Drepper,
 * "Futexes are tricky", the second of his locks).
 */
#ifndef HVD_BASE_MUTEX_H
#define HVD_BASE_MUTEX_H

#include <stdatomic.h>
#include <stdint.h>

/* A zeroed mutex is free. Unlocking releases what was written under the lock,
 * locking and hvd__mutex_wait acquire it. */
struct hvd__mutex {
    _Atomic uint32_t state; /* an hvd__mutex_state */
};

enum hvd__mutex_state {
    HVD__MUTEX_FREE,
    HVD__MUTEX_HELD,
    HVD__MUTEX_WANTED /* held, and a thread may sleep */
};

void hvd__mutex_wait(struct hvd__mutex *mutex);
void hvd__mutex_wake(struct hvd__mutex *mutex);

static inline void hvd__mutex_lock(struct hvd__mutex *mutex)
{
    uint32_t found = HVD__MUTEX_FREE;

    if (!atomic_compare_exchange_strong_explicit(
            &mutex->state, &found, HVD__MUTEX_HELD, memory_order_acquire,
            memory_order_relaxed))
        hvd__mutex_wait(mutex);
}

static inline void hvd__mutex_unlock(struct hvd__mutex *mutex)
{
    if (atomic_exchange_explicit(&mutex->state, HVD__MUTEX_FREE,
                                 memory_order_release) == HVD__MUTEX_WANTED)
        hvd__mutex_wake(mutex);
}

#endif
