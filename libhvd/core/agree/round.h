/* SPDX-License-Identifier: Apache-2.0 */
/*
 * round.h - rounds of messages between the hosts of a process set: an allreduce
 * of offers (offer.h) by recursive doubling. One rank of each host, its
 * speaker, takes part.
 *
 * With p hosts, of which 2^k is the largest power of two, r = p - 2^k hosts
 * hand their offer to the next host and wait for the result; the others
 * exchange offers with k partners, at distance 1, 2, 4, ... Cost: k messages
 * one after another, and two more if p is no power of two. Source: the
 * recursive doubling of MPICH's and Open MPI's allreduce.
 *
 * Sums that travel in halves take k messages more, back (offer.h).
 *
 * Rounds follow one another without a gap in their numbers. A partner can be
 * ahead by one message, which waits in the transport. All functions belong to
 * the driver.
 */
#ifndef HVD_CORE_ROUND_H
#define HVD_CORE_ROUND_H

#include "core/agree/offer.h"
#include "core/agree/straight.h"
#include "transport/team.h"

struct hvd__metrics;

/* A message to a host, a message from it, or both. */
struct hvd__round_exchange {
    struct hvd__offer_peer with;
    int peer; /* rank of the host's speaker in the team */
    bool sends, receives;
    unsigned char *out, *in; /* in the round's buffers */
    struct hvd__transfer sending, receiving;
    bool has_sent;
};

/* log2 of the most hosts, and the two exchanges of the fold */
enum { HVD__ROUND_EXCHANGES = 32 };

struct hvd__round {
    const struct hvd__team *team;   /* borrowed */
    const struct hvd__hosts *hosts; /* borrowed */
    struct hvd__metrics *metrics;   /* borrowed: they count messages */
    int tag;                        /* the transport's, for the messages */
    uint64_t number;                /* of the round under way, or of the last */
    bool is_under_way;
    int at; /* how many of the exchanges are done, on this way */
    int n;
    unsigned char *buffers;        /* owned, [2 * n * HVD__OFFER_BYTES] */
    struct hvd__straight straight; /* blocks that go beside the messages */
    struct hvd__round_exchange exchanges[HVD__ROUND_EXCHANGES];
    /* The offer of the round that is under way, or of the next one. The caller
     * fills it before it starts the round, and reads the result in it. */
    struct hvd__offer offer;
};

/* Makes the rounds of a team whose hosts are given. Messages have the tag, and
 * blocks that go beside them the next one. Returns NULL if memory runs out. */
struct hvd__round *hvd__round_new(const struct hvd__team *team,
                                  const struct hvd__hosts *hosts, int tag,
                                  struct hvd__metrics *metrics);
/* Memory that a transfer under way may still write to is left alone. Accepts
 * NULL. */
void hvd__round_free(struct hvd__round *round);

/* Begins the offer of the next round. */
void hvd__round_begin(struct hvd__round *round, uint32_t epoch);
/* Starts the round. */
int hvd__round_start(struct hvd__round *round);
/* Moves the round. Returns 1 when the offer has become the result of all hosts,
 * and the blocks beside it have moved, 0 before, or an error. */
int hvd__round_step(struct hvd__round *round, bool *moved);
/* Moves messages of earlier rounds. Returns how many are still being sent, or
 * an error. Accepts NULL. */
int hvd__round_pending(struct hvd__round *round);

#endif
