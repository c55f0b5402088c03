/* SPDX-License-Identifier: Apache-2.0 */
/*
 * network.c - the network of a simulated world: a transport for each rank.
 *
 * A parcel is a posted message or one end of a transfer that is sent. It is
 * under way until its time; then a message waits to be polled, and a transfer
 * to be matched with a receive of the same peer and tag, in order. Parcels
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

struct parcel {
    struct parcel *next; /* arrived, at its receiver */
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
    struct parcel *parcel;   /* a send, or */
    struct receive *receive; /* a receive */
};

struct end {
    struct hvd__transport base;
    struct sim_network *network;
    struct parcel *messages, **messages_tail;  /* arrived, to be polled */
    struct parcel *parcels, **parcels_tail;    /* arrived, to be matched */
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
    struct parcel **queue; /* owned heap, earliest first */
    int nqueued, capacity;
    struct ticket *tickets; /* owned: of transfers that are under way */
    uint64_t nsent;
};

/* ------------------------------------------------------ the queue of events */

static bool is_before(const struct parcel *a, const struct parcel *b)
{
    return a->time != b->time ? a->time < b->time : a->number < b->number;
}

static void enqueue(struct sim_network *network, struct parcel *parcel)
{
    int i = network->nqueued++;

    if (network->nqueued > network->capacity) {
        network->capacity = 2 * network->capacity + 64;
        network->queue = realloc(network->queue, (size_t)network->capacity *
                                                     sizeof(struct parcel *));
        if (!network->queue)
            abort();
    }
    for (; i > 0 && is_before(parcel, network->queue[(i - 1) / 2]);
         i = (i - 1) / 2)
        network->queue[i] = network->queue[(i - 1) / 2];
    network->queue[i] = parcel;
}

static struct parcel *dequeue(struct sim_network *network)
{
    struct parcel *first = network->queue[0];
    struct parcel *last = network->queue[--network->nqueued];
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

/* Returns when a parcel that is sent now has come to its receiver. */
static int64_t arrival(struct sim_network *network, const struct parcel *parcel)
{
    const struct sim_costs *costs = &network->costs;
    struct end *from = &network->ends[parcel->from];
    struct end *to = &network->ends[parcel->to];
    int here = network->host_of[parcel->from];
    int there = network->host_of[parcel->to];
    int64_t link = (int64_t)(costs->beta_ns * (double)parcel->bytes);
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
            &network->last[parcel->from * network->nranks + parcel->to];

        time = *last = later(time, *last);
    }
    return time;
}

/* ---------------------------------------------------------- under way, there
 */

static struct parcel *send_parcel(struct end *from, int to, int tag,
                                  size_t bytes)
{
    struct sim_network *network = from->network;
    struct parcel *parcel = calloc(1, sizeof *parcel);
    struct sim_counts *counts = &sim.ranks[from->base.rank].counts;
    bool is_local = network->host_of[from->base.rank] == network->host_of[to];

    if (!parcel)
        abort();
    parcel->from = from->base.rank;
    parcel->to = to;
    parcel->tag = tag;
    parcel->bytes = bytes;
    parcel->number = ++network->nsent;
    parcel->time = arrival(network, parcel);
    *(is_local ? &counts->local_messages : &counts->messages) += 1;
    *(is_local ? &counts->local_bytes : &counts->bytes) += (int64_t)bytes;
    enqueue(network, parcel);
    return parcel;
}

static void release(struct parcel *parcel)
{
    if (!parcel->arrived || !parcel->tested)
        return;
    free(parcel->copy);
    free(parcel);
}

/* A rank that has given up its world moves no transfer any more: its program
 * may have freed their memory. */
static bool has_given_up(int rank)
{
    return atomic_load(&sim.ranks[rank].world->broken);
}

/* Returns true if a parcel whose data is still with the sender will never come.
 */
