/* SPDX-License-Identifier: Apache-2.0 */
/*
 * guard.c - the guard's thread, its verdict and its limit; guard_peers.c judges
 * the ranks. core/world starts and stops the guard.
 *
 * The lock keeps the thread and callers apart; neither holds it while it waits.
 * status is stored once, in hvd__guard_conclude, after text (release); callers
 * load it in hvd__guard_verdict (acquire).
 */
#include "watch/guard.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/status.h"
#include "base/thread.h"
#include "watch/guard_peers.h"
#include "watch/process.h"

enum { EXIT_ENDED = 70 }; /* EX_SOFTWARE, as the watchdog's */
#define TICK_NS INT64_C(100000000)

/* The processes that called in the last hvd_init. MPI_Finalize needs them. */
static struct hvd__guard_peer
    *known; /* owned, [nknown], by rank in MPI's world */
static int nknown;
static struct hvd__guard *finalizing; /* the guard of MPI_Finalize */

/* -------------------------------------------------------------- a verdict */

static void end_process(const char *why)
{
    hvd__log(HVD__LOG_ERROR, "%s; ending this process with status %d", why,
             EXIT_ENDED);
    _exit(EXIT_ENDED);
}

/* Stores a verdict. is_heard is true if it came from a peer, which has sent it
 * to the others. */
void hvd__guard_conclude(struct hvd__guard *g, int status, const char *text,
                         bool is_heard)
{
    struct hvd__call end = {.kind = HVD__CALL_END, .status = status};
    char why[80];

    if (atomic_load(&g->status) < 0)
        return;
    snprintf(g->text, sizeof g->text, "%s", text);
    snprintf(end.text, sizeof end.text, "%s", text);
    if (!is_heard && g->stage != HVD__STAGE_FINALIZE)
        hvd__roll_call_all(&g->roll, &end);
    hvd__log(HVD__LOG_ERROR, "%s: %s", hvd_strerror(status), text);
    g->concluded_ns = 0;
    atomic_store_explicit(&g->status, status, memory_order_release);
    if (!hvd__stage_blocks(g->stage))
        return;
    snprintf(why, sizeof why, "%s cannot be left", hvd__stage_name(g->stage));
    end_process(why);
}

/* Lets the grace pass: this rank is in a call that looks at the verdict, or
 * should. */
static void wait_for_end(struct hvd__guard *g, int64_t passed)
{
    char why[1200];

    g->concluded_ns += passed;
    if (g->options.exit_grace_ns == 0 ||
        g->concluded_ns < g->options.exit_grace_ns)
        return;
    snprintf(why, sizeof why, "still in %s %.1f s later: %s",
             g->stage == HVD__STAGE_FINALIZE ? "MPI_Finalize" : "hvd_init",
             (double)g->concluded_ns * 1e-9, g->text);
    end_process(why);
}

/* -------------------------------------------------------------- the limit */

static bool is_report_due(struct hvd__guard *g)
{
    if (g->options.report_ns == 0 || g->reported_ns < g->options.report_ns)
        return false;
    g->reported_ns = 0;
    return true;
}

/* MPI_Finalize may take as long as any rank keeps running after hvd_shutdown:
 * the guard reports that and ends nothing. It reports nothing about a program's
 * own call, which may have returned. */
static void report_finalize(struct hvd__guard *g)
{
    char text[1024];
    struct hvd__text out = hvd__text_at(text, sizeof text);

    if (!g->is_last || !is_report_due(g) || !hvd__guard_peers_are_above(g))
        return;
    hvd__text_add(&out,
                  "MPI_Finalize, for which all processes of the job meet, has "
                  "taken %.0f s: ",
                  (double)g->spent_ns * 1e-9);
    hvd__guard_peers_add_absent(g, &out);
    hvd__log(HVD__LOG_WARNING, "%s", text);
}

static void look_at_time(struct hvd__guard *g, int64_t passed)
{
    char text[1024];
    struct hvd__text out = hvd__text_at(text, sizeof text);

    g->spent_ns += passed;
    g->reported_ns += passed;
    if (g->stage == HVD__STAGE_FINALIZE) {
        report_finalize(g);
        return;
    }
    hvd__text_add(&out, "hvd_init has taken %.0f s, now in %s",
                  (double)g->spent_ns * 1e-9, hvd__stage_name(g->stage));
    if (g->options.limit_ns > 0 && g->spent_ns >= g->options.limit_ns) {
        hvd__text_add(&out, " (HVD_START_TIME is %.3g s): ",
                      (double)g->options.limit_ns * 1e-9);
        hvd__guard_peers_add_missing(g, &out);
        hvd__guard_conclude(g, HVD_ERR_STALLED, text, false);
    } else if (is_report_due(g)) {
        hvd__text_add(&out, ": ");
        hvd__guard_peers_add_missing(g, &out);
        if (hvd__guard_peers_are_above(g))
            hvd__log(HVD__LOG_WARNING, "%s", text);
    }
}

