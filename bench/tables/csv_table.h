/* SPDX-License-Identifier: Apache-2.0 */
/*
 * csv_table.h - results as CSV: a line for each size, placement and
 * implementation (hvd, mpi, copy).
 */
#ifndef BENCH_CSV_TABLE_H
#define BENCH_CSV_TABLE_H

#include "tables/result.h"
#include "tables/table.h"

void csv_table_begin(struct table *table, FILE *out);

/* memory and cache are words for where the buffers were. */
void csv_table_rows(struct table *table, const struct result *result,
                    int nranks, int nhosts, const char *memory,
                    const char *cache);

#endif
