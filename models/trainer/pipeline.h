/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pipeline.h - a backend (backend.h) of several devices, each with a stage of
 * the network, which work at the same time on different mini-batches. It is the
 * one place that makes and runs an ipu_pipeline.
 *
 * The first output of the last stage is the loss of a mini-batch, a float32
 * scalar, unless the settings have a sink.
 *
 * The feed is asked for the mini-batches of one update, on a separate thread,
 * while that update runs: between two updates nobody calls it.
 */
#ifndef MODELS_PIPELINE_H
#define MODELS_PIPELINE_H

#include "trainer/backend.h"

#include <stdbool.h>

struct pipeline_settings {
    /* Stages, schedule, counts, replicas, optimiser: from
     * ipu_pipeline_options_init on. pipeline_init adds the infeed, the rate,
     * the sink, and what the exchange needs. */
    ipu_pipeline_options device;
    int rates; /* arguments of the first stage, float32 scalars: 1, "rate"; 2,
                  "momentum" behind it; 0, none */
    const char *feed_name; /* name for messages and profiles */
    struct feed feed;
    struct exchange *exchange; /* taken over, also on failure; may be NULL */
};

struct pipeline {
    struct backend base;
    ipu_infeed *infeed;                 /* owned, as the next two */
    ipu_pipeline *device;               /* NULL: not made yet */
    struct pipeline_exchange *exchange; /* NULL: of the process alone */
    struct feed feed;
    int64_t batches; /* mini-batches of all replicas that an update takes */
    int64_t left;    /* those that the feed has not been asked for yet */
    char why[512];   /* the feed has failed in this update; "": it has not */
    int rates;
    double loss_sum; /* sum over nlosses mini-batches of this update */
    int64_t nlosses;
};

/* Returns 0, or PROBLEM with the text kept; fini is accepted then, too.
 * The pipeline must not move in memory until then. */
int pipeline_init(struct pipeline *pipeline,
                  const struct pipeline_settings *settings);

extern const struct backend_functions pipeline_functions;

#endif
