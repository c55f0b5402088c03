/* SPDX-License-Identifier: Apache-2.0 */
/*
 * algorithm.c - the ways of a sum over replicas through the links between their
 * chips, and what each costs.
 *
 *     ring            pieces go around all replicas, twice
 *     hierarchical    halves within each pair, then a ring along each side of
 *                     the ladder, then halves within each pair again
 *     one device      all send to the first, which adds and sends to all
 *
 * A ring of R replicas takes 2 (R - 1) steps, and the hierarchical sum, which
 * sends as many bytes, R: the chips of a pair are joined by a link of their
 * own. To one device, transfers come one after the other, since all of them
 * need its links.
 */
#include "replica/algorithm.h"

#include "base/error.h"
#include "target/cost.h"

static const char *const names[] = {
    [IPU_CROSS_REPLICA_RING] = "ring",
    [IPU_CROSS_REPLICA_HIERARCHICAL] = "hierarchical",
    [IPU_CROSS_REPLICA_ONE_DEVICE] = "one-device",
};

const char *ipu_cross_replica_algorithm_name(int32_t algorithm)
{
    return algorithm >= 0 && algorithm < IPU_NUM_CROSS_REPLICA_ALGORITHMS
               ? names[algorithm]
               : NULL;
}

/* Adds a transfer from one replica to another, and one back. */
static int there_and_back(const struct ipu__group *g, int32_t from, int32_t to,
                          int64_t bytes, int64_t *cycles)
{
    ipu_cycles c;

    IPU_TRY(ipu__send_cycles(g->system, from * g->shards, to * g->shards, bytes,
                             &c));
    *cycles += c.total;
    IPU_TRY(ipu__send_cycles(g->system, to * g->shards, from * g->shards, bytes,
                             &c));
    *cycles += c.total;
    return IPU_OK;
}

static int one_device(const struct ipu__group *g, int64_t bytes, int64_t *sent,
                      int64_t *cycles)
{
    for (int32_t r = 1; r < g->replicas; r++)
        IPU_TRY(there_and_back(g, r, 0, bytes, cycles));
    *sent += (g->replicas - 1) * bytes; /* by the first */
    return IPU_OK;
}

/* All pairs exchange at the same time, and the slowest counts. If the number is
 * odd, the last replica sends all it has to the one before it, and gets the
 * sum from there. */
static int hierarchical(const struct ipu__group *g, int64_t bytes,
                        int64_t *sent, int64_t *cycles)
{
    int32_t pairs = g->replicas / 2;
    int64_t half = ipu__ceil_div(bytes, 2), slowest = 0, around;

    for (int32_t p = 0; p < pairs; p++) {
        int64_t one = 0;

        IPU_TRY(there_and_back(g, 2 * p, 2 * p + 1, half, &one));
        slowest = one > slowest ? one : slowest;
    }
    *cycles += slowest;
    *sent += 2 * half;
    IPU_TRY(
        ipu__ring_cycles(g->system, pairs, 2 * g->shards, half, sent, &around));
    *cycles += around;
    if (g->replicas % 2) {
        IPU_TRY(
            there_and_back(g, g->replicas - 1, g->replicas - 2, bytes, cycles));
        *sent += bytes; /* by the one before the last */
    }
    return IPU_OK;
}

int ipu__group_cycles(const struct ipu__group *g, int64_t bytes, int64_t *sent,
                      int64_t *cycles)
{
    *cycles = 0;
    if (g->replicas < 2 || bytes == 0)
        return IPU_OK;
    switch (g->algorithm) {
    case IPU_CROSS_REPLICA_ONE_DEVICE:
        return one_device(g, bytes, sent, cycles);
    case IPU_CROSS_REPLICA_HIERARCHICAL:
        return hierarchical(g, bytes, sent, cycles);
    default:
        return ipu__ring_cycles(g->system, g->replicas, g->shards, bytes, sent,
                                cycles);
    }
}
