/* SPDX-License-Identifier: Apache-2.0 */
/*
 * compare_table.h - the second table: hvd beside raw MPI and beside the
 * machine.
 */
#ifndef BENCH_COMPARE_TABLE_H
#define BENCH_COMPARE_TABLE_H

#include "measure.h"

#include <stdio.h>

/* algbw times this is busbw: 2 (n - 1) / n for allreduce, 1 for broadcast. */
double bus_factor(const struct bench_op *op, int nranks);

void compare_table_print(FILE *out, const struct result *results, int n,
                         int nranks);

#endif