/* -------------------------------------------------------------- the thread */

static int64_t time_passed(struct hvd__guard *g)
{
    int64_t now = hvd__now_ns();

    if (now - g->time.looked_ns < TICK_NS / 2)
        return 0; /* Woken up early: the counting can wait. */
    return hvd__own_time_pass(&g->time, now, 2 * TICK_NS);
}

/* Calls those again that are not in MPI_Finalize yet: a call was lost, or they
 * come late. */
static void call_again(const struct hvd__guard *g)
{
    struct hvd__call call = {.kind = HVD__CALL_HERE, .stage = (int)g->stage};

    for (int rank = 0; rank < g->roll.size; rank++)
        if (g->peers[rank].pid > 0 &&
            g->peers[rank].stage != HVD__STAGE_FINALIZE)
            hvd__roll_call(&g->roll, rank, &call);
}

/* Looks at everything once. Returns whether there is more to watch. */
static bool look(struct hvd__guard *g)
{
    int64_t passed = time_passed(g);
    bool is_waiting;

    hvd__guard_peers_hear(g);
    if (atomic_load(&g->status) < 0) {
        wait_for_end(g, passed);
        return true;
    }
    if (g->stage == HVD__STAGE_FINALIZE && passed > 0)
        call_again(g);
    is_waiting = hvd__guard_peers_look(g, passed);
    look_at_time(g, passed);
    return is_waiting || g->is_last || g->stage != HVD__STAGE_FINALIZE;
}

/* The pidfd of a process that is gone stays readable; such peers are looked at
 * once a tick instead. */
static int prepare_polls(struct hvd__guard *g)
{
    int n = 2;

    g->polls[0] = (struct pollfd){.fd = g->stop, .events = POLLIN};
    g->polls[1] = (struct pollfd){.fd = g->roll.fd, .events = POLLIN};
    for (int rank = 0; rank < g->roll.size; rank++)
        if (hvd__guard_peer_matters(g, rank) && g->peers[rank].over_ns == 0)
            g->polls[n++] =
                (struct pollfd){.fd = g->peers[rank].pidfd, .events = POLLIN};
    return n;
}

static void *run_guard(void *argument)
{
    struct hvd__guard *g = argument;
    bool goes_on = true;

    hvd__own_time_pass(&g->time, hvd__now_ns(), 2 * TICK_NS);
    while (goes_on) {
        int n;

        pthread_mutex_lock(&g->lock);
        n = prepare_polls(g);
        pthread_mutex_unlock(&g->lock);
        if (poll(g->polls, (nfds_t)n, (int)(TICK_NS / 1000000)) < 0 &&
            errno != EINTR)
            break;
        pthread_mutex_lock(&g->lock);
        goes_on = !g->polls[0].revents && look(g);
        pthread_mutex_unlock(&g->lock);
    }
    return NULL;
}

/* ------------------------------------------------------- beginning and end */

static void destroy(struct hvd__guard *g)
{
    for (int rank = 0; g->peers && rank < g->roll.size; rank++)
        if (g->peers[rank].pidfd >= 0)
            close(g->peers[rank].pidfd);
    if (g->stop >= 0)
        close(g->stop);
    hvd__roll_close(&g->roll);
    pthread_mutex_destroy(&g->lock);
    free(g->number_of);
    free(g->peers);
    free(g->polls);
    free(g);
}

static struct hvd__guard *create(const struct hvd__guard_options *options,
                                 enum hvd__stage stage)
{
    struct hvd__guard *g = calloc(1, sizeof *g);
    size_t n;

    if (!g)
        return NULL;
    pthread_mutex_init(&g->lock, NULL);
    g->options = *options;
    g->stage = stage;
    hvd__roll_open(&g->roll);
    gethostname(g->host, sizeof g->host - 1);
    g->stop = eventfd(0, EFD_CLOEXEC);
    n = (size_t)g->roll.size + 2;
    g->number_of = calloc(n, sizeof *g->number_of);
    g->peers = calloc(n, sizeof *g->peers);
    g->polls = calloc(n, sizeof *g->polls);
    for (int rank = 0; g->peers && rank < g->roll.size; rank++)
        g->peers[rank].pidfd = -1;
    if (g->stop >= 0 && g->number_of && g->peers && g->polls)
        return g;
    hvd__fail_memory(n * sizeof *g->peers);
    destroy(g);
    return NULL;
}

static struct hvd__guard *start_thread(struct hvd__guard *g)
{
    struct hvd__call call = {.kind = HVD__CALL_HERE, .stage = (int)g->stage};

    hvd__roll_call_all(&g->roll, &call);
    if (hvd__thread_start(&g->thread, "hvd-guard", run_guard, g) == HVD_OK)
        return g;
    destroy(g);
    return NULL;
}

