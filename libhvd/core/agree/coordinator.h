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
#include "core/agree/wire.h"

struct hvd__coordinator;

/* world: the world ranks of the nranks members, borrowed. Returns NULL if
 * memory runs out. */
struct hvd__coordinator *hvd__coordinator_new(const int *world, int nranks);
void hvd__coordinator_free(struct hvd__coordinator *coordinator);

/* Each of the next functions takes a record of members, which is copied. They
 * fail with HVD_ERR_MEMORY, or with HVD_ERR_INTERNAL if the record makes no
 * sense. */
int hvd__coordinator_announce(struct hvd__coordinator *coordinator,
                              const struct hvd__announcement *announcement);
int hvd__coordinator_gone(struct hvd__coordinator *coordinator, int rank,
                          enum hvd__gone how);

/* Returns true if everything that members announced is decided and none has
 * joined or left. */
bool hvd__coordinator_is_idle(const struct hvd__coordinator *coordinator);

/*
 * Writes the decisions that are due, as records for every member: all that
 * ends, and at most room batches, of the sizes that knobs has. Barriers move
 * nothing and do not count. The bytes belong to the coordinator. The caller
 * takes them by clearing the writer; otherwise the next call returns them
 * again, with more behind them.
 */
struct hvd__writer *hvd__coordinator_decide(
    struct hvd__coordinator *coordinator, int room,
    const struct hvd__knobs *knobs);

#endif
