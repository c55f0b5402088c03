/* SPDX-License-Identifier: Apache-2.0 */
/*
 * progress.h - decides which thread moves the engine (progress.c).
 */
#ifndef HVD_CORE_PROGRESS_H
#define HVD_CORE_PROGRESS_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "hvd.h"

struct hvd__submission;
struct hvd__world;

struct hvd__progress {
    pthread_mutex_t lock; /* held by threads that sleep on changed or work */
    pthread_cond_t
        changed; /* wakes waiters: the role is free, or one may be done */
    pthread_cond_t work; /* wakes the background thread */
    atomic_bool driving; /* a thread has the role of the driver; becomes true
                            under the lock of the request table */
    atomic_uint_fast64_t ndrives; /* driver's: how often threads other than the
                                     background thread have moved the engine */
    atomic_int nwaiters;          /* threads in hvd__progress_until */
    atomic_bool asleep; /* the background thread sleeps until it is woken */
    atomic_bool stop;   /* the background thread must end */
    bool has_thread;
    bool may_spin; /* there is a core for every rank of this host */
    pthread_t thread;
};

/* Starts no thread. */
int hvd__progress_init(struct hvd__progress *progress);
void hvd__progress_fini(struct hvd__progress *progress);

/* Starts the background thread, which moves the engine while nobody waits. */
int hvd__progress_start(struct hvd__world *world);
/* Blocks until the thread has ended. */
void hvd__progress_stop(struct hvd__world *world);

/* Returns true in the background thread of any world. */
bool hvd__progress_is_own_thread(void);

/* Enters a submission into the request table (hvd__table_enter) and posts it at
 * once if no thread is driving. */
int hvd__progress_submit(struct hvd__world *world,
                         struct hvd__submission *submission,
                         hvd_handle *handles);
/* Does the same with the submission of an earlier request that equals the given
 * one (hvd__table_reenter). Returns false, and does nothing, if there is none
 * or it cannot be entered. */
bool hvd__progress_resubmit(struct hvd__world *world, const hvd_request *given,
                            const char *name, hvd_handle *handle);
/* Call this when something was put into the request table. Makes a thread drive
 * if none does. */
void hvd__progress_wake(struct hvd__world *world);

/* Takes the role of the driver if it is free. Returns true if so; the caller
 * must give it back soon. */
bool hvd__progress_take(struct hvd__world *world);
void hvd__progress_give(struct hvd__world *world);

/* Moves the engine a little, unless another thread is doing so. */
void hvd__progress_once(struct hvd__world *world);

/* Blocks, moving the engine, until done(context) returns true, or for at most
 * limit_ns (0: no limit). Returns the last result of done, which any driver
 * calls often and without a lock. */
bool hvd__progress_until(struct hvd__world *world,
                         bool (*done)(const void *context), const void *context,
                         int64_t limit_ns);

#endif
