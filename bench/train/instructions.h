/* SPDX-License-Identifier: Apache-2.0 */
/*
 * instructions.h - measures as on another processor: libhvd, the device,
 * OpenBLAS and PyTorch are all set to use the same set of instructions.
 */
#ifndef BENCH_TRAIN_INSTRUCTIONS_H
#define BENCH_TRAIN_INSTRUCTIONS_H

/* The names for command_choice; ends with NULL. */
extern const char *const train_instructions[];

/* Sets the environment variables that choose the set, and starts this program
 * again with them, because OpenBLAS reads its own when it is loaded. Returns
 * only if nothing has to change (0), or if that failed (-1, after a line on
 * stderr). */
int train_instruct(int set, char **argv);

#endif
