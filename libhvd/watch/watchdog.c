/* SPDX-License-Identifier: Apache-2.0 */
/*
 * watchdog.c - the watchdog's thread, which watch.c starts and stops.
 *
 * Each rank has a line on its host's status page (page.h). The watchdog of a
 * rank wakes up a few times in every heartbeat period. It increments the beats
 * of its own line, publishes the requests that its rank has in flight, and
 * looks at the other ranks of its host. A rank can be
 *
 *     gone      the kernel reports at once, through a pidfd, that its process
 *               ended, and the rank has not said goodbye (HVD__LINE_LEFT)
 *     frozen    its beats have not moved for a whole heartbeat period, because
 *               it or its host is stopped or swapped out
 *     stalled   a request of this rank has waited too long for it
 *
 * Each host watches its own ranks, and heartbeats carry its findings to the
 * hosts that are its neighbours (heartbeat.h, places.h). The lowest rank of a
 * host that is neither gone nor silent sends them. If that rank freezes, the
 * next one takes over; if it dies, its peers end the world. Two ranks may send
 * at the same time without harm.
 *
 * Time is the watchdog's own (own_time.h). Between two looks it grows by the
 * time that passed, but by two ticks at most. Otherwise a process that was
 * stopped, together with the whole job or machine, would take the time in which
 * it could not listen for a silence of the others.
 *
 * A world ends as follows. A rank finds that another is gone or frozen, or that
 * a stall has lasted too long. It writes this on the page and tells the hosts
 * that are neighbours, where it is written on the page and passed on in the
 * same way. After a moment in which a cause that was found at the same time
 * elsewhere may come and replace it, all watchdogs read the cause on their page
 * and tell the core of their own rank, which fails every request. MPI is of no
 * help then, and the program may be stuck inside it. So if the process is still
 * there after a while, its watchdog ends it.
 *
 * The thread takes no lock that another thread holds for long, allocates
 * nothing once it runs, and never calls MPI.
 */
#include "watch/watchdog.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/status.h"
#include "watch/members.h"
#include "watch/process.h"

/* EXIT_ENDED is the exit status of a process that had to be ended:
 * EX_SOFTWARE. */
enum { EXIT_ENDED = 70 };

/* A host sends a heartbeat every TICKS_A_WORD ticks. */
enum { TICKS_A_WORD = 2 };
/* A rank reports the end to other hosts MOST_TOLD_ENDS times while its process
 * still exists. */
enum { MOST_TOLD_ENDS = 5 };

/* --------------------------------------------------------------------- ends */

int64_t hvd__watchdog_settle_ns(struct hvd__watch *w)
{
    return hvd__watchdog_is_linked(w) ? hvd__heartbeat_settle_ns(w->heartbeat)
                                      : 0;
}

/* Writes all that matters about a rank, as others see it. */
static void describe(struct hvd__watch *w, int rank, const char *how,
                     char *text, size_t size)
{
    struct hvd__line *line = hvd__watchdog_line_of(w, rank);
    struct hvd__doing doing;
    char last[160], host[64] = "";

    if (hvd__watchdog_is_linked(w))
        snprintf(host, sizeof host, "%s",
                 hvd__heartbeat_host(w->heartbeat, rank));
    else
        gethostname(host, sizeof host - 1);
    hvd__page_read_doing(line, &doing);
    snprintf(text, size,
             "rank %d (process %d on %s) %s; its last operation: "
             "%s",
             rank, (int)atomic_load(&line->pid), host, how,
             hvd__doing_print(&doing, hvd__now_ns(), last, sizeof last));
}

/* Puts a cause on the page and, if it is the best so far, tells the neighbours,
 * before this process can end. */
static void spread(struct hvd__watch *w, const struct hvd__cause *cause)
{
    if (!hvd__page_end(w->page, cause, hvd__now_ns(),
                       hvd__watchdog_settle_ns(w)) ||
        !hvd__watchdog_is_linked(w))
        return;
    hvd__heartbeat_send_end(w->heartbeat, cause);
    w->ends_to_tell = MOST_TOLD_ENDS - 1;
}

