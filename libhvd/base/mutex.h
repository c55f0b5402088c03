/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mutex.h - a lock that is held for a moment and seldom wanted by two threads
 * at once. Taking it is one instruction on memory that must not be shared, and
 * giving it back is a plain store; a pthread_mutex_t takes a hundred
 * instructions. The price is that nobody wakes a thread that waits: it tries
 * again, then yields its core, then sleeps for a moment between tries.
 */
#ifndef HVD_BASE_MUTEX_H
#define HVD_BASE_MUTEX_H

#include <stdatomic.h>
#include <stdbool.h>

/* A zeroed mutex is free. Unlocking releases what was written under the lock,
 * locking acquires it. */
struct hvd__mutex {
    atomic_bool held;
};

/* Takes the lock if it is free. Returns whether it did. */
static inline bool hvd__mutex_try(struct hvd__mutex *mutex)
{
    return !atomic_load_explicit(&mutex->held, memory_order_relaxed) &&
           !atomic_exchange_explicit(&mutex->held, true, memory_order_acquire);
}

/* Takes the lock, for which it waits. */
void hvd__mutex_wait(struct hvd__mutex *mutex);

static inline void hvd__mutex_lock(struct hvd__mutex *mutex)
{
    if (atomic_exchange_explicit(&mutex->held, true, memory_order_acquire))
        hvd__mutex_wait(mutex);
}

static inline void hvd__mutex_unlock(struct hvd__mutex *mutex)
{
    atomic_store_explicit(&mutex->held, false, memory_order_release);
}

#endif
