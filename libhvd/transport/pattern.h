/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pattern.h - computes which rank works on which slice and communicates with
 * which ranks. The functions are pure.
 */
#ifndef HVD_TRANSPORT_PATTERN_H
#define HVD_TRANSPORT_PATTERN_H

#include <stdint.h>

/* A range of elements. */
struct hvd__slice {
    int64_t start;
    int64_t count;
};

/* Returns a rank's slice of count elements. Slices are as even as possible; the
 * first ranks take the remainder (the rule of Horovod's reducescatter). */
struct hvd__slice hvd__slice_of(int64_t count, int rank, int nranks);

/* Returns the part of a slice from element start of it on, of most elements at
 * the most. It is empty if the slice ends before. */
struct hvd__slice hvd__slice_part(struct hvd__slice slice, int64_t start,
                                  int64_t most);

/* Returns rank's parent in the binomial tree of nranks rooted at root; -1 for
 * root. */
int hvd__binomial_parent(int rank, int root, int nranks);

/* Writes rank's children to children (room for 32), the one with the largest
 * subtree first (as it is before it is cut to nranks). Returns their number. */
int hvd__binomial_children(int rank, int root, int nranks, int *children);

/* Members of a group pair up for doubling and halving: in step i with the
 * one whose number differs in bit i. The numbers are below a power of two; of
 * the members beyond that, another takes part for each. */
struct hvd__pairing {
    int steps;  /* log2 of the number of members that take part */
    int extra;  /* members beyond that number */
    int number; /* of this member among those that take part; -1: it does not */
    int folded; /* the member that it takes part for, or that does so for it;
                   -1: none */
};

/* Returns the place of member among size members, size >= 1: those with even
 * numbers below twice extra give their data to the next. */
struct hvd__pairing hvd__pairing_of(int member, int size);

/* Returns the member that is met in a step; this one takes part. */
int hvd__pairing_partner(const struct hvd__pairing *pairing, int step);

/* Returns the part of a range that the member of a number has after a number of
 * steps of halving, the first half being that of a number whose bit is 0. */
struct hvd__slice hvd__pairing_part(struct hvd__slice range, int number,
                                    int steps);

#endif