/* Tells the core the cause that counts, if there is one by now. */
static void conclude(struct hvd__watch *w)
{
    char own[HVD__PAGE_TEXT];

    if (w->ended_ns != 0 ||
        !hvd__page_has_ended(w->page, hvd__now_ns(), hvd__watchdog_settle_ns(w),
                             &w->cause))
        return;
    w->ended_ns = hvd__now_ns();
    /* The process may end as soon as the core knows. */
    if (w->ends_to_tell > 0)
        hvd__heartbeat_send_end(w->heartbeat, &w->cause);
    if (hvd__end_is_of(w->cause.text, w->places.rank)) {
        snprintf(own, sizeof own, HVD__GIVEN_UP "%.*s",
                 (int)(sizeof own - sizeof HVD__GIVEN_UP), w->cause.text);
        w->subject.end(w->subject.context, w->cause.status, own);
        return;
    }
    w->subject.end(w->subject.context, w->cause.status, w->cause.text);
}

void hvd__watchdog_end(struct hvd__watch *w, struct hvd__cause *cause)
{
    cause->finder = w->places.rank;
    if (hvd__page_is_ending(w->page))
        return;
    spread(w, cause);
    conclude(w);
}

/* Notes that a rank is lost, which ends the world unless it has ended. how says
 * it in words. */
static void lose_rank(struct hvd__watch *w, int rank, hvd_lost_reason reason,
                      const char *how)
{
    struct hvd__cause cause = {
        .status = HVD_ERR_LOST, .lost = rank, .reason = reason};
    int32_t none = 0;

    atomic_compare_exchange_strong(&hvd__watchdog_line_of(w, rank)->lost, &none,
                                   reason);
    describe(w, rank, how, cause.text, sizeof cause.text);
    hvd__watchdog_end(w, &cause);
}

static void end_process(const struct hvd__watch *w)
{
    char text[200];
    int n = snprintf(text, sizeof text,
                     "hvd: rank %d: error: still running %.1f s after the end "
                     "of the world; ending this process with status %d\n",
                     w->places.rank, (double)w->options.exit_grace_ns * 1e-9,
                     EXIT_ENDED);

    if (write(STDERR_FILENO, text, (size_t)n) < 0)
        _exit(EXIT_ENDED);
    _exit(EXIT_ENDED);
}

/* -------------------------------------------------------------------- peers */

static void lose(struct hvd__watch *w, struct hvd__peer *peer)
{
    char fate[96];

    peer->is_gone = true;
    if (hvd__watchdog_has_left(w, peer))
        return;
    hvd__process_fate(
        (int)atomic_load(&hvd__watchdog_line_of(w, peer->rank)->pid), fate,
        sizeof fate);
    lose_rank(w, peer->rank, HVD_LOST_ENDED, fate);
}

static void look_for_death(struct hvd__watch *w)
{
    for (int i = 0; i < w->npeers; i++) {
        struct hvd__peer *peer = &w->peers[i];
        const struct hvd__line *line = hvd__watchdog_line_of(w, peer->rank);

        if (peer->is_gone || atomic_load(&line->state) == HVD__LINE_EMPTY)
            continue;
        if (peer->pidfd >= 0
                ? w->polls[i].revents != 0
                : hvd__process_start_time((int)atomic_load(&line->pid), NULL) !=
                      atomic_load(&line->start_time))
            lose(w, peer);
    }
}

static void freeze(struct hvd__watch *w, const struct hvd__peer *peer)
{
    const struct hvd__line *line = hvd__watchdog_line_of(w, peer->rank);
    char how[120], state = '?';

    hvd__process_start_time((int)atomic_load(&line->pid), &state);
    snprintf(how, sizeof how, "%s: no heartbeat for %.1f s",
             state == 'T' || state == 't' ? "is stopped (by SIGSTOP, or a "
                                            "debugger)"
                                          : "is frozen",
             (double)peer->silent_ns * 1e-9);
    lose_rank(w, peer->rank, HVD_LOST_FROZEN, how);
}

