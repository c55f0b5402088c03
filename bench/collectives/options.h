/* SPDX-License-Identifier: Apache-2.0 */
/*
 * options.h - the command line of a collective, with the flags of nccl-tests.
 */
#ifndef BENCH_OPTIONS_H
#define BENCH_OPTIONS_H

#include "command/command.h"
#include "tables/types.h"

#include <stdbool.h>
#include <stdint.h>

/* The rule that combines the times of the ranks in the table of nccl-tests. */
enum bench_average {
    AVERAGE_RANK_0,
    AVERAGE_MEAN,
    AVERAGE_LEAST,
    AVERAGE_MOST
};

enum bench_format { FORMAT_NCCL, FORMAT_OSU, FORMAT_CSV, FORMAT_JSON };

/* The options. Strings point into argv. */
struct bench_options {
    struct command_line line;
    hvd_kind kind;
    int64_t min_bytes;
    int64_t max_bytes;
    int64_t step; /* a factor, or bytes */
    bool step_is_factor;
    int iters; /* 0: 20, and more for small sizes */
    int warmup_iters;
    bool check;
    bool each;  /* times each operation by itself */
    bool cold;  /* buffers are not in any cache */
    bool apart; /* a barrier before each operation */
    enum bench_average average;
    const struct bench_op *op;      /* NULL: all */
    const struct bench_dtype *type; /* NULL: all */
    int root;                       /* -1: all */
    bool compare;                   /* also measures raw MPI */
    bool plain_memory;              /* malloc instead of hvd_malloc */
    double min_bw;                  /* GB/s; 0: no limit */
    enum bench_format format;
    bool in_place;    /* the placement that OSU's table shows */
    const char *json; /* file; NULL: none */
};

void bench_options_init(struct bench_options *options);

/* The parser for command_parse; its input is initialised options. */
extern const struct argp bench_options_parser;

/* Returns the size after bytes; 0 after the last one. */
int64_t bench_next_size(const struct bench_options *options, int64_t bytes);

#endif
