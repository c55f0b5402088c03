/* SPDX-License-Identifier: Apache-2.0 */
/*
 * checkpoints.h - the checkpoints in the folder of --model-dir, through which a
 * training and its evaluator know of each other (hvd_checkpoint.h).
 */
#ifndef MODELS_CHECKPOINTS_H
#define MODELS_CHECKPOINTS_H

#include "command/training_run.h"

#include <hvd_checkpoint.h>

/* The option that names the folder, for messages. */
#define CHECKPOINT_OPTION "--model-dir"

/* For rank 0, before the training: makes the folder if there is none, and opens
 * it for writing, until checkpoints_close. PROBLEM with the text kept. folder
 * NULL: there is nothing to do. */
int checkpoints_prepare(struct command *command, const char *folder);

/* Collective, once the data is there: looks for the newest checkpoint in the
 * folder, and sets run->first to its steps. A problem if it is one of another
 * training, which has other steps. */
int checkpoints_find(struct training_run *run);

/* Collective: gives what that checkpoint has to the new trainer. */
int checkpoints_resume(struct training_run *run);

/* Collective: has rank 0 save a checkpoint of the steps made, if one is due.
 * PROBLEM with the text kept. */
int checkpoints_keep(const struct training_run *run);

/* Writes the last checkpoint of a training, and waits for the disk. For
 * rank 0. */
int checkpoints_finish(const struct training_run *run);

/* Accepts that there is none. */
void checkpoints_close(struct training_run *run);

/* Returns the tensors as a checkpoint has them, [count], with these values;
 * owned by the caller. tensors: freed. NULL with the text kept. */
struct safetensors_tensor;
hvd_checkpoint_tensor *checkpoints_tensors(struct safetensors_tensor *tensors,
                                           int count, float *const *values);

#endif
