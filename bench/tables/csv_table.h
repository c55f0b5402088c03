/* SPDX-License-Identifier: Apache-2.0 */
/*
 * csv_table.h - prints results as CSV: one line for each size, placement and
 * implementation (hvd, mpi, copy).
 */
#ifndef BENCH_CSV_TABLE_H
#define BENCH_CSV_TABLE_H

#include "tables/result.h"
#include "tables/table.h"

void csv_table_begin(struct table *table, FILE *out);

/* Prints the lines of one result. memory and cache name where the buffers were:
 * "hvd" or "malloc", "hot" or "cold". */
void csv_table_rows(struct table *table, const struct result *result,
                    int nranks, int nhosts, const char *memory,
                    const char *cache);

#endif
