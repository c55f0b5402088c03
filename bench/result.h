/* SPDX-License-Identifier: Apache-2.0 */
/*
 * result.h - what was measured, and what it means. Pure functions.
 */
#ifndef BENCH_RESULT_H
#define BENCH_RESULT_H

#include "types.h"

enum placement { OUT_OF_PLACE, IN_PLACE, PLACEMENTS };

/* Seconds for one operation. */
struct measured {
    double hvd_mean;    /* over all timed operations, as nccl-tests */
    double hvd_median;  /* of blocks of operations */
    double mpi_median;  /* of the blocks in between; 0: not measured */
    double copy_median; /* every rank copies as many bytes at once */
    int64_t nwrong;     /* elements, over all ranks; -1: not checked */
};

struct result {
    int64_t bytes;
    int64_t count;
    const struct bench_dtype *type;
    const struct bench_op *op; /* NULL: none */
    int root;                  /* of broadcast */
    int iters;                 /* for each number above */
    struct measured placements[PLACEMENTS];
};

/* What stands in the columns redop and root: "none", and -1. */
const char *result_redop(const struct result *result);
int result_root(const struct result *result);

/* Bytes over mean time, in GB/s (1e9); 0 if no time passed. */
double result_algbw(const struct result *result, enum placement placement);

/* algbw times 2 (n - 1) / n for allreduce, 1 for broadcast. */
double result_busbw(const struct result *result, enum placement placement,
                    int nranks);

/* How often hvd goes into raw MPI's time: above 1, hvd is faster. 0 if there
 * is nothing to compare. */
double result_ratio(const struct result *result, enum placement placement);

/* GB/s of copies, and bus bandwidth (of medians) as a share of that. */
double result_copy_bw(const struct result *result, enum placement placement);
double result_share(const struct result *result, enum placement placement,
                    int nranks);

/* Over both placements of n results. */
struct summary {
    int64_t nwrong;
    double average_busbw;
    double peak_busbw;
    double ratio[PLACEMENTS]; /* geometric means; 0 if there is none */
};

void result_summarize(const struct result *results, int n, int nranks,
                      struct summary *summary);

#endif
