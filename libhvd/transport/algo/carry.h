/* SPDX-License-Identifier: Apache-2.0 */
/*
 * carry.h - how the ranks that carry a slice of a tensor, one on each host,
 * make the sums of their hosts the sums of all: reduce_hosts.c does the rest of
 * a reduction over hosts.
 *
 * A way has phases. In each, a rank starts transfers, and computes when they
 * are done. The same phase of two chunks begins in the order of the chunks, so
 * that transfers match.
 */
#ifndef HVD_TRANSPORT_ALGO_CARRY_H
#define HVD_TRANSPORT_ALGO_CARRY_H

#include "transport/algo/cost.h"
#include "transport/hosts.h"

/* A chunk of a slice that this rank carries. Its memory is borrowed. */
struct hvd__carried {
    int slice;
    int64_t count;          /* elements */
    unsigned char *range;   /* the sums of this host, and at last of all */
    unsigned char *scratch; /* as large as the largest chunk */
    size_t scratch_bytes;
};

struct hvd__carry {
    bool halves;  /* of the ways with pairs, halving */
    bool to_root; /* the sums of all are wanted on the root's host alone */
    /* Returns whether a reduction is done this way, in chunks of so many
     * bytes. */
    bool (*applies)(const struct hvd__collective *c, size_t chunk_bytes);
    /* Returns the transfers of a chunk at a time. */
    int (*ntransfers)(const struct hvd__hosts *hosts);
    int (*nphases)(const struct hvd__carry *carry,
                   const struct hvd__hosts *hosts);
    /* Returns the cost of bytes in one chunk; those that travel as another type
     * are narrow_bytes. */
    struct hvd__cost (*cost)(const struct hvd__carry *carry,
                             const struct hvd__hosts *hosts, int64_t bytes,
                             int64_t narrow_bytes);
    /* Starts the transfers of a phase; the ones before are done. */
    int (*start)(const struct hvd__carry *carry, struct hvd__collective *c,
                 const struct hvd__carried *carried, int phase,
                 struct hvd__transfer *transfers);
    /* Computes when the transfers of a phase are done. */
    void (*finish)(const struct hvd__carry *carry, struct hvd__collective *c,
                   const struct hvd__carried *carried, int phase);
};

extern const struct hvd__carry hvd__carry_all;
extern const struct hvd__carry hvd__carry_doubling;
extern const struct hvd__carry hvd__carry_halving;
extern const struct hvd__carry hvd__carry_chain;

/* Returns whether a sum that is made one host after the other is rounded no
 * more often than its type allows: one of 16-bit floats is not, but for two
 * hosts. */
static inline bool hvd__carry_rounds_once(const struct hvd__collective *c)
{
    const struct hvd__reduction *r = &c->reduction;

    return (r->dtype != HVD_FLOAT16 && r->dtype != HVD_BFLOAT16) ||
           c->team->hosts->n == 2 || r->op == HVD_MIN || r->op == HVD_MAX;
}

/* Returns the rank in the team that carries the same slice on a host. */
static inline int hvd__carry_peer(const struct hvd__collective *c,
                                  const struct hvd__carried *carried, int host)
{
    return hvd__hosts_carrier(c->team->hosts, host, carried->slice);
}

/* Returns the reduction of sums of hosts. Only the last one scales, and
 * divides. */
static inline struct hvd__reduction hvd__carry_reduction(
    const struct hvd__collective *c, bool is_last)
{
    struct hvd__reduction reduction = c->reduction;

    reduction.prescale = 1;
    if (is_last)
        return reduction;
    reduction.postscale = 1;
    if (reduction.op == HVD_AVERAGE)
        reduction.op = HVD_SUM;
    return reduction;
}

#endif
