/* SPDX-License-Identifier: Apache-2.0 */
/*
 * log.h - what --log-dir has of a training of pipelined (docs/LOGS.md): rank 0
 * writes it, with figures of all ranks. Without --log-dir all functions return
 * at once. A log that cannot be written is a failure when it is opened and
 * closed; in between it ends no training.
 */
#ifndef MODELS_PIPELINE_LOG_H
#define MODELS_PIPELINE_LOG_H

#include "pipeline/run.h"

/* Opens the log on rank 0, with a table of the settings. */
int log_begin(struct run *run);

/* Collective: logs a point, the mean loss on this rank of the updates since the
 * last one. */
int log_point(struct run *run, int64_t updates, double loss);

/* Logs a test of seconds, which are none of the training's. */
void log_test(struct run *run, double accuracy, double seconds);

/* Closes the log, and has a page made of it. */
int log_end(struct run *run);

#endif
