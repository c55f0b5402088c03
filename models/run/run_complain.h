/* SPDX-License-Identifier: Apache-2.0 */
/* run_complain.h - what ipu-run says of a failure: one line. */
#ifndef MODELS_RUN_COMPLAIN_H
#define MODELS_RUN_COMPLAIN_H

/* Prints one line that begins with the program's name; after run_complain_later
 * it keeps the first line, which run_complain_now prints. Returns -1. */
void run_complain_later(void);
void run_complain_now(void);
__attribute__((format(printf, 1, 2))) int run_complain(const char *format, ...);

#endif
