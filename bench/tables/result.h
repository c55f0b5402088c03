/* SPDX-License-Identifier: Apache-2.0 */
/*
 * result.h - what was measured, and what it means. Pure functions.
 */
#ifndef BENCH_RESULT_H
#define BENCH_RESULT_H

#include "tables/stats.h"
#include "tables/types.h"

enum placement { OUT_OF_PLACE, IN_PLACE, PLACEMENTS };

/* Seconds for one operation. */
struct timing {
    double mean;              /* over all timed operations, as nccl-tests */
    double median;            /* of blocks of operations; 0: not measured */
    double least, most;       /* of those blocks */
    double fastest_rank;      /* the mean of the rank whose mean is least ... */
    double slowest_rank;      /* ... and most */
    struct stats_spread each; /* of single operations; zeros: not timed */
};

struct measured {
    struct timing hvd;
    struct timing mpi;  /* of blocks in between */
    struct timing copy; /* every rank copies as many bytes at once */
    int64_t nwrong;     /* elements, over all ranks; -1: not checked */
};

struct result {
    hvd_kind kind;
    int64_t bytes;
    int64_t count;
    const struct bench_dtype *type;
    const struct bench_op *op; /* NULL: none */
    int root;
    int iters; /* for each number above */
    struct measured placements[PLACEMENTS];
};

/* What stands in the columns type, redop and root: where there is none,
 * "none", and -1. */
const char *result_type(const struct result *result);
const char *result_redop(const struct result *result);
int result_root(const struct result *result);

/* Bytes over mean time, in GB/s (1e9); 0 if no time passed. */
double result_algbw(const struct result *result, enum placement placement);

/* algbw times call_bus_factor. */
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
