/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pattern.h - what the buffers are filled with, and what must come out.
 *
 * Pure functions of (rank, element): every rank can compute what any other
 * put in, so every element of a result is compared with a value that neither
 * libhvd nor MPI had a hand in.
 */
#ifndef BENCH_PATTERN_H
#define BENCH_PATTERN_H

#include "tables/call.h"

#include <stdint.h>

struct pattern {
    const struct bench_dtype *type;
    const struct bench_op *op; /* NULL: a copy of rank root's buffer */
    hvd_kind kind;
    int nranks;
    int root;
    int rank;      /* whose output it is; matters where ranks get parts */
    int64_t share; /* elements of a part */
    int64_t low;   /* values are low .. low + span - 1 */
    uint32_t span;
};

/* Of an allreduce, or, without op, a broadcast. type and op are borrowed for
 * as long as the pattern is used. */
void pattern_init(struct pattern *p, const struct bench_dtype *type,
                  const struct bench_op *op, int nranks, int root);

/* Of any call: what its output on its rank must be. */
void pattern_init_call(struct pattern *p, const struct call *call);

/* What element i of rank's input is. */
int64_t pattern_value(const struct pattern *p, int rank, int64_t i);

/* What element i of the output must be. */
double pattern_result(const struct pattern *p, int64_t i);

/* Write the count elements of rank's input into buffer. */
void pattern_fill(const struct pattern *p, int rank, void *buffer,
                  int64_t count);

/* How many of the count elements of an output are wrong. */
int64_t pattern_check_result(const struct pattern *p, const void *buffer,
                             int64_t count);

/* How many of the count elements of rank's input are no longer what
 * pattern_fill wrote. */
int64_t pattern_check_input(const struct pattern *p, int rank,
                            const void *buffer, int64_t count);

#endif
