/* SPDX-License-Identifier: Apache-2.0 */
/*
 * report.h - prints what was projected: tables, the reasons for what is
 * exposed, and a picture.
 */
#ifndef BENCH_PROJECT_REPORT_H
#define BENCH_PROJECT_REPORT_H

#include <stdio.h>

#include "project/step.h"
#include "tables/table.h"

/* A row of the table of steps. */
struct projected {
    const struct step_task *task;     /* borrowed */
    const struct step_result *result; /* borrowed */
};

/* Prints one line for each world, and below, as text or JSON, why the last one
 * has communication that nothing hides. */
void report_steps(FILE *out, enum table_format format, const char *title,
                  const struct projected *rows, int n);

/* Prints one line for each batch of a step. */
void report_batches(FILE *out, enum table_format format, const char *title,
                    const struct projected *row);

/* Prints the time of one allreduce for sizes from least to most, each factor
 * times the one before. Returns 0, or -1 without memory. */
int report_allreduces(FILE *out, enum table_format format, const char *title,
                      const struct step_task *tasks, int n, int64_t least,
                      int64_t most, int factor);

/* Calls say for each line that explains what is exposed. */
void report_reasons(const struct projected *row,
                    void (*say)(void *context, const char *line),
                    void *context);

/* Draws an SVG: the efficiency of all worlds, if there are several, and the
 * step of the last one. */
void plot_steps(FILE *out, const char *title, const struct projected *rows,
                int n);

#endif
