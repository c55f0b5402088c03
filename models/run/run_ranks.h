/* SPDX-License-Identifier: Apache-2.0 */
/*
 * run_ranks.h - the processes that train together: ranks of libhvd, without its
 * headers. Started without a launcher, a process is rank 0 of one.
 */
#ifndef MODELS_RUN_RANKS_H
#define MODELS_RUN_RANKS_H

#include <stddef.h>
#include <stdint.h>

/* Collective. From now on complaints are kept (run_complain), as only one rank
 * prints what all have met. Returns 0, or 1 after a complaint. */
int run_ranks_start(void);

/* Prints the complaint of this rank, if no other rank prints one for what ended
 * the training, and leaves. What others still wait for fails. Returns 0, or 1
 * if status, or that of another rank, was not 0. */
int run_ranks_end(int status);

int run_rank(void);
int run_ranks(void);

/* Keeps who prints what ended a run of the device: problem is what its network
 * says (device_collective_problem); 0: this rank does. */
void run_blame(int problem);

/* Collective: returns 0 if status is 0 on all ranks; else 1. */
int run_agree(int status);

/* Collective: replace data by that of rank 0, or by its average. Return 0, or 1
 * after a complaint. */
int run_send(void *data, size_t bytes);
int run_average(float *data, int64_t count);

#endif
