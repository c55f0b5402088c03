/* SPDX-License-Identifier: Apache-2.0 */
/*
 * progress.c - chooses the thread that moves the engine: a waiting thread if
 * there is one, else the background thread.
 *
 * One thread at a time, the driver, moves the engine (agreement and lanes). A
 * thread that waits for a request takes the role of the driver if it is free,
 * and steps the engine until its own request is done. So hvd_wait returns
 * without another thread taking part after the data has arrived. If another
 * thread drives, the waiter sleeps until the role is free or its request is
 * done.
 *
 * The background thread takes the role when requests are in flight and no other
 * thread has driven for a moment. It does not disturb a program that submits
 * and waits in turn, and such a program need not wake it. When nothing has been
 * in flight for a while, the background thread sleeps. It then wakes up only
 * every IDLE_NS to poll MPI for messages, such as one that another rank has
 * left.
 *
 * A thread that submits a request only posts it where other ranks see it, if
 * nobody drives, under the lock of the request table that it holds anyway. It
 * completes nothing, so no callback runs inside hvd_submit.
 *
 * A driver that finds nothing to do waits in three stages. It spins if there
 * are enough cores for all ranks of the host; then it yields the core; then it
 * sleeps for longer and longer times, up to SLEEP_MAX_NS. The role is free
 * while it sleeps, so another thread that submits or waits can take it. The
 * background thread does not spin, because it would compete with the
 * computation of the program. Ranks that share cores yield for a short time
 * only: Linux (6.18) gives a session or control group whose processes yield to
 * each other all the time of a core, and those of others none, for seconds.
 *
 * If MPI allows no background thread, only the waits, polls and submissions of
 * the program move the engine. Over UCX there always is one; if it may not call
 * MPI, it leaves the meeting of the ranks at the end of the world to the thread
 * that ends it.
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
#define YIELD_CROWDED_NS INT64_C(50000)
#define SLEEP_MIN_NS INT64_C(20000)
#define SLEEP_MAX_NS INT64_C(500000)
#define IDLE_NS INT64_C(50000000)
#define STANDBY_NS INT64_C(50000)
#define STANDBY_MAX_NS INT64_C(1000000)
#define LINGER_NS INT64_C(2000000)
/* A waiter that last read the clock longer ago than this was not running. */
#define PASS_MAX_NS INT64_C(200000000)
/* The number of times that a waiter tries to take the role before it sleeps. */
enum { TRIES = 200 };

/* Sleeps on a condition. The caller holds the lock. */
static void sleep_on(struct hvd__progress *p, pthread_cond_t *condition,
                     int64_t ns)
{
    int64_t until = hvd__now_ns() + ns;
    struct timespec t = {.tv_sec = until / 1000000000,
                         .tv_nsec = until % 1000000000};

    pthread_cond_timedwait(condition, &p->lock, &t);
}

/* The time for which a driver has found nothing to do. */
struct patience {
    int64_t since; /* 0: something just happened */
    int64_t sleep_ns;
};

enum advice { GO_ON, YIELD, SLEEP };

static enum advice ask_patience(struct patience *patience, bool moved,
                                bool may_spin)
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
    if (idle < (may_spin ? YIELD_NS : YIELD_CROWDED_NS))
        return YIELD;
    patience->sleep_ns =
        patience->sleep_ns ? patience->sleep_ns * 5 / 4 : SLEEP_MIN_NS;
    if (patience->sleep_ns > SLEEP_MAX_NS)
        patience->sleep_ns = SLEEP_MAX_NS;
    return SLEEP;
}

/* ----------------------------------------------------------------- the role */

/* Takes the role under the lock of the request table: a thread that holds this
 * lock, and finds that nobody drives, may post what it submits. The load
 * acquires what the last driver did, up to its store in give_role. */
static bool take_role(struct hvd__world *world)
{
    struct hvd__progress *p = &world->progress;
    bool driving;

    hvd__mutex_lock(&world->engine.table.lock);
    driving = atomic_load(&p->driving);
    if (!driving)
        atomic_store_explicit(&p->driving, true, memory_order_relaxed);
    hvd__mutex_unlock(&world->engine.table.lock);
    return !driving;
}

/* Gives the role back. A waiter that has just failed to take it is already
 * counted in nwaiters and is woken; one that comes later finds the role free.
 * Both sides are sequentially consistent: the waiter increments nwaiters and
 * then loads driving. */
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
    return take_role(world);
}

void hvd__progress_give(struct hvd__world *world)
{
    world->progress.ndrives++;
    give_role(&world->progress);
}

