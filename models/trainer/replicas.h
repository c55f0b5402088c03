/* SPDX-License-Identifier: Apache-2.0 */
/*
 * replicas.h - a backend (backend.h) of several devices of one process, all
 * with the same program, and averages gradients over them itself. Inputs and
 * output are those of an engine (engine.h); each replica takes a separate
 * mini-batch.
 */
#ifndef MODELS_REPLICAS_H
#define MODELS_REPLICAS_H

#include "trainer/backend.h"
#include "trainer/strategy.h"

#include <stdbool.h>

struct replicas_settings {
    ipu_executable *executable; /* taken over, also on failure */
    struct feed feed;
    int replicas;
    struct sums_settings sums;
    bool has_rate;                /* the program has the input "rate" */
    bool guarded, scaled, cycled; /* likewise of optimizer_settings */
};

struct replicas {
    struct backend base;
    int count;
    ipu_executable *executable; /* owned, as the next three */
    ipu_replicas *devices;
    void *buffers[FEED_MOST_TENSORS]; /* [count] mini-batches */
    float *losses;                    /* [count] */
    int32_t *nonfinite; /* owned, [2][count]: of the averages, and own */
    float rate;         /* of the current run */
    struct feed feed;
};

/* Returns 0, or PROBLEM with the text kept; fini is accepted then, too. */
int replicas_init(struct replicas *replicas,
                  const struct replicas_settings *settings);

/* The functions of replicas whose gradients stay on this rank. */
extern const struct backend_functions replicas_functions;

#endif
