/* SPDX-License-Identifier: Apache-2.0 */
/*
 * library.h - what libhvd itself does with requests in a world of a given
 * shape: which go with a round, which are fused, and which algorithm moves a
 * batch. The answers come from libhvd's own functions and table, on structs
 * that look to them as a world of that shape does; nothing is sent.
 */
#ifndef BENCH_PROJECT_LIBRARY_H
#define BENCH_PROJECT_LIBRARY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "project/network.h"

struct library;

/* Reads a network's constants from a file of costs, as hvd-info --topology
 * --measure --output writes it (transport/costs.h). Returns 0, or -1 with one
 * line in error. */
int library_read_network(const char *path, struct network *network, char *error,
                         size_t size);

/* The shape of a world, and the settings on which the answers depend. */
struct library_shape {
    int nhosts;
    int nranks;        /* of each host */
    int64_t threshold; /* HVD_FUSION_THRESHOLD */
    bool by_network;   /* algorithms are chosen by the network's constants, not
                          by those that libhvd has for all */
};

/* Makes the world of a shape. The caller frees it. Returns NULL without memory.
 */
struct library *library_new(const struct library_shape *shape,
                            const struct network *network);
void library_free(struct library *library);

/* Returns the plan of an averaging allreduce of float32, or with 16 bits an
 * element if it is halved. */
struct plan library_plan(struct library *library, int64_t bytes);

/* Returns true if the data of a tensor goes with the round that agrees on it.
 */
bool library_goes_along(struct library *library, int64_t bytes);

/* The data of a round: sums; data that is kept of every rank, which the ranks'
 * hosts add to the messages step by step; and sums that go in halves. */
struct library_data {
    int64_t sums, all, halves;
};

/* Adds a tensor of so many bytes to a round. Returns false, and adds nothing,
 * if there is no room for its data. */
bool library_add(struct library *library, int64_t bytes,
                 struct library_data *data);
/* Returns the plan of a round. */
struct plan library_round(const struct library *library,
                          const struct library_data *data);

/* The most slots of a round. */
int library_round_slots(void);
/* Returns whether tensors that do not go along may be agreed on while so many
 * batches are unfinished. */
bool library_has_room(struct library *library, int nunfinished);
/* Returns how many batches move at once. */
int library_moving(const struct library *library);

/* Chooses a batch from n tensors by their bytes; writes n flags. Returns how
 * many are taken. */
int library_fuse(const struct library *library, const int64_t *bytes, int n,
                 bool *taken);

#endif
