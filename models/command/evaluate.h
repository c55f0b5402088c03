/* SPDX-License-Identifier: Apache-2.0 */
/*
 * evaluate.h - the run of an evaluator: a task of the cluster that takes no
 * part in the reduction, and measures the newest checkpoint of --model-dir
 * whenever there is another one.
 */
#ifndef MODELS_EVALUATE_H
#define MODELS_EVALUATE_H

#include "command/training_run.h"

/* Does the run, after the data was loaded. It ends with the last checkpoint of
 * the training, or fails, PROBLEM with the text kept, if none comes for as long
 * as --checkpoint-wait says. A checkpoint that cannot be read is reported, and
 * left out. */
int evaluate_checkpoints(struct training_run *run);

#endif
