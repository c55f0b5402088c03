/* SPDX-License-Identifier: Apache-2.0 */
/*
 * job.h - a network trained as a pipeline: the device's side of the program
 * pipelined. Of ranks it knows the exchange alone (pipeline_exchange.h).
 */
#ifndef MODELS_PIPELINE_JOB_H
#define MODELS_PIPELINE_JOB_H

#include "trainer/partition.h"

#include <stdint.h>

struct dataset;

struct job_options {
    int net;      /* enum net */
    int schedule; /* an ipu_schedule */
    int stages, replicas, count, recompute, batch, threads;
    int optimizer; /* enum optimizer */
    double rate;
    uint64_t seed;
    const char *profile; /* directory, or "text"; NULL: none */
};

struct job;

/* PROBLEM with the text kept, as all of these. data is borrowed. */
int job_new(const struct job_options *options, struct dataset *data,
            struct job **job);
void job_free(struct job *job); /* NULL is accepted */

/* Collective, once, before it trains: rank 0's first weights for all. */
int job_start(struct job *job);

/* Collective: so many updates; the mean loss of this rank's mini-batches. If it
 * fails on a rank it does on all: no need to agree. */
int job_train(struct job *job, int64_t updates, double *loss);

/* Over this rank's test images: how many are right, and how many there are. */
int job_test(struct job *job, int64_t *correct, int64_t *images);

/* What the modelled chips make of it. */
int job_stats(const struct job *job, struct partition_stats *stats);

/* Of all weights: a number that is equal if they are. */
int job_hash(const struct job *job, uint64_t *hash);

/* What --profile asked for (profile.h). */
int job_profile(const struct job *job);

#endif
