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

/* GOODBYES is how often a rank that leaves says so. */
enum { GOODBYES = 4 };

/* Sends the datagram to a rank. near is its host, if that is a neighbour. */
static void deliver(const struct hvd__heartbeat *b,
                    const struct hvd__neighbour *near, int rank)
{
    const struct hvd__heartbeat_host *host =
        &b->hosts[b->places->host_of[rank]];
    struct hvd__ip last = {{0, 0}};
    const struct hvd__ip *addresses = host->addresses;
    int32_t n = host->naddresses;

    if (near)
        last = hvd__heartbeat_address_of(b, near);
    if (!hvd__ip_is_any(last)) {
        addresses = &last;
        n = 1;
    }
    for (int32_t i = 0; i < n; i++)
        hvd__socket_send(b->fd, addresses[i], b->ports[rank], b->datagram.bytes,
                         b->datagram.size);
}

void hvd__heartbeat_begin_datagram(struct hvd__heartbeat *b)
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
void hvd__heartbeat_send_datagram(struct hvd__heartbeat *b)
{
    if (b->datagram.size == HVD__DATAGRAM_HEAD)
        return;
    hvd__datagram_close(&b->datagram, b->key);
    if (b->answers_to >= 0) {
        deliver(b, hvd__heartbeat_neighbour_of(b, b->answers_to),
                b->answers_to);
        return;
    }
    for (int i = 0; i < b->nnear; i++) {
        int rank = hvd__heartbeat_listener(b, &b->near[i]);

        if (b->is_for_all)
            deliver_to_all(b, &b->near[i]);
        else if (rank >= 0)
            deliver(b, &b->near[i], rank);
    }
}

void hvd__heartbeat_write_item(struct hvd__heartbeat *b,
                               const struct hvd__datagram_item *item,
                               int64_t now)
{
    if (hvd__datagram_add(&b->datagram, item, now))
        return;
    hvd__heartbeat_send_datagram(b);
    hvd__heartbeat_begin_datagram(b);
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
    hvd__heartbeat_write_item(b, &item, now);
}

void hvd__heartbeat_send(struct hvd__heartbeat *b)
{
    int64_t now = hvd__now_ns();

    b->nwords++;
    hvd__heartbeat_begin_datagram(b);
    for (int rank = b->places->first[b->places->host]; rank >= 0;
         rank = b->places->next[rank]) {
        const struct hvd__line *line = hvd__heartbeat_line_of(b, rank);

        if (atomic_load(&line->state) == HVD__LINE_EMPTY)
            continue;
        write_news(b, rank, now);
    }
    hvd__heartbeat_send_datagram(b);
}

void hvd__heartbeat_send_goodbye(struct hvd__heartbeat *b)
{
    /* Nothing may repeat it later, and a lost goodbye looks like a death: it is
     * sent several times, with those of the ranks that have left before. The
     * rank that gets the heartbeats may be leaving, too, so others get it. */
    for (int i = 0; i < GOODBYES; i++) {
        b->is_for_all = i < GOODBYES / 2;
        hvd__heartbeat_begin_datagram(b);
        for (int rank = b->places->first[b->places->host]; rank >= 0;
             rank = b->places->next[rank])
            if (hvd__heartbeat_has_left(b, rank))
                write_news(b, rank, hvd__now_ns());
        hvd__heartbeat_send_datagram(b);
    }
    b->is_for_all = false;
}

void hvd__heartbeat_send_end(struct hvd__heartbeat *b,
                             const struct hvd__cause *cause)
{
    struct hvd__datagram_item item = {.kind = HVD__ITEM_END,
                                      .rank = cause->finder};

    item.end.status = cause->status;
    item.end.lost = cause->lost;
    item.end.reason = cause->reason;
    memcpy(item.end.text, cause->text, sizeof item.end.text);
    hvd__heartbeat_begin_datagram(b);
    hvd__datagram_add(&b->datagram, &item, hvd__now_ns());
    hvd__datagram_close(&b->datagram, b->key);
    for (int i = 0; i < b->nnear; i++)
        deliver_to_all(b, &b->near[i]);
}
