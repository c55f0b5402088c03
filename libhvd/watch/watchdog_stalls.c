/* SPDX-License-Identifier: Apache-2.0 */
/*
 * watchdog_stalls.c - the part of the watchdog that reports requests which have
 * waited for long, and ends the world if HVD_STALL_SHUTDOWN_TIME is set.
 *
 * The lowest rank that waits reports for all that wait for the same. It sees on
 * the status page what the ranks of its host have in flight, and asks the other
 * hosts (heartbeat_ask.c) shortly before a request is due.
 */
#include <stdio.h>

#include "base/log.h"
#include "base/status.h"
#include "watch/watchdog.h"

/* A rank asks ROUNDS times about requests that have waited for long. */
enum { ROUNDS = 3 };

/* MOST_STALLS is the number of stalls that one report describes in full. */
enum { MOST_STALLS = 6 };

/* Reads what the ranks of this host have in flight. */
static void read_flights(struct hvd__watch *w)
{
    for (int i = 0; i < w->npeers; i++) {
        int line = w->places.line_of[w->peers[i].rank];
        struct hvd__in_flight *f = &w->flights[line];

        if (atomic_load(&w->page->lines[line].in_flight) > 0)
            hvd__page_read_flight(hvd__page_flight(w->page, line), f);
        else
            f->nkeys = f->nrequests = 0;
    }
    w->flights[w->places.line_of[w->places.rank]] = w->flight;
}

static const struct hvd__peer *peer_of(const struct hvd__watch *w, int rank)
{
    for (int i = 0; i < w->npeers; i++)
        if (w->peers[i].rank == rank)
            return &w->peers[i];
    return NULL;
}

static bool is_silent(const struct hvd__watch *w, const struct hvd__peer *peer)
{
    return peer->silent_ns > SILENT_TICKS * w->tick_ns;
}

static bool waits(void *context, int rank, uint64_t key)
{
    struct hvd__watch *w = context;
    const struct hvd__in_flight *f;

    if (!hvd__places_is_ours(&w->places, rank))
        return hvd__watchdog_is_linked(w) &&
               hvd__heartbeat_waits(w->heartbeat, rank, key);
    f = &w->flights[w->places.line_of[rank]];
    for (int32_t i = 0; i < f->nkeys; i++)
        if (f->keys[i] == key)
            return true;
    return false;
}

static void look_at_rank(void *context, int rank, struct hvd__view *v)
{
    struct hvd__watch *w = context;
    const struct hvd__peer *peer = peer_of(w, rank);
    const struct hvd__in_flight *f;

    *v = (struct hvd__view){.state = HVD__VIEW_ELSEWHERE};
    if (!hvd__places_is_ours(&w->places, rank)) {
        if (hvd__watchdog_is_linked(w))
            hvd__heartbeat_look(w->heartbeat, rank, v);
        return;
    }
    f = &w->flights[w->places.line_of[rank]];
    v->requests = f->requests;
    v->nrequests = f->nrequests;
    hvd__page_read_doing(hvd__watchdog_line_of(w, rank), &v->doing);
    v->state = HVD__VIEW_ALIVE;
    if (!peer)
        return;
    v->silent_ns = peer->silent_ns;
    v->state = hvd__watchdog_has_left(w, peer) ? HVD__VIEW_LEFT
               : is_silent(w, peer)            ? HVD__VIEW_SILENT
                                               : HVD__VIEW_ALIVE;
}

static bool is_member(void *context, int32_t set, int rank)
{
    struct hvd__watch *w = context;

    return w->subject.is_member(w->subject.context, set, rank);
}

static struct hvd__scene scene_of(struct hvd__watch *w)
{
    return (struct hvd__scene){.context = w,
                               .nranks = w->places.nranks,
                               .is_member = is_member,
                               .waits = waits,
                               .look = look_at_rank};
}

/* Returns whether this rank is the lowest of its host that waits for a request
 * and can report it. */
static bool is_lowest_here(struct hvd__watch *w, uint64_t key)
{
    for (int i = 0; i < w->npeers; i++)
        if (w->peers[i].rank < w->places.rank && !is_silent(w, &w->peers[i]) &&
            waits(w, w->peers[i].rank, key))
            return false;
    return true;
}

/* Returns whether this rank reports a request: the lowest of those that wait
 * for it speaks for all. */
static bool is_ours_to_tell(struct hvd__watch *w, uint64_t key)
{
    return is_lowest_here(w, key) &&
           !(hvd__watchdog_is_linked(w) &&
             hvd__heartbeat_is_told(w->heartbeat, key));
}

