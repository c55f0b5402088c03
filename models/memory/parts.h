/* SPDX-License-Identifier: Apache-2.0 */
/*
 * parts.h - what the files about a training share: network.c builds the graph,
 * batches.c draws what it is fed, staged.c trains it as a pipeline, and
 * training.c in all other ways. Negative statuses are the device's.
 */
#ifndef MODELS_MEMORY_PARTS_H
#define MODELS_MEMORY_PARTS_H

#include "memory/training.h"

enum { CLASSES = 10, MOST_LAYERS = 64 };

/* Torn down together. */
struct training {
    const struct training_settings *settings;
    enum tool tool;
    int rows;  /* of a run of one replica */
    int parts; /* runs, or replicas, in an update */
    ipu_graph *graph;
    ipu_executable *executable;
    ipu_engine *engine;
    ipu_replicas *replicas;
    ipu_pipeline *pipeline;
    ipu_infeed *infeed;
    int next;          /* part of the batch that a pipeline takes */
    float *x, *losses; /* of a batch, of its parts */
    int32_t *labels;
    float *directions; /* [CLASSES, width] */
    uint64_t state;    /* of random numbers */
};

/* Layer i of x, in t's graph, and its weights. */
ipu_tensor training_layer(const struct training *t, ipu_tensor x, int i,
                          int outputs, ipu_tensor *w);
/* The graph, as the tool has it. */
int training_build(struct training *t);

/* Room for batches, and what labels are by; false: no memory. */
bool training_allocate(struct training *t);
void training_draw_batch(struct training *t);

/* The first weights, to what there is of engine, replicas and pipeline; and
 * those of all layers back from it. */
size_t training_layer_bytes(const struct training *t, int i);
int training_write_weights(struct training *t);
int training_read_weights(const struct training *t, float *w);

/* A stage for each part. */
int training_run_stages(struct training *t, struct training_result *result);

#endif
