/* SPDX-License-Identifier: Apache-2.0 */
/* network.c - the transports of a simulated world's ranks, and their life. */
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "network.h"

/* ----------------------------------------------------------- the transport */

static void add_ticket(struct sim_network *network,
                       struct hvd__transfer *transfer, struct packet *packet,
                       struct receive *receive)
{
    struct ticket *ticket = malloc(sizeof *ticket);

    if (!ticket)
        abort();
    *ticket = (struct ticket){network->tickets, &network->tickets, transfer,
                              packet, receive};
    if (ticket->next)
        ticket->next->link = &ticket->next;
    network->tickets = ticket;
    transfer->request = ticket;
}

static void remove_ticket(struct ticket *ticket)
{
    *ticket->link = ticket->next;
    if (ticket->next)
        ticket->next->link = ticket->link;
    ticket->transfer->request = NULL;
    free(ticket);
}

static int end_send(struct hvd__transport *self, int peer, int tag,
                    const void *data, size_t bytes,
                    struct hvd__transfer *transfer)
{
    struct end *end = (struct end *)self;
    struct packet *packet;

    transfer->request = NULL;
    if (bytes == 0)
        return HVD_OK;
    if (tag < 0 || tag >= self->ntags || peer < 0 || peer >= self->size)
        sim_fail("rank %d sends to rank %d with tag %d", self->rank, peer, tag);
    packet = sim_packet_send(end, peer, tag, bytes);
    packet->data = data;
    packet->copy = malloc(bytes);
    if (!packet->copy)
        abort();
    memcpy(packet->copy, data, bytes);
    packet->leaves_late = bytes > end->network->costs.eager;
    packet->left = !packet->leaves_late;
    add_ticket(end->network, transfer, packet, NULL);
    return HVD_OK;
}

/* Returns the first packet of a peer and tag that has arrived, or NULL. */
static struct packet *take_packet(struct end *end, int peer, int tag)
{
    for (struct packet **link = &end->packets; *link; link = &(*link)->next) {
        struct packet *packet = *link;

        if (packet->from != peer || packet->tag != tag)
            continue;
        *link = packet->next;
        if (!packet->next)
            end->packets_tail = link;
        return packet;
    }
    return NULL;
}

static int end_receive(struct hvd__transport *self, int peer, int tag,
                       void *data, size_t bytes, struct hvd__transfer *transfer)
{
    struct end *end = (struct end *)self;
    struct receive *receive;
    struct packet *packet;

    transfer->request = NULL;
    if (bytes == 0)
        return HVD_OK;
    if (end->network->costs.poisons)
        memset(data, POISON, bytes);
    receive = calloc(1, sizeof *receive);
    if (!receive)
        abort();
    *receive = (struct receive){
        .from = peer,
        .to = self->rank,
        .tag = tag,
        .data = data,
        .bytes = bytes,
    };
    add_ticket(end->network, transfer, NULL, receive);
    packet = take_packet(end, peer, tag);
    if (packet && !sim_packet_is_stuck(packet)) {
        sim_packet_hand_over(end->network, packet, receive);
        return HVD_OK;
    }
    if (packet)
        sim_packet_lose(packet);
    *end->receives_tail = receive;
    end->receives_tail = &receive->next;
    return HVD_OK;
}

static int end_test(struct hvd__transport *self, struct hvd__transfer *transfer)
{
    struct ticket *ticket = transfer->request;
    int status = 1;

    (void)self;
    if (!ticket)
        return 1;
    if (ticket->transfer != transfer)
        sim_fail("rank %d has moved a transfer", self->rank);
    if (ticket->packet
            ? !ticket->packet->left || sim.now_ns < ticket->packet->left_at
            : !ticket->receive->done)
        return 0;
    if (ticket->packet) {
        sim_packet_check_borrowed(ticket->packet);
        ticket->packet->tested = true;
        sim_packet_release(ticket->packet);
    } else {
        status = ticket->receive->status < 0 ? ticket->receive->status : 1;
        free(ticket->receive);
    }
    remove_ticket(ticket);
    return status;
}

static int end_post(struct hvd__transport *self, int peer, void *message,
                    size_t bytes)
{
    struct end *end = (struct end *)self;
    struct packet *packet = sim_packet_send(end, peer, -1, bytes);

    packet->copy = message;
    packet->left = packet->tested = true;
    end->npending++;
    return HVD_OK;
}

static int end_poll(struct hvd__transport *self, int *peer, void **message,
                    size_t *bytes)
{
    struct end *end = (struct end *)self;
    struct packet *packet = end->messages;

    if (!packet)
        return 0;
    end->messages = packet->next;
    if (!end->messages)
        end->messages_tail = &end->messages;
    *peer = packet->from;
    *message = packet->copy;
    *bytes = packet->bytes;
    free(packet);
    return 1;
}

static int end_pending(struct hvd__transport *self)
{
    return ((struct end *)self)->npending;
}

static int end_exchange(struct hvd__transport *self, const void *mine,
                        void *all, size_t bytes)
{
    (void)self, (void)mine, (void)all, (void)bytes;
    return hvd__fail(HVD_ERR_INTERNAL, "simulated ranks do not meet");
}

