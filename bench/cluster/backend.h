/* SPDX-License-Identifier: Apache-2.0 */
/*
 * backend.h - the libraries, with their settings, by which processes of one
 * host that were started without MPI sum an array of floats in place.
 *
 * A process uses one backend: it opens it, prepares it for a count, runs it
 * many times, and closes it.
 */
#ifndef BENCH_CLUSTER_BACKEND_H
#define BENCH_CLUSTER_BACKEND_H

#include <stdbool.h>
#include <stddef.h>

/* The rank of a process among all processes of its backend, and what it needs
 * to meet them. Strings are borrowed until open returns. */
struct backend_place {
    int rank, nranks;
    const char *tf_config; /* for libhvd */
    const char *directory; /* empty, for what needs files to meet */
};

/* A failed member writes one line to error. */
struct backend {
    const char *name;           /* of the column */
    const char *text;           /* one line, for the note */
    const char *settings[2][2]; /* of libhvd: name and value, or NULL */
    int variant;                /* of the functions below */
    /* Meets the other processes. Returns its state, or NULL. */
    void *(*open)(const struct backend *backend,
                  const struct backend_place *place, char *error, size_t room);
    /* Returns memory for so many bytes; owned by the state. NULL: none. */
    float *(*memory)(void *state, size_t bytes);
    /* Prepares for sums of the first count floats of the memory. */
    int (*prepare)(void *state, size_t count, char *error, size_t room);
    int (*run)(void *state, char *error, size_t room);
    void (*close)(void *state);
};

/* libhvd, with shared memory and over TCP. */
enum { BACKEND_HVD, BACKEND_HVD_TCP, HVD_BACKENDS };
extern const struct backend hvd_backends[HVD_BACKENDS];

/* The algorithms of Gloo over TCP. */
enum {
    BACKEND_GLOO_RING,
    BACKEND_GLOO_BCUBE,
    BACKEND_GLOO_HALVING,
    BACKEND_GLOO_POLLING,
    GLOO_BACKENDS
};

/* Fills a backend of Gloo. Returns false if this program was built without it.
 */
bool gloo_backend(int variant, struct backend *backend);

#endif
