/* SPDX-License-Identifier: Apache-2.0 */
/*
 * summary.h - what a training run was and what came out of it, and its file.
 */
#ifndef MODELS_SUMMARY_H
#define MODELS_SUMMARY_H

#include "common/options.h"

/* The numbers of one epoch. Of an epoch that was not evaluated, the test
 * values are NAN. */
struct summary_epoch {
    double train_loss;
    double test_loss;
    double test_accuracy;
};

/* All figures are of the whole world: sums or averages over the ranks. */
struct summary {
    const char *program;
    const struct options *options; /* borrowed */
    int world_size;
    int64_t train_images, test_images;
    int64_t parameters;

    struct summary_epoch *history; /* [epochs], owned */
    int epochs;                    /* begun */
    int64_t steps;
    int64_t images; /* trained on, by all ranks */
    int64_t test_correct;
    double test_loss;
    double test_accuracy; /* 0 to 1 */

    double seconds;        /* of training: the four parts and the rest */
    double compute;        /* the device ran */
    double wait;           /* waiting for other ranks */
    double update;         /* optimiser, new values to the device */
    double data;           /* filling batches */
    double total_seconds;  /* evaluation included */
    uint64_t weights_hash; /* equal on all ranks */
};

/* One more epoch in the history. PROBLEM: no memory. */
int summary_add_epoch(struct summary *summary,
                      const struct summary_epoch *epoch);
void summary_fini(struct summary *summary);

double summary_images_per_second(const struct summary *summary);
/* part of the training time, 0 to 1; 0 if nothing was trained. */
double summary_fraction(const struct summary *summary, double part);

/* Write it as JSON; the fields are listed in docs/TRAINING.md. PROBLEM with
 * the text kept. */
int summary_write(const struct summary *summary, const char *path);

#endif
