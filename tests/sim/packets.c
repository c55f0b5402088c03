/* SPDX-License-Identifier: Apache-2.0 */
/* packets.c - packets under way: when they arrive, and what they find there. */
#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "network.h"

/* ------------------------------------------------------ the queue of events */

static bool is_before(const struct packet *a, const struct packet *b)
{
    return a->time != b->time ? a->time < b->time : a->number < b->number;
}

void sim_packet_queue(struct sim_network *network, struct packet *packet)
{
    int i = network->nqueued++;

    if (network->nqueued > network->capacity) {
        network->capacity = 2 * network->capacity + 64;
        network->queue = realloc(network->queue, (size_t)network->capacity *
                                                     sizeof(struct packet *));
        if (!network->queue)
            abort();
    }
    for (; i > 0 && is_before(packet, network->queue[(i - 1) / 2]);
         i = (i - 1) / 2)
        network->queue[i] = network->queue[(i - 1) / 2];
    network->queue[i] = packet;
}

static struct packet *dequeue(struct sim_network *network)
{
    struct packet *first = network->queue[0];
    struct packet *last = network->queue[--network->nqueued];
    int i = 0;

    for (;;) {
        int child = 2 * i + 1;

        if (child + 1 < network->nqueued &&
            is_before(network->queue[child + 1], network->queue[child]))
            child++;
        if (child >= network->nqueued ||
            !is_before(network->queue[child], last))
            break;
        network->queue[i] = network->queue[child];
        i = child;
    }
    network->queue[i] = last;
    return first;
}

/* --------------------------------------------------------------------- time */

