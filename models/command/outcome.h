/* SPDX-License-Identifier: Apache-2.0 */
/*
 * outcome.h - the results that all training programs have in common: they print
 * them at the end, and write them to the file of --summary.
 */
#ifndef MODELS_OUTCOME_H
#define MODELS_OUTCOME_H

#include "options/options.h"

#include <hvd_progress.h>
#include <jansson.h>

/* Seconds of this rank while it trains; at the end, averages over the ranks. */
struct times {
    double training; /* sum of the next four and the rest; without evaluation */
    double compute;  /* while the device runs */
    double wait;     /* while this rank waits for others */
    double update;   /* the optimiser */
    double data;     /* filling batches */
    double total;    /* total time, with evaluation */
};

/* A part of the training, and the evaluation after it. */
struct outcome_part {
    int64_t step;          /* steps made by then */
    double train_loss;     /* mean over the part */
    double loss, accuracy; /* accuracy is 0 to 1; NAN: not evaluated */
    int64_t correct;
};

/* All figures are sums or averages over the ranks. Their unit is that of the
 * program: images or characters. */
struct outcome {
    const struct options *options; /* borrowed */
    int world_size;
    int64_t parameters;
    int64_t examples;  /* there are to train on */
    int64_t evaluated; /* in an evaluation */
    int64_t per_step;  /* trained on in a step, by each rank */
    int64_t trained;
    int64_t steps;
    struct outcome_part *history; /* [parts], owned */
    int parts;
    struct times times;
    uint64_t weights_hash;  /* equal on all ranks */
    struct sums_stats sums; /* filled in with --replicas, without --stages */
    struct partition_stats
        partition; /* filled in with --stages: this rank's IPUs */
};

/* Adds a part to the history. PROBLEM: no memory. */
int outcome_add(struct outcome *outcome, const struct outcome_part *part);
void outcome_fini(struct outcome *outcome);

/* Returns the last part, which is evaluated; zeros if there is none. */
struct outcome_part outcome_last(const struct outcome *outcome);

/* Returns how many units a second were trained on; 0 if nothing was trained. */
double outcome_speed(const struct outcome *outcome);

/* Prints "mnist: 2 ranks, 64 images per rank and step (128 in all), adam, ...";
 * unit is "images". */
void outcome_report_head(const struct outcome *outcome, hvd_progress *progress,
                         const char *unit);

/* Prints speed, the parts of the run's time, what the modelled chips make of a
 * partition, and that the weights are equal. */
void outcome_report(const struct outcome *outcome, hvd_progress *progress,
                    const char *unit, const char *speed);

/*
 * Writes the outcome as JSON, with the program's own settings and results,
 * which are taken over; the fields are listed in docs/MODELS.md. One of them is
 * NULL if it could not be made: the path that option names may not be UTF-8.
 * PROBLEM with the text kept.
 */
int outcome_write(const struct outcome *outcome, json_t *settings,
                  json_t *results, const char *option, const char *path);

/* Returns the settings of a run, with the program's own, which are taken over.
 * NULL: they cannot be JSON. */
json_t *outcome_settings(const struct outcome *outcome, json_t *settings);

/* Returns a number, or null if JSON has none such: NaN or infinity. */
json_t *outcome_real_or_null(double value);

#endif