static bool is_due(const struct hvd__watch_request *request, int64_t now,
                   int64_t limit)
{
    return !request->decided && now - request->since_ns >= limit;
}

/* Returns whether a request has waited for a limit (0: none), but for ahead. */
static bool any_due(const struct hvd__watch *w, int64_t now, int64_t limit,
                    int64_t ahead)
{
    for (int i = 0; limit > 0 && i < w->nrequests; i++)
        if (is_due(&w->requests[i], now, limit - ahead))
            return true;
    return false;
}

/* Asks the other hosts about the requests that will be due soon, and about all
 * that have waited for half as long, so that a report can name them, too. */
static void ask(struct hvd__watch *w, int64_t now)
{
    int64_t check = w->options.stall_check_ns;
    int64_t shutdown = w->options.stall_shutdown_ns;
    int64_t limit =
        check == 0 || (shutdown > 0 && shutdown < check) ? shutdown : check;

    if (w->rounds++ == 0) {
        read_flights(w);
        hvd__heartbeat_ask_begin(w->heartbeat);
        for (int i = 0; i < w->nrequests; i++)
            if (is_due(&w->requests[i], now, limit / 2) &&
                is_lowest_here(w, w->requests[i].key))
                hvd__heartbeat_ask_about(w->heartbeat, w->requests[i].key,
                                         w->requests[i].set);
    }
    hvd__heartbeat_ask(w->heartbeat);
}

/* Reports the stalls, one line for all requests that wait for the same
 * ranks. */
static void report_stalls(struct hvd__watch *w, int64_t now)
{
    const struct hvd__scene scene = scene_of(w);
    struct hvd__stall stalls[MOST_STALLS];
    char text[HVD__PAGE_TEXT];
    int n = 0;

    for (int i = 0; i < w->nrequests; i++) {
        const struct hvd__watch_request *r = &w->requests[i];

        if (is_due(r, now, w->options.stall_check_ns) &&
            is_ours_to_tell(w, r->key))
            n = hvd__stall_add(stalls, n, MOST_STALLS, r,
                               hvd__stall_missing(&scene, r));
    }
    for (int i = 0; i < n; i++) {
        hvd__stall_print(&scene, stalls[i].oldest, now, text, sizeof text);
        hvd__log(HVD__LOG_WARNING, "stalled: %s",
                 hvd__stall_print_others(&stalls[i], text, sizeof text));
    }
}

/* Ends the world if a request has waited for the limit of a shutdown. Returns
 * whether it has. */
static bool end_stalled(struct hvd__watch *w, int64_t now)
{
    const struct hvd__scene scene = scene_of(w);
    struct hvd__cause cause = {.status = HVD_ERR_STALLED, .lost = -1};

    for (int i = 0; i < w->nrequests; i++) {
        const struct hvd__watch_request *r = &w->requests[i];

        if (!is_due(r, now, w->options.stall_shutdown_ns) ||
            !is_ours_to_tell(w, r->key))
            continue;
        hvd__stall_print(&scene, r, now, cause.text, sizeof cause.text);
        hvd__watchdog_end(w, &cause);
        return true;
    }
    return false;
}

/* A stall is told when a request is due; with several hosts this rank begins to
 * ask ROUNDS ticks before. */
void hvd__watchdog_look_for_stalls(struct hvd__watch *w, int64_t now)
{
    int64_t check = w->options.stall_check_ns;
    int64_t shutdown = w->options.stall_shutdown_ns;
    int64_t ahead = hvd__watchdog_is_linked(w) ? ROUNDS * w->tick_ns : 0;
    int64_t since = w->reported_ns == 0
                        ? INT64_MAX
                        : hvd__own_time_since(&w->time, w->reported_ns, now);
    bool is_soon = any_due(w, now, check, ahead) && since >= check - ahead;

    if (!is_soon && !any_due(w, now, shutdown, ahead)) {
        w->rounds = 0;
        return;
    }
    if (hvd__watchdog_is_linked(w) && w->rounds < ROUNDS) {
        ask(w, now);
        return;
    }
    read_flights(w);
    if (any_due(w, now, shutdown, 0)) {
        /* If a lower rank waits as well, this one asks again whether it still
         * does. */
        w->rounds = 0;
        if (end_stalled(w, now))
            return;
    }
    if (since < check || !any_due(w, now, check, 0))
        return;
    w->rounds = 0;
    w->reported_ns = now;
    report_stalls(w, now);
}
