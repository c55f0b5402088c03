/* SPDX-License-Identifier: Apache-2.0 */
/*
 * print.h - the parts of the text report. No line is longer than 80 columns.
 */
#ifndef IPU_REPORT_PRINT_H
#define IPU_REPORT_PRINT_H

#include "report/profile.h"
#include "report/text.h"

/* What the chip's memory holds, tile by tile and step by step. */
int ipu__print_memory(const struct ipu__program *program,
                      struct ipu__text *text);

/* Cycles in all, by op, by step, along the run. */
int ipu__print_cycles(const struct ipu__program *program,
                      struct ipu__text *text);

/* Which chip ran what in which slot. */
int ipu__print_pipeline(const struct ipu_profile *profile,
                        struct ipu__text *text);

/* All of it. */
int ipu__print_text(const struct ipu_profile *profile, struct ipu__text *text);

#endif