/* Returns true if there is work even if this rank submits nothing more: others
 * may wait for a message that is only partly sent. */
static bool is_busy(const struct hvd__world *world)
{
    return hvd__table_busy(&world->engine.table) > 0 ||
           atomic_load_explicit(&world->engine.sending, memory_order_relaxed);
}

/* Wakes the background thread if it sleeps. It stores asleep and then looks
 * once more for work, under the lock of the request table (stand_by). A thread
 * that enters work loads asleep under that lock or later, so either the
 * background thread sees the work, or this thread sees asleep. */
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

/* The time for which a waiter may wait, counted in its own time (own_time.h).
 */
struct allowance {
    struct hvd__own_time time;
    int64_t limit_ns; /* 0: no limit */
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

/* Drives until done returns true, the limit is reached, or it is time to sleep.
 * The caller has the role but not the lock. */
static void drive_until(struct hvd__world *world, bool (*done)(const void *),
                        const void *context, struct allowance *allowance,
                        struct patience *patience)
{
    while (!done(context)) {
        bool moved = hvd__world_step(world);

        switch (ask_patience(patience, moved, world->progress.may_spin)) {
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
        bool drove = take_role(world);

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
    /* Another waiter may now take the role. */
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
    /* If there is no background thread, no other thread drives, not even for
     * requests that a callback submits. */
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
    if (take_role(world)) {
        hvd__world_post(world);
        give_role(p);
    }
    wake_background(p);
}

/* Posts or queues a submission that was entered. The caller holds the lock of
 * the request table, which this function releases. */
static void pass_on(struct hvd__world *world,
                    struct hvd__submission *submission)
{
    struct hvd__progress *p = &world->progress;
    bool may_post = p->has_thread && !atomic_load(&p->driving);
    bool posted = hvd__world_pass(world, submission, may_post);
    bool asleep = atomic_load(&p->asleep);

    hvd__mutex_unlock(&world->engine.table.lock);
    if (asleep || !posted)
        hvd__progress_wake(world);
}

int hvd__progress_submit(struct hvd__world *world,
                         struct hvd__submission *submission,
                         hvd_handle *handles)
{
    struct hvd__table *table = &world->engine.table;
    int status;

    hvd__mutex_lock(&table->lock);
    status = hvd__table_enter(table, submission, handles);
    if (status == HVD_OK)
        pass_on(world, submission);
    else
        hvd__mutex_unlock(&table->lock);
    return status;
}

bool hvd__progress_resubmit(struct hvd__world *world, const hvd_request *given,
                            const char *name, hvd_handle *handle)
{
    struct hvd__table *table = &world->engine.table;
    bool timed = hvd__trace_writer_listens(&world->engine.writer);
    struct hvd__submission *submission;

    hvd__mutex_lock(&table->lock);
    submission = hvd__table_reenter(table, given, name, timed, handle);
    if (submission)
        pass_on(world, submission);
    else
        hvd__mutex_unlock(&table->lock);
    return submission != NULL;
}

/* -------------------------------------------------------- background thread */

/* The state of the background thread while it has nothing to do or others
 * drive. It takes short naps and checks for work between them before it sleeps
 * for long. */
struct standby {
    uint64_t seen; /* last ndrives that it saw */
    int64_t slice_ns;
    int64_t idle_ns;
};

/* Steps the engine once if the role is free. */
static enum advice drive_once(struct hvd__world *world,
                              struct patience *patience)
{
    struct hvd__progress *p = &world->progress;
    enum advice advice;

    if (!take_role(world))
        return GO_ON;
    advice = ask_patience(patience, hvd__world_step(world), false);
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

/* Waits for a while because there is nothing to do or others drive. */
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
    hvd__mutex_lock(&world->engine.table.lock);
    atomic_store(&p->asleep, true);
    busy = is_busy(world);
    hvd__mutex_unlock(&world->engine.table.lock);
    if (!p->stop && !busy)
        sleep_on(p, &p->work, IDLE_NS);
    atomic_store(&p->asleep, false);
    pthread_mutex_unlock(&p->lock);
}

/* The calling thread is the background thread of a world. */
static _Thread_local bool is_background;

bool hvd__progress_is_own_thread(void)
{
    return is_background;
}

static void *run_background(void *argument)
{
    struct hvd__world *world = argument;
    struct hvd__progress *p = &world->progress;
    struct patience patience = {0};
    struct standby standby = {0};

    is_background = true;
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
            /* Messages may have come, perhaps one that says that a rank has
             * left. */
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
