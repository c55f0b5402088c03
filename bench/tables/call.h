/* SPDX-License-Identifier: Apache-2.0 */
/*
 * call.h - describes one collective call: the numbers of input and output
 * elements, the place of the input of an in-place call, and the bus bandwidth
 * for its time. Pure functions.
 */
#ifndef BENCH_CALL_H
#define BENCH_CALL_H

#include "tables/types.h"

#include <stdbool.h>

struct call {
    hvd_kind kind;
    const struct bench_dtype *type;
    const struct bench_op *op; /* NULL: nothing is reduced */
    int root;
    int rank;
    int nranks;
    int64_t share; /* elements per rank; total if all have all */
    int64_t total; /* elements of the larger buffer */
};

/* Returns true if the benchmark measures this kind. */
bool call_known(hvd_kind kind);

bool call_reduces(hvd_kind kind);
bool call_has_root(hvd_kind kind);

/* Fills call for a larger buffer of at most this many bytes. Shares are rounded
 * down to multiples of 16 bytes, as in nccl-tests, if they are that large.
 * total is 0 if there is no room for one element per rank. */
void call_init(struct call *call, hvd_kind kind, const struct bench_dtype *type,
               const struct bench_op *op, int root, int rank, int nranks,
               int64_t bytes);

/* Returns the bytes of the larger buffer: the size in the tables. */
size_t call_bytes(const struct call *call);

/* Return the elements of this rank's input, and of its output: 0 if only the
 * root has an output. */
int64_t call_in_count(const struct call *call);
int64_t call_out_count(const struct call *call);

/* Returns the place of the input of an in-place call in its output. */
void *call_input_of(const struct call *call, void *out);

/* Returns the factor from size / time to bus bandwidth for this kind. */
double call_bus_factor(hvd_kind kind, int nranks);

#endif
