/* SPDX-License-Identifier: Apache-2.0 */
/*
 * normalisation.h - batch normalisation as a layer of a model: scale and offset
 * are trained, the moving averages of mean and variance are statistics.
 */
#ifndef MODELS_NORMALISATION_H
#define MODELS_NORMALISATION_H

#include "model/model.h"

/* A layer; its variables are [channels] each. */
struct normalisation {
    const char *name; /* of collectives; no other layer of the network has it */
    ipu_tensor scale, offset;  /* trained */
    ipu_tensor mean, variance; /* statistics */
};

/* Normalises x, [..., channels]: in training by the batch, which changes the
 * statistics, and otherwise by the statistics. The batch is that of this
 * device, or if the pass is synchronised, those of all. */
ipu_tensor normalisation_build(ipu_graph *graph, const struct model_pass *pass,
                               const struct normalisation *layer, ipu_tensor x);

#endif
