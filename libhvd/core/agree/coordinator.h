/* SPDX-License-Identifier: Apache-2.0 */
/*
 * coordinator.h - the coordinator of a process set. It runs on the first
 * member, collects the submissions of all members and decides. It does no I/O
 * and is used by the driver alone. Members are numbered within the set; texts
 * name ranks of the world.
 */
#ifndef HVD_CORE_COORDINATOR_H
#define HVD_CORE_COORDINATOR_H

#include "core/agree/proposal.h"
#include "core/agree/tune.h"

/* The coordinator of a set: the proposals collect what its members announce. */
struct hvd__coordinator {
    const int *world; /* borrowed, [nranks] */
    int nranks;
    struct hvd__proposals proposals;
    /* Requests that all members have agreed on and that wait for a free lane: a
     * list by priority, then by time. */
    struct hvd__item *first_ready, *last_ready;
    int last_joined;
    bool closed;
    struct hvd__writer out; /* decisions not yet taken by the caller */
};

/* world: the world ranks of the nranks members, borrowed. On HVD_ERR_MEMORY,
 * hvd__coordinator_free frees what was allocated. */
int hvd__coordinator_new(const int *world, int nranks,
                         struct hvd__coordinator **coordinator);
void hvd__coordinator_free(struct hvd__coordinator *coordinator);

/* Notes that a member joins or leaves. Fails with HVD_ERR_MEMORY, or with
 * HVD_ERR_INTERNAL if it has done so already. */
int hvd__coordinator_gone(struct hvd__coordinator *coordinator, int rank,
                          enum hvd__gone how);

/* Returns true if everything that members announced is decided and none has
 * joined or left. */
bool hvd__coordinator_is_idle(const struct hvd__coordinator *coordinator);

/* Returns the decisions that are due, as records for every member: all that
 * ends, and at most room batches, of the sizes that knobs has. Barriers move
 * nothing and do not count. The bytes are the caller's. */
struct hvd__writer hvd__coordinator_decide(struct hvd__coordinator *coordinator,
                                           int room,
                                           const struct hvd__knobs *knobs);

#endif
