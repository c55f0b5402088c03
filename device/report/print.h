/* SPDX-License-Identifier: Apache-2.0 */
/*
 * print.h - prints the parts of the text report. No line is longer than 80
 * columns.
 */
#ifndef IPU_REPORT_PRINT_H
#define IPU_REPORT_PRINT_H

#include "report/profile.h"
#include "report/text.h"

/* Prints the contents of the chip's memory, by tile and by step. */
int ipu__print_memory(const struct ipu__program *program,
                      struct ipu__text *text);

/* Prints the cycles in total, by op, by step, and along the run. */
int ipu__print_cycles(const struct ipu__program *program,
                      struct ipu__text *text);

/* Prints the tasks of each chip in each slot. */
int ipu__print_pipeline(const struct ipu_profile *profile,
                        struct ipu__text *text);

/* Prints the whole report. */
int ipu__print_text(const struct ipu_profile *profile, struct ipu__text *text);

#endif
