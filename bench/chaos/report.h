/* SPDX-License-Identifier: Apache-2.0 */
/*
 * report.h - says what was done, and what was survived.
 */
#ifndef BENCH_CHAOS_REPORT_H
#define BENCH_CHAOS_REPORT_H

#include <stdio.h>

#include "chaos/run.h"

/* Statuses of hvd-chaos, beside the command's own. */
enum { REPORT_LEFT = 1, REPORT_NOTHING = 69, REPORT_HUNG = 124 };

/* The status to exit with: 0 if faults were survived. */
int report_status(const struct run_result *result);

/* Prints it on standard error. */
void report_text(const struct chaos_settings *settings,
                 const struct run_result *result);

/* Writes it to `out`, and closes that. Returns 0, or -1 with errno set. */
int report_json(const struct chaos_settings *settings, char **words,
                const struct run_result *result, FILE *out);

#endif
