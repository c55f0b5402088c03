/* SPDX-License-Identifier: Apache-2.0 */
/*
 * replicas.h - a backend (backend.h) of several devices of one process, all
 * with the same program, and averages gradients over them itself. Inputs and
 * output are those of an engine (engine.h), without a rate; each replica takes
 * a separate mini-batch.
 */
#ifndef MODELS_REPLICAS_H
#define MODELS_REPLICAS_H

#include "trainer/backend.h"

struct replicas_settings {
    ipu_executable *executable; /* taken over, also on failure */
    struct feed feed;
    int replicas;
};

struct replicas {
    struct backend base;
    ipu_executable *executable; /* owned, as the next three */
    ipu_replicas *devices;
    void *buffers[FEED_MOST_TENSORS]; /* [replicas] mini-batches */
    float *losses;                    /* [replicas] */
    struct feed feed;
};

/* On failure returns PROBLEM with the text kept; fini is accepted then, too. */
int replicas_init(struct replicas *replicas,
                  const struct replicas_settings *settings);

#endif
