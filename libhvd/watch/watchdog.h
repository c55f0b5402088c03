/* SPDX-License-Identifier: Apache-2.0 */
/*
 * watchdog.h - the thread, and all that it works with. For watch.c, which
 * makes it, and watchdog.c, which is it.
 */
#ifndef HVD_WATCH_WATCHDOG_H
#define HVD_WATCH_WATCHDOG_H

#include <poll.h>
#include <pthread.h>

#include "base/own_time.h"
#include "watch/heartbeat.h"
#include "watch/page.h"
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

struct hvd__watch {
    struct hvd__watch_options options;
    struct hvd__watch_subject subject;
    struct hvd__page *page; /* owned mapping */
    int page_fd;            /* while the ranks meet, of who made it, */
    struct hvd__segment_address page_at; /* ... and where others find it */
    struct hvd__heartbeat *heartbeat; /* owned; NULL: one host, or no network */
    _Atomic bool is_linked; /* publishes the heartbeat to the thread */
    struct hvd__line *mine;
    struct hvd__peer *peers; /* owned, [npeers]: the others of this host */
    int npeers;
    struct pollfd
        *polls; /* owned, [npeers + 2]: the last are stop, heartbeat */
    struct hvd__view *views;        /* owned, [nranks]; the thread's */
    struct hvd__in_flight *flights; /* owned, [nranks]; the thread's */
    struct hvd__in_flight flight;   /* ours */
    struct hvd__watch_request requests[HVD__PAGE_KEYS];
    int nrequests;
    int nranks, rank;
    int stop; /* owned eventfd */
    int64_t tick_ns;
    struct hvd__own_time time; /* of the thread's looks */
    int64_t reported_ns;       /* when it last reported stalls */
    int64_t spoken_ns;         /* when it last spoke for its host */
    int64_t detailed_ns;       /* and told of what is in flight */
    int64_t ended_ns;          /* 0: not yet */
    int ends_to_tell;          /* to other hosts, by this rank */
    pthread_t thread;
    bool has_thread;
};

/* The thread: argument is a struct hvd__watch. It ends when stop is
 * readable. */
void *hvd__watchdog_run(void *argument);

#endif
