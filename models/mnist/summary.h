/* SPDX-License-Identifier: Apache-2.0 */
/*
 * summary.h - the settings and results of a run of mnist, and their file.
 */
#ifndef MODELS_MNIST_SUMMARY_H
#define MODELS_MNIST_SUMMARY_H

#include "command/outcome.h"

/* The results of one epoch. The test values are NAN if it was not evaluated. */
struct summary_epoch {
    double train_loss;
    double test_loss;
    double test_accuracy;
};

/* All figures are sums or averages over the ranks. */
struct summary {
    struct outcome outcome;
    int64_t train_images, test_images;

    struct summary_epoch *history; /* [epochs], owned */
    int epochs;                    /* begun */
    int64_t images;                /* trained on, by all ranks */
    int64_t test_correct;
    double test_loss;
    double test_accuracy; /* 0 to 1 */
};

/* Adds an epoch to the history. PROBLEM: no memory. */
int summary_add_epoch(struct summary *summary,
                      const struct summary_epoch *epoch);
void summary_fini(struct summary *summary);

double summary_images_per_second(const struct summary *summary);

/* Writes it as JSON; the fields are listed in docs/MODELS.md. PROBLEM with
 * the text kept. */
int summary_write(const struct summary *summary, const char *path);

#endif
