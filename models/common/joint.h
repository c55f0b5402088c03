/* SPDX-License-Identifier: Apache-2.0 */
/*
 * joint.h - where the device meets the strategy: a network on a software IPU
 * whose gradients are averaged over all ranks.
 *
 * The host owns the variables (the strategy updates them in place) and the
 * device holds a copy. In a step the device streams each gradient into the
 * strategy's buffer while its backward pass goes on; the strategy writes each
 * new value back to the device.
 */
#ifndef MODELS_JOINT_H
#define MODELS_JOINT_H

#include "common/options.h"

struct joint;

/* Seconds since joint_new, on this rank. */
struct joint_times {
    double compute; /* the device ran, gradients leaving meanwhile */
    double wait;    /* nothing to do but wait for averages */
    double update;  /* optimiser, and new values to the device */
};

/*
 * Collective: compile, draw first weights (each rank its own, on purpose: the
 * broadcast must make them equal), broadcast them from rank 0. On failure
 * *joint is NULL and all ranks fail.
 */
int joint_new(const struct options *options, struct joint **joint);
void joint_free(struct joint *joint); /* NULL is accepted */

/* Where the next batch goes: [batch_size, 784] and [batch_size]. */
float *joint_pixels(struct joint *joint);
int32_t *joint_labels(struct joint *joint);

/* Collective: one step of training on that batch. loss: the batch's mean, on
 * this rank. */
int joint_step(struct joint *joint, double *loss);

/* Bring the variables to the device for evaluation. */
int joint_evaluation_start(struct joint *joint);
/* Evaluate the first rows of the batch; adds to both. Not collective. */
int joint_evaluation_batch(struct joint *joint, int rows, double *loss_sum,
                           double *correct);

/* Collective: are the variables the same bits on all ranks? hash: theirs. */
int joint_compare_ranks(struct joint *joint, uint64_t *hash);

/* What options->profile asks for: print or write it. Not collective: for the
 * rank that writes. */
int joint_profile(const struct joint *joint, const struct options *options,
                  const char *title);

int joint_save(const struct joint *joint, const char *path);
int64_t joint_parameters(void);
void joint_get_times(const struct joint *joint, struct joint_times *times);

#endif
