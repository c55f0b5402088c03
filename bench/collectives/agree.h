/* SPDX-License-Identifier: Apache-2.0 */
/*
 * agree.h - all ranks go on, or none does. Collective, on MPI_COMM_WORLD.
 */
#ifndef BENCH_AGREE_H
#define BENCH_AGREE_H

#include <stddef.h>
#include <stdint.h>

/* 1 if every rank is well, else 0. */
int agree_well(int well);

/* 1 if value is the same on every rank, else 0. */
int agree_same(uint64_t value);

/* text, a string in size bytes, becomes that of the lowest rank that has one
 * that is not empty. */
void agree_text(char *text, size_t size);

#endif
