/* SPDX-License-Identifier: Apache-2.0 */
/*
 * times.h - measures where the time of a training run goes, and averages losses
 * over the ranks.
 */
#ifndef MODELS_TIMES_H
#define MODELS_TIMES_H

#include "trainer/trainer.h"

/* Seconds of this rank while it trains; after times_finish, averages over the
 * ranks. */
struct times {
    double training; /* sum of the next four and the rest; without evaluation */
    double compute;  /* while the device runs */
    double wait;     /* while this rank waits for others */
    double update;   /* the optimiser */
    double data;     /* filling batches */
    double total;    /* total time, with evaluation */
};

/* Collective: replaces a loss by its average over the ranks, and counts the
 * wait for it. PROBLEM_EVERYWHERE if the loss is no longer a number; steps and
 * rate go into the message. */
int times_average_loss(struct times *times, double *loss, int64_t steps,
                       double rate);

/* Collective, after training: adds the trainer's times, and averages all but
 * the total over the ranks. */
int times_finish(struct times *times, const struct trainer *trainer);

/* Returns part as a share of the training time, 0 to 1; 0 if nothing was
 * trained. */
double times_share(const struct times *times, double part);

#endif
