/* SPDX-License-Identifier: Apache-2.0 */
/*
 * outcome.h - the results that all training programs have in common: they print
 * them at the end, and write them to the file of --summary.
 */
#ifndef MODELS_OUTCOME_H
#define MODELS_OUTCOME_H

#include "command/times.h"
#include "options/options.h"
#include "output/progress.h"

#include <jansson.h>

/* All figures are sums or averages over the ranks. */
struct outcome {
    const struct options *options; /* borrowed */
    int world_size;
    int64_t parameters;
    int64_t steps;
    struct times times;
    uint64_t weights_hash; /* equal on all ranks */
    struct partition_stats
        partition; /* filled in with --stages: this rank's IPUs */
};

/* Prints "mnist: 2 ranks, 64 images per rank and step (128 in all), adam, ...";
 * unit is "images". */
void outcome_report_head(struct progress *progress,
                         const struct outcome *outcome, int64_t per_step,
                         const char *unit);

/* Print the parts of the run's time, and that the weights are equal. */
void outcome_report_times(struct progress *progress,
                          const struct outcome *outcome);
void outcome_report_weights(struct progress *progress,
                            const struct outcome *outcome);

/*
 * Writes the outcome as JSON, with the program's own settings and results,
 * which are taken over. One of them is NULL if it could not be made: the path
 * that option names may not be UTF-8. PROBLEM with the text kept.
 */
int outcome_write(const struct outcome *outcome, json_t *settings,
                  json_t *results, const char *option, const char *path);

/* Returns a number, or null if JSON has none such: NaN or infinity. */
json_t *outcome_real_or_null(double value);

#endif
