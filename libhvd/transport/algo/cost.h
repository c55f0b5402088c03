/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cost.h - the time that algorithms are expected to take, by which algo.c
 * chooses. All ranks compute the same from what all of them know, in integers.
 *
 * The model is LogGP's, cut short: a step is the time until a message without
 * data has arrived; each message costs its rank time to send it and to receive
 * its counterpart; then bytes. The constants are those of TCP over 10 Gbit/s
 * Ethernet, 12 to 25 us for a message and 1.1 GB/s: what ranks of hosts that
 * share no memory have at least. A faster network moves the sizes at which one
 * algorithm is better than another, and not by much, since latency falls with
 * the time of a byte.
 */
#ifndef HVD_TRANSPORT_ALGO_COST_H
#define HVD_TRANSPORT_ALGO_COST_H

#include "transport/algo/algo.h"

enum {
    HVD__STEP_NS = 10000,
    HVD__MESSAGE_NS = 5000,
    HVD__KIB_MOVED_NS = 1000,
    HVD__KIB_REDUCED_NS = 100
};

struct hvd__cost {
    int64_t steps;    /* one after the other */
    int64_t messages; /* sent by one rank */
    int64_t moved;    /* bytes that one rank sends, or receives if more */
    int64_t reduced;  /* bytes that one rank adds to others */
};

static inline int64_t hvd__cost_ns(struct hvd__cost cost)
{
    return cost.steps * HVD__STEP_NS + cost.messages * HVD__MESSAGE_NS +
           cost.moved / 1024 * HVD__KIB_MOVED_NS +
           cost.reduced / 1024 * HVD__KIB_REDUCED_NS;
}

#endif
