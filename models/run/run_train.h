/* SPDX-License-Identifier: Apache-2.0 */
/*
 * run_train.h - training of a model's initialisers, on one batch or on a data
 * set, by one process or by several ranks.
 */
#ifndef MODELS_RUN_TRAIN_H
#define MODELS_RUN_TRAIN_H

#include "run/run_data.h"
#include "run/run_model.h"

/* The losses: of the first output and of labels, averaged. */
enum { RUN_MSE, RUN_CROSS_ENTROPY };

struct run_training {
    int steps;          /* 0: those of the epochs */
    int epochs;         /* 0: none */
    int every;          /* steps from one line to the next */
    int loss;           /* RUN_MSE, ... */
    const char *labels; /* without a data set: file of numbers like the output
                           (mse), or of classes, of which the last dimension is
                           left out */
    int optimizer;      /* an enum optimizer (model/optimizer.h) */
    double rate, weight_decay;
    double momentum;     /* of SGD */
    const char **frozen; /* borrowed: patterns of names that stay constant */
    int nfrozen;
    struct run_data_settings data;
};

/*
 * Builds the model, whose other inputs were given, with its loss and optimiser,
 * trains it and prints the loss of steps, on rank 0. Outputs are those of the
 * last step, and variables the same on all ranks. Ranks begin with the weights
 * of rank 0; their gradients are averaged. Returns 0, or 1 after a complaint.
 * Collective.
 */
int run_train(struct run_model *run, const struct run_training *how,
              const ipu_target *target);

/* Builds and compiles the same program for so many chips, without data: labels
 * are as the loss takes them. Returns as above; not collective. */
int run_train_build(struct run_model *run, const struct run_training *how,
                    const ipu_target *target, int chips);

#endif