static int64_t later(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

/* Returns a random delay: mostly around the mean, seldom much longer. */
static int64_t vary(struct sim_network *network, int64_t mean)
{
    struct sim_random *random = &network->random;
    int64_t delay = mean / 2 + sim_below(random, (int)mean + 1);

    if (network->costs.has_stragglers && sim_once_in(random, 50))
        delay += mean * sim_below(random, 100);
    return delay;
}

/* Returns when a packet that is sent now has come to its receiver. */
static int64_t arrival(struct sim_network *network, const struct packet *packet)
{
    const struct sim_costs *costs = &network->costs;
    struct end *from = &network->ends[packet->from];
    struct end *to = &network->ends[packet->to];
    int here = network->host_of[packet->from];
    int there = network->host_of[packet->to];
    int64_t link = (int64_t)(costs->beta_ns * (double)packet->bytes);
    int64_t time = later(sim.now_ns, from->sends_until) + costs->overhead_ns;

    from->sends_until = time;
    if (here == there) {
        time +=
            costs->varies ? vary(network, costs->local_ns) : costs->local_ns;
    } else {
        time = later(time, network->link_out[here]) + link;
        network->link_out[here] = time;
        time +=
            costs->varies ? vary(network, costs->alpha_ns) : costs->alpha_ns;
        time = later(time, network->link_in[there] + link);
        network->link_in[there] = time;
    }
    time = later(time, to->receives_until) + costs->overhead_ns;
    to->receives_until = time;
    if (network->last) {
        int64_t *last =
            &network->last[packet->from * network->nranks + packet->to];

        time = *last = later(time, *last);
    }
    return time;
}

/* --------------------------------------------------------- under way, there */

struct packet *sim_packet_send(struct end *from, int to, int tag, size_t bytes)
{
    struct sim_network *network = from->network;
    struct packet *packet = calloc(1, sizeof *packet);
    struct sim_counts *counts = &sim.ranks[from->base.rank].counts;
    bool is_local = network->host_of[from->base.rank] == network->host_of[to];

    if (!packet)
        abort();
    packet->from = from->base.rank;
    packet->to = to;
    packet->tag = tag;
    packet->bytes = bytes;
    packet->number = ++network->nsent;
    packet->time = arrival(network, packet);
    *(is_local ? &counts->local_messages : &counts->messages) += 1;
    *(is_local ? &counts->local_bytes : &counts->bytes) += (int64_t)bytes;
    sim_packet_queue(network, packet);
    return packet;
}

void sim_packet_release(struct packet *packet)
{
    if (!packet->arrived || !packet->tested)
        return;
    free(packet->copy);
    free(packet);
}

/* A rank that has given up its world moves no transfer any more: its program
 * may have freed their memory. */
static bool has_given_up(int rank)
{
    return atomic_load(&sim.ranks[rank].world->broken);
}

bool sim_packet_is_stuck(const struct packet *packet)
{
    return packet->leaves_late && has_given_up(packet->from);
}

void sim_packet_lose(struct packet *packet)
{
    packet->left = packet->arrived = true;
    sim_packet_release(packet);
}

/* The memory of a transfer belongs to it until its test has said that it is
 * done. */
void sim_packet_check_borrowed(const struct packet *packet)
{
    if (!has_given_up(packet->from) && packet->bytes > 0 &&
        memcmp(packet->copy, packet->data, packet->bytes) != 0)
        sim_fail("rank %d has changed what it sends to rank %d with tag %d",
                 packet->from, packet->to, packet->tag);
}

/* The sender of a packet that was matched learns it later. */
static void leave(struct sim_network *network, struct packet *packet)
{
    bool is_local =
        network->host_of[packet->from] == network->host_of[packet->to];

    if (packet->leaves_late) {
        packet->left_at = sim.now_ns + (is_local ? network->costs.local_ns
                                                 : network->costs.alpha_ns);
        network->all_left_at = later(network->all_left_at, packet->left_at);
    }
    packet->left = packet->arrived = true;
    sim_packet_release(packet);
}

static void check_poison(const struct receive *receive)
{
    const unsigned char *data = receive->data;
    size_t n = receive->bytes;

    /* Equal to itself a byte further on: all bytes are as the first. */
    if (n > 0 && (data[0] != POISON || memcmp(data, data + 1, n - 1) != 0))
        sim_fail("rank %d has written to what it receives from rank %d with "
                 "tag %d",
                 receive->to, receive->from, receive->tag);
}

void sim_packet_hand_over(struct sim_network *network, struct packet *packet,
                          struct receive *receive)
{
    if (network->costs.poisons && !has_given_up(packet->to))
        check_poison(receive);
    if (packet->leaves_late)
        sim_packet_check_borrowed(packet);
    receive->done = true;
    if (packet->bytes > receive->bytes)
        receive->status =
            hvd__fail(HVD_ERR_MPI, "rank %d sent %zu bytes into %zu",
                      packet->from, packet->bytes, receive->bytes);
    else
        memcpy(receive->data, packet->copy, packet->bytes);
    leave(network, packet);
}

static struct receive *match(struct end *end, const struct packet *packet)
{
    for (struct receive **link = &end->receives; *link; link = &(*link)->next) {
        struct receive *receive = *link;

        if (receive->from != packet->from || receive->tag != packet->tag)
            continue;
        *link = receive->next;
        if (!receive->next)
            end->receives_tail = link;
        return receive;
    }
    return NULL;
}

static void arrive(struct sim_network *network, struct packet *packet)
{
    struct end *end = &network->ends[packet->to];
    struct receive *receive;

    sim_note(packet->number);
    if (end->dead || (packet->tag >= 0 && (has_given_up(packet->to) ||
                                           sim_packet_is_stuck(packet)))) {
        sim_packet_lose(packet);
        return;
    }
    packet->next = NULL;
    if (packet->tag < 0) {
        network->ends[packet->from].npending--;
        *end->messages_tail = packet;
        end->messages_tail = &packet->next;
        return;
    }
    receive = match(end, packet);
    if (receive) {
        sim_packet_hand_over(network, packet, receive);
        return;
    }
    *end->packets_tail = packet;
    end->packets_tail = &packet->next;
}

bool sim_network_deliver(struct sim_network *network)
{
    bool any = false;

    while (network->nqueued > 0 && network->queue[0]->time <= sim.now_ns) {
        arrive(network, dequeue(network));
        any = true;
    }
    return any;
}

int64_t sim_network_next(const struct sim_network *network)
{
    int64_t next = network->nqueued > 0 ? network->queue[0]->time : INT64_MAX;

    for (const struct ticket *t =
             network->all_left_at > sim.now_ns ? network->tickets : NULL;
         t; t = t->next)
        if (t->packet && t->packet->left_at > sim.now_ns &&
            t->packet->left_at < next)
            next = t->packet->left_at;
    return next;
}
