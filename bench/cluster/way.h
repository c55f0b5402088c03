/* SPDX-License-Identifier: Apache-2.0 */
/*
 * way.h - the ways in which processes of one host that were started without
 * MPI sum an array of floats, in place.
 *
 * A process belongs to one way: it opens it, prepares it for a count, runs it
 * many times, and closes it.
 */
#ifndef BENCH_CLUSTER_WAY_H
#define BENCH_CLUSTER_WAY_H

#include <stdbool.h>
#include <stddef.h>

/* The rank of a process among all processes that run the same library (a way of
 * reducing, below), and what it needs to meet them. Strings are borrowed until
 * open returns. */
struct way_place {
    int rank, nranks;
    const char *tf_config; /* for libhvd */
    const char *directory; /* empty, for what needs files to meet */
};

/* A failed member writes one line to error. */
struct way {
    const char *name;        /* of the column */
    const char *text;        /* one line, for the note */
    const char *settings[2]; /* of libhvd, "NAME=VALUE", or NULL */
    int variant;             /* of the functions below */
    /* Meets the other processes. Returns its state, or NULL. */
    void *(*open)(const struct way *way, const struct way_place *place,
                  char *error, size_t room);
    /* Returns memory for so many bytes; owned by the state. NULL: none. */
    float *(*memory)(void *state, size_t bytes);
    /* Prepares for sums of the first count floats of the memory. */
    int (*prepare)(void *state, size_t count, char *error, size_t room);
    int (*run)(void *state, char *error, size_t room);
    void (*close)(void *state);
};

/* libhvd, with shared memory and over TCP. */
enum { WAY_HVD, WAY_HVD_TCP, WAYS_OF_HVD };
extern const struct way ways_of_hvd[WAYS_OF_HVD];

/* The algorithms of Gloo over TCP. */
enum {
    WAY_GLOO_RING,
    WAY_GLOO_BCUBE,
    WAY_GLOO_HALVING,
    WAY_GLOO_POLLING,
    WAYS_OF_GLOO
};

/* Fills a way of Gloo. Returns false if this program was built without it. */
bool way_of_gloo(int variant, struct way *way);

#endif
