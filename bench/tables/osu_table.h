/* SPDX-License-Identifier: Apache-2.0 */
/*
 * osu_table.h - prints the table of the OSU micro-benchmarks, as their options
 * for all columns (-f), validation (-c) and percentiles (-z) shape it.
 */
#ifndef BENCH_OSU_TABLE_H
#define BENCH_OSU_TABLE_H

#include "tables/result.h"

#include <stdbool.h>
#include <stdio.h>

struct osu_head {
    hvd_kind kind;
    bool in_place;
    bool check;
    bool each; /* adds the percentiles */
};

void osu_table_head(FILE *out, const struct osu_head *head);
void osu_table_row(FILE *out, const struct osu_head *head,
                   const struct result *result);

#endif
