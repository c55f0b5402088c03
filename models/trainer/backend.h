/* SPDX-License-Identifier: Apache-2.0 */
/*
 * backend.h - the interface of the devices that a trainer uses: one device
 * (engine.h), several that hold the same program (replicas.h), or several that
 * hold a stage each (pipeline.h).
 *
 * A backend fetches its mini-batches from a feed, updates its variables, and
 * reads and writes them by name. If it has an exchange (exchange.h), its
 * gradients are averaged over all ranks, and the calls marked collective are
 * collective.
 *
 * A new backend is a struct whose first member is a struct backend, an init
 * function that sets functions before anything can fail, and the functions
 * below. Failures are PROBLEM with the text kept (problem.h).
 */
#ifndef MODELS_BACKEND_H
#define MODELS_BACKEND_H

#include "trainer/exchange.h"
#include "trainer/feed.h"
#include "trainer/partition.h"
#include "trainer/trainer.h"

#include <stdlib.h>

struct backend;
struct profile_program; /* profile.h */

struct backend_functions {
    /* Collective, once, before the first update: rank 0's values of the
     * variables become those of all ranks. NULL: there is one rank only. */
    int (*start)(struct backend *backend);

    /* Collective: trains on the mini-batches of one update. Sets *loss to the
     * mean of this rank's losses. With an exchange a failure of one rank is a
     * failure of all. */
    int (*update)(struct backend *backend, double rate, double *loss);

    /* Copy all elements of one variable to all devices, or from the first. */
    int (*write)(struct backend *backend, const char *variable,
                 const float *values, size_t bytes);
    int (*read)(const struct backend *backend, const char *variable,
                float *values, size_t bytes);

    /* Writes what this rank has of each statistic of its model, the mean over
     * its devices, to where the exchange reads it. NULL: it is there after each
     * update. */
    int (*collect)(struct backend *backend);

    /* Checks that all devices of this rank hold the same variables. NULL: there
     * is nothing to compare. */
    int (*check)(struct backend *backend);

    /* Names what profile.h adds to a profile. */
    void (*describe)(const struct backend *backend,
                     struct profile_program *program);

    /* Reports what the modelled chips make of a partition; NULL: there is no
     * partition. */
    int (*get_stats)(const struct backend *backend,
                     struct partition_stats *stats);

    /* Reports what the sums over this rank's replicas cost. NULL: there are
     * none, or a partition has them in its figures. */
    int (*get_sums)(const struct backend *backend, struct sums_stats *stats);

    /* Gives back everything but the struct itself; accepts half-built ones. */
    void (*fini)(struct backend *backend);
};

struct backend {
    const struct backend_functions *functions;
    struct exchange *exchange; /* owned; NULL: no other rank has gradients */
    int steps;                 /* mini-batches of a replica in an update */
    struct model_feed *source; /* of the mini-batches of a model, borrowed;
                                  NULL: they do not come from there */
    float scale;               /* of the loss, if it is scaled */
    float momentum;            /* of the next update, if it is cycled */
    struct trainer_nonfinite nonfinite; /* of the last update, if guarded */
    /* The places of the devices' statistics, [nstatistics], all of the first
     * device, then all of the next; owned by the backend. NULL: not on the
     * host. */
    float *const *statistics;
    int nstatistics;
    struct trainer_times times;
};

/* Ends and frees a backend on the heap; NULL is accepted. */
static inline void backend_free(struct backend *backend)
{
    if (backend)
        backend->functions->fini(backend);
    free(backend);
}

#endif
