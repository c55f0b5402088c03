/* SPDX-License-Identifier: Apache-2.0 */
/*
 * measure.h - one size of one collective: hvd, raw MPI, a copy, in turn.
 */
#ifndef BENCH_MEASURE_H
#define BENCH_MEASURE_H

#include "options.h"
#include "pattern.h"
#include "reference.h"

enum placement { OUT_OF_PLACE, IN_PLACE, PLACEMENTS };

/* Seconds for one operation; averaged over ranks. */
struct measured {
    double hvd_mean;   /* over all timed operations, as nccl-tests */
    double hvd_median; /* of blocks of operations */
    double mpi_median; /* of the blocks in between; 0: not measured */
    int64_t nwrong;    /* over all ranks; -1: not checked */
};

struct result {
    int64_t bytes;
    int64_t count;
    const struct bench_dtype *type;
    const struct bench_op *op; /* NULL: none */
    int root;                  /* of broadcast */
    int iters;                 /* for each number above */
    struct measured placements[PLACEMENTS];
    double copy_seconds; /* median: every rank copies bytes at once */
};

/* What is measured: the collective, and memory of max_bytes for each. */
struct bench {
    const struct bench_options *options;
    int rank;
    int nranks;
    void *in;
    void *out;
};

/* Collective. HVD_OK, or the status of the first rank that failed; the text
 * is hvd_last_error's there. */
int measure(const struct bench *bench, const struct bench_dtype *type,
            const struct bench_op *op, int root, int64_t bytes,
            struct result *result);

#endif
