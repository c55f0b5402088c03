/* SPDX-License-Identifier: Apache-2.0 */
/*
 * problem.h - lets functions in models/ report a failure: they return 0 or more
 * on success. On failure they return a status of hvd.h or one of the constants
 * below, all negative, with the line for the user kept for problem_text(). Only
 * main prints it; the constant says on which rank.
 *
 * The text is hvd_last_error(), too, until a function of libhvd fails: so a
 * program that uses the library of models/ learns it as it learns all others.
 */
#ifndef MODELS_PROBLEM_H
#define MODELS_PROBLEM_H

#include <stdio.h>

enum {
    PROBLEM = -1,               /* this rank failed, and prints the text */
    PROBLEM_EVERYWHERE = -1001, /* every rank failed alike; rank 0 prints */
    PROBLEM_ELSEWHERE = -1002   /* another rank failed, and prints */
};

/* Keeps the text as one line: control characters become '?'. Returns
 * PROBLEM. */
__attribute__((format(printf, 1, 2))) int problem_set(const char *format, ...);

/* Does the same, and returns a status of hvd.h, such as HVD_ERR_FILE. */
__attribute__((format(printf, 2, 3))) int problem_fail(int status,
                                                       const char *format, ...);

/* Returns this thread's last problem; "" if there was none. */
const char *problem_text(void);

/* Prints the text behind a prefix, in one line. The device's refusal of a
 * program that does not fit is printed as a list: a line for each tensor and
 * each remedy. */
void problem_print(FILE *out, const char *prefix);

#endif
