/* SPDX-License-Identifier: Apache-2.0 */
/*
 * losses_of_ranks.h - a training whose ranks may be lost, and others join
 * (--elastic), as its program sees it: who may begin, and what changes when the
 * world does.
 */
#ifndef MODELS_COMMAND_LOSSES_OF_RANKS_H
#define MODELS_COMMAND_LOSSES_OF_RANKS_H

#include "command/training_run.h"

/* Checks that so many ranks may begin, and begins a replay (replay.h).
 * Collective. */
int elastic_prepare(struct training_run *run);

/* Collective: gives what rank 0 knows of earlier steps to those who have joined
 * since. */
int elastic_share(struct training_run *run);

/* Behind the training: has this rank be what it is in the last world, which may
 * be another one than the training has ended in. */
void elastic_adopt_end(struct training_run *run);

/* After a failure when the steps are made: makes a world without the ranks that
 * are lost, in which the last part can be tried again. Returns false if that
 * was not the reason, or the training is not elastic. */
bool elastic_survives(struct training_run *run);

/* After a failure, status, before the first commit: finds out whether the ranks
 * that are left have to begin the run anew, and then has them wait for others
 * while they are too few. A newcomer that prepares its training leaves out who
 * is lost, and prepares it again. Returns 1 when they can begin; otherwise the
 * failure. */
int elastic_start_again(struct training_run *run, int status);

/* Prints how many were lost and have joined, and what became of the data, if
 * any were. */
void elastic_report(const struct training_run *run);

/* These two are functions of struct estimator_program. */
void elastic_changed(void *run, hvd_estimator *estimator);
int64_t elastic_last(void *run, hvd_estimator *estimator);

#endif