static void end_close(struct hvd__transport *self)
{
    (void)self;
}

struct hvd__transport *sim_network_transport(struct sim_network *network,
                                             int rank)
{
    return &network->ends[rank].base;
}

/* ------------------------------------------------------------------- a life */

struct sim_network *sim_network_new(int nranks, const int *host_of,
                                    uint64_t seed,
                                    const struct sim_costs *costs)
{
    size_t n = (size_t)nranks;
    struct sim_network *network = calloc(1, sizeof *network);

    if (!network)
        abort();
    network->nranks = nranks;
    network->host_of = host_of;
    network->costs = *costs;
    network->random = sim_stream(seed, 2);
    network->ends = calloc(n, sizeof *network->ends);
    network->link_out = calloc(n, sizeof(int64_t));
    network->link_in = calloc(n, sizeof(int64_t));
    network->last = costs->varies ? calloc(n * n, sizeof(int64_t)) : NULL;
    if (!network->ends || !network->link_out || !network->link_in)
        abort();
    for (int rank = 0; rank < nranks; rank++) {
        struct end *end = &network->ends[rank];

        end->network = network;
        end->messages_tail = &end->messages;
        end->packets_tail = &end->packets;
        end->receives_tail = &end->receives;
        end->base = (struct hvd__transport){
            .name = "sim",
            .rank = rank,
            .size = nranks,
            .threads = true,
            .ntags = INT_MAX,
            .send = end_send,
            .receive = end_receive,
            .test = end_test,
            .post = end_post,
            .poll = end_poll,
            .pending = end_pending,
            .exchange = end_exchange,
            .close = end_close,
        };
    }
    return network;
}

static void free_packets(struct packet *packet)
{
    while (packet) {
        struct packet *next = packet->next;

        free(packet->copy);
        free(packet);
        packet = next;
    }
}

void sim_network_stop(struct sim_network *network)
{
    while (network->tickets) {
        struct ticket *ticket = network->tickets;

        if (ticket->packet) {
            ticket->packet->tested = true;
            sim_packet_release(ticket->packet);
        } else if (ticket->receive->done) {
            free(ticket->receive);
        }
        remove_ticket(ticket);
    }
}

void sim_network_free(struct sim_network *network)
{
    for (int i = 0; i < network->nqueued; i++) {
        free(network->queue[i]->copy);
        free(network->queue[i]);
    }
    for (int rank = 0; rank < network->nranks; rank++) {
        struct end *end = &network->ends[rank];

        free_packets(end->messages);
        free_packets(end->packets);
        while (end->receives) {
            struct receive *receive = end->receives;

            end->receives = receive->next;
            free(receive);
        }
    }
    free(network->queue);
    free(network->ends);
    free(network->link_out);
    free(network->link_in);
    free(network->last);
    free(network);
}

/* Fails if a rank has not asked until the end whether its transfers are done.
 */
static void check_tickets(const struct sim_network *network)
{
    const struct ticket *ticket = network->tickets;

    if (ticket && ticket->packet)
        sim_fail("rank %d has ended before it knew that its transfer to rank "
                 "%d with tag %d had left",
                 ticket->packet->from, ticket->packet->to, ticket->packet->tag);
    else if (ticket)
        sim_fail("rank %d has ended before it knew of the transfer from rank "
                 "%d with tag %d",
                 ticket->receive->to, ticket->receive->from,
                 ticket->receive->tag);
}

void sim_network_check_empty(const struct sim_network *network)
{
    if (network->nqueued > 0)
        sim_fail("%d messages are still under way at the end, one from rank "
                 "%d to rank %d with tag %d",
                 network->nqueued, network->queue[0]->from,
                 network->queue[0]->to, network->queue[0]->tag);
    for (int rank = 0; rank < network->nranks; rank++) {
        const struct end *end = &network->ends[rank];

        if (end->messages)
            sim_fail("a message from rank %d to rank %d was never read",
                     end->messages->from, rank);
        if (end->packets)
            sim_fail("a transfer from rank %d to rank %d with tag %d was "
                     "never received",
                     end->packets->from, rank, end->packets->tag);
        if (end->receives)
            sim_fail("a receive of rank %d from rank %d with tag %d was never "
                     "matched",
                     rank, end->receives->from, end->receives->tag);
    }
    check_tickets(network);
}

void sim_network_kill(struct sim_network *network, int rank)
{
    struct end *end = &network->ends[rank];
    int kept = 0;

    end->dead = true;
    free_packets(end->messages);
    end->messages = NULL;
    end->messages_tail = &end->messages;
    /* Part of what it has sent never arrives, all of it that came later. */
    for (int i = 0; i < network->nqueued; i++) {
        struct packet *packet = network->queue[i];

        if (packet->from == rank &&
            (!packet->left ||
             packet->time > sim.now_ns + network->costs.alpha_ns / 2)) {
            packet->arrived = true;
            sim_packet_release(packet);
            continue;
        }
        network->queue[kept++] = packet;
    }
    network->nqueued = 0;
    for (int i = 0; i < kept; i++)
        sim_packet_queue(network, network->queue[i]);
}
