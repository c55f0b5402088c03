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
 * While requests are in flight and nobody else has driven for a moment, the
 * background thread has the role: a program that submits and waits by turns
 * is not disturbed by it, and need not wake it. When nothing has been in
 * flight for a while it sleeps, waking up only every IDLE_NS, for the sake of
 * MPI: ranks may be sending us messages, and one of those may be that another
 * rank has left.
 *
 * A thread that submits posts what it submits where other ranks see it, but
 * completes nothing: no callback is called in the middle of hvd_submit.
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
#include "core/world/progress.h"

#include <sched.h>
#include <stdatomic.h>
#include <time.h>

#include "base/clock.h"
#include "base/own_time.h"
#include "base/status.h"
#include "base/thread.h"
#include "core/world/world.h"

#define SPIN_NS INT64_C(20000)
#define YIELD_NS INT64_C(2000000)
#define YIELD_BACKGROUND_NS INT64_C(50000)
#define SLEEP_MIN_NS INT64_C(20000)
#define SLEEP_MAX_NS INT64_C(500000)
#define IDLE_NS INT64_C(50000000)
#define STANDBY_NS INT64_C(50000)
#define STANDBY_MAX_NS INT64_C(1000000)
#define LINGER_NS INT64_C(2000000)
/* A waiter that looked at the clock longer ago than this was not running. */
#define PASS_MAX_NS INT64_C(200000000)
/* A waiter tries so often to get the role before it sleeps. */
enum { TRIES = 200 };

/* Sleep on a condition; the lock is held. */
static void sleep_on(struct hvd__progress *p, pthread_cond_t *condition,
                     int64_t ns)
{
    int64_t until = hvd__now_ns() + ns;
    struct timespec t = {.tv_sec = until / 1000000000,
                         .tv_nsec = until % 1000000000};

    pthread_cond_timedwait(condition, &p->lock, &t);
}

/* How long a driver has found nothing to do. */
struct patience {
    int64_t since; /* 0: something just happened */
    int64_t sleep_ns;
};

enum advice { GO_ON, YIELD, SLEEP };

static enum advice ask_patience(struct patience *patience, bool moved,
                                bool may_spin, int64_t yield_ns)
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

/* ----------------------------------------------------------------- the role
 */

/* Takes the role without the lock, for this happens often and seldom has to
 * wait. The exchange acquires what the last driver did, up to its store in
 * give. */
static bool take_role(struct hvd__progress *p)
{
    bool nobody = false;

    return atomic_compare_exchange_strong(&p->driving, &nobody, true);
}

/* Gives the role back. A waiter that has just failed to take it is counted in
 * nwaiters by now, and is woken; one that comes later finds the role free. Both
 * sides are sequentially consistent: the waiter increments nwaiters and then
 * loads driving. */
static void give_role(struct hvd__progress *p)
{
    atomic_store(&p->driving, false);
    if (atomic_load(&p->nwaiters) == 0)
        return;
    pthread_mutex_lock(&p->lock);
    pthread_cond_broadcast(&p->changed);
    pthread_mutex_unlock(&p->lock);
}

bool hvd__progress_take(struct hvd__world *world)
{
    return take_role(&world->progress);
}

void hvd__progress_give(struct hvd__world *world)
{
    world->progress.ndrives++;
    give_role(&world->progress);
}

/* Returns true if there is something to do before this rank submits again:
 * others may wait for a message of which only a part is sent. */
static bool is_busy(const struct hvd__world *world)
{
    return hvd__table_busy(&world->engine.table) > 0 ||
           atomic_load_explicit(&world->engine.sending, memory_order_relaxed);
}

/* Wakes the background thread if it sleeps. It stores asleep and then looks
 * once more for work (stand_by), so either it sees the work or we see asleep:
 * both are sequentially consistent. */
static void wake_background(struct hvd__progress *p)
{
    if (!atomic_load(&p->asleep))
        return;
    pthread_mutex_lock(&p->lock);
    atomic_store(&p->asleep, false);
    pthread_cond_signal(&p->work);
    pthread_mutex_unlock(&p->lock);
}

/* ------------------------------------------------------------------ waiters */