static void look_for_silence(struct hvd__watch *w, int64_t passed)
{
    for (int i = 0; i < w->npeers; i++) {
        struct hvd__peer *peer = &w->peers[i];
        uint64_t beats =
            atomic_load(&hvd__watchdog_line_of(w, peer->rank)->beats);

        peer->silent_ns += passed;
        if (beats != peer->beats || peer->is_gone ||
            hvd__watchdog_has_left(w, peer))
            peer->silent_ns = 0;
        peer->beats = beats;
        if (w->options.heartbeat_ns > 0 &&
            peer->silent_ns >= w->options.heartbeat_ns)
            freeze(w, peer);
    }
}

/* -------------------------------------------------------------- other hosts */

static bool speaks_for_host(const struct hvd__watch *w)
{
    for (int i = 0; i < w->npeers; i++) {
        const struct hvd__peer *peer = &w->peers[i];

        if (peer->rank < w->places.rank && !peer->is_gone &&
            peer->silent_ns <= SILENT_TICKS * w->tick_ns &&
            atomic_load(&hvd__watchdog_line_of(w, peer->rank)->state) ==
                HVD__LINE_ALIVE)
            return false;
    }
    return true;
}

static void speak(struct hvd__watch *w, int64_t now)
{
    if (now - w->spoken_ns < TICKS_A_WORD * w->tick_ns &&
        !hvd__heartbeat_has_refusals(w->heartbeat))
        return;
    w->spoken_ns = now;
    for (int i = 0; i < w->npeers; i++)
        atomic_store(&hvd__watchdog_line_of(w, w->peers[i].rank)->silent_ns,
                     w->peers[i].silent_ns);
    hvd__heartbeat_send(w->heartbeat);
}

static void judge_hosts(struct hvd__watch *w)
{
    char how[HVD__PAGE_TEXT / 2];
    int rank;

    if (!hvd__heartbeat_has_lost(w->heartbeat, w->options.heartbeat_ns, &rank,
                                 how, sizeof how))
        return;
    lose_rank(w, rank, HVD_LOST_CUT_OFF, how);
}

static void hear(struct hvd__watch *w)
{
    struct hvd__cause cause;

    if (!hvd__watchdog_is_linked(w))
        return;
    while (hvd__heartbeat_receive(w->heartbeat, &cause))
        spread(w, &cause);
    if (!hvd__page_is_ending(w->page))
        judge_hosts(w);
}

static void look_at_hosts(struct hvd__watch *w, int64_t now, int64_t passed)
{
    char text[HVD__PAGE_TEXT];

    if (!hvd__watchdog_is_linked(w))
        return;
    hvd__heartbeat_advance(w->heartbeat, passed);
    judge_hosts(w);
    if (!speaks_for_host(w) || hvd__page_is_ending(w->page))
        return;
    speak(w, now);
    if (hvd__heartbeat_lacks_contact(w->heartbeat, text, sizeof text))
        hvd__log(HVD__LOG_WARNING, "%s", text);
}

/* ----------------------------------------------------------- publishing */

static void beat(struct hvd__watch *w)
{
    atomic_fetch_add(&w->mine->beats, 1);
}

static void publish(struct hvd__watch *w, int64_t now)
{
    struct hvd__in_flight *f = &w->flight;
    int32_t before = f->nkeys;

    w->nrequests =
        w->subject.requests(w->subject.context, w->requests, HVD__PAGE_KEYS);
    for (int i = 0; i < w->nrequests; i++)
        w->requests[i].since_ns =
            now - hvd__own_time_since(&w->time, w->requests[i].since_ns, now);
    f->nkeys = w->nrequests;
    f->nrequests =
        w->nrequests < HVD__PAGE_REQUESTS ? w->nrequests : HVD__PAGE_REQUESTS;
    for (int32_t i = 0; i < f->nkeys; i++)
        f->keys[i] = w->requests[i].key;
    memcpy(f->requests, w->requests,
           (size_t)f->nrequests * sizeof *f->requests);
    if (f->nkeys > 0 || before > 0)
        hvd__page_write_flight(
            hvd__page_flight(w->page, w->places.line_of[w->places.rank]), f);
    atomic_store(&w->mine->in_flight, f->nkeys);
    beat(w);
}

