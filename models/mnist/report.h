/* SPDX-License-Identifier: Apache-2.0 */
/*
 * report.h - the lines before and after a training run.
 */
#ifndef MODELS_MNIST_REPORT_H
#define MODELS_MNIST_REPORT_H

#include "mnist/summary.h"
#include "output/progress.h"

/* Prints the network, the data, and the number of ranks. */
void report_head(struct progress *progress, const struct summary *summary);

/* Prints accuracy, speed, where the time went, and that the ranks agree. */
void report_results(struct progress *progress, const struct summary *summary);

#endif
