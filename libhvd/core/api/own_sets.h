/* SPDX-License-Identifier: Apache-2.0 */
/*
 * own_sets.h - process sets that their members make among themselves, without
 * the other ranks of the world (own_sets.c).
 *
 * libhvd-mpi.so uses them for communicators of MPI: only the members of a
 * communicator call what makes and frees it. A world has either these sets or
 * those of hvd_add_process_set. Any thread may call these functions. None of
 * them waits for another rank.
 */
#ifndef HVD_CORE_OWN_SETS_H
#define HVD_CORE_OWN_SETS_H

#include <stdbool.h>
#include <stdint.h>

/* Returns the first of the ranks on a rank's host; a negative status if there
 * is no such rank. */
int hvd__own_host(int rank);

/* Returns true if the ranks of several hosts send each other everything by UCX,
 * and a thread of libhvd's, which calls no MPI, moves it. All ranks get the
 * same answer. */
bool hvd__own_is_over_ucx(void);

/* What members must know of each other before they make a set. */
struct hvd__own_offer {
    uint64_t taken;  /* a bit for each place that a set of this rank has */
    uint64_t newest; /* the highest id of its sets up to now */
};

/* Returns what this rank has. Frees the memory of sets that all of their
 * members have left. */
struct hvd__own_offer hvd__own_offer(void);

/* Makes this rank's part of a set of the ranks, [nranks], ascending. all is
 * what the members have together: the places that any of them has, and the
 * newest of their ids. Returns the id, which is the same on all members, or a
 * negative status: HVD_ERR_UNSUPPORTED if no place is free, or another thread
 * has been faster; HVD_ERR_MEMORY if there is no memory, also none to share.
 * The members then tell each other whether all have one. */
int32_t hvd__own_set_make(const struct hvd__own_offer *all,
                          const int32_t *ranks, int32_t nranks);

/* Call one of these on a set that was made: all members have it, and may use
 * it; or some have not, and nobody may. */
void hvd__own_set_begin(int32_t id);
void hvd__own_set_drop(int32_t id);

/* Ends the use of a set. Requests that all members have submitted still
 * complete. Nothing happens without a world. */
void hvd__own_set_leave(int32_t id);

#endif
