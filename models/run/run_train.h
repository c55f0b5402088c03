/* SPDX-License-Identifier: Apache-2.0 */
/*
 * run_train.h - training of a model's initialisers on one batch.
 */
#ifndef MODELS_RUN_TRAIN_H
#define MODELS_RUN_TRAIN_H

#include "run/run_model.h"

/* The losses: of the first output and of labels, averaged. */
enum { RUN_MSE, RUN_CROSS_ENTROPY };

struct run_training {
    int steps;          /* 0: none */
    int loss;           /* RUN_MSE, ... */
    const char *labels; /* file of numbers like the output (mse), or of classes,
                           of which the last dimension is left out */
    double rate, momentum;
};

/* Builds the model, whose inputs were given, with its loss and steps of SGD,
 * trains it and prints the loss of each step. Outputs are those of the last
 * step. Returns 0, or 1 after a line that says what is wrong. */
int run_train(struct run_model *run, const struct run_training *how,
              const ipu_target *target);

#endif
