/* SPDX-License-Identifier: Apache-2.0 */
/*
 * outcome.h - what came out of a run of a training program that trains on a
 * trainer: what all of them tell, at the end and in the file of --summary.
 */
#ifndef MODELS_OUTCOME_H
#define MODELS_OUTCOME_H

#include "command/times.h"
#include "options/options.h"
#include "output/progress.h"

#include <jansson.h>

/* All figures are of the whole world: sums or averages over the ranks. */
struct outcome {
    const struct options *options; /* borrowed */
    int world_size;
    int64_t parameters;
    int64_t steps;
    struct times times;
    uint64_t weights_hash;            /* equal on all ranks */
    struct partition_stats partition; /* of this rank's IPUs, with --stages */
};

/* "mnist: 2 ranks, 64 images per rank and step (128 in all), adam, ..."; unit:
 * "images". */
void outcome_report_head(struct progress *progress,
                         const struct outcome *outcome, int64_t per_step,
                         const char *unit);

/* What the time went to; that the weights are equal. */
void outcome_report_times(struct progress *progress,
                          const struct outcome *outcome);
void outcome_report_weights(struct progress *progress,
                            const struct outcome *outcome);

/*
 * Write it as JSON, with what the program adds: settings and results are taken
 * over. One that is NULL could not be made: the one text in it that is not ours
 * is a path, which may be no UTF-8; option is the one that gave it. PROBLEM
 * with the text kept.
 */
int outcome_write(const struct outcome *outcome, json_t *settings,
                  json_t *results, const char *option, const char *path);

/* A number, or null for what JSON cannot say. */
json_t *outcome_real_or_null(double value);

#endif
