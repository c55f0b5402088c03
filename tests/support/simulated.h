/* SPDX-License-Identifier: Apache-2.0 */
/*
 * simulated.h - several ranks in one process, for tests of what moves data: the
 * transport copies from one rank's memory to another's, late and in an order
 * that a seed gives, and ranks of a host share memory without a heap.
 *
 * A transfer is done for each end when a test finds it so. The data is read at
 * some time before, and what is to be received is overwritten at first, so that
 * memory used too early shows.
 */
#ifndef HVD_TESTS_SIMULATED_H
#define HVD_TESTS_SIMULATED_H

#include "checks.h"
#include "transport/hosts.h"
#include "transport/team.h"

/* Is ck_assert without what Check writes to a file each time. */
#define SIMULATED_ASSERT(condition)                                            \
    do {                                                                       \
        if (!(condition))                                                      \
            ck_abort_msg("%s is wrong", #condition);                           \
    } while (0)

struct simulated;

/* Makes size ranks, of which the first host has widths[0], and so on; the
 * widths repeat. NULL: no rank shares memory. */
struct simulated *simulated_new(int size, const int *widths, int nwidths,
                                uint64_t seed);
/* Fails if a transfer was started and never matched. */
void simulated_free(struct simulated *simulated);

/* Returns the team as a rank sees it; borrowed until simulated_free. */
const struct hvd__team *simulated_team(const struct simulated *simulated,
                                       int rank);

/* Returns a number below n that the seed gives. */
int simulated_random(struct simulated *simulated, int n);

/* Returns the messages that a rank has sent, and their bytes, those to its own
 * host left out if far_only. */
struct simulated_sent {
    int64_t messages, bytes;
};
struct simulated_sent simulated_sent(const struct simulated *simulated,
                                     int rank, bool far_only);

#endif
