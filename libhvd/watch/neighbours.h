/* SPDX-License-Identifier: Apache-2.0 */
/*
 * neighbours.h - the state that the heartbeat files share: the hosts of a
 * world, the ranks on each, and the datagram that is being written or read.
 * heartbeat.c opens and judges, heartbeat_send.c sends, heartbeat_receive.c
 * receives.
 */
#ifndef HVD_WATCH_NEIGHBOURS_H
#define HVD_WATCH_NEIGHBOURS_H

#include "watch/datagram.h"
#include "watch/heartbeat.h"

/* A host of the world; the host of this rank is one, too. */
struct hvd__neighbour {
    char name[64];
    int first;        /* its lowest rank */
    bool is_linked;   /* all of its ranks have a socket and a watchdog */
    bool was_heard;   /* at least once */
    int refusals;     /* refused heartbeats in a row, nothing heard between */
    uint64_t refused; /* number of the last heartbeat it refused */
    int speaker;      /* the rank that was last heard */
    int64_t silent_ns;
    int32_t naddresses;
    uint32_t addresses[HVD__HEARTBEAT_ADDRESSES];
};

/* A rank of the world. */
struct hvd__heartbeat_rank {
    int port;
    uint64_t beats; /* the beats when time was last counted */
};

struct hvd__heartbeat {
    int fd; /* owned */
    int rank, nranks;
    int nhosts;
    struct hvd__neighbour *hosts;        /* owned, [nhosts] */
    int *host_of;                        /* owned, [nranks] */
    struct hvd__heartbeat_rank *members; /* owned, [nranks] */
    struct hvd__page *page;              /* borrowed; NULL: not started */
    uint64_t key[2];
    uint32_t world;
    uint64_t number; /* number of the last datagram */
    uint64_t nwords; /* heartbeats that this rank has sent for its host */
    int64_t age_ns;
    bool has_warned;
    struct hvd__datagram datagram; /* the one being written or read */
    struct hvd__in_flight flight;  /* scratch */
};

static inline struct hvd__line *hvd__heartbeat_line_of(
    const struct hvd__heartbeat *b, int rank)
{
    return &b->page->lines[rank];
}

static inline bool hvd__heartbeat_has_left(const struct hvd__heartbeat *b,
                                           int rank)
{
    return atomic_load(&hvd__heartbeat_line_of(b, rank)->state) ==
           HVD__LINE_LEFT;
}

static inline bool hvd__heartbeat_is_ours(const struct hvd__heartbeat *b,
                                          int rank)
{
    return b->host_of[rank] == b->host_of[b->rank];
}

/* Returns the rank of a host to send to; -1: all of its ranks have left. */
static inline int hvd__heartbeat_listener(const struct hvd__heartbeat *b,
                                          const struct hvd__neighbour *host)
{
    if (!hvd__heartbeat_has_left(b, host->speaker))
        return host->speaker;
    for (int rank = host->first; rank < b->nranks; rank++)
        if (&b->hosts[b->host_of[rank]] == host &&
            !hvd__heartbeat_has_left(b, rank))
            return rank;
    return -1;
}

/* Returns the address where a host was last heard; 0: never. */
static inline uint32_t hvd__heartbeat_address_of(
    const struct hvd__heartbeat *b, const struct hvd__neighbour *host)
{
    return atomic_load(&hvd__heartbeat_line_of(b, host->speaker)->address);
}

#endif
