/* SPDX-License-Identifier: Apache-2.0 */
/*
 * times.h - what the time of a training run went to, and what its loop says of
 * losses: of the programs that train on a trainer.
 */
#ifndef MODELS_TIMES_H
#define MODELS_TIMES_H

#include "trainer/trainer.h"

/* Seconds: of this rank while it trains, averages over the ranks after
 * times_finish. */
struct times {
    double training; /* the four parts and the rest; without evaluation */
    double compute;  /* the device ran */
    double wait;     /* waiting for other ranks */
    double update;   /* the optimiser */
    double data;     /* filling batches */
    double total;    /* evaluation included */
};

/* Collective: replace a loss by its average over the ranks; the wait for it is
 * communication like any other. PROBLEM_EVERYWHERE if it is no longer a number
 * after so many steps at this rate. */
int times_average_loss(struct times *times, double *loss, int64_t steps,
                       double rate);

/* Collective, after training: add what the trainer has counted, and average all
 * but the total over the ranks. */
int times_finish(struct times *times, const struct trainer *trainer);

/* part of the training time, 0 to 1; 0 if nothing was trained. */
double times_share(const struct times *times, double part);

#endif