/* How long a waiter may wait, counted in its own time (own_time.h). */
struct allowance {
    struct hvd__own_time time;
    int64_t limit_ns; /* 0: for ever */
    int64_t spent_ns;
};

static bool is_spent(struct allowance *allowance)
{
    if (allowance->limit_ns == 0)
        return false;
    allowance->spent_ns +=
        hvd__own_time_pass(&allowance->time, hvd__now_ns(), PASS_MAX_NS);
    return allowance->spent_ns > allowance->limit_ns;
}

/* Drives, with the role and without the lock, until done, the limit, or a
 * sleep. */
static void drive_until(struct hvd__world *world, bool (*done)(const void *),
                        const void *context, struct allowance *allowance,
                        struct patience *patience)
{
    while (!done(context)) {
        bool moved = hvd__world_step(world);

        switch (
            ask_patience(patience, moved, world->progress.may_spin, YIELD_NS)) {
        case GO_ON: break;
        case YIELD: sched_yield(); break;
        case SLEEP: return;
        }
        if (is_spent(allowance))
            return;
    }
}

bool hvd__progress_until(struct hvd__world *world,
                         bool (*done)(const void *context), const void *context,
                         int64_t limit_ns)
{
    struct hvd__progress *p = &world->progress;
    struct allowance allowance = {.limit_ns = limit_ns};
    struct patience patience = {0};
    bool is_done;
    int tries = 0;

    if (done(context))
        return true;
    p->nwaiters++;
    while (!(is_done = done(context)) && !is_spent(&allowance)) {
        bool drove = take_role(p);

        if (drove) {
            drive_until(world, done, context, &allowance, &patience);
            atomic_store(&p->driving, false);
            p->ndrives++;
            if (done(context) || !patience.sleep_ns)
                continue;
        } else if (tries++ < TRIES) {
            if (!p->may_spin)
                sched_yield();
            continue;
        }
        pthread_mutex_lock(&p->lock);
        if (drove || atomic_load(&p->driving))
            sleep_on(p, &p->changed, drove ? patience.sleep_ns : SLEEP_MAX_NS);
        pthread_mutex_unlock(&p->lock);
    }
    /* The others may go on. */
    if (--p->nwaiters > 0) {
        pthread_mutex_lock(&p->lock);
        pthread_cond_broadcast(&p->changed);
        pthread_mutex_unlock(&p->lock);
    } else if (p->has_thread && is_busy(world)) {
        wake_background(p);
    }
    return is_done;
}

void hvd__progress_once(struct hvd__world *world)
{
    if (!hvd__progress_take(world))
        return;
    /* Without a background thread nobody else drives, not even for what a
     * callback submits. */
    while (hvd__world_step(world) && !world->progress.has_thread)
        continue;
    hvd__progress_give(world);
}

void hvd__progress_wake(struct hvd__world *world)
{
    struct hvd__progress *p = &world->progress;

    if (!p->has_thread) {
        hvd__progress_once(world);
        return;
    }
    if (take_role(p)) {
        hvd__world_post(world, NULL);
        give_role(p);
    }
    wake_background(p);
}

/* Goes on after a submission. drives: with the role, which is given back;
 * direct: the submission is not in the queue. */
static int go_on_submitted(struct hvd__world *world,
                           struct hvd__submission *submission, int status,
                           bool drives, bool direct)
{
    struct hvd__progress *p = &world->progress;

    if (drives && status == HVD_OK)
        hvd__world_post(world, direct ? submission : NULL);
    if (drives)
        give_role(p);
    else /* orders the entry before the load of asleep */
        atomic_thread_fence(memory_order_seq_cst);
    if (status == HVD_OK && !p->has_thread)
        hvd__progress_once(world);
    else if (status == HVD_OK)
        wake_background(p);
    return status;
}

int hvd__progress_submit(struct hvd__world *world,
                         struct hvd__submission *submission,
                         hvd_handle *handles)
{
    struct hvd__progress *p = &world->progress;
    bool drives = p->has_thread && take_role(p), direct = drives;
    int status =
        hvd__table_submit(&world->engine.table, submission, handles, &direct);

    return go_on_submitted(world, submission, status, drives, direct);
}

