/* SPDX-License-Identifier: Apache-2.0 */
/*
 * heartbeat.h - heartbeats between hosts, over UDP.
 *
 * Each rank has a socket. One rank of a host, its speaker, sends the state of
 * its host's ranks to the host's neighbours (places.h) a few times in every
 * heartbeat period. The rank that receives this writes it on the status page of
 * its own host. The caller decides which rank speaks, and may change that at
 * any time. The end of the world goes from neighbour to neighbour: who calls
 * for it and who hears of it tells its own neighbours.
 *
 * Only the watchdog's thread may call these functions, except before it knows
 * that there is a heartbeat. No call blocks.
 */
#ifndef HVD_WATCH_HEARTBEAT_H
#define HVD_WATCH_HEARTBEAT_H

#include "base/ip.h"
#include "watch/page.h"
#include "watch/places.h"
#include "watch/stall.h"

enum { HVD__HEARTBEAT_ADDRESSES = 8 };

/* The card of a rank says how it can be reached. Ranks exchange cards as
 * bytes. */
struct hvd__heartbeat_card {
    uint64_t key[2]; /* the key of the lowest rank with a card counts */
    struct hvd__ip addresses[HVD__HEARTBEAT_ADDRESSES];
    int32_t naddresses;
    int32_t port; /* in network order; 0: none */
};

struct hvd__heartbeat;

/* Opens a socket and fills this rank's card. *heartbeat is NULL, and the card
 * blank, if all ranks share a host, or if no socket can be had, which is
 * logged. own is the address to listen on, as of hvd__watch_options. places is
 * borrowed until the heartbeat is closed; host(context, rank) returns the name
 * of a rank's host. Returns HVD_ERR_MEMORY on failure. */
int hvd__heartbeat_open(struct hvd__heartbeat **heartbeat, struct hvd__ip own,
                        struct hvd__places *places,
                        const char *(*host)(const void *context, int rank),
                        const void *context, struct hvd__heartbeat_card *card);

/* Stores the card of a rank, and whether that rank has a watchdog. The caller
 * introduces all ranks in their order, before the start. */
void hvd__heartbeat_introduce(struct hvd__heartbeat *heartbeat, int rank,
                              const struct hvd__heartbeat_card *card,
                              bool is_watching);
/* Chooses the neighbours among the hosts that take part, gives their ranks
 * lines, and starts to receive. page and subject are borrowed until the
 * heartbeat is closed. Ranks that were silent for silent_limit_ns count as
 * silent. */
void hvd__heartbeat_start(struct hvd__heartbeat *heartbeat,
                          struct hvd__page *page,
                          const struct hvd__watch_subject *subject,
                          int64_t silent_limit_ns);
/* Closes the socket and frees all. Accepts NULL. */
void hvd__heartbeat_close(struct hvd__heartbeat *heartbeat);

/* Returns a descriptor that is readable when a datagram has arrived. */
int hvd__heartbeat_fd(const struct hvd__heartbeat *heartbeat);

/* Handles the datagrams that have arrived, up to one that says that the world
 * has ended: it returns true then, and cause says why. */
bool hvd__heartbeat_receive(struct hvd__heartbeat *heartbeat,
                            struct hvd__cause *cause);

/* Sends the neighbours the state of this host's ranks. */
void hvd__heartbeat_send(struct hvd__heartbeat *heartbeat);
/* Informs the neighbours that this rank has left. */
void hvd__heartbeat_send_goodbye(struct hvd__heartbeat *heartbeat);
/* Informs every rank of every neighbour that nothing can succeed any more. */
void hvd__heartbeat_send_end(struct hvd__heartbeat *heartbeat,
                             const struct hvd__cause *cause);

/* Returns how long a cause of an end stands before it counts (page.h): well
 * over twice as long as it takes to reach all hosts. */
int64_t hvd__heartbeat_settle_ns(const struct hvd__heartbeat *heartbeat);

/* Counts the time since the last call as silence of the neighbours that were
 * not heard from meanwhile. */
void hvd__heartbeat_advance(struct hvd__heartbeat *heartbeat,
                            int64_t passed_ns);

/* Returns whether a neighbour has refused a datagram; the next heartbeat will
 * show more. */
bool hvd__heartbeat_has_refusals(const struct hvd__heartbeat *heartbeat);

/* Returns whether a neighbour is lost: it was silent for limit_ns (0: never),
 * or the process there that gets the heartbeats is gone. *rank is then the rank
 * that got them, and how says in words what happened. */
bool hvd__heartbeat_has_lost(const struct hvd__heartbeat *heartbeat,
                             int64_t limit_ns, int *rank, char *how,
                             size_t size);

/* Returns true once if some neighbours were never heard from in the first
 * seconds; text then says so. */
bool hvd__heartbeat_lacks_contact(struct hvd__heartbeat *heartbeat, char *text,
                                  size_t size);

/*
 * Which ranks of other hosts lack requests of this rank (heartbeat_ask.c). The
 * caller names the requests, and asks three times, a tick apart: the neighbours
 * first, then all hosts; answers come meanwhile.
 */
void hvd__heartbeat_ask_begin(struct hvd__heartbeat *heartbeat);
void hvd__heartbeat_ask_about(struct hvd__heartbeat *heartbeat, uint64_t key,
                              int32_t set);
void hvd__heartbeat_ask(struct hvd__heartbeat *heartbeat);
/* Returns whether this rank has no need to report a request: a lower rank of
 * another host waits for it, too, or it was not asked about. */
bool hvd__heartbeat_is_told(struct hvd__heartbeat *heartbeat, uint64_t key);
/* Returns whether a rank of another host has a request that was asked about, as
 * far as is known. */
bool hvd__heartbeat_waits(struct hvd__heartbeat *heartbeat, int rank,
                          uint64_t key);
/* Tells what is known of a rank of another host. What view points to is
 * borrowed until the next question. */
void hvd__heartbeat_look(struct hvd__heartbeat *heartbeat, int rank,
                         struct hvd__view *view);

/* Returns the name of a rank's host, without the part that makes it unique. */
const char *hvd__heartbeat_host(const struct hvd__heartbeat *heartbeat,
                                int rank);

#endif
