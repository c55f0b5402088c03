/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kept_sets.h - process sets that outlive their world: a commit keeps them by
 * the processes that they consist of, and a restore in another world makes them
 * again of those that are there (state/restore.c).
 */
#ifndef HVD_CORE_KEPT_SETS_H
#define HVD_CORE_KEPT_SETS_H

#include <stdint.h>

/* For each set its id, the number of its processes, and their numbers. */
struct hvd__kept_sets {
    int64_t *words; /* owned */
    int64_t nwords;
};

/* Lists the sets of the world, without set 0. The caller frees them. Without
 * memory nwords is -1. */
void hvd__kept_sets_list(struct hvd__kept_sets *sets);

/* Collective: all ranks give the same list. Makes the sets again that this
 * world does not have, under their ids, of the processes that are in it. A line
 * tells of each that has lost some or all. */
int hvd__kept_sets_make(const struct hvd__kept_sets *sets);

/* Leaves an empty list. */
void hvd__kept_sets_free(struct hvd__kept_sets *sets);

#endif
