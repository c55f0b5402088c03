/* SPDX-License-Identifier: Apache-2.0 */
/*
 * grow.h - a world takes in more ranks. Callers hold the lock of hvd_init,
 * unless it says otherwise.
 */
#ifndef HVD_CORE_WORLD_GROW_H
#define HVD_CORE_WORLD_GROW_H

#include "core/world/elastic.h"
#include "core/world/world.h"

/* Writes the tickets of the guests of this rank, by ranks of the cluster; the
 * caller frees them. Returns how many ranks the cluster has; 0, and no tickets,
 * if nobody can join. The world stands; needs no lock. */
int hvd__grow_list(struct hvd__world *world, int64_t **tickets);
/* Returns how many guests this rank has. Needs no lock. */
int hvd__grow_count(struct hvd__world *world);

/* Writes who makes up the world after this one, if those with tickets join.
 * The caller frees admission->ranks. */
int hvd__grow_plan(const struct hvd__elastic *elastic, const int64_t *tickets,
                   struct hvd__admission *admission);

/* Collective over the ranks of an origin, which have a transport. If all of
 * them have the same plan, the transport becomes one of the ranks of the plan,
 * and the world has a parent, else nothing changes. */
int hvd__grow_open(struct hvd__world *world, const struct hvd__origin *origin,
                   const struct hvd__asked *asked);

/* Opens the transport of the ranks that the origin's lobby has admitted. */
int hvd__grow_enter(struct hvd__world *world, const struct hvd__origin *origin,
                    const struct hvd__asked *asked);

/* Returns the error with which a wait ends while those who were admitted start
 * their world. */
int hvd__grow_find_end(const struct hvd__world *world);

/* Decides, when this rank has started a world, or cannot with this status,
 * whether there is that world: returns HVD_OK if there is. */
int hvd__grow_settle(struct hvd__world *world, int status);
/* Decides that there is not, before the world is freed. */
void hvd__grow_cancel(struct hvd__world *world);

#endif
