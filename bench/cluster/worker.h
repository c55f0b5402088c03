/* SPDX-License-Identifier: Apache-2.0 */
/*
 * worker.h - a process of a group: what it is told, and what it answers.
 */
#ifndef BENCH_CLUSTER_WORKER_H
#define BENCH_CLUSTER_WORKER_H

#include "cluster/backend.h"

#include <stdint.h>

/* The socket to the process that starts the others is closed to end one. */
struct worker_order {
    int64_t count; /* of floats to prepare for and to check; 0: run instead */
    int32_t niters;
};

struct worker_answer {
    int32_t status; /* 0, or -1 with error */
    char error[256];
    double seconds; /* of all niters sums */
};

/* Does what comes on the socket until its other end is closed, and answers
 * once before the first order, when the backend is open. Never returns. */
_Noreturn void worker_run(const struct backend *backend,
                          const struct backend_place *place, int64_t most_bytes,
                          int socket);

#endif
