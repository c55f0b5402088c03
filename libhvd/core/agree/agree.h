/* SPDX-License-Identifier: Apache-2.0 */
/*
 * agree.h - how the ranks of a process set agree on what to run next, and in
 * which order: the door of this room.
 */
#ifndef HVD_CORE_AGREE_H
#define HVD_CORE_AGREE_H

#include <stdbool.h>

struct hvd__set;
struct hvd__settings;

/* Allocates set->agreement. shares: all members see each other's slots in
 * set->shm. HVD_ERR_MEMORY; then hvd__agreement_free gives back what is there.
 */
int hvd__agreement_new(struct hvd__set *set,
                       const struct hvd__settings *settings, bool shares);
/* Accepts a set without an agreement. */
void hvd__agreement_free(struct hvd__set *set);

/* Starts autotuning, if the settings ask for it and this rank coordinates the
 * set: from the sizes that are set, or with those of an earlier run, which
 * stay. HVD_ERR_CONFIG. */
int hvd__agree_tune(struct hvd__set *set, const struct hvd__settings *settings);

/* Driver's. Returns true if all members have left, and no message of theirs is
 * under way. */
bool hvd__agree_is_over(const struct hvd__set *set);
/* Driver's. Forgets what is submitted and not decided: nothing moves any more.
 */
void hvd__agree_drop(struct hvd__set *set);

#endif