struct hvd__guard *hvd__guard_start(const struct hvd__guard_options *options,
                                    enum hvd__stage stage)
{
    struct hvd__guard *g = create(options, stage);

    return g ? start_thread(g) : NULL;
}

void hvd__guard_set(struct hvd__guard *g,
                    const struct hvd__guard_options *options)
{
    if (!g)
        return;
    pthread_mutex_lock(&g->lock);
    g->options = *options;
    pthread_mutex_unlock(&g->lock);
}

void hvd__guard_enter(struct hvd__guard *g, enum hvd__stage stage)
{
    struct hvd__call call = {.kind = HVD__CALL_ANSWER, .stage = (int)stage};

    if (!g)
        return;
    pthread_mutex_lock(&g->lock);
    g->stage = stage;
    for (int rank = 0; rank < g->roll.size; rank++)
        if (g->peers[rank].is_here)
            hvd__roll_call(&g->roll, rank, &call);
    pthread_mutex_unlock(&g->lock);
}

void hvd__guard_choose(struct hvd__guard *g, const int *ranks, int n)
{
    if (!g)
        return;
    pthread_mutex_lock(&g->lock);
    g->is_chosen = true;
    for (int rank = 0; rank < g->roll.size; rank++)
        g->number_of[rank] = -1;
    for (int i = 0; i < n; i++)
        if (ranks[i] >= 0 && ranks[i] < g->roll.size)
            g->number_of[ranks[i]] = i;
    pthread_mutex_unlock(&g->lock);
}

void hvd__guard_hand_over(struct hvd__guard *g)
{
    if (!g)
        return;
    pthread_mutex_lock(&g->lock);
    g->is_watched = true;
    pthread_mutex_unlock(&g->lock);
}

int hvd__guard_verdict(const struct hvd__guard *g)
{
    int status =
        g ? atomic_load_explicit(&g->status, memory_order_acquire) : HVD_OK;

    return status < 0 ? hvd__fail_text(status, g->text) : HVD_OK;
}

static void join(struct hvd__guard *g)
{
    uint64_t one = 1;

    if (write(g->stop, &one, sizeof one) == sizeof one)
        pthread_join(g->thread, NULL);
}

/* Remembers the processes of the same world. */
static void remember(const struct hvd__guard *g)
{
    free(known);
    nknown = g->roll.size;
    known = calloc((size_t)nknown + 1, sizeof *known);
    for (int rank = 0; known && rank < nknown; rank++)
        if (g->peers[rank].is_here && hvd__number_of(g, rank) >= 0) {
            known[rank].pid = g->peers[rank].pid;
            known[rank].start = g->peers[rank].start;
            known[rank].number = hvd__number_of(g, rank);
        }
}

void hvd__guard_stop(struct hvd__guard *g, int status)
{
    struct hvd__call call = {.kind = HVD__CALL_LEFT, .status = status};

    if (!g)
        return;
    if (status < 0)
        snprintf(call.text, sizeof call.text, "%s", hvd_last_error());
    join(g);
    hvd__guard_peers_hear(g);
    hvd__roll_call_all(&g->roll, &call);
    remember(g);
    destroy(g);
}

/* ------------------------------------------------------------ MPI_Finalize */

static bool knows_anybody(void)
{
    for (int rank = 0; known && rank < nknown; rank++)
        if (known[rank].pid > 0)
            return true;
    return false;
}

void hvd__guard_watch_finalize(const struct hvd__guard_options *options,
                               const char *text, bool is_last)
{
    struct hvd__guard *g;

    if (finalizing || (!text && !knows_anybody() && !(is_last && nknown > 1)))
        return;
    g = create(options, HVD__STAGE_FINALIZE);
    if (!g)
        return;
    g->is_last = is_last;
    g->is_chosen = true;
    for (int rank = 0; known && rank < nknown && rank < g->roll.size; rank++)
        if (known[rank].pid > 0) {
            g->peers[rank] = known[rank];
            g->peers[rank].pidfd = -1;
            g->number_of[rank] = known[rank].number;
            g->peers[rank].is_here = true;
            g->peers[rank].stage = -1;
            if (hvd__process_start_time(known[rank].pid, NULL) ==
                known[rank].start)
                g->peers[rank].pidfd = hvd__process_open(known[rank].pid);
        }
    if (text) {
        snprintf(g->text, sizeof g->text, "%s", text);
        atomic_store(&g->status, HVD_ERR_LOST);
    }
    finalizing = start_thread(g);
}

void hvd__guard_leave_finalize(void)
{
    struct hvd__call call = {.kind = HVD__CALL_LEFT, .status = HVD_OK};
    struct hvd__guard *g = finalizing;

    if (!g)
        return;
    finalizing = NULL;
    join(g);
    hvd__guard_peers_hear(g);
    /* Only then has MPI_Finalize returned: another thread may exit while the
     * program's own call goes on. */
    if (g->is_last)
        hvd__roll_call_all(&g->roll, &call);
    destroy(g);
}
