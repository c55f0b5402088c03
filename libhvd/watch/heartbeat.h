/* SPDX-License-Identifier: Apache-2.0 */
/*
 * heartbeat.h - hosts that hear of each other, over UDP.
 *
 * Each rank has a socket. One rank of a host, its speaker, tells all other
 * hosts a few times in every heartbeat how its host's ranks are; who hears it
 * writes that on the status page of its own host. Which one speaks is for the
 * caller to say, and may change at any time.
 *
 * All but opening and introducing is for one thread, the watchdog's. Nothing
 * blocks.
 */
#ifndef HVD_WATCH_HEARTBEAT_H
#define HVD_WATCH_HEARTBEAT_H

#include "watch/page.h"
#include "watch/stall.h"

enum { HVD__HEARTBEAT_ADDRESSES = 8 };

/* How a rank can be reached: plain bytes, for the others. */
struct hvd__heartbeat_card {
    uint64_t key[2]; /* that of the lowest rank that has one counts */
    uint32_t addresses[HVD__HEARTBEAT_ADDRESSES];
    int32_t naddresses;
    int32_t port; /* in the order of the network, as addresses; 0: it cannot */
};

struct hvd__heartbeat;

/* *heartbeat is NULL, and the card blank, if all ranks share a host; or if no
 * socket can be had, which is logged. HVD_ERR_MEMORY. */
int hvd__heartbeat_open(struct hvd__heartbeat **heartbeat, int rank, int nranks,
                        const char *(*host)(const void *context, int rank),
                        const void *context, struct hvd__heartbeat_card *card);

/* What a rank's card says; whether it has a watchdog at all. Of each rank, in
 * their order, before the start. */
void hvd__heartbeat_introduce(struct hvd__heartbeat *heartbeat, int rank,
                              const struct hvd__heartbeat_card *card,
                              bool is_watching);
/* page is borrowed until the heartbeat is closed. */
void hvd__heartbeat_start(struct hvd__heartbeat *heartbeat,
                          struct hvd__page *page);
/* NULL is accepted. */
void hvd__heartbeat_close(struct hvd__heartbeat *heartbeat);

/* Readable: there is something to hear. */
int hvd__heartbeat_fd(const struct hvd__heartbeat *heartbeat);

/* Take in what has arrived. True: the world has ended on another host, and
 * status and text say why. */
bool hvd__heartbeat_receive(struct hvd__heartbeat *heartbeat, int *status,
                            char *text, size_t size);

/* Tell the other hosts of this host's ranks; detail: and of what they have
 * in flight. */
void hvd__heartbeat_send(struct hvd__heartbeat *heartbeat, bool detail);
/* This rank has left. */
void hvd__heartbeat_send_goodbye(struct hvd__heartbeat *heartbeat);
/* Nothing can succeed any more: to every rank of every other host. */
void hvd__heartbeat_send_end(struct hvd__heartbeat *heartbeat, int status,
                             const char *text);

/* Time passes: who was heard from since? */
void hvd__heartbeat_advance(struct hvd__heartbeat *heartbeat,
                            int64_t passed_ns);

/* Whether a host has refused a datagram: the next word will tell more. */
bool hvd__heartbeat_has_refusals(const struct hvd__heartbeat *heartbeat);

/* Whether a host is lost: silent for so long (0: never), or what hears us
 * there is gone. Then rank is its lowest one, and how says it in words. */
bool hvd__heartbeat_has_lost(const struct hvd__heartbeat *heartbeat,
                             int64_t limit_ns, int *rank, char *how,
                             size_t size);

/* Once, if some hosts were never heard from in all that time: says so. */
bool hvd__heartbeat_lacks_contact(struct hvd__heartbeat *heartbeat, char *text,
                                  size_t size);

/* State and silence of all ranks of other hosts; silent_limit_ns: from then
 * on they count as silent. */
void hvd__heartbeat_view(const struct hvd__heartbeat *heartbeat,
                         int64_t silent_limit_ns, struct hvd__view *views);

/* The name of a rank's host, without what makes it unique. */
const char *hvd__heartbeat_host(const struct hvd__heartbeat *heartbeat,
                                int rank);

#endif
