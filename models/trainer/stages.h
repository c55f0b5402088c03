/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stages.h - a model (model.h) trained as a pipeline: neighbouring pieces make
 * a stage, each stage has an IPU of its own, and they work at the same time on
 * different mini-batches. An update is made of optimizer.accumulate
 * mini-batches for each replica: of the mean of their gradients.
 *
 * Of ranks it knows pipeline_exchange.h alone: with several, gradients are
 * averaged over them, too, and all calls marked collective are.
 */
#ifndef MODELS_STAGES_H
#define MODELS_STAGES_H

#include "model/model.h"
#include "model/optimizer.h"
#include "trainer/partition.h"

struct stages_options {
    struct partition partition;
    struct optimizer_settings optimizer; /* without clip: no IPU has all
                                            gradients */
    uint64_t seed;                       /* of what is random in training */
    int threads;                         /* that stages run on; 1: the caller's
                                            alone */
    double proportion; /* of a tile, for products; 0: the usual */
    bool record;       /* for stages_pipeline's profile */
    /* Fill the next mini-batch. They are numbered from 0 on and go to the
     * replicas in turn. On a thread of the pipeline's own, which runs ahead. */
    void (*fill)(void *context, int64_t number, void *input, int32_t *labels);
    void *fill_context; /* borrowed as long as the stages are */
    /* Of gradients between ranks, as pipeline_exchange_set has it. */
    int compression, serial, check_every;
};

struct stages;

/* model is borrowed as long as they are. PROBLEM with the text kept, as all of
 * these: more stages than pieces, or what the device refuses. */
int stages_new(const struct model *model, const struct stages_options *options,
               struct stages **stages);
void stages_free(struct stages *stages); /* NULL is accepted */

/* All variables of all replicas, or of one, [variables]. */
int stages_write(struct stages *stages, float *const *values);
int stages_read(const struct stages *stages, float *const *values);

/* Collective, once, before it trains: rank 0's values become those of all. */
int stages_start(struct stages *stages);

/* Collective: one update. loss: the mean of this rank's mini-batches. If it
 * fails on a rank it does on all: no need to agree. */
int stages_update(struct stages *stages, double rate, double *loss);

/* Seconds of nothing but waiting for other ranks' gradients. */
double stages_wait_seconds(const struct stages *stages);

int stages_stats(const struct stages *stages, struct partition_stats *stats);

/* For a profile; it stays theirs. */
const ipu_pipeline *stages_pipeline(const struct stages *stages);

/* The first piece of each of count stages, and at first[count] the number of
 * pieces: cut so that the stage with the most work has as little as can be. At
 * most as many stages as pieces. */
void stages_partition(const struct model *model, int count, int *first);

#endif
