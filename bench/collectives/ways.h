/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ways.h - the ways to sum a model's gradients over all ranks.
 */
#ifndef BENCH_WAYS_H
#define BENCH_WAYS_H

#include "collectives/models.h"
#include "collectives/poller.h"
#include "collectives/session.h"

#include "hvd.h"

#include <stdbool.h>

enum way_kind {
    WAY_HVD,    /* submit each, in order, then wait for each */
    WAY_EACH,   /* MPI_Allreduce of each */
    WAY_PACKED, /* copied into a buffer, MPI_Allreduce, copied out */
    WAY_FLAT,   /* the arena is one tensor: a single MPI_Allreduce */
    WAY_POLLED  /* poller.h */
};

struct way {
    enum way_kind kind;
    bool arena;    /* hvd_malloc, side by side in order; else malloc, each by
                      itself */
    size_t buffer; /* bytes of the buffer of WAY_PACKED */
};

enum { MOST_WAYS = 16 };

/* The tensors, twice, and what the ways need. */
struct gradients {
    struct session *session;
    struct tensor_list list;
    float *arena;     /* owned, of hvd_malloc */
    float **in_arena; /* owned; into the arena */
    float **apart;    /* owned, and what they point to */
    char (*names)[24];
    hvd_handle *handles;
    float *buffer; /* owned */
    struct poller poller;
    bool polls; /* MPI allows a second thread */
};

/* Collective: 0, or -1 if this rank has no memory; fini in any case. */
int gradients_init(struct gradients *gradients, struct session *session,
                   int model);
void gradients_fini(struct gradients *gradients);

/* Those that make sense for this model; how many there are. */
int ways_of(const struct gradients *gradients, struct way *ways);

/* "MPI_Allreduce each" and the like; in size bytes of text. */
void way_name(const struct way *way, char *text, size_t size);

/* Where the tensors of a way are. */
float *const *way_tensors(const struct gradients *gradients,
                          const struct way *way);

/* What a way needs to be ready, and its end; not timed. Collective. */
int way_begin(struct gradients *gradients, const struct way *way);
void way_end(struct gradients *gradients, const struct way *way);

/* Sum all tensors. 0, or -1 on this rank. */
int way_run(struct gradients *gradients, const struct way *way);

#endif
