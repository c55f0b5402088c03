/* SPDX-License-Identifier: Apache-2.0 */
/*
 * workload.h - what a rank does in a training step: how long it computes, and
 * when which gradients become ready. It comes from a table (workload_csv.c) or
 * from a recorded timeline (workload_trace.c).
 */
#ifndef BENCH_PROJECT_WORKLOAD_H
#define BENCH_PROJECT_WORKLOAD_H

#include <stddef.h>
#include <stdint.h>

struct workload_tensor {
    char *name; /* owned */
    int64_t bytes;
    double ready; /* seconds after the start of the backward pass */
};

/* Times are seconds. The tensors are in the order in which they become ready.
 */
struct workload {
    struct workload_tensor *tensors; /* owned */
    int n;
    int capacity;
    double forward; /* everything before the backward pass */
    double backward;
    double update; /* the weights' update, in proportion to bytes */
    int nranks; /* the times are those of the slowest of so many ranks, in the
                   mean over the steps */
    double deviation; /* of a rank's computing in a step from that of the
                         others, in parts of it */
    double attention; /* until libhvd's thread looks, while its rank computes */
};

/* Adds a copy of a tensor. Returns 0, or -1 without memory. */
int workload_add(struct workload *workload, const char *name, size_t length,
                 int64_t bytes, double ready);
/* Puts the tensors in the order in which they become ready; those that are
 * ready at the same time keep theirs. */
void workload_sort(struct workload *workload);
void workload_fini(struct workload *workload);

/* Returns the bytes of all tensors. */
int64_t workload_bytes(const struct workload *workload);
/* Returns the time of a step that communicates nothing. */
double workload_compute(const struct workload *workload);

/*
 * Read a workload. name is the file's, for messages. They return 0, or -1 with
 * one line in error that says where and what is wrong; the workload is then
 * empty.
 *
 * A table is CSV: lines "forward_ms,178.7", "backward_ms,357.3" and
 * "update_ms,0", of which only the backward pass is needed, then a head with
 * the columns tensor, bytes and ready_ms in any order, then a line for each
 * gradient. Empty lines and lines that begin with # are skipped.
 *
 * A timeline is what HVD_TIMELINE writes. The allreduces whose names recur are
 * the gradients; each is ready when the last rank has submitted it. Each figure
 * is its mean over the steps. rank is the only one to read; -1: all.
 */
int workload_read_csv(struct workload *workload, const char *name,
                      const char *text, size_t length, char *error,
                      size_t size);
int workload_read_trace(struct workload *workload, const char *name,
                        const char *text, size_t length, int rank, char *error,
                        size_t size);

/* Reads a file, as a timeline if its first character is a brace. */
int workload_read(struct workload *workload, const char *path, int rank,
                  char *error, size_t size);

#endif
