/* SPDX-License-Identifier: Apache-2.0 */
/*
 * neighbours.h - the state that the heartbeat files share: how the hosts of a
 * world can be reached, what is known of this host's neighbours (places.h), and
 * the datagram that is being written or read. heartbeat.c opens and judges,
 * heartbeat_send.c sends, heartbeat_receive.c receives, heartbeat_ask.c asks
 * and answers.
 */
#ifndef HVD_WATCH_NEIGHBOURS_H
#define HVD_WATCH_NEIGHBOURS_H

#include "watch/datagram.h"
#include "watch/heartbeat.h"

/* A host of the world; the host of this rank is one, too. */
struct hvd__heartbeat_host {
    char name[64];
    bool is_linked; /* all of its ranks have a socket and a watchdog */
    int32_t naddresses;
    struct hvd__ip addresses[HVD__HEARTBEAT_ADDRESSES];
};

/* A host that this one and it watch each other. */
struct hvd__neighbour {
    int host;
    bool was_heard;   /* at least once */
    int refusals;     /* refused heartbeats in a row, nothing heard between */
    uint64_t refused; /* number of the last heartbeat it refused */
    int speaker;      /* the rank that was last heard */
    int64_t silent_ns;
};

enum {
    HVD__QUESTIONS = HVD__PAGE_KEYS / HVD__DATAGRAM_KEYS, /* at a time */
    HVD__DETAILS = 32,       /* ranks that are described */
    HVD__DETAIL_REQUESTS = 3 /* with so many requests each */
};

/* A detail says what a rank that lacks requests does instead. */
struct hvd__detail {
    int rank;
    enum hvd__view_state state;
    int64_t silent_ns;
    struct hvd__doing doing;
    int nrequests;
    struct hvd__watch_request requests[HVD__DETAIL_REQUESTS];
};

/* The last questions that were heard of a rank. */
struct hvd__heard {
    uint64_t round;
    uint32_t slots; /* a bit for each of the round */
};

/* What this rank asks and hears, and the questions of others
 * (heartbeat_ask.c). */
struct hvd__inquiry {
    /* Of the last question, from the highest bit: the cycle, from one naming of
     * requests to the next; the round in it, 8 bits; and 8 bits for which of
     * the questions of a round it is, 0 here. */
    uint64_t number;
    bool is_under_way;
    int n, found;
    uint64_t keys[HVD__PAGE_KEYS];
    int32_t sets[HVD__PAGE_KEYS];
    bool is_told[HVD__PAGE_KEYS]; /* a lower rank waits for it */
    uint64_t *lacks; /* owned, [HVD__QUESTIONS][nranks]: a bit for each key */
    struct hvd__detail details[HVD__DETAILS];
    int ndetails;
    struct hvd__heard *heard; /* owned, [nranks] */
};

struct hvd__heartbeat {
    int fd;                            /* owned */
    struct hvd__places *places;        /* borrowed */
    struct hvd__heartbeat_host *hosts; /* owned, [nhosts] */
    int *ports;                        /* owned, [nranks] */
    struct hvd__neighbour near[HVD__NEAR];
    int nnear;
    uint64_t *beats; /* owned, [lines]: those when time was last counted */
    struct hvd__page *page; /* borrowed; NULL: not started */
    uint64_t key[2];
    uint32_t world;
    uint64_t number; /* number of the last datagram */
    uint64_t nwords; /* heartbeats that this rank has sent for its host */
    int64_t age_ns;
    bool has_warned;
    bool is_for_all;               /* send to every rank of a neighbour */
    struct hvd__datagram datagram; /* the one being written or read */
    struct hvd__in_flight flight;  /* scratch */
    struct hvd__inquiry inquiry;
    const struct hvd__watch_subject *subject; /* borrowed */
    int64_t silent_limit_ns;
    int answers_to; /* the rank that gets the datagram; -1: the neighbours */
};

/* The rank has a line: it is on this host or on a neighbour. */
static inline struct hvd__line *hvd__heartbeat_line_of(
    const struct hvd__heartbeat *b, int rank)
{
    return &b->page->lines[b->places->line_of[rank]];
}

static inline bool hvd__heartbeat_has_left(const struct hvd__heartbeat *b,
                                           int rank)
{
    return atomic_load(&hvd__heartbeat_line_of(b, rank)->state) ==
           HVD__LINE_LEFT;
}

/* Returns the neighbour on which a rank is; NULL: it is on none. */
static inline struct hvd__neighbour *hvd__heartbeat_neighbour_of(
    struct hvd__heartbeat *b, int rank)
{
    for (int i = 0; i < b->nnear; i++)
        if (b->near[i].host == b->places->host_of[rank])
            return &b->near[i];
    return NULL;
}

/* Returns the rank of a neighbour to send to; -1: all of its ranks have
 * left. */
static inline int hvd__heartbeat_listener(const struct hvd__heartbeat *b,
                                          const struct hvd__neighbour *near)
{
    if (!hvd__heartbeat_has_left(b, near->speaker))
        return near->speaker;
    for (int rank = b->places->first[near->host]; rank >= 0;
         rank = b->places->next[rank])
        if (!hvd__heartbeat_has_left(b, rank))
            return rank;
    return -1;
}

/* Returns whether a neighbour that was heard has been silent for a while. */
static inline bool hvd__heartbeat_is_silent(const struct hvd__heartbeat *b,
                                            const struct hvd__neighbour *near)
{
    return near->was_heard && near->silent_ns > b->silent_limit_ns &&
           hvd__heartbeat_listener(b, near) >= 0;
}

/* Returns the address where a neighbour was last heard; "any": never. */
static inline struct hvd__ip hvd__heartbeat_address_of(
    const struct hvd__heartbeat *b, const struct hvd__neighbour *near)
{
    const struct hvd__line *line = hvd__heartbeat_line_of(b, near->speaker);

    return (struct hvd__ip){
        {atomic_load(&line->address[0]), atomic_load(&line->address[1])}};
}

/* Writing (heartbeat_send.c): a datagram goes out when it is full, and at the
 * end if it has items. */
void hvd__heartbeat_begin_datagram(struct hvd__heartbeat *heartbeat);
void hvd__heartbeat_write_item(struct hvd__heartbeat *heartbeat,
                               const struct hvd__datagram_item *item,
                               int64_t now_ns);
void hvd__heartbeat_send_datagram(struct hvd__heartbeat *heartbeat);

/* Asking (heartbeat_ask.c). Returns HVD_ERR_MEMORY on failure. */
int hvd__heartbeat_ask_open(struct hvd__heartbeat *heartbeat);
void hvd__heartbeat_ask_close(struct hvd__heartbeat *heartbeat);
/* Answers a question and passes it on; changes it. */
void hvd__heartbeat_answer(struct hvd__heartbeat *heartbeat,
                           struct hvd__datagram_item *question);
/* Takes in an item of an answer; ignores others. Its rank is in the world. */
void hvd__heartbeat_take_answer(struct hvd__heartbeat *heartbeat,
                                const struct hvd__datagram_item *item);

#endif
