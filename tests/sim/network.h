/* SPDX-License-Identifier: Apache-2.0 */
/*
 * network.h - the network of a simulated world: packets that are under way, and
 * a transport for each rank.
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
#ifndef TESTS_SIM_NETWORK_H
#define TESTS_SIM_NETWORK_H

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
    int64_t all_left_at; /* the senders of all packets matched so far know it */
    uint64_t nsent;
};

/* Begins a packet: it arrives when its time has come. The caller gives it its
 * data. */
struct packet *sim_packet_send(struct end *from, int to, int tag, size_t bytes);
/* Puts a packet among those that are under way. */
void sim_packet_queue(struct sim_network *network, struct packet *packet);
/* Returns true if a packet whose data is still with the sender will never come.
 */
bool sim_packet_is_stuck(const struct packet *packet);
void sim_packet_lose(struct packet *packet);
/* Fails if the sender has changed memory that it has lent to a packet. */
void sim_packet_check_borrowed(const struct packet *packet);
/* Copies a packet into the memory of its receive. */
void sim_packet_hand_over(struct sim_network *network, struct packet *packet,
                          struct receive *receive);
/* Frees a packet that has arrived and of which its sender knows it. */
void sim_packet_release(struct packet *packet);

#endif
