/* SPDX-License-Identifier: Apache-2.0 */
/*
 * options.h - the command line, with the flags of nccl-tests.
 */
#ifndef BENCH_OPTIONS_H
#define BENCH_OPTIONS_H

#include "types.h"

#include <stdbool.h>
#include <stdint.h>

struct bench_options {
    hvd_kind kind; /* HVD_ALLREDUCE or HVD_BROADCAST */
    int64_t min_bytes;
    int64_t max_bytes;
    int64_t step; /* a factor, or bytes */
    bool step_is_factor;
    int iters; /* 0: 20, and more where they are short */
    int warmup_iters;
    bool check;
    const struct bench_op *op;      /* NULL: all */
    const struct bench_dtype *type; /* NULL: all */
    int root;                       /* -1: all */
    bool compare;                   /* measure raw MPI beside it */
    bool plain_memory;              /* not from hvd_malloc */
    const char *json;               /* file; NULL: none */
};

/* Parse, or end the process: with status 0 after --help and --version, with
 * 64 after an error. Only rank 0 says anything. */
void bench_options_parse(int argc, char **argv, struct bench_options *options);

/* Digits, and K, M or G (powers of 1024) with or without B. -1: malformed. */
int64_t bench_parse_bytes(const char *text);

#endif
