/* SPDX-License-Identifier: Apache-2.0 */
/*
 * model_backend.h - backends (backend.h) that are made of a model (model.h):
 * trainer.c chooses one of them by its options.
 */
#ifndef MODELS_MODEL_BACKEND_H
#define MODELS_MODEL_BACKEND_H

#include "model/model.h"
#include "trainer/backend.h"
#include "trainer/trainer.h"

struct model_backend {
    const struct model *model;             /* borrowed until fini */
    const struct trainer_options *options; /* borrowed until new returns */
    uint64_t
        seed;    /* seed of what is random in training; each rank has its own */
    bool record; /* count for a profile */
    /* [variables], borrowed until fini. They are the first values of rank 0,
     * and, after the start and after each update, those of the devices. */
    float *const *values;
    /* [statistics], borrowed until fini: those of this rank, in the same way.
     * In values are their means over the ranks, when they were last read. */
    float *const *own;
};

/* Makes a backend of one device (single.c). On failure returns PROBLEM with the
 * text kept. */
int single_new(const struct model_backend *of, struct backend **backend);

/* Makes options->replicas devices that hold the same program (mirrored.c). On
 * failure returns PROBLEM with the text kept. */
int mirrored_new(const struct model_backend *of, struct backend **backend);

/* Makes an exchange between all ranks of the variables of the model, trained
 * ones in their order, for a backend. On failure returns PROBLEM with the text
 * kept. */
int model_exchange_new(const struct model_backend *of,
                       struct exchange **exchange);

/* Makes a pipeline of options->partition.stages devices (stages.c) for each
 * replica. Returns PROBLEM with the text kept if there are more stages than
 * pieces, or if the device refuses. */
int stages_new(const struct model_backend *of, struct backend **backend);

/* Partitions the pieces of a model into count stages, at most as many as
 * pieces, so that the stage with the most work has as little as possible. Sets
 * first[i] to the first piece of stage i, and first[count] to the number of
 * pieces. */
void stages_partition(const struct model *model, int count, int *first);

#endif
