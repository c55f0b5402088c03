/* SPDX-License-Identifier: Apache-2.0 */
/*
 * instructions.h - what another processor would run: the sets of
 * instructions that libhvd, the device, OpenBLAS and PyTorch can be told to
 * use, all the same one.
 */
#ifndef BENCH_TRAIN_INSTRUCTIONS_H
#define BENCH_TRAIN_INSTRUCTIONS_H

/* Names, for command_choice; ended by NULL. */
extern const char *const train_instructions[];

/* Sets the variables of the environment that choose the set, and starts this
 * program again with them: OpenBLAS has read its own when it was loaded.
 * Returns only if nothing has to change (0), or if that failed (-1, after a
 * line on stderr). */
int train_instruct(int set, char **argv);

#endif
