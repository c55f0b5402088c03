/* SPDX-License-Identifier: Apache-2.0 */
/*
 * parts.h - the declarations that the files of memory/ share: network.c builds
 * the graph, batches.c draws batches and first weights, staged.c makes a
 * pipeline of the network, and training.c trains it with each tool. Negative
 * statuses leave the device's last error set.
 */
#ifndef MODELS_MEMORY_PARTS_H
#define MODELS_MEMORY_PARTS_H

#include "data/random.h"
#include "memory/training.h"
#include "trainer/engine.h"
#include "trainer/pipeline.h"
#include "trainer/replicas.h"

enum { CLASSES = 10, MOST_LAYERS = 64 };

struct stage {
    struct training *training;
    int number;
};

/* One training with one tool. */
struct training {
    const struct training_settings *settings;
    enum tool tool;
    int rows;  /* rows of a run of one replica */
    int parts; /* runs, replicas or mini-batches in an update */
    ipu_graph *graph;
    ipu_executable *executable; /* owned by the backend */
    union {
        struct engine engine;
        struct replicas replicas;
        struct pipeline pipeline;
    };
    struct backend *backend; /* one of these; NULL: not made yet */
    struct stage stages[IPU_MAX_STAGES];
    int next; /* part of the batch that the feed takes next */
    float *x; /* [rows of a batch, width], owned, as the next two */
    int32_t *labels;
    float *directions; /* [CLASSES, width] */
    struct random random;
};

/* Returns layer i of x, in t's graph, and sets *w to its weights. */
ipu_tensor training_layer(const struct training *t, ipu_tensor x, int i,
                          int outputs, ipu_tensor *w);
/* Builds the graph, as the tool has it. */
int training_build(struct training *t);

/* Allocates a batch, and draws the directions; false: no memory. */
bool training_allocate(struct training *t);
/* Returns the feed of parts of batches. */
struct feed training_feed(struct training *t);

/* Write the first weights to the backend, and read those of all layers from it.
 */
size_t training_layer_bytes(const struct training *t, int i);
int training_write_weights(struct training *t);
int training_read_weights(const struct training *t, float *w);

/* Make the backend a pipeline, a stage for each of settings->parts; report what
 * it takes on the chips. */
int training_make_pipeline(struct training *t);
int training_account_pipeline(const struct training *t,
                              struct training_result *result);

#endif
