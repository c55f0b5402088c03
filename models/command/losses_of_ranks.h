/* SPDX-License-Identifier: Apache-2.0 */
/*
 * losses_of_ranks.h - a training whose ranks may be lost (--elastic), as its
 * program sees it: who may begin, which losses an earlier training had and are
 * to be repeated (--elastic-replay), and what changes when the world does.
 */
#ifndef MODELS_COMMAND_LOSSES_OF_RANKS_H
#define MODELS_COMMAND_LOSSES_OF_RANKS_H

#include "command/training_run.h"

/* Checks that so many ranks may begin, and reads which of their steps are to be
 * the last. Collective. */
int elastic_prepare(struct training_run *run);

/* Before a step: ends this process, if it is to be lost there. */
void elastic_before_step(const struct training_run *run);

/* Prints how many were lost, and what became of the data, if any were. */
void elastic_report(const struct training_run *run);

/* These two are functions of struct estimator_program. */
void elastic_changed(void *run, hvd_estimator *estimator);
int64_t elastic_last(void *run, const hvd_estimator *estimator);

#endif
