/* SPDX-License-Identifier: Apache-2.0 */
/*
 * problem.h - how the training programs' own functions report a failure: they
 * return 0 or more on success and one of these on failure, with the line for
 * the user kept for problem_text(). Only main prints it, and the constant
 * says on which rank.
 */
#ifndef MODELS_PROBLEM_H
#define MODELS_PROBLEM_H

#include <stdio.h>

enum {
    PROBLEM = -1, /* this rank failed; it speaks */
    PROBLEM_EVERYWHERE =
        -2,                /* every rank has the same failure; rank 0 speaks */
    PROBLEM_ELSEWHERE = -3 /* another rank failed and speaks; be silent */
};

/* Keep the text, one line: control characters become '?'. Returns PROBLEM. */
__attribute__((format(printf, 1, 2))) int problem_set(const char *format, ...);

/* This thread's last problem; "" if there was none. */
const char *problem_text(void);

/* Print it behind a prefix, in one line; but a refusal of the device, which
 * says what would make a program fit, as a sentence and what belongs to it,
 * each in a line of its own. */
void problem_print(FILE *out, const char *prefix);

#endif
