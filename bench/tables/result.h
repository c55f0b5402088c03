/* SPDX-License-Identifier: Apache-2.0 */
/*
 * result.h - one measured result, and the figures that follow from it. Pure
 * functions.
 */
#ifndef BENCH_RESULT_H
#define BENCH_RESULT_H

#include "tables/stats.h"
#include "tables/types.h"

enum placement { OUT_OF_PLACE, IN_PLACE, PLACEMENTS };

/* Seconds for one operation. */
struct timing {
    double mean;              /* over all timed operations, as in nccl-tests */
    double median;            /* over blocks of operations; 0: not measured */
    double least, most;       /* over those blocks */
    double fastest_rank;      /* least mean of a rank */
    double slowest_rank;      /* greatest mean of a rank */
    struct stats_spread each; /* single operations; zeros: not timed */
};

struct measured {
    struct timing hvd;
    struct timing mpi;  /* measured in turn with hvd */
    struct timing copy; /* all ranks copy as many bytes at once */
    int64_t nwrong;     /* wrong elements on all ranks; -1: not checked */
};

struct result {
    hvd_kind kind;
    int64_t bytes;
    int64_t count;
    const struct bench_dtype *type;
    const struct bench_op *op; /* NULL: none */
    int root;
    int iters; /* per number above */
    struct measured placements[PLACEMENTS];
};

/* Return the text of the columns type, redop and root: "none", "none" and -1 if
 * the result has none. */
const char *result_type(const struct result *result);
const char *result_redop(const struct result *result);
int result_root(const struct result *result);

/* Returns bytes / mean time in GB/s (1e9); 0 if no time passed. */
double result_algbw(const struct result *result, enum placement placement);

/* Returns algbw times call_bus_factor. */
double result_busbw(const struct result *result, enum placement placement,
                    int nranks);

/* Returns the time of raw MPI / the time of hvd: above 1, hvd is faster. 0 if
 * raw MPI was not measured. */
double result_ratio(const struct result *result, enum placement placement);

/* Return the GB/s of copies, and the bus bandwidth (of medians) as a share of
 * that. */
double result_copy_bw(const struct result *result, enum placement placement);
double result_share(const struct result *result, enum placement placement,
                    int nranks);

/* Sums and means over both placements of n results. */
struct summary {
    int64_t nwrong;
    double average_busbw;
    double peak_busbw;
    double ratio[PLACEMENTS]; /* geometric means; 0: no ratio */
};

void result_summarize(const struct result *results, int n, int nranks,
                      struct summary *summary);

#endif