int hvd__progress_resubmit(struct hvd__world *world,
                           struct hvd__resubmission *resubmission)
{
    struct hvd__progress *p = &world->progress;
    bool drives = p->has_thread && take_role(p), direct = drives;
    int status =
        hvd__table_resubmit(&world->engine.table, resubmission, &direct);

    if (resubmission->submission)
        return go_on_submitted(world, resubmission->submission, status, drives,
                               direct);
    if (drives)
        give_role(p);
    return HVD_OK;
}

/* -------------------------------------------------------- background thread */

/* The background thread stays away from its sleep for a while when there is
 * nothing to do, and looks from time to time, also while others drive. */
struct standby {
    uint64_t seen; /* drives of others */
    int64_t slice_ns;
    int64_t idle_ns;
};

/* Steps the engine once, if nobody else does. */
static enum advice drive_once(struct hvd__world *world,
                              struct patience *patience)
{
    struct hvd__progress *p = &world->progress;
    enum advice advice;

    if (!take_role(p))
        return GO_ON;
    advice = ask_patience(patience, hvd__world_step(world), false,
                          YIELD_BACKGROUND_NS);
    give_role(p);
    if (advice == YIELD)
        sched_yield();
    return advice;
}

static void nap_background(struct hvd__progress *p, int64_t ns)
{
    pthread_mutex_lock(&p->lock);
    if (!p->stop)
        sleep_on(p, &p->work, ns);
    pthread_mutex_unlock(&p->lock);
}

/* Waits while there is nothing to do, or others do it. */
static void stand_by(struct hvd__world *world, struct standby *standby,
                     bool busy)
{
    struct hvd__progress *p = &world->progress;

    if (standby->slice_ns < STANDBY_MAX_NS)
        standby->slice_ns =
            standby->slice_ns ? 2 * standby->slice_ns : STANDBY_NS;
    standby->seen = p->ndrives;
    if (busy || standby->idle_ns < LINGER_NS) {
        standby->idle_ns += busy ? 0 : standby->slice_ns;
        nap_background(p, standby->slice_ns);
        return;
    }
    pthread_mutex_lock(&p->lock);
    atomic_store(&p->asleep, true);
    if (!p->stop && !is_busy(world))
        sleep_on(p, &p->work, IDLE_NS);
    atomic_store(&p->asleep, false);
    pthread_mutex_unlock(&p->lock);
}

static void *run_background(void *argument)
{
    struct hvd__world *world = argument;
    struct hvd__progress *p = &world->progress;
    struct patience patience = {0};
    struct standby standby = {0};

    while (!atomic_load(&p->stop)) {
        bool busy = is_busy(world);

        if (busy || p->ndrives != standby.seen)
            standby.idle_ns = 0;
        if (p->driving || p->nwaiters > 0 || p->ndrives != standby.seen) {
            stand_by(world, &standby, busy);
            patience = (struct patience){0};
        } else if (busy) {
            standby.slice_ns = 0;
            if (drive_once(world, &patience) == SLEEP && p->nwaiters == 0)
                nap_background(p, patience.sleep_ns);
        } else {
            /* Messages may have come: one may be that a rank has left. */
            drive_once(world, &patience);
            stand_by(world, &standby, false);
        }
    }
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

void hvd__progress_fini(struct hvd__progress *progress)
{
    pthread_cond_destroy(&progress->work);
    pthread_cond_destroy(&progress->changed);
    pthread_mutex_destroy(&progress->lock);
}

int hvd__progress_start(struct hvd__world *world)
{
    struct hvd__progress *p = &world->progress;

    HVD_TRY(
        hvd__thread_start(&p->thread, "hvd-progress", run_background, world));
    p->has_thread = true;
    return HVD_OK;
}

void hvd__progress_stop(struct hvd__world *world)
{
    struct hvd__progress *p = &world->progress;

    if (!p->has_thread)
        return;
    pthread_mutex_lock(&p->lock);
    atomic_store(&p->stop, true);
    pthread_cond_signal(&p->work);
    pthread_mutex_unlock(&p->lock);
    pthread_join(p->thread, NULL);
    p->has_thread = false;
}
