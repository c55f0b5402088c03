/* SPDX-License-Identifier: Apache-2.0 */
/*
 * exchange_hosts.c - small blocks of equal size from each rank to each, over
 * several hosts: one message goes from each host to each other, with the blocks
 * of all ranks of the one for all ranks of the other.
 *
 *     copy     every rank copies its blocks into its buffers, those for the
 *              ranks of one host side by side
 *     send     for each other host, one rank of this host carries: it collects
 *              what all ranks of its host have for that host, and sends it to
 *              the carrier there
 *     receive  into the carrier's buffers
 *     fetch    every rank takes its blocks from the buffers of its host: those
 *              of the ranks of its host, and of the carriers
 *
 * Restrictions: the buffers and the scratch must hold all of it. Source: the
 * pairwise exchange of Thakur, Rabenseifner and Gropp (2005), between hosts.
 * Cost on h hosts of n ranks, m bytes a block: ⌈(h−1)/n⌉α + (h−1)nm β for a
 * rank's part of the network, and 3hnm copied.
 */
#include <string.h>

#include "base/status.h"
#include "transport/algo/cost.h"
#include "transport/algo/shared.h"
#include "transport/hosts.h"

/* Longer messages stall at times over TCP (docs/DECISIONS.md, "Few messages
 * where many hosts would send at once"). Blocks that would make one are large
 * enough to go by themselves. */
enum { MESSAGE_BYTES = 48 << 10 };

/* The phases. */
enum { NEW, COPIED, SENT, ARRIVED };

/* Returns the bytes of a message from one host to another. */
static size_t message_bytes(const struct hvd__collective *c, int a, int b)
{
    const struct hvd__hosts *h = c->team->hosts;

    return (size_t)hvd__hosts_size(h, a) * (size_t)hvd__hosts_size(h, b) *
           (size_t)c->count;
}

/* Returns the most hosts that a rank carries for. */
static size_t most_carried(const struct hvd__hosts *h)
{
    return ((size_t)h->n + (size_t)h->narrowest - 1) / (size_t)h->narrowest;
}

/* One half of the buffers is for what this rank sends, one for what it
 * receives. */
static size_t half_bytes(const struct hvd__shm *shm)
{
    return shm->bounce_bytes / 2 / 64 * 64;
}

static bool exchanges_over_hosts(const struct hvd__collective *c)
{
    const struct hvd__hosts *h = c->team->hosts;
    size_t widest, all, most;

    if (!h || h->widest == 1 || c->motion != HVD__EXCHANGE || c->count == 0)
        return false;
    widest = (size_t)h->widest;
    all = (size_t)c->team->size * (size_t)c->count;
    most = most_carried(h) * widest * widest * (size_t)c->count;
    return c->count <= MESSAGE_BYTES &&
           widest * widest * (size_t)c->count <= MESSAGE_BYTES &&
           all <= half_bytes(h->shm) && most <= half_bytes(h->shm) &&
           most <= HVD__SEGMENTS * c->workspace->segment_bytes &&
           2 * most_carried(h) <=
               HVD__SEGMENTS * (size_t)c->workspace->per_segment;
}

static int64_t cost(const struct hvd__collective *c)
{
    const struct hvd__hosts *h = c->team->hosts;
    int64_t far = c->team->size - h->narrowest;

    return hvd__cost_ns(
        c->team,
        (struct hvd__cost){.steps = 1,
                           .messages = (int64_t)most_carried(h),
                           .moved = hvd__cost_flows(c->team) * far * c->count,
                           .reduced = 3 * c->team->size * c->count,
                           .meetings = 2});
}

/* In each step of the doubling half of the blocks are sent, and twice as many
 * where a host takes part for another. Where hosts have one member, blocks for
 * the partners of the doubling go with its messages in any case, and the others
 * need not wait for it: but each of their messages takes time at both ends. */
bool hvd__exchange_goes_along(const struct hvd__team *team,
                              const struct hvd__hosts *h, int64_t block)
{
    struct hvd__pairing p = hvd__pairing_of(h->own, h->n);
    int64_t others = h->n - 1, pair = (int64_t)h->widest * h->widest * block;
    int64_t passed = ((int64_t)p.steps << p.steps) / 2;
    struct hvd__cost apart = {.steps = 1,
                              .messages = (int64_t)most_carried(h),
                              .moved = hvd__cost_at_once(others * pair, others),
                              .meetings = 2};

    if (p.extra > 0)
        passed = 2 * (passed + others);
    if (h->widest == 1) {
        apart.steps = apart.messages = others - (p.extra > 0 ? 0 : p.steps);
        apart.meetings = 0;
    }
    return hvd__cost_ns(team, (struct hvd__cost){.moved = passed * pair}) <=
           hvd__cost_ns(team, apart);
}

static int64_t total(const struct hvd__collective *c)
{
    (void)c;
    return 1;
}

static int start_segment(struct hvd__collective *c,
                         struct hvd__segment *segment)
{
    hvd__shared_open(c, segment, c->team->hosts->shm, 1, 64);
    return HVD_OK;
}

/* --------------------------------------------------------------- the places */

/* Returns where a rank of this host has its blocks for another host. */
static unsigned char *outgoing(const struct hvd__collective *c, int local,
                               int host)
{
    return hvd__shm_buffers(c->shared.shm, local) +
           (size_t)c->team->hosts->first[host] * (size_t)c->count;
}

