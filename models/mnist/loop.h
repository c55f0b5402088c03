/* SPDX-License-Identifier: Apache-2.0 */
/*
 * trainer.h - the loop: epochs of steps, evaluations between them.
 */
#ifndef MODELS_MNIST_TRAINER_H
#define MODELS_MNIST_TRAINER_H

#include "data/dataset.h"
#include "mnist/summary.h"
#include "output/progress.h"
#include "trainer/trainer.h"

/* Everything is borrowed. */
struct trainer {
    const struct options *options;
    struct dataset *dataset;
    struct joint *joint;
    struct progress *progress;
    struct summary *summary;
};

/*
 * Collective: train as the options say, evaluate, fill in the summary. A loss
 * that is no longer a number ends it: PROBLEM_EVERYWHERE.
 */
int trainer_run(struct trainer *trainer);

#endif
