/* SPDX-License-Identifier: Apache-2.0 */
/*
 * agree.h - lets the ranks agree on whether to go on, so that a failure of one
 * of them ends all of them, with one line.
 */
#ifndef MODELS_AGREE_H
#define MODELS_AGREE_H

#include <stdint.h>

/*
 * Collective. status is this rank's 0 or PROBLEM. Returns 0 if it is 0 on all
 * ranks; otherwise PROBLEM on the lowest rank that failed and PROBLEM_ELSEWHERE
 * on the others.
 */
int agree(int status);

/*
 * Collective: checks that value is the same on all ranks. what is its name in
 * the message: "the number of training images". Returns PROBLEM_EVERYWHERE if
 * it differs.
 */
int agree_same(const char *what, uint64_t value);

/* A number that must be the same on all ranks: "--epochs". */
struct agree_number {
    const char *what;
    int64_t value;
};

/* Collective: calls agree_same for each of n numbers. */
int agree_numbers(const struct agree_number *numbers, int n);

/*
 * Turns the negative status of an hvd function into a problem: the text is
 * hvd_last_error(), the return value says whether this rank prints it.
 */
int agree_hvd_problem(int status);

/* Returns 0 while the world stands, else the problem with which it has ended.
 * Not collective: for what a rank does alone, and for long. */
int agree_ask(void);

/* Has the functions here be collective over a process set of libhvd only, to
 * which this rank belongs, and rank 0 too. */
void agree_among(int32_t process_set);
int32_t agree_group(void); /* that set; 0: all ranks */

/* Collective: replace count values by their averages, or by their sums, over
 * the ranks. */
int agree_average(double *values, int count);
int agree_sum(double *values, int count);

/* Collective: replaces count values, of an hvd_dtype, by those of rank 0. */
int agree_send(void *values, int64_t count, int32_t dtype);

#endif
