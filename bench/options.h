/* SPDX-License-Identifier: Apache-2.0 */
/*
 * options.h - the command line, with the flags of nccl-tests.
 */
#ifndef BENCH_OPTIONS_H
#define BENCH_OPTIONS_H

#include "types.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

/* What stands for the ranks of a time, in the numbers of nccl-tests. */
enum bench_average {
    AVERAGE_RANK_0,
    AVERAGE_MEAN,
    AVERAGE_LEAST,
    AVERAGE_MOST
};

/* Strings point into argv. */
struct bench_options {
    hvd_kind kind; /* HVD_ALLREDUCE or HVD_BROADCAST */
    int64_t min_bytes;
    int64_t max_bytes;
    int64_t step; /* a factor, or bytes */
    bool step_is_factor;
    int iters; /* 0: 20, and more where they are short */
    int warmup_iters;
    bool check;
    enum bench_average average;
    const struct bench_op *op;      /* NULL: all */
    const struct bench_dtype *type; /* NULL: all */
    int root;                       /* -1: all */
    bool compare;                   /* measure raw MPI beside it */
    bool plain_memory;              /* not from hvd_malloc */
    const char *json;               /* file; NULL: none */
    char error[256];                /* one line, when parsing failed */
};

enum { OPTIONS_RUN, OPTIONS_HELP, OPTIONS_VERSION, OPTIONS_ERROR = -1 };

/* Fill options and say what is wanted; with OPTIONS_ERROR, options->error
 * names the flag, what was given and what is accepted. Prints nothing. */
int bench_options_parse(int argc, char **argv, struct bench_options *options);

/* What --help prints. */
void bench_options_help(FILE *out);

/* Digits, and K, M or G (powers of 1024) with or without B. -1: malformed, or
 * beyond 64 bits. */
int64_t bench_parse_bytes(const char *text);

/* The size after bytes; 0 after the last one. */
int64_t bench_next_size(const struct bench_options *options, int64_t bytes);

#endif
