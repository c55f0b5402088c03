/* SPDX-License-Identifier: Apache-2.0 */
/*
 * run.h - a training of the program pipelined on all ranks: data, epochs with
 * their tests, and a report. Ranks agree before they go on, so that a failure
 * of one ends all of them.
 */
#ifndef MODELS_PIPELINE_RUN_H
#define MODELS_PIPELINE_RUN_H

#include "mnist/dataset.h"
#include "pipeline/job.h"

struct run {
    struct dataset_source source;
    struct job_options job_options;
    int64_t epochs, updates; /* updates 0: as many as the epochs have */
    /* Made by the run: */
    struct dataset dataset;
    struct job *job;
    hvd_progress *progress; /* the command's */
};

/* Collective. PROBLEM with the text kept, also if another rank has failed. */
int run_pipeline(struct run *run, hvd_progress *progress);

#endif
