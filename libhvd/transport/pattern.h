/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pattern.h - who works on what and who talks to whom: pure arithmetic.
 */
#ifndef HVD_TRANSPORT_PATTERN_H
#define HVD_TRANSPORT_PATTERN_H

#include <stdint.h>

/* A run of elements. */
struct hvd__slice {
    int64_t start;
    int64_t count;
};

/* The part of count elements that belongs to a rank: as even as can be, the
 * first ranks take the remainder (the rule of Horovod's reducescatter). */
struct hvd__slice hvd__slice_of(int64_t count, int rank, int nranks);

/* Rank's parent in the binomial tree of nranks rooted at root; -1 for root.
 */
int hvd__binomial_parent(int rank, int root, int nranks);

/* Rank's children, the one with the largest subtree first (as it is before it
 * is cut to nranks), written to children (room for 32). Returns how many. */
int hvd__binomial_children(int rank, int root, int nranks, int *children);

#endif
