/* SPDX-License-Identifier: Apache-2.0 */
/*
 * call.h - one collective as all of the bench sees it: how many elements go
 * in and come out, where the input of a call in place lies, and what its time
 * means. Pure functions.
 */
#ifndef BENCH_CALL_H
#define BENCH_CALL_H

#include "tables/types.h"

#include <stdbool.h>

struct call {
    hvd_kind kind;
    const struct bench_dtype *type;
    const struct bench_op *op; /* NULL where nothing is reduced */
    int root;
    int rank;
    int nranks;
    int64_t share; /* elements of one rank; equal to total if all have all */
    int64_t total; /* elements of the larger buffer */
};

/* Whether the bench measures this kind at all. */
bool call_known(hvd_kind kind);

bool call_reduces(hvd_kind kind);
bool call_has_root(hvd_kind kind);

/* Fill call for a larger buffer of at most bytes. Shares are cut to multiples
 * of 16 bytes, as nccl-tests does, where they are that large. total is 0 if
 * there is no room for an element of each rank. */
void call_init(struct call *call, hvd_kind kind, const struct bench_dtype *type,
               const struct bench_op *op, int root, int rank, int nranks,
               int64_t bytes);

/* Bytes of the larger buffer: the size in the tables. */
size_t call_bytes(const struct call *call);

/* Elements of this rank's input; of its output, 0 where only root has one. */
int64_t call_in_count(const struct call *call);
int64_t call_out_count(const struct call *call);

/* Where the input of a call in place lies in its output. */
void *call_input_of(const struct call *call, void *out);

/* Bus bandwidth over size / time, for this kind. */
double call_bus_factor(hvd_kind kind, int nranks);

#endif
