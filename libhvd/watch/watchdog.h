/* SPDX-License-Identifier: Apache-2.0 */
/*
 * watchdog.h - the state of the watchdog, shared by watch.c, which makes it,
 * and watchdog.c, which runs it.
 */
#ifndef HVD_WATCH_WATCHDOG_H
#define HVD_WATCH_WATCHDOG_H

#include <poll.h>
#include <pthread.h>

#include "base/own_time.h"
#include "watch/heartbeat.h"
#include "watch/page.h"
#include "watch/places.h"
#include "watch/stall.h"
#include "watch/watch.h"

/* Another rank of this host. */
struct hvd__peer {
    int rank;
    int pidfd; /* owned; -1: the kernel has none */
    bool is_gone;
    uint64_t beats;
    int64_t silent_ns;
};

/* A peer without a beat for SILENT_TICKS counts as silent. */
enum { SILENT_TICKS = 8 };

struct hvd__watch {
    struct hvd__watch_options options;
    struct hvd__watch_subject subject;
    struct hvd__places places;
    struct hvd__page *page; /* owned mapping */
    int page_fd; /* only in the rank that made it, while ranks meet */
    struct hvd__segment_address page_at; /* address for the others */
    struct hvd__heartbeat *heartbeat; /* owned; NULL: one host, or no network */
    /* Stored in link_hosts (watch.c), loaded in is_linked (watchdog.c):
     * publishes heartbeat to the thread. */
    _Atomic bool is_linked;
    struct hvd__line *mine;
    struct hvd__peer *peers; /* owned, [nlocal - 1]: the others of this host */
    int npeers;
    struct pollfd *polls; /* owned, [npeers + 3]: peers, stop, heartbeat,
                             members */
    struct hvd__page_shape shape;   /* of the page */
    struct hvd__in_flight *flights; /* owned, [nlocal], by line; scratch */
    struct hvd__in_flight flight;   /* the requests of this rank */
    struct hvd__watch_request requests[HVD__PAGE_KEYS];
    int nrequests;
    int stop; /* owned eventfd */
    int64_t tick_ns;
    struct hvd__own_time time; /* the watchdog's own time */
    int64_t reported_ns;       /* when it last reported stalls */
    int64_t spoken_ns;         /* when it last sent a heartbeat for its host */
    int rounds;                /* how often it has asked about its requests */
    int64_t ended_ns;          /* 0: not yet */
    struct hvd__cause cause;   /* why, once it has ended */
    int ends_to_tell; /* how often this rank must still inform other hosts */
    pthread_t thread;
    bool has_thread;
};

/* Runs the watchdog; argument is a struct hvd__watch. Returns when stop is
 * readable. */
void *hvd__watchdog_run(void *argument);

/* The two halves of a turn, between which the thread sleeps. The first fills
 * polls and returns for how many milliseconds it may sleep at most. The second
 * looks at everything and acts; it returns false if the watchdog was stopped.
 */
int hvd__watchdog_prepare(struct hvd__watch *watch);
bool hvd__watchdog_look(struct hvd__watch *watch);

static inline bool hvd__watchdog_is_linked(struct hvd__watch *w)
{
    return atomic_load(&w->is_linked);
}

static inline struct hvd__line *hvd__watchdog_line_of(
    const struct hvd__watch *w, int rank)
{
    return &w->page->lines[w->places.line_of[rank]];
}

static inline bool hvd__watchdog_has_left(const struct hvd__watch *w,
                                          const struct hvd__peer *peer)
{
    return atomic_load(&hvd__watchdog_line_of(w, peer->rank)->state) ==
           HVD__LINE_LEFT;
}

/* Ends the world for a cause that this rank has found (watchdog.c), which has
 * no finder yet. A rank that knows a cause looks for no other. */
void hvd__watchdog_end(struct hvd__watch *watch, struct hvd__cause *cause);

/* Returns for how long a cause stands on the page before it counts. */
int64_t hvd__watchdog_settle_ns(struct hvd__watch *watch);

/* Reports requests that have waited for too long (watchdog_stalls.c). */
void hvd__watchdog_look_for_stalls(struct hvd__watch *watch, int64_t now_ns);

#endif
