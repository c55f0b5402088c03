/* SPDX-License-Identifier: Apache-2.0 */
/*
 * problem.h - lets functions in models/ report a failure: they return 0 or more
 * on success, and on failure one of the constants below, with the line for the
 * user kept for problem_text(). Only main prints it; the constant says on which
 * rank.
 */
#ifndef MODELS_PROBLEM_H
#define MODELS_PROBLEM_H

#include <stdio.h>

enum {
    PROBLEM = -1,            /* this rank failed, and prints the text */
    PROBLEM_EVERYWHERE = -2, /* every rank failed alike; rank 0 prints */
    PROBLEM_ELSEWHERE = -3   /* another rank failed, and prints */
};

/* Keeps the text as one line: control characters become '?'. Returns
 * PROBLEM. */
__attribute__((format(printf, 1, 2))) int problem_set(const char *format, ...);

/* Returns this thread's last problem; "" if there was none. */
const char *problem_text(void);

/* Prints the text behind a prefix, in one line. The device's refusal of a
 * program that does not fit is printed as a list: a line for each tensor and
 * each remedy. */
void problem_print(FILE *out, const char *prefix);

#endif
