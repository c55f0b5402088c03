/* SPDX-License-Identifier: Apache-2.0 */
/*
 * snapshot.h - all that a training needs to go on, as tensors of a checkpoint
 * (hvd_checkpoint.h): the variables, and what is kept beside them, such as
 * moments of the optimiser and counters. The names are the same whatever
 * devices a rank has, and whether the optimiser is on them, on the host or on
 * parameter servers, so that a training can go on on others.
 *
 *     snapshot_init(&s, trainer)
 *     snapshot_take(&s)               to save s.list
 *     snapshot_read(&s, checkpoint, ...), on rank 0, and snapshot_spread(&s)
 *     snapshot_fini(&s)
 *
 * Functions that return int return 0, or a problem with the text kept
 * (problem.h).
 */
#ifndef MODELS_SNAPSHOT_H
#define MODELS_SNAPSHOT_H

#include "trainer/trainer.h"

#include <hvd_checkpoint.h>

struct snapshot {
    struct trainer *trainer;      /* borrowed */
    hvd_checkpoint_tensor *list;  /* owned, [count]: first the variables, whose
                                     data is the trainer's, then states */
    struct trainer_state *states; /* owned, [count - nvariables] */
    void **data; /* owned, [count - nvariables]: where states are in list */
    int nvariables, count;
    int nlocal; /* variables, and states that each rank has its own of */
};

/* snapshot_fini is needed also after a failure. */
int snapshot_init(struct snapshot *snapshot, struct trainer *trainer);
void snapshot_fini(struct snapshot *snapshot); /* zeroed is accepted */

/* Reads the states from the devices, and from where the optimiser is. */
int snapshot_take(struct snapshot *snapshot);

/*
 * Reads all tensors from a checkpoint that was written after that many steps.
 * Of what it lacks, counters of steps and updates follow from the steps, and
 * sums of gradients begin anew; anything else is a problem, whose text names
 * it. A device has one counter of updates, and an optimiser on the host one for
 * each variable: the latter follow from the former.
 */
int snapshot_read(struct snapshot *snapshot, const hvd_checkpoint *checkpoint,
                  int64_t steps, int accumulate);

/* Returns the elements of a tensor. */
int64_t snapshot_elements(const hvd_checkpoint_tensor *tensor);

/* Collective: sends rank 0's tensors to all ranks. */
int snapshot_send(const hvd_checkpoint_tensor *tensors, int count);

/* Collective: does that with all of a snapshot, and gives them to all devices.
 */
int snapshot_spread(struct snapshot *snapshot);

#endif
