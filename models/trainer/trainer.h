/* SPDX-License-Identifier: Apache-2.0 */
/*
 * trainer.h - where the device meets the strategy: a model on a software IPU
 * whose gradients are averaged over all ranks.
 *
 * A step is one run of the device; of a pipeline, all steps of an update are.
 * Each gradient is computed where the
 * strategy averages it, in memory that all ranks of the host share, and the
 * strategy is told while the backward pass goes on; the optimiser, on the
 * device too, takes the averages from there. The variables are memory of the
 * host that all programs of the device work on. Nothing is copied. Of a rank
 * that is alone gradients stay on the device, and the optimiser's time is not
 * told apart from the rest.
 */
#ifndef MODELS_TRAINER_H
#define MODELS_TRAINER_H

#include "model/optimizer.h"
#include "trainer/partition.h"

#include <stdbool.h>
#include <stdint.h>

struct trainer;
struct progress;
struct model; /* model.h */

struct trainer_options {
    struct optimizer_settings optimizer;
    uint64_t seed;   /* of first values, and of what is random in training */
    int compression; /* of gradients: an hvd_compression */
    int check_every; /* updates between comparisons of the ranks' variables */
    int threads;
    bool serial;         /* reduce after the backward pass */
    double proportion;   /* of a tile, for products; 0: the usual */
    const char *load;    /* a file of weights to start from; NULL: none */
    const char *profile; /* where to (profile.h); NULL: nothing is counted */
    struct progress *progress; /* of compilations; borrowed by trainer_new;
                                  NULL: none is shown */
    /* With stages: the network is a pipeline, which asks for its mini-batches
     * itself. They are numbered from 0 on, those of a rank; step k has numbers
     * k replicas to (k + 1) replicas - 1. On another thread. */
    struct partition partition;
    void (*fill)(void *context, int64_t number, void *input, int32_t *labels);
    void *fill_context; /* borrowed as long as the trainer is */
};

/* Seconds since trainer_new, on this rank. */
struct trainer_times {
    double compute; /* the device ran, gradients leaving meanwhile */
    double wait;    /* nothing to do but wait for averages */
    double update;  /* the optimiser, after averages; alone: 0 */
};

/*
 * Collective: compile, draw first weights (each rank its own, on purpose: the
 * broadcast must make them equal) or load them, broadcast them from rank 0.
 * The model is taken over, also on failure; then *trainer is NULL and all ranks
 * fail. NULL: this rank could not make one, and fails.
 */
int trainer_new(struct model *model, const struct trainer_options *options,
                struct trainer **trainer);
void trainer_free(struct trainer *trainer); /* NULL is accepted */

/* Where the next batch goes: the model's input and labels. */
void *trainer_input(struct trainer *trainer);
int32_t *trainer_labels(struct trainer *trainer);

/* How many steps are made at a time: 1; of a pipeline, all of an update. */
int trainer_steps(const struct trainer *trainer);

/* Collective: train on that batch, or all of an update's. loss: the mean, on
 * this rank. */
int trainer_step(struct trainer *trainer, double rate, double *loss);

/* Evaluate the first rows of the batch; adds to both. Not collective. */
int trainer_evaluate(struct trainer *trainer, int64_t rows, double *loss_sum,
                     double *correct);

/* The variables, [variables], for reading; the trainer's. */
float *const *trainer_values(const struct trainer *trainer);

/* Collective: are the variables the same bits on all ranks? hash: theirs. */
int trainer_compare_ranks(struct trainer *trainer, uint64_t *hash);

/* Elements of all variables together. */
int64_t trainer_parameters(const struct trainer *trainer);

/* weights_save of the variables. */
int trainer_save(const struct trainer *trainer, const char *path);

/* What profile.h's where asks for: print or write it. Not collective: for the
 * rank that writes. */
int trainer_profile(const struct trainer *trainer, const char *where,
                    const char *title);

/* Of a pipeline: what the modelled chips make of it. PROBLEM otherwise. */
int trainer_partition_stats(const struct trainer *trainer,
                            struct partition_stats *stats);

void trainer_get_times(const struct trainer *trainer,
                       struct trainer_times *times);

#endif
