/* SPDX-License-Identifier: Apache-2.0 */
/*
 * heartbeat_receive.c - how datagrams from other hosts change the status page.
 *
 * A datagram counts if its MAC is right for the key of this world, which rank 0
 * drew and MPI carried, if it comes from a neighbour. News count if the
 * datagram's number is new, and are about ranks of the sender's own host; what
 * else it brings may come late or twice. Of other hosts only answers
 * count (heartbeat_ask.c). A filter in the kernel drops datagrams that are
 * obviously foreign before they fill the queue.
 */
#include <string.h>

#include "base/clock.h"
#include "watch/neighbours.h"
#include "watch/socket.h"

/* MOST_AT_ONCE is how many datagrams are taken in before the watchdog looks at
 * something else. */
enum { MOST_AT_ONCE = 256 };

/* Counts a refusal if it is of a datagram to a host's speaker, at the speaker's
 * known address. */
static void refuse(struct hvd__heartbeat *b, struct hvd__ip address, int port)
{
    for (int i = 0; i < b->nnear; i++) {
        struct hvd__neighbour *near = &b->near[i];

        if (near->was_heard && b->ports[near->speaker] == port &&
            hvd__ip_equal(hvd__heartbeat_address_of(b, near), address) &&
            near->refused != b->nwords) {
            near->refused = b->nwords;
            near->refusals++;
        }
    }
}

static void hear_refusals(struct hvd__heartbeat *b)
{
    struct hvd__ip address;
    int port;

    for (int i = 0; i < MOST_AT_ONCE; i++)
        if (hvd__socket_next_refusal(b->fd, &address, &port))
            refuse(b, address, port);
        else
            return;
}

/* Returns whether a datagram is newer than the last one: the numbers of a
 * sender grow. Several ranks of a host may receive datagrams of one sender. */
static bool is_new(struct hvd__line *line, uint64_t number)
{
    uint64_t last = atomic_load(&line->datagram);

    while (number > last)
        if (atomic_compare_exchange_weak(&line->datagram, &last, number))
            return true;
    return false;
}

static void note_address(struct hvd__line *line, struct hvd__ip address)
{
    for (int i = 0; i < 2; i++)
        atomic_store(&line->address[i], address.words[i]);
}

static void note_news(struct hvd__line *line,
                      const struct hvd__datagram_item *item)
{
    atomic_store(&line->pid, item->news.pid);
    atomic_store(&line->silent_ns, item->news.silent_ns);
    atomic_store(&line->in_flight, item->news.in_flight);
    hvd__page_write_doing(line, &item->news.doing);
    /* A rank that has left does not come back. */
    if (atomic_load(&line->state) != HVD__LINE_LEFT)
        atomic_store(&line->state,
                     item->news.has_left ? HVD__LINE_LEFT : HVD__LINE_ALIVE);
}

/* Handles the datagram that was just opened. Returns true if it reports the end
 * of the world. */
static bool take_datagram(struct hvd__heartbeat *b, struct hvd__ip address,
                          struct hvd__cause *cause)
{
    int from = b->datagram.from, nranks = b->places->nranks;
    int64_t now = hvd__now_ns();
    struct hvd__datagram_item item, question = {.rank = -1};
    struct hvd__neighbour *near;
    bool is_late;

    if (from < 0 || from >= nranks || hvd__places_is_ours(b->places, from))
        return false;
    near = hvd__heartbeat_neighbour_of(b, from);
    is_late =
        near && !is_new(hvd__heartbeat_line_of(b, from), b->datagram.number);
    if (near && !is_late) {
        note_address(hvd__heartbeat_line_of(b, from), address);
        near->refusals = 0;
    }
    while (hvd__datagram_next(&b->datagram, &item, now)) {
        if (item.rank < 0 || item.rank >= nranks)
            break;
        if (near && item.kind == HVD__ITEM_END) {
            cause->finder = item.rank;
            cause->status = item.end.status;
            cause->lost = item.end.lost;
            cause->reason = item.end.reason;
            memcpy(cause->text, item.end.text, sizeof cause->text);
            return true;
        }
        if (item.kind == HVD__ITEM_NEWS) {
            if (!near || b->places->host_of[item.rank] != near->host)
                break;
            if (!is_late)
                note_news(hvd__heartbeat_line_of(b, item.rank), &item);
        } else if (near && item.kind == HVD__ITEM_ASK) {
            question = item;
        } else if (!hvd__places_is_ours(b->places, item.rank)) {
            hvd__heartbeat_take_answer(b, &item);
        }
    }
    if (near && !is_late)
        atomic_fetch_add(&hvd__heartbeat_line_of(b, from)->beats, 1);
    if (question.rank >= 0)
        hvd__heartbeat_answer(b, &question);
    return false;
}

bool hvd__heartbeat_receive(struct hvd__heartbeat *b, struct hvd__cause *cause)
{
    hear_refusals(b);
    for (int i = 0; i < MOST_AT_ONCE; i++) {
        struct hvd__ip address;
        int bytes = hvd__socket_receive(b->fd, b->datagram.bytes,
                                        sizeof b->datagram.bytes, &address);

        if (bytes < 0)
            return false;
        if (hvd__datagram_open(&b->datagram, (size_t)bytes, b->world, b->key) &&
            take_datagram(b, address, cause))
            return true;
    }
    return false;
}
