/* SPDX-License-Identifier: Apache-2.0 */
/*
 * heartbeat.h - heartbeats between hosts, over UDP.
 *
 * Each rank has a socket. One rank of a host, its speaker, sends the state of
 * its host's ranks to all other hosts a few times in every heartbeat period.
 * The rank that receives this writes it on the status page of its own host. The
 * caller decides which rank speaks, and may change that at any time.
 *
 * Only the watchdog's thread may call these functions, except those that open
 * and introduce. No call blocks.
 */
#ifndef HVD_WATCH_HEARTBEAT_H
#define HVD_WATCH_HEARTBEAT_H

#include "watch/page.h"
#include "watch/stall.h"

enum { HVD__HEARTBEAT_ADDRESSES = 8 };

/* The card of a rank says how it can be reached. Ranks exchange cards as
 * bytes. */
struct hvd__heartbeat_card {
    uint64_t key[2]; /* the key of the lowest rank with a card counts */
    uint32_t addresses[HVD__HEARTBEAT_ADDRESSES];
    int32_t naddresses;
    int32_t port; /* in network order, as addresses; 0: none */
};

struct hvd__heartbeat;

/* Opens a socket and fills this rank's card. *heartbeat is NULL, and the card
 * blank, if all ranks share a host, or if no socket can be had, which is
 * logged. Returns HVD_ERR_MEMORY on failure. */
int hvd__heartbeat_open(struct hvd__heartbeat **heartbeat, int rank, int nranks,
                        const char *(*host)(const void *context, int rank),
                        const void *context, struct hvd__heartbeat_card *card);

/* Stores the card of a rank, and whether that rank has a watchdog. The caller
 * introduces all ranks in their order, before the start. */
void hvd__heartbeat_introduce(struct hvd__heartbeat *heartbeat, int rank,
                              const struct hvd__heartbeat_card *card,
                              bool is_watching);
/* Starts to receive. page is borrowed until the heartbeat is closed. */
void hvd__heartbeat_start(struct hvd__heartbeat *heartbeat,
                          struct hvd__page *page);
/* Closes the socket and frees all. Accepts NULL. */
void hvd__heartbeat_close(struct hvd__heartbeat *heartbeat);

/* Returns a descriptor that is readable when a datagram has arrived. */
int hvd__heartbeat_fd(const struct hvd__heartbeat *heartbeat);

/* Handles the datagrams that have arrived. Returns true if the world has ended
 * on another host; status and text then say why. */
bool hvd__heartbeat_receive(struct hvd__heartbeat *heartbeat, int *status,
                            char *text, size_t size);

/* Sends the other hosts the state of this host's ranks and, if detail is true,
 * their requests in flight. */
void hvd__heartbeat_send(struct hvd__heartbeat *heartbeat, bool detail);
/* Informs the other hosts that this rank has left. */
void hvd__heartbeat_send_goodbye(struct hvd__heartbeat *heartbeat);
/* Informs every rank of every other host that nothing can succeed any more. */
void hvd__heartbeat_send_end(struct hvd__heartbeat *heartbeat, int status,
                             const char *text);

/* Counts the time since the last call as silence of the hosts that were not
 * heard from meanwhile. */
void hvd__heartbeat_advance(struct hvd__heartbeat *heartbeat,
                            int64_t passed_ns);

/* Returns whether a host has refused a datagram; the next heartbeat will show
 * more. */
bool hvd__heartbeat_has_refusals(const struct hvd__heartbeat *heartbeat);

/* Returns whether a host is lost: it was silent for limit_ns (0: never), or the
 * process there that gets the heartbeats is gone. *rank is then its lowest
 * rank, and how says in words what happened. */
bool hvd__heartbeat_has_lost(const struct hvd__heartbeat *heartbeat,
                             int64_t limit_ns, int *rank, char *how,
                             size_t size);

/* Returns true once if some hosts were never heard from in the first seconds;
 * text then says so. */
bool hvd__heartbeat_lacks_contact(struct hvd__heartbeat *heartbeat, char *text,
                                  size_t size);

/* Fills in state and silence of all ranks of other hosts. Ranks that were
 * silent for silent_limit_ns count as silent. */
void hvd__heartbeat_view(const struct hvd__heartbeat *heartbeat,
                         int64_t silent_limit_ns, struct hvd__view *views);

/* Returns the name of a rank's host, without the part that makes it unique. */
const char *hvd__heartbeat_host(const struct hvd__heartbeat *heartbeat,
                                int rank);

#endif