static bool is_stuck(const struct parcel *parcel)
{
    return parcel->leaves_late && has_given_up(parcel->from);
}

static void lose(struct parcel *parcel)
{
    parcel->left = parcel->arrived = true;
    release(parcel);
}

/* The memory of a transfer belongs to it until its test has said that it is
 * done. */
static void check_borrowed(const struct parcel *parcel)
{
    if (!has_given_up(parcel->from) && parcel->bytes > 0 &&
        memcmp(parcel->copy, parcel->data, parcel->bytes) != 0)
        sim_fail("rank %d has changed what it sends to rank %d with tag %d",
                 parcel->from, parcel->to, parcel->tag);
}

/* The sender of a parcel that was matched learns it later. */
static void leave(const struct sim_network *network, struct parcel *parcel)
{
    bool is_local =
        network->host_of[parcel->from] == network->host_of[parcel->to];

    if (parcel->leaves_late)
        parcel->left_at = sim.now_ns + (is_local ? network->costs.local_ns
                                                 : network->costs.alpha_ns);
    parcel->left = parcel->arrived = true;
    release(parcel);
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

/* Copies a parcel into the memory of its receive. */
static void hand_over(const struct sim_network *network, struct parcel *parcel,
                      struct receive *receive)
{
    if (network->costs.poisons && !has_given_up(parcel->to))
        check_poison(receive);
    if (parcel->leaves_late)
        check_borrowed(parcel);
    receive->done = true;
    if (parcel->bytes > receive->bytes)
        receive->status =
            hvd__fail(HVD_ERR_MPI, "rank %d sent %zu bytes into %zu",
                      parcel->from, parcel->bytes, receive->bytes);
    else
        memcpy(receive->data, parcel->copy, parcel->bytes);
    leave(network, parcel);
}

static struct receive *match(struct end *end, const struct parcel *parcel)
{
    for (struct receive **link = &end->receives; *link; link = &(*link)->next) {
        struct receive *receive = *link;

        if (receive->from != parcel->from || receive->tag != parcel->tag)
            continue;
        *link = receive->next;
        if (!receive->next)
            end->receives_tail = link;
        return receive;
    }
    return NULL;
}

static void arrive(struct sim_network *network, struct parcel *parcel)
{
    struct end *end = &network->ends[parcel->to];
    struct receive *receive;

    sim_note(parcel->number);
    if (end->dead ||
        (parcel->tag >= 0 && (has_given_up(parcel->to) || is_stuck(parcel)))) {
        lose(parcel);
        return;
    }
    parcel->next = NULL;
    if (parcel->tag < 0) {
        network->ends[parcel->from].npending--;
        *end->messages_tail = parcel;
        end->messages_tail = &parcel->next;
        return;
    }
    receive = match(end, parcel);
    if (receive) {
        hand_over(network, parcel, receive);
        return;
    }
    *end->parcels_tail = parcel;
    end->parcels_tail = &parcel->next;
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
        if (t->parcel && t->parcel->left_at > sim.now_ns &&
            t->parcel->left_at < next)
            next = t->parcel->left_at;
    return next;
}

/* ----------------------------------------------------------- the transport */

static void add_ticket(struct sim_network *network,
                       struct hvd__transfer *transfer, struct parcel *parcel,
                       struct receive *receive)
{
    struct ticket *ticket = malloc(sizeof *ticket);

    if (!ticket)
        abort();
    *ticket = (struct ticket){network->tickets, &network->tickets, transfer,
                              parcel, receive};
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
    struct parcel *parcel;

    transfer->request = NULL;
    if (bytes == 0)
        return HVD_OK;
    if (tag < 0 || tag >= self->ntags || peer < 0 || peer >= self->size)
        sim_fail("rank %d sends to rank %d with tag %d", self->rank, peer, tag);
    parcel = send_parcel(end, peer, tag, bytes);
    parcel->data = data;
    parcel->copy = malloc(bytes);
    if (!parcel->copy)
        abort();
    memcpy(parcel->copy, data, bytes);
    parcel->leaves_late = bytes > end->network->costs.eager;
    parcel->left = !parcel->leaves_late;
    add_ticket(end->network, transfer, parcel, NULL);
    return HVD_OK;
}

/* Returns the first parcel of a peer and tag that has arrived, or NULL. */
static struct parcel *take_parcel(struct end *end, int peer, int tag)
{
    for (struct parcel **link = &end->parcels; *link; link = &(*link)->next) {
        struct parcel *parcel = *link;

        if (parcel->from != peer || parcel->tag != tag)
            continue;
        *link = parcel->next;
        if (!parcel->next)
            end->parcels_tail = link;
        return parcel;
    }
    return NULL;
}

static int end_receive(struct hvd__transport *self, int peer, int tag,
                       void *data, size_t bytes, struct hvd__transfer *transfer)
{
    struct end *end = (struct end *)self;
    struct receive *receive;
    struct parcel *parcel;

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
    parcel = take_parcel(end, peer, tag);
    if (parcel && !is_stuck(parcel)) {
        hand_over(end->network, parcel, receive);
        return HVD_OK;
    }
    if (parcel)
        lose(parcel);
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
    if (ticket->parcel && ticket->parcel->left)
        check_borrowed(ticket->parcel);
    if (ticket->parcel
            ? !ticket->parcel->left || sim.now_ns < ticket->parcel->left_at
            : !ticket->receive->done)
        return 0;
    if (ticket->parcel) {
        ticket->parcel->tested = true;
        release(ticket->parcel);
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
    struct parcel *parcel = send_parcel(end, peer, -1, bytes);

    parcel->copy = message;
    parcel->left = parcel->tested = true;
    end->npending++;
    return HVD_OK;
}

static int end_poll(struct hvd__transport *self, int *peer, void **message,
                    size_t *bytes)
{
    struct end *end = (struct end *)self;
    struct parcel *parcel = end->messages;

    if (!parcel)
        return 0;
    end->messages = parcel->next;
    if (!end->messages)
        end->messages_tail = &end->messages;
    *peer = parcel->from;
    *message = parcel->copy;
    *bytes = parcel->bytes;
    free(parcel);
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
        end->parcels_tail = &end->parcels;
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

static void free_parcels(struct parcel *parcel)
{
    while (parcel) {
        struct parcel *next = parcel->next;

        free(parcel->copy);
        free(parcel);
        parcel = next;
    }
}

void sim_network_stop(struct sim_network *network)
{
    while (network->tickets) {
        struct ticket *ticket = network->tickets;

        if (ticket->parcel) {
            ticket->parcel->tested = true;
            release(ticket->parcel);
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

        free_parcels(end->messages);
        free_parcels(end->parcels);
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

    if (ticket && ticket->parcel)
        sim_fail("rank %d has ended before it knew that its transfer to rank "
                 "%d with tag %d had left",
                 ticket->parcel->from, ticket->parcel->to, ticket->parcel->tag);
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
        if (end->parcels)
            sim_fail("a transfer from rank %d to rank %d with tag %d was "
                     "never received",
                     end->parcels->from, rank, end->parcels->tag);
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
    free_parcels(end->messages);
    end->messages = NULL;
    end->messages_tail = &end->messages;
    /* Part of what it has sent never arrives, all of it that came later. */
    for (int i = 0; i < network->nqueued; i++) {
        struct parcel *parcel = network->queue[i];

        if (parcel->from == rank &&
            (!parcel->left ||
             parcel->time > sim.now_ns + network->costs.alpha_ns / 2)) {
            parcel->arrived = true;
            release(parcel);
            continue;
        }
        network->queue[kept++] = parcel;
    }
    network->nqueued = 0;
    for (int i = 0; i < kept; i++)
        enqueue(network, network->queue[i]);
}
