/* SPDX-License-Identifier: Apache-2.0 */
/*
 * job.h - trains a network as a pipeline: the device's side of the program
 * pipelined. It meets other ranks only through the exchange of its pipeline.
 */
#ifndef MODELS_PIPELINE_JOB_H
#define MODELS_PIPELINE_JOB_H

#include "trainer/partition.h"
#include "trainer/trainer.h"

#include <hvd_progress.h>
#include <stdbool.h>
#include <stdint.h>

enum net {
    NET_MLP,    /* 784-256-128-64-10 */
    NET_CNN,    /* mnist's: a convolution, a pooling, two dense layers */
    NET_RESNET, /* the net for CIFAR: 3 groups of 2 blocks of 2 convolutions */
    NET_TOWERS  /* two towers of convolutions side by side, then one head */
};

extern const char *const net_names[]; /* by enum net; ends with NULL */

struct job_options {
    int net;      /* enum net */
    int schedule; /* an ipu_schedule */
    int stages, replicas, count, batch, threads;
    bool recompute;
    int optimizer; /* enum optimizer */
    double rate;
    uint64_t seed;
    const char *profile; /* directory, or "text"; NULL: none */
};

/* Mini-batches of this rank. The functions fill buffers for pixels [batch, 784]
 * and labels [batch], on a separate thread. */
struct job_data {
    /* The next to train on, for ever. 0 or PROBLEM. */
    int (*next)(void *context, void *const *buffers);
    /* The next to test with. Returns how many images are real, 0 behind the
     * last, or PROBLEM. */
    int64_t (*next_test)(void *context, void *const *buffers);
    void *context;
};

struct job;

/* Makes the pipeline, with a feed from data, which is copied. This and all
 * functions below return PROBLEM with the text kept if they fail. */
int job_new(const struct job_options *options, const struct job_data *data,
            struct job **job);
void job_free(struct job *job); /* NULL is accepted */

/* Collective, once, before the training: rank 0's first weights become those of
 * all. */
int job_start(struct job *job);

/* Collective: makes that many updates, and sets *loss to the mean of this
 * rank's mini-batches. If one rank fails, all fail, so no agreement is needed.
 * progress, which may be NULL, counts the updates since the start. */
int job_train(struct job *job, int64_t updates, hvd_progress *progress,
              double *loss);

/* Returns the updates since the start, and what the time went to. */
int64_t job_updates(const struct job *job);
struct trainer_times job_times(const struct job *job);

/* Counts this rank's test images, which make that many mini-batches, and those
 * of them that are right. */
int job_test(struct job *job, int64_t batches, int64_t *correct,
             int64_t *images);

/* Reports the figures of the modelled chips. */
int job_stats(const struct job *job, struct partition_stats *stats);

/* Computes a hash of all weights, which is equal if they are. */
int job_hash(const struct job *job, uint64_t *hash);

/* Carries out --profile (profile.h). */
int job_profile(const struct job *job);

#endif
