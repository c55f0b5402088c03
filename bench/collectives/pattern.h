/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pattern.h - the values that fill the buffers, and the expected results.
 *
 * Pure functions of (rank, element): every rank can compute the input of any
 * other rank, so every element of a result is compared with a value that was
 * computed without libhvd and MPI.
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
    int rank;      /* the rank that has this output */
    int64_t share; /* elements of a rank's share */
    int64_t low;   /* values are low .. low + span - 1 */
    uint32_t span;
};

/* Makes the pattern of an allreduce or, without op, of a broadcast. The pattern
 * borrows type and op. */
void pattern_init(struct pattern *p, const struct bench_dtype *type,
                  const struct bench_op *op, int nranks, int root);

/* Makes the pattern of any call, for the output on the call's rank. */
void pattern_init_call(struct pattern *p, const struct call *call);

/* Returns element i of rank's input. */
int64_t pattern_value(const struct pattern *p, int rank, int64_t i);

/* Returns the value that element i of the output must have. */
double pattern_result(const struct pattern *p, int64_t i);

/* Writes the count elements of rank's input into buffer. */
void pattern_fill(const struct pattern *p, int rank, void *buffer,
                  int64_t count);

/* Returns how many of the count elements of an output are wrong. */
int64_t pattern_check_result(const struct pattern *p, const void *buffer,
                             int64_t count);

/* Returns how many of the count elements of rank's input differ from what
 * pattern_fill wrote. */
int64_t pattern_check_input(const struct pattern *p, int rank,
                            const void *buffer, int64_t count);

#endif
