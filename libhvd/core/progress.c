/* SPDX-License-Identifier: Apache-2.0 */
/*
 * progress.c - the waiter drives.
 *
 * The engine (negotiation and lanes) is moved by one thread at a time, the
 * driver. A thread that waits for a request takes the role if it is free and
 * steps the engine until its own request is done: between the arrival of the
 * data and the return of hvd_wait there is no hand-over to another thread. If
 * another waiter drives, it sleeps until that one is done with the role, or
 * with its request.
 *
 * While requests are in flight and nobody waits, the background thread has
 * the role. When nothing is in flight it sleeps, waking up only every
 * IDLE_NS, for the sake of MPI: ranks may be sending us messages, and one of
 * those may be that another rank has left.
 *
 * A driver that finds nothing to do is patient in three stages: it spins, if
 * there are cores enough for all ranks of the host; it yields the core; it
 * sleeps for ever longer, up to SLEEP_MAX_NS, with the role free, so that a
 * thread with news (a submission, a wait) can take it. The background thread
 * skips the first: it competes with the program's own computation.
 *
 * Without a background thread (MPI allows none) only waits, polls and
 * submissions of the program move the engine.
 */
#include "core/progress.h"

#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <time.h>

#include "base/clock.h"
#include "base/status.h"
#include "core/world.h"

#define SPIN_NS INT64_C(200000)
#define YIELD_NS INT64_C(2000000)
#define YIELD_BACKGROUND_NS INT64_C(50000)
#define SLEEP_MIN_NS INT64_C(20000)
#define SLEEP_MAX_NS INT64_C(500000)
#define IDLE_NS INT64_C(50000000)

/* Sleep on a condition; the lock is held. */
static void sleep_on(struct hvd__progress *p, pthread_cond_t *condition,
                     int64_t ns)
{
    int64_t until = hvd__now_ns() + ns;
    struct timespec t = {.tv_sec = until / 1000000000,
                         .tv_nsec = until % 1000000000};

    pthread_cond_timedwait(condition, &p->lock, &t);
}

/* How long nothing has happened, and what to do about it. */
struct patience {
    int64_t since; /* 0: something just happened */
    int64_t sleep_ns;
};

enum advice { GO_ON, YIELD, SLEEP };

static enum advice ask(struct patience *patience, bool moved, bool may_spin,
                       int64_t yield_ns)
{
    int64_t idle;

    if (moved) {
        *patience = (struct patience){0};
        return GO_ON;
    }
    if (patience->since == 0)
        patience->since = hvd__now_ns();
    idle = hvd__now_ns() - patience->since;
    if (may_spin && idle < SPIN_NS)
        return GO_ON;
    if (idle < yield_ns)
        return YIELD;
    patience->sleep_ns =
        patience->sleep_ns ? patience->sleep_ns * 5 / 4 : SLEEP_MIN_NS;
    if (patience->sleep_ns > SLEEP_MAX_NS)
        patience->sleep_ns = SLEEP_MAX_NS;
    return SLEEP;
}

/* ------------------------------------------------------------------ waiters */

/* With the role, and without the lock: until done, the limit, or a sleep. */
static void drive(struct hvd__world *world, bool (*done)(const void *),
                  const void *context, int64_t deadline,
                  struct patience *patience)
{
    while (!done(context)) {
        bool moved = hvd__world_step(world);

        switch (ask(patience, moved, world->progress.may_spin, YIELD_NS)) {
        case GO_ON: break;
        case YIELD: sched_yield(); break;
        case SLEEP: return;
        }
        if (deadline && hvd__now_ns() > deadline)
            return;
    }
}

bool hvd__progress_until(struct hvd__world *world,
                         bool (*done)(const void *context), const void *context,
                         int64_t limit_ns)
{
    struct hvd__progress *p = &world->progress;
    int64_t deadline = limit_ns ? hvd__now_ns() + limit_ns : 0;
    struct patience patience = {0};
    bool is_done;

    if (done(context))
        return true;
    pthread_mutex_lock(&p->lock);
    p->nwaiters++;
    while (!(is_done = done(context)) &&
           !(deadline && hvd__now_ns() > deadline)) {
        if (p->driving) {
            sleep_on(p, &p->changed, SLEEP_MAX_NS);
            continue;
        }
        p->driving = true;
        pthread_mutex_unlock(&p->lock);
        drive(world, done, context, deadline, &patience);
        pthread_mutex_lock(&p->lock);
        p->driving = false;
        if (p->nwaiters > 1)
            pthread_cond_broadcast(&p->changed);
        if (!done(context) && patience.sleep_ns)
            sleep_on(p, &p->changed, patience.sleep_ns);
    }
    p->nwaiters--;
    if (p->nwaiters == 0 && p->has_thread &&
        atomic_load(&world->ledger.busy) > 0)
        pthread_cond_signal(&p->work);
    pthread_mutex_unlock(&p->lock);
    return is_done;
}

