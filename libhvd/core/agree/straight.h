/* SPDX-License-Identifier: Apache-2.0 */
/*
 * straight.h - the blocks of one alltoall, allgather or reducescatter that go
 * straight from each host to each other, while a round (round.h) agrees on the
 * request: neither waits for the other. Each host has one member. The blocks
 * for the hosts with which a host exchanges offers are in the messages of the
 * round; all others are transfers of their own.
 *
 * Whether the others have the same request in this round is not known when the
 * blocks are sent. So they belong to the round, not to the request: the offers
 * of a round say which hosts send blocks in it, every other host receives
 * these, and drops them if the round does not agree on the request, which is
 * then offered again or agreed on by name. So each block is received in the
 * round in which it was sent, and the blocks of all rounds can have one tag.
 *
 * All functions belong to the driver. speaker.c fills the offer, and round.c
 * calls what moves blocks.
 */
#ifndef HVD_CORE_STRAIGHT_H
#define HVD_CORE_STRAIGHT_H

#include "core/agree/offer.h"
#include "transport/team.h"

struct hvd__straight {
    const struct hvd__team *team;   /* borrowed */
    const struct hvd__hosts *hosts; /* borrowed */
    int tag;                        /* the transport's, for the blocks */
    uint64_t along; /* bit h: blocks of host h are in messages of the round */
    uint64_t received; /* bit h: a receive from host h is posted or done */
    int nmet; /* so many hosts have been met: blocks to them are on their way */
    const struct hvd__request *request; /* borrowed, whose blocks leave in this
                                           round; NULL: none do */
    size_t stride; /* from the blocks of one host to those of the next */
    unsigned char *blocks; /* owned: [hosts->n] blocks; NULL: none are sent */
    struct hvd__transfer *sends, *receives; /* owned: [hosts->n] each */
};

/* Initialises the blocks of the hosts' rounds. Fails with HVD_ERR_MEMORY. */
int hvd__straight_init(struct hvd__straight *straight,
                       const struct hvd__team *team,
                       const struct hvd__hosts *hosts, int tag);
/* Accepts zeros. hvd__straight_is_busy must say false. */
void hvd__straight_fini(struct hvd__straight *straight);
/* Returns true if a transfer is under way. */
bool hvd__straight_is_busy(const struct hvd__straight *straight);

/* Copies the blocks that go along to the data of a slot of an offer, and keeps
 * the own one: the output may lie over it. */
void hvd__straight_fill(const struct hvd__straight *straight,
                        struct hvd__offer *offer,
                        const struct hvd__offer_slot *slot);
/* Begins a round, whose offer is not yet combined. If this host offers blocks,
 * they are borrowed from the request's input until the round is over. */
void hvd__straight_begin(struct hvd__straight *straight,
                         const struct hvd__offer *offer);
/* Moves blocks. The offer says which hosts send, if all_known all of them.
 * Returns 1 when all have moved, 0 before, or an error. */
int hvd__straight_step(struct hvd__straight *straight,
                       const struct hvd__offer *offer, bool all_known);

/* Finds the block that each member has for this one, on which the round with
 * this offer has agreed. They stay until the next round begins. */
void hvd__straight_sources(const struct hvd__straight *straight,
                           const struct hvd__offer *offer,
                           const void **sources);

#endif
