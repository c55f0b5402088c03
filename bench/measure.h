/* SPDX-License-Identifier: Apache-2.0 */
/*
 * measure.h - one size of one collective: hvd, raw MPI, a copy, in turn.
 */
#ifndef BENCH_MEASURE_H
#define BENCH_MEASURE_H

#include "options.h"
#include "result.h"

/* What is measured, and memory of max_bytes for each buffer. */
struct bench {
    const struct bench_options *options;
    int rank;
    int nranks;
    void *in;
    void *out;
    char error[512]; /* after a failure on this rank; else "" */
};

/* Untimed operations of the largest and of the smallest size: the first ones
 * of a process find nothing in place. 0, or -1 on every rank. Collective. */
int measure_warm_up(struct bench *bench);

/* Collective; fills result, or returns -1 on every rank if one has failed. */
int measure(struct bench *bench, const struct bench_dtype *type,
            const struct bench_op *op, int root, int64_t bytes,
            struct result *result);

#endif
