/* SPDX-License-Identifier: Apache-2.0 */
/*
 * replay.h - has a training repeat the worlds of another one, from its file of
 * events (--elastic-replay).
 */
#ifndef MODELS_COMMAND_REPLAY_H
#define MODELS_COMMAND_REPLAY_H

#include "command/training_run.h"

/* Collective: reads the file, if there is one, and enters the first world.
 * Called when the ranks are known to be enough. */
int replay_begin(struct training_run *run);

/* Before a step: ends this process, if it is to be lost there. */
void replay_before_step(const struct training_run *run);

/* Checks that all worlds were there. The same on all ranks. */
int replay_check(const struct training_run *run);

/* These two are functions of struct estimator_program. */
bool replay_leaves(void *run, const hvd_estimator *estimator);
int replay_enter(void *run);

void replay_fini(struct training_run *run);

#endif
