/* SPDX-License-Identifier: Apache-2.0 */
/*
 * outcome.h - the elements that the ranks of a script put into a request, and
 * those that must come out of it.
 *
 * Element i of rank r in a request is a small integer that follows from the
 * seed, the request, r and i; so every result is known without a sum in floats.
 * use.c and burst.c call these functions.
 */
#ifndef SIM_OUTCOME_H
#define SIM_OUTCOME_H

#include "script.h"

/* A request, as one rank submits it. */
struct context {
    int phase, repeat, number; /* of the request */
    const struct script_op *op;
    int rank;
};

/* The members of the process set of a request: how many, the world rank of the
 * i-th, and the place of a world rank, which must be a member. */
int script_members(const struct script_op *op);
int script_member(const struct script_op *op, int i);
int script_place(const struct script_op *op, int rank);
bool script_has_rank(int set, int rank);

/* Returns what tells a request from all others of a run. */
uint64_t outcome_salt(const struct context *c);
/* Returns what the elements of a rank in a request follow from. */
uint32_t outcome_root(uint64_t salt, int rank);

/* Work out, write and read n elements, the first of which has this number. Long
 * arrays go through blocks of this size: a call for each element would take
 * most of the time of a run. */
enum { OUTCOME_BLOCK = 256 };
void outcome_elements(const struct script_op *op, uint32_t root, int rank,
                      int64_t first, int n, int *values);
void outcome_put(hvd_dtype dtype, void *data, int64_t first, int n,
                 const int *values);
void outcome_get(hvd_dtype dtype, const void *data, int64_t first, int n,
                 double *values);

/* Returns the elements of the next block, of those that are left. */
static inline int outcome_block(int64_t left)
{
    return left < OUTCOME_BLOCK ? (int)left : OUTCOME_BLOCK;
}

/* Returns by how much an element may differ from value after rounding. */
double outcome_tolerance(hvd_dtype dtype, double value);

/* Returns the reduction of a request, [op->count], which is valid until the
 * next request of the same number. It is worked out once for all ranks. */
const double *outcome_reduction(const struct context *c, uint64_t salt);
/* Returns the elements that a rank gives to a request. */
int64_t outcome_rows(const struct script_op *op, int rank);
/* Returns the elements that a rank must get. */
int64_t outcome_count(const struct script_op *op, int rank);

#endif