/* Returns the local number of the rank that carries for a host. */
static int carrier_for(const struct hvd__collective *c, int host)
{
    return host % c->shared.shm->size;
}

/* Returns where the carrier for a host receives what comes from there. */
static unsigned char *incoming(const struct hvd__collective *c, int host)
{
    const struct hvd__hosts *h = c->team->hosts;
    int local = carrier_for(c, host);
    unsigned char *at =
        hvd__shm_buffers(c->shared.shm, local) + half_bytes(c->shared.shm);

    for (int before = local; before < host; before += c->shared.shm->size)
        at += before == h->own ? 0 : message_bytes(c, before, h->own);
    return at;
}

/* ---------------------------------------------------------------- the steps */

static void copy_blocks(struct hvd__collective *c)
{
    const struct hvd__hosts *h = c->team->hosts;
    int us = c->team->rank;

    for (int host = 0; host < h->n; host++) {
        unsigned char *to = outgoing(c, c->shared.shm->rank, host);

        for (int i = h->first[host]; i < h->first[host + 1]; i++) {
            memcpy(to, c->to[h->members[i]].data, (size_t)c->count);
            to += c->count;
        }
    }
    if (c->from[us].data != c->to[us].data)
        memcpy(c->from[us].data, c->to[us].data, (size_t)c->count);
}

/* Starts the transfers with the hosts that this rank carries for. All ranks of
 * this host have copied their blocks. */
static int exchange_messages(struct hvd__collective *c)
{
    const struct hvd__hosts *h = c->team->hosts;
    const struct hvd__shm *shm = c->shared.shm;
    struct hvd__transfer *transfer = c->workspace->transfers;
    unsigned char *out = c->workspace->scratch;

    memset(transfer, 0,
           HVD__SEGMENTS * (size_t)c->workspace->per_segment *
               sizeof *transfer);
    for (int host = shm->rank; host < h->n; host += shm->size) {
        int peer = hvd__hosts_carrier(h, host, h->own);
        size_t bytes = message_bytes(c, h->own, host);
        size_t each = bytes / (size_t)shm->size;

        if (host == h->own)
            continue;
        HVD_TRY(hvd__team_receive(c->team, peer, c->tag, incoming(c, host),
                                  bytes, transfer++));
        for (int i = 0; i < shm->size; i++)
            memcpy(out + (size_t)i * each, outgoing(c, i, host), each);
        HVD_TRY(hvd__team_send(c->team, peer, c->tag, out, bytes, transfer++));
        out += bytes;
    }
    return HVD_OK;
}

static void fetch_block(const struct hvd__collective *c, int from,
                        const unsigned char *at)
{
    memcpy(c->from[from].data, at, (size_t)c->count);
}

/* Takes this rank's blocks from the ranks of its host and from the messages of
 * the others, which all have come. */
static void fetch_blocks(const struct hvd__collective *c)
{
    const struct hvd__hosts *h = c->team->hosts;
    const struct hvd__shm *shm = c->shared.shm;
    size_t own = (size_t)shm->rank * (size_t)c->count;

    for (int host = 0; host < h->n; host++)
        for (int i = 0; i < hvd__hosts_size(h, host); i++) {
            int from = h->members[h->first[host] + i];
            size_t row = (size_t)i * (size_t)shm->size * (size_t)c->count;

            if (host != h->own)
                fetch_block(c, from, incoming(c, host) + row + own);
            else if (from != c->team->rank)
                fetch_block(c, from, outgoing(c, i, host) + own);
        }
}

/* Goes on to the next phase. Returns 1, or 0 if it has to wait. */
static int go_on(struct hvd__collective *c, struct hvd__segment *segment)
{
    struct hvd__shared *s = &c->shared;
    int done = 1;

    switch (segment->phase) {
    case NEW:
        if (!hvd__shm_may_begin(s->shm, s->round))
            return 0;
        copy_blocks(c);
        hvd__round_set(&s->shm->own->copied, s->round, 1);
        break;
    case COPIED:
        if (HVD__SHARED_LEAST(c, copied) < 1)
            return 0;
        HVD_TRY(exchange_messages(c));
        break;
    case SENT:
        done = hvd__transfers_done(c->team, c->workspace->transfers,
                                   2 * (int)most_carried(c->team->hosts));
        if (done > 0)
            hvd__round_set(&s->shm->own->combined, s->round, 1);
        break;
    default:
        if (HVD__SHARED_LEAST(c, combined) < 1)
            return 0;
        fetch_blocks(c);
        hvd__shm_finish(s->shm, s->round);
    }
    segment->phase += done > 0;
    return done;
}

static int step_segment(struct hvd__collective *c, struct hvd__segment *segment,
                        const struct hvd__segment *before)
{
    int done = 1;

    (void)before;
    while (done > 0 && segment->phase <= ARRIVED)
        done = go_on(c, segment);
    return done;
}

const struct hvd__algorithm hvd__exchange_hosts = {
    .name = "hosts",
    .description = "a message from each host to each, with the blocks of all "
                   "their ranks; small blocks of one size",
    .applies = exchanges_over_hosts,
    .cost = cost,
    .total = total,
    .start = start_segment,
    .step = step_segment,
};
