/* SPDX-License-Identifier: Apache-2.0 */
/*
 * run.h - a training of the program pipelined on all ranks: data, epochs with
 * their tests, and a report. Ranks agree before they go on, so that a failure
 * of one ends all of them.
 */
#ifndef MODELS_PIPELINE_RUN_H
#define MODELS_PIPELINE_RUN_H

#include "command/log_folder.h"
#include "mnist/dataset.h"
#include "pipeline/job.h"

struct run_log {
    struct log_folder folder; /* open on rank 0 */
    int64_t every;            /* updates of a point */
    /* Made by the run: */
    double began;          /* by clock_seconds */
    double trained, tests; /* seconds until the last point; of tests */
    bool failed; /* something could not be logged, and this was told */
};

struct run {
    struct digits_source source; /* its count is that of training images */
    int64_t test_images;         /* 0: all, or as many as are drawn */
    struct job_options job_options;
    int64_t epochs, updates; /* updates 0: as many as the epochs have */
    struct run_log log;
    /* Made by the run: */
    hvd_iterator *train, *tests; /* owned */
    bool tested;                 /* the tests are at their end */
    struct job *job;
    hvd_progress *progress; /* the command's */
};

/* Collective. PROBLEM with the text kept, also if another rank has failed. */
int run_pipeline(struct run *run, hvd_progress *progress);

#endif
