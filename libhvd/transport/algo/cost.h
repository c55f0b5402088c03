/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cost.h - the time that algorithms are expected to take, by which algo.c
 * chooses. All ranks compute the same from what all of them know, in integers:
 * the constants are the world's (transport/costs.h).
 */
#ifndef HVD_TRANSPORT_ALGO_COST_H
#define HVD_TRANSPORT_ALGO_COST_H

#include "transport/algo/algo.h"
#include "transport/costs.h"
#include "transport/hosts.h"

struct hvd__cost {
    int64_t steps;    /* one after the other */
    int64_t messages; /* sent by one rank */
    int64_t moved;    /* bytes that a host sends, or receives if more */
    int64_t reduced;  /* bytes that one rank adds to others, or copies */
    int64_t meetings; /* of all ranks of a host, in shared memory */
};

/* Returns how many ranks of a host use its link at the same time, if all move
 * the same. */
static inline int64_t hvd__cost_flows(const struct hvd__team *team)
{
    return team->hosts && !team->is_near ? team->hosts->widest : 1;
}

/* Returns bytes that so many senders move to each host at the same time, as
 * they count. A few streams share a link well. With more, some wait for TCP to
 * send again: at 1 Gbit/s, 1 MiB in messages from 15 hosts at once took four
 * times as long as in steps. */
static inline int64_t hvd__cost_at_once(int64_t bytes, int64_t senders)
{
    enum { MANY = 8 };

    return senders > MANY ? 2 * bytes : bytes;
}

/* Returns nanoseconds, on the links between the members of a team. */
static inline int64_t hvd__cost_ns(const struct hvd__team *team,
                                   struct hvd__cost cost)
{
    const struct hvd__costs *costs =
        team->costs ? team->costs : &hvd__default_costs;
    const struct hvd__link_costs *link =
        team->is_near ? &costs->within : &costs->between;

    return cost.steps * link->step + cost.messages * link->message +
           cost.moved / 1024 * link->kib_moved +
           cost.reduced / 1024 * costs->kib_reduced +
           cost.meetings * costs->within.step;
}

#endif
