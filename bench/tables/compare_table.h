/* SPDX-License-Identifier: Apache-2.0 */
/*
 * compare_table.h - prints the second table: hvd next to raw MPI and next to
 * memcpy, the limit of the machine.
 */
#ifndef BENCH_COMPARE_TABLE_H
#define BENCH_COMPARE_TABLE_H

#include "tables/result.h"

#include <stdio.h>

/* Prints lines that explain the table, its columns, n rows, and a line of
 * means. */
void compare_table_print(FILE *out, const struct result *results, int n,
                         int nranks);

/* Prints a third table: percentiles of single operations, of hvd and of raw
 * MPI. */
void compare_table_percentiles(FILE *out, const struct result *results, int n);

#endif
