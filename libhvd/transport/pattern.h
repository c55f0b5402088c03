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

#endif
