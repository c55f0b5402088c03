/* SPDX-License-Identifier: Apache-2.0 */
/*
 * compare_table.h - the second table: hvd beside raw MPI and beside what the
 * machine can do.
 */
#ifndef BENCH_COMPARE_TABLE_H
#define BENCH_COMPARE_TABLE_H

#include "tables/result.h"

#include <stdio.h>

/* Lines that explain, columns, n rows, a line of means. */
void compare_table_print(FILE *out, const struct result *results, int n,
                         int nranks);

/* A third: percentiles of single operations, of hvd and of raw MPI. */
void compare_table_percentiles(FILE *out, const struct result *results, int n);

#endif
