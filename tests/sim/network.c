/* SPDX-License-Identifier: Apache-2.0 */
/*
 * network.c - the network of a simulated world: a transport for each rank.
 *
 * A packet is a posted message or one end of a transfer that is sent. It is
 * under way until its time; then a message waits to be polled, and a transfer
 * to be matched with a receive of the same peer and tag, in order. Packets
 * between two ranks arrive in the order in which they were sent. A transfer
 * larger than costs.eager leaves its sender's memory only when it is matched;
 * smaller ones are copied at once.
 *
 * Time: a message takes the sender's core for the overhead, then, to another
 * host, the link of the sender's host for its bytes, then alpha, then the link
 * of the receiver's host, then the receiver's core. What takes a core or a link
 * waits until it is free, so that many messages to one rank take long.
 */
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "sim.h"

enum { POISON = 0xa5 };

struct packet {
    struct packet *next; /* arrived, at its receiver */
    int64_t time;
    uint64_t number;
    int from, to, tag; /* tag -1: a message */
    size_t bytes;
    unsigned char *copy; /* owned; NULL: of a transfer without data */
    const void *data;    /* the sender's memory, borrowed until it is tested */
    bool leaves_late;    /* it leaves that memory when it is matched */
    bool left;           /* the sender may have its memory back */
    int64_t left_at;     /* when the sender can know that */
    bool arrived;        /* matched, or polled */
    bool tested;         /* the sender knows, or never asks */
};

struct receive {
    struct receive *next;
    int from, to, tag;
    void *data;
    size_t bytes;
    bool done;
    int status;
};

/* What a transfer points to until its test has said that it is done. */
struct ticket {
    struct ticket *next, **link; /* in the list of the network */
    struct hvd__transfer *transfer;
    struct packet *packet;   /* a send, or */
    struct receive *receive; /* a receive */
};

struct end {
    struct hvd__transport base;
    struct sim_network *network;
    struct packet *messages, **messages_tail;  /* arrived, to be polled */
    struct packet *packets, **packets_tail;    /* arrived, to be matched */
    struct receive *receives, **receives_tail; /* posted, not matched */
    int npending;                        /* own messages that have not left */
    int64_t sends_until, receives_until; /* core */
    bool dead;
};

struct sim_network {
    int nranks;
    const int *host_of;
    struct sim_costs costs;
    struct sim_random random;
    struct end *ends;
    int64_t *link_out, *link_in; /* owned, [nranks], by host */
    int64_t *last; /* owned; latest arrival between two ranks; NULL: delays do
                      not vary, so that order is kept anyway */
    struct packet **queue; /* owned heap, earliest first */
    int nqueued, capacity;
    struct ticket *tickets; /* owned: of transfers that are under way */
    uint64_t nsent;
};

/* ------------------------------------------------------ the queue of events */

static bool is_before(const struct packet *a, const struct packet *b)
{
    return a->time != b->time ? a->time < b->time : a->number < b->number;
}

static void enqueue(struct sim_network *network, struct packet *packet)
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

/* ---------------------------------------------------------- under way, there
 */

static struct packet *send_packet(struct end *from, int to, int tag,
                                  size_t bytes)
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
    enqueue(network, packet);
    return packet;
}

static void release(struct packet *packet)
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

/* Returns true if a packet whose data is still with the sender will never come.
 */
static bool is_stuck(const struct packet *packet)
{
    return packet->leaves_late && has_given_up(packet->from);
}

static void lose(struct packet *packet)
{
    packet->left = packet->arrived = true;
    release(packet);
}

/* The memory of a transfer belongs to it until its test has said that it is
 * done. */
static void check_borrowed(const struct packet *packet)
{
    if (!has_given_up(packet->from) && packet->bytes > 0 &&
        memcmp(packet->copy, packet->data, packet->bytes) != 0)
        sim_fail("rank %d has changed what it sends to rank %d with tag %d",
                 packet->from, packet->to, packet->tag);
}

/* The sender of a packet that was matched learns it later. */
static void leave(const struct sim_network *network, struct packet *packet)
{
    bool is_local =
        network->host_of[packet->from] == network->host_of[packet->to];

    if (packet->leaves_late)
        packet->left_at = sim.now_ns + (is_local ? network->costs.local_ns
                                                 : network->costs.alpha_ns);
    packet->left = packet->arrived = true;
    release(packet);
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

/* Copies a packet into the memory of its receive. */
static void hand_over(const struct sim_network *network, struct packet *packet,
                      struct receive *receive)
{
    if (network->costs.poisons && !has_given_up(packet->to))
        check_poison(receive);
    if (packet->leaves_late)
        check_borrowed(packet);
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
    if (end->dead ||
        (packet->tag >= 0 && (has_given_up(packet->to) || is_stuck(packet)))) {
        lose(packet);
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
        hand_over(network, packet, receive);
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

    for (const struct ticket *t = network->tickets; t; t = t->next)
        if (t->packet && t->packet->left_at > sim.now_ns &&
            t->packet->left_at < next)
            next = t->packet->left_at;
    return next;
}

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
    packet = send_packet(end, peer, tag, bytes);
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
    if (packet && !is_stuck(packet)) {
        hand_over(end->network, packet, receive);
        return HVD_OK;
    }
    if (packet)
        lose(packet);
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
    if (ticket->packet && ticket->packet->left)
        check_borrowed(ticket->packet);
    if (ticket->packet
            ? !ticket->packet->left || sim.now_ns < ticket->packet->left_at
            : !ticket->receive->done)
        return 0;
    if (ticket->packet) {
        ticket->packet->tested = true;
        release(ticket->packet);
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
    struct packet *packet = send_packet(end, peer, -1, bytes);

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

/* -------------------------------------------------------------------- a life
 */

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
            release(ticket->packet);
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
            release(packet);
            continue;
        }
        network->queue[kept++] = packet;
    }
    network->nqueued = 0;
    for (int i = 0; i < kept; i++)
        enqueue(network, network->queue[i]);
}
