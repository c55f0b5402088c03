/* SPDX-License-Identifier: Apache-2.0 */
/*
 * loop.h - the loop of mnist: epochs of steps, and evaluations between them.
 */
#ifndef MODELS_MNIST_LOOP_H
#define MODELS_MNIST_LOOP_H

#include "data/dataset.h"
#include "mnist/summary.h"
#include "output/progress.h"
#include "trainer/trainer.h"

/* Everything is borrowed. */
struct mnist_loop {
    const struct options *options;
    struct dataset *dataset;
    struct trainer *trainer;
    struct progress *progress;
    struct summary *summary;
};

/*
 * Collective: trains as the options say, evaluates, and fills in the summary. A
 * loss that is no longer a number ends it with PROBLEM_EVERYWHERE.
 */
int mnist_loop_run(struct mnist_loop *loop);

#endif
