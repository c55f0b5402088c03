/* SPDX-License-Identifier: Apache-2.0 */
/*
 * engine.h - a backend (backend.h) of one device, with one program that makes a
 * step: inputs as the tensors of the feed, a float32 scalar "rate" if it has
 * one, output "loss".
 */
#ifndef MODELS_ENGINE_H
#define MODELS_ENGINE_H

#include "trainer/backend.h"

#include <stdbool.h>

struct engine_settings {
    ipu_executable *executable; /* taken over, also on failure */
    struct feed feed;
    int steps;     /* runs of the program in an update, a mini-batch each */
    bool has_rate; /* the program has the input "rate" */
    bool guarded, scaled, cycled; /* likewise of optimizer_settings */
    bool record;                  /* count for a profile */
};

struct engine {
    struct backend base;
    ipu_executable *executable;         /* owned, as the next two */
    ipu_engine *device;                 /* NULL: not made yet */
    void *buffers[FEED_MOST_TENSORS];   /* which the feed fills, or not */
    void *connected[FEED_MOST_TENSORS]; /* tensors of the current mini-batch;
                                           borrowed from the feed, or these */
    struct feed feed;
    float loss, rate; /* values of the current run */
};

/* Returns 0, or PROBLEM with the text kept; fini is accepted then, too. */
int engine_init(struct engine *engine, const struct engine_settings *settings);

/* The parts of an update: fetches a mini-batch; runs the program on it, and
 * returns a status of the device. */
int engine_fetch(struct engine *engine);
int engine_run(struct engine *engine, double rate);

/* The functions of an engine that keeps its variables on the device and its
 * gradients on this rank. */
extern const struct backend_functions engine_functions;

#endif
