/* SPDX-License-Identifier: Apache-2.0 */
/*
 * loop.h - the loop: epochs of steps, evaluations between them.
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
 * Collective: train as the options say, evaluate, fill in the summary. A loss
 * that is no longer a number ends it: PROBLEM_EVERYWHERE.
 */
int mnist_loop_run(struct mnist_loop *loop);

#endif
