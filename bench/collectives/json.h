/* SPDX-License-Identifier: Apache-2.0 */
/*
 * json.h - writes all results as JSON, for programs.
 */
#ifndef BENCH_JSON_H
#define BENCH_JSON_H

#include "collectives/options.h"
#include "tables/nccl_table.h"
#include "tables/result.h"

#include <stddef.h>

/* The facts in the file besides options and results. */
struct run_facts {
    int argc;
    char **argv;
    int nranks;
    const struct nccl_device *devices; /* nranks of them */
    const char *mpi_version;
    int64_t start_time; /* seconds since 1970 */
    int64_t end_time;
};

/*
 * Checks that the file can be written, before minutes of measuring. Returns 0,
 * or -1 with a line in error.
 */
int json_check(const char *path, char *error, size_t size);

/* Writes the document to an open file. Returns 0, or -1 without memory. */
int json_print(FILE *out, const struct bench_options *options,
               const struct run_facts *facts, const struct result *results,
               int n);

/*
 * Writes the file in one piece: under its name there is never half of a file. A
 * FIFO, a device, and the file that standard output goes to are written
 * directly. Returns 0, or -1 with a line in error.
 */
int json_write(const char *path, const struct bench_options *options,
               const struct run_facts *facts, const struct result *results,
               int n, char *error, size_t size);

#endif
