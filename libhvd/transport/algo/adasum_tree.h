/* SPDX-License-Identifier: Apache-2.0 */
/*
 * adasum_tree.h - the tree of adaptive sums, private to this room:
 * reduce_adasum.c uses it for vectors of ranks, reduce_adasum_hosts.c for those
 * of groups of ranks. This rank has its share of all vectors of the tree.
 *
 * A level has two phases. DOTS: the dot products of pair p go to rank p, which
 * adds them up in the order of the ranks. SUMS: it sends the sums to all, which
 * combine their shares. Both use the second tag.
 */
#ifndef HVD_TRANSPORT_ALGO_ADASUM_TREE_H
#define HVD_TRANSPORT_ALGO_ADASUM_TREE_H

#include "transport/algo/algo.h"

/* Phases of a segment from this one on are those of the tree: DOTS and SUMS of
 * level 0, and so on. */
enum { HVD__ADASUM_TREE = 64 };

/* The dot products of a pair. */
enum { HVD__DOTS = 3, HVD__DOTS_BYTES = HVD__DOTS * sizeof(double) };

struct hvd__adasum {
    int first;              /* the level at which the tree begins */
    unsigned char *vectors; /* this rank's shares of the vectors of that level,
                               in the type in which they are combined */
    const int *places;      /* [team size], vector i << first lies at the place
                               with this number >> first; NULL: in order */
    size_t stride;          /* bytes from one place to the next */
    double *dots;           /* hvd__adasum_dots_bytes */
};

/* Returns the type in which vectors of a dtype are combined. */
static inline hvd_dtype hvd__adasum_middle(hvd_dtype dtype)
{
    return dtype == HVD_FLOAT64 ? HVD_FLOAT64 : HVD_FLOAT32;
}

/* Returns the bytes of any rank's share in that type, a multiple of the
 * alignment. */
size_t hvd__adasum_stride(hvd_dtype dtype, int64_t count, int nranks);
/* Returns the bytes for dot products: this rank's of all pairs, their sums, and
 * those of one pair of each rank. */
size_t hvd__adasum_dots_bytes(int nranks);

/* Returns the number of vectors left at a level, of n at level 0: pairs become
 * one, and an odd one is passed on. */
int hvd__adasum_left(int n, int level);

/* Begins a level, or writes the result if there is no other: this rank's share
 * of the output. Returns the phase, or -1 after the result. */
int hvd__adasum_begin(struct hvd__collective *c, const struct hvd__adasum *a,
                      int level);
/* Returns the bytes of the largest share. */
static inline int64_t hvd__adasum_share_bytes(const struct hvd__collective *c)
{
    return (int64_t)hvd__bytes_of(c, hvd__largest_share(c, c->team->size));
}

/* Starts the transfers of a phase with the i-th partner (hvd__segment_meet). */
int hvd__adasum_meet(struct hvd__collective *c, const struct hvd__adasum *a,
                     int phase, int i, struct hvd__transfer *transfers);
/* Ends a phase, whose transfers are done. Returns the next one, or -1 after the
 * result. */
int hvd__adasum_next(struct hvd__collective *c, const struct hvd__adasum *a,
                     int phase);

/* Returns where a rank's share of the output is. */
static inline unsigned char *hvd__adasum_share(const struct hvd__collective *c,
                                               int rank)
{
    return (unsigned char *)c->output +
           hvd__bytes_of(c, hvd__share_of(c, rank).start);
}

#endif