/* --------------------------------------------------------------- the thread */

/* Answers the members that recover already. */
static void tend(struct hvd__watch *w)
{
    struct hvd__cause cause = {.status = HVD_ERR_LOST, .lost = -1};

    if (w->options.members &&
        hvd__members_tend(w->options.members, cause.text, sizeof cause.text) &&
        w->ended_ns == 0)
        hvd__watchdog_end(w, &cause);
}

/* The world has ended and the process is still there: it may use up its
 * grace. */
static void look_at_grace(struct hvd__watch *w, int64_t now)
{
    hvd__own_time_pass(&w->time, now, 2 * w->tick_ns);
    if (w->options.exit_grace_ns > 0 &&
        hvd__own_time_since(&w->time, w->ended_ns, now) >=
            w->options.exit_grace_ns)
        end_process(w);
    if (w->ends_to_tell > 0) {
        hvd__heartbeat_send_end(w->heartbeat, &w->cause);
        w->ends_to_tell--;
    }
    beat(w);
    look_for_death(w); /* of others: hvd_lost_ranks names them, too */
}

static void say_goodbye(struct hvd__watch *w)
{
    if (hvd__watchdog_is_linked(w) && !hvd__page_is_ending(w->page))
        hvd__heartbeat_send_goodbye(w->heartbeat);
}

bool hvd__watchdog_look(struct hvd__watch *w)
{
    int64_t now = hvd__now_ns(), passed;

    if (w->polls[w->npeers].revents) {
        say_goodbye(w);
        return false;
    }
    tend(w);
    if (w->ended_ns != 0) {
        look_at_grace(w, now);
        return true;
    }
    hear(w);
    if (hvd__page_is_ending(w->page)) {
        conclude(w);
        return true;
    }
    look_for_death(w);
    if (now - w->time.looked_ns < w->tick_ns / 2)
        return true; /* The death of a process woke this thread early, so the
                        rest can wait. */
    passed = hvd__own_time_pass(&w->time, now, 2 * w->tick_ns);
    publish(w, now);
    look_for_silence(w, passed);
    look_at_hosts(w, now, passed);
    hvd__watchdog_look_for_stalls(w, now);
    return true;
}

/* The pidfd of a process that is gone stays readable, so it is not polled
 * again. */
int hvd__watchdog_prepare(struct hvd__watch *w)
{
    bool is_ending = hvd__page_is_ending(w->page);
    int64_t settle = hvd__watchdog_settle_ns(w) / 4, wait = w->tick_ns;

    for (int i = 0; i < w->npeers; i++)
        w->polls[i] =
            (struct pollfd){.fd = w->peers[i].is_gone ? -1 : w->peers[i].pidfd,
                            .events = POLLIN};
    w->polls[w->npeers] = (struct pollfd){.fd = w->stop, .events = POLLIN};
    w->polls[w->npeers + 1] =
        (struct pollfd){.fd = hvd__watchdog_is_linked(w) && w->ended_ns == 0
                                  ? hvd__heartbeat_fd(w->heartbeat)
                                  : -1,
                        .events = POLLIN};
    w->polls[w->npeers + 2] = (struct pollfd){
        .fd = w->options.members ? hvd__members_fd(w->options.members) : -1,
        .events = POLLIN};
    if (w->ended_ns == 0 && is_ending && settle < wait)
        wait = settle;
    return (int)(wait / 1000000);
}

void *hvd__watchdog_run(void *argument)
{
    struct hvd__watch *w = argument;

    do {
        int timeout = hvd__watchdog_prepare(w);

        if (poll(w->polls, (nfds_t)w->npeers + 3, timeout) < 0 &&
            errno != EINTR)
            return NULL;
    } while (hvd__watchdog_look(w));
    return NULL;
}
