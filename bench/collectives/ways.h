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
    WAY_HVD,    /* submits each, in order, then waits */
    WAY_EACH,   /* one MPI_Allreduce each */
    WAY_PACKED, /* through a buffer, many at a time */
    WAY_FLAT,   /* one MPI_Allreduce of the arena */
    WAY_POLLED  /* as Horovod does (poller.h) */
};

struct way {
    enum way_kind kind;
    bool arena; /* tensors are in order in hvd_malloc memory; false: each is in
                   separate memory of malloc */
    size_t buffer; /* bytes of WAY_PACKED's buffer */
};

enum { MOST_WAYS = 16 };

/* The tensors in both kinds of memory, and the resources of the ways. */
struct gradients {
    struct session *session;
    struct tensor_list list;
    float *arena;     /* owned, from hvd_malloc */
    float **in_arena; /* owned; pointers into the arena */
    float **apart;    /* owned, and each tensor */
    char (*names)[24];
    hvd_handle *handles;
    float *buffer; /* owned */
    struct poller poller;
    bool polls; /* MPI allows a second thread */
};

/* Allocates the tensors. Returns 0, or -1 if this rank has no memory; call
 * gradients_fini in any case. Collective. */
int gradients_init(struct gradients *gradients, struct session *session,
                   int model);
void gradients_fini(struct gradients *gradients);

/* Fills ways with those that make sense for this model; returns how many. */
int ways_of(const struct gradients *gradients, struct way *ways);

/* Writes the way's name, as in "MPI each", into the size bytes of text. */
void way_name(const struct way *way, char *text, size_t size);

/* Returns the tensors that the way uses. */
float *const *way_tensors(const struct gradients *gradients,
                          const struct way *way);

/* Start and end the resources of the way; not timed. Collective. */
int way_begin(struct gradients *gradients, const struct way *way);
void way_end(struct gradients *gradients, const struct way *way);

/* Sums all tensors. Returns 0, or -1 on this rank. */
int way_run(struct gradients *gradients, const struct way *way);

#endif