void hvd__progress_once(struct hvd__world *world)
{
    struct hvd__progress *p = &world->progress;

    pthread_mutex_lock(&p->lock);
    if (!p->driving) {
        p->driving = true;
        pthread_mutex_unlock(&p->lock);
        /* Without a background thread nobody else goes on, not even with
         * what a callback submits. */
        while (hvd__world_step(world) && !p->has_thread)
            continue;
        pthread_mutex_lock(&p->lock);
        p->driving = false;
        if (p->nwaiters > 0)
            pthread_cond_broadcast(&p->changed);
    }
    pthread_mutex_unlock(&p->lock);
}

void hvd__progress_wake(struct hvd__world *world)
{
    struct hvd__progress *p = &world->progress;

    if (!p->has_thread) {
        hvd__progress_once(world);
        return;
    }
    pthread_mutex_lock(&p->lock);
    if (!p->driving)
        pthread_cond_signal(p->nwaiters > 0 ? &p->changed : &p->work);
    pthread_mutex_unlock(&p->lock);
}

/* -------------------------------------------------------- background thread */

static void *background(void *argument)
{
    struct hvd__world *world = argument;
    struct hvd__progress *p = &world->progress;
    struct patience patience = {0};
    bool pump = false;

    pthread_mutex_lock(&p->lock);
    while (!p->stop) {
        bool busy = atomic_load(&world->ledger.busy) > 0;
        enum advice advice = SLEEP;

        if (!p->driving && p->nwaiters == 0 && (busy || pump)) {
            bool moved;

            p->driving = true;
            pthread_mutex_unlock(&p->lock);
            moved = hvd__world_step(world);
            advice = ask(&patience, moved, false, YIELD_BACKGROUND_NS);
            if (advice == YIELD)
                sched_yield();
            pthread_mutex_lock(&p->lock);
            p->driving = false;
            if (p->nwaiters > 0)
                pthread_cond_broadcast(&p->changed);
            busy = atomic_load(&world->ledger.busy) > 0;
        }
        if (p->stop || (busy && advice != SLEEP && p->nwaiters == 0))
            continue;
        if (busy && p->nwaiters == 0) {
            sleep_on(p, &p->work,
                     patience.sleep_ns ? patience.sleep_ns : SLEEP_MIN_NS);
            continue;
        }
        patience = (struct patience){0};
        sleep_on(p, &p->work, IDLE_NS);
        pump = true;
    }
    pthread_mutex_unlock(&p->lock);
    return NULL;
}

int hvd__progress_init(struct hvd__progress *progress)
{
    pthread_condattr_t attributes;

    *progress = (struct hvd__progress){0};
    if (pthread_condattr_init(&attributes) != 0 ||
        pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC) != 0 ||
        pthread_mutex_init(&progress->lock, NULL) != 0 ||
        pthread_cond_init(&progress->changed, &attributes) != 0 ||
        pthread_cond_init(&progress->work, &attributes) != 0)
        return hvd__fail(HVD_ERR_MEMORY, "no memory for locks");
    pthread_condattr_destroy(&attributes);
    return HVD_OK;
}

void hvd__progress_tune(struct hvd__progress *progress, int local_size)
{
    cpu_set_t cpus;
    int ncpus = 1;

    CPU_ZERO(&cpus);
    if (sched_getaffinity(0, sizeof cpus, &cpus) == 0)
        ncpus = CPU_COUNT(&cpus);
    /* A rank that the launcher has bound to a core of its own sees one core;
     * so do ranks that share one. Without knowing which, be polite. */
    progress->may_spin = ncpus >= local_size;
}

void hvd__progress_fini(struct hvd__progress *progress)
{
    pthread_cond_destroy(&progress->work);
    pthread_cond_destroy(&progress->changed);
    pthread_mutex_destroy(&progress->lock);
}

int hvd__progress_start(struct hvd__world *world)
{
    struct hvd__progress *p = &world->progress;
    sigset_t all, before;
    int code;

    /* The program's signals are for the program's threads. */
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    code = pthread_create(&p->thread, NULL, background, world);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (code != 0)
        return hvd__fail(HVD_ERR_MEMORY, "no background thread: error %d",
                         code);
    pthread_setname_np(p->thread, "hvd-progress");
    p->has_thread = true;
    return HVD_OK;
}

void hvd__progress_stop(struct hvd__world *world)
{
    struct hvd__progress *p = &world->progress;

    if (!p->has_thread)
        return;
    pthread_mutex_lock(&p->lock);
    p->stop = true;
    pthread_cond_signal(&p->work);
    pthread_mutex_unlock(&p->lock);
    pthread_join(p->thread, NULL);
    p->has_thread = false;
}
