/* SPDX-License-Identifier: Apache-2.0 */
/*
 * agree.h - lets the ranks agree on whether to go on, so that a failure of one
 * of them ends all of them, with one line.
 */
#ifndef MODELS_AGREE_H
#define MODELS_AGREE_H

#include <stdbool.h>
#include <stdint.h>

/*
 * Collective. status is this rank's 0 or PROBLEM. Returns 0 if it is 0 on all
 * ranks; otherwise PROBLEM on the lowest rank that failed and PROBLEM_ELSEWHERE
 * on the others.
 */
int agree(int status);

/*
 * Collective: checks that value is the same on all ranks. what, borrowed for
 * ever, is its name in the message: "the number of training images". Returns
 * PROBLEM_EVERYWHERE if it differs.
 */
int agree_same(const char *what, uint64_t value);

/* A number that must be the same on all ranks: "--epochs". */
struct agree_number {
    const char *what;
    int64_t value;
};

/* Collective: calls agree_same for each of n numbers. */
int agree_numbers(const struct agree_number *numbers, int n);

enum { AGREE_MOST = 96 };

/* Lists what agree_same has been asked for, each thing once, in the order of
 * the first calls, with the newest value; AGREE_MOST at most. Returns how many
 * there are. */
int agree_list(struct agree_number list[AGREE_MOST]);

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

/* Has the functions here concern this process alone, and return at once: until
 * it trains, one that has come to a training that runs already. The others are
 * elsewhere. */
void agree_apart(bool on);
bool agree_is_apart(void);

/* Collective: replace count values by their averages, or by their sums, over
 * the ranks. */
int agree_average(double *values, int count);
int agree_sum(double *values, int count);

/* Collective: replaces count values, of an hvd_dtype, by those of rank 0. */
int agree_send(void *values, int64_t count, int32_t dtype);

#endif
