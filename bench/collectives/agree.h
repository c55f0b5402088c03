/* SPDX-License-Identifier: Apache-2.0 */
/*
 * agree.h - lets all ranks go on together, or none. Every function is
 * collective on MPI_COMM_WORLD.
 */
#ifndef BENCH_AGREE_H
#define BENCH_AGREE_H

#include <stddef.h>
#include <stdint.h>

/* Returns 1 if every rank is well, else 0. */
int agree_well(int well);

/* Returns 1 if value is the same on every rank, else 0. */
int agree_same(uint64_t value);

/* Replaces text, a string in size bytes, by that of the lowest rank with a text
 * that is not empty. */
void agree_text(char *text, size_t size);

#endif
