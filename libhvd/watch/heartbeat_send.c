/* SPDX-License-Identifier: Apache-2.0 */
/*
 * heartbeat_send.c - sends datagrams to the neighbours.
 *
 *     host A                          host B
 *     rank 0 ──datagrams────────────► rank 2 ──┐ rank 2 writes lines 0 and 1
 *     rank 1    news of 0 and 1       rank 3   │ of B's page, and rank 3
 *                                       page ◄─┘ reads them there
 *
 * Heartbeats are datagrams, so a host that is frozen or has no network does not
 * hold up the sender. A lost datagram does no harm, because the next one says
 * the same. One rank of each host, its speaker, sends to every neighbour: at
 * most eight datagrams twice a second, or a few more if many ranks share a
 * host.
 *
 * The card of a host lists all its addresses. Until a host was heard from, a
 * datagram goes to all of them. Later it goes only to the address from which
 * the host was last heard. There it goes to the rank that spoke last or, if
 * that rank is gone, to the lowest rank that is still there.
 */
#include <string.h>

#include "base/clock.h"
#include "watch/neighbours.h"
#include "watch/socket.h"

/* MOST_REQUESTS is the number of requests of a rank that are sent in full. More
 * are not needed, because a stall names at most one similar request. */
enum { MOST_REQUESTS = 8 };
/* GOODBYES is how often a rank that leaves says so. */
enum { GOODBYES = 4 };

static void deliver(const struct hvd__heartbeat *b,
                    const struct hvd__neighbour *near, int rank)
{
    const struct hvd__heartbeat_host *host = &b->hosts[near->host];
    uint32_t known = hvd__heartbeat_address_of(b, near);
    const uint32_t *addresses = known ? &known : host->addresses;
    int32_t n = known ? 1 : host->naddresses;

    for (int32_t i = 0; i < n; i++)
        hvd__socket_send(b->fd, addresses[i], b->ports[rank], b->datagram.bytes,
                         b->datagram.size);
}

static void begin_datagram(struct hvd__heartbeat *b)
{
    hvd__datagram_begin(&b->datagram, b->world, b->places->rank, ++b->number);
}

static void deliver_to_all(const struct hvd__heartbeat *b,
                           const struct hvd__neighbour *near)
{
    for (int rank = b->places->first[near->host]; rank >= 0;
         rank = b->places->next[rank])
        if (!hvd__heartbeat_has_left(b, rank))
            deliver(b, near, rank);
}

/* Sends the datagram, if it has items, to each neighbour: to the rank that
 * listens, or to all. */
static void send_datagram(struct hvd__heartbeat *b)
{
    if (b->datagram.size == HVD__DATAGRAM_HEAD)
        return;
    hvd__datagram_close(&b->datagram, b->key);
    for (int i = 0; i < b->nnear; i++) {
        int rank = hvd__heartbeat_listener(b, &b->near[i]);

        if (b->is_for_all)
            deliver_to_all(b, &b->near[i]);
        else if (rank >= 0)
            deliver(b, &b->near[i], rank);
    }
}

static void write_item(struct hvd__heartbeat *b,
                       const struct hvd__datagram_item *item, int64_t now)
{
    if (hvd__datagram_add(&b->datagram, item, now))
        return;
    send_datagram(b);
    begin_datagram(b);
    hvd__datagram_add(&b->datagram, item, now);
}

static void write_news(struct hvd__heartbeat *b, int rank, int64_t now)
{
    struct hvd__line *line = hvd__heartbeat_line_of(b, rank);
    struct hvd__datagram_item item = {.kind = HVD__ITEM_NEWS, .rank = rank};

    item.news.has_left = hvd__heartbeat_has_left(b, rank);
    item.news.pid = atomic_load(&line->pid);
    item.news.in_flight = atomic_load(&line->in_flight);
    item.news.silent_ns = atomic_load(&line->silent_ns);
    hvd__page_read_doing(line, &item.news.doing);
    write_item(b, &item, now);
}

static void write_flight(struct hvd__heartbeat *b, int rank, int64_t now)
{
    struct hvd__in_flight *f = &b->flight;
    struct hvd__datagram_item item = {.rank = rank};
    int32_t nrequests;

    hvd__page_read_flight(hvd__heartbeat_line_of(b, rank), f);
    item.kind = HVD__ITEM_KEYS;
    for (int32_t first = 0; first < f->nkeys; first += HVD__DATAGRAM_KEYS) {
        int32_t left = f->nkeys - first;

        item.keys.total = f->nkeys;
        item.keys.first = first;
        item.keys.count = left < HVD__DATAGRAM_KEYS ? left : HVD__DATAGRAM_KEYS;
        memcpy(item.keys.keys, &f->keys[first],
               (size_t)item.keys.count * sizeof *f->keys);
        write_item(b, &item, now);
    }
    item.kind = HVD__ITEM_REQUEST;
    nrequests = f->nrequests < MOST_REQUESTS ? f->nrequests : MOST_REQUESTS;
    for (int32_t i = 0; i < nrequests; i++) {
        item.request.total = nrequests;
        item.request.index = i;
        item.request.is = f->requests[i];
        write_item(b, &item, now);
    }
}

void hvd__heartbeat_send(struct hvd__heartbeat *b, bool detail)
{
    int64_t now = hvd__now_ns();

    b->nwords++;
    begin_datagram(b);
    for (int rank = b->places->first[b->places->host]; rank >= 0;
         rank = b->places->next[rank]) {
        const struct hvd__line *line = hvd__heartbeat_line_of(b, rank);

        if (atomic_load(&line->state) == HVD__LINE_EMPTY)
            continue;
        write_news(b, rank, now);
        if (detail && atomic_load(&line->in_flight) > 0)
            write_flight(b, rank, now);
    }
    send_datagram(b);
}

void hvd__heartbeat_send_goodbye(struct hvd__heartbeat *b)
{
    /* Nothing may repeat it later, and a lost goodbye looks like a death: it is
     * sent several times, with those of the ranks that have left before. The
     * rank that gets the heartbeats may be leaving, too, so others get it. */
    for (int i = 0; i < GOODBYES; i++) {
        b->is_for_all = i < GOODBYES / 2;
        begin_datagram(b);
        for (int rank = b->places->first[b->places->host]; rank >= 0;
             rank = b->places->next[rank])
            if (hvd__heartbeat_has_left(b, rank))
                write_news(b, rank, hvd__now_ns());
        send_datagram(b);
    }
    b->is_for_all = false;
}

void hvd__heartbeat_send_end(struct hvd__heartbeat *b,
                             const struct hvd__cause *cause)
{
    struct hvd__datagram_item item = {.kind = HVD__ITEM_END,
                                      .rank = cause->finder};

    item.end.status = cause->status;
    memcpy(item.end.text, cause->text, sizeof item.end.text);
    begin_datagram(b);
    hvd__datagram_add(&b->datagram, &item, hvd__now_ns());
    hvd__datagram_close(&b->datagram, b->key);
    for (int i = 0; i < b->nnear; i++)
        deliver_to_all(b, &b->near[i]);
}
