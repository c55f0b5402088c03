/* SPDX-License-Identifier: Apache-2.0 */
/*
 * machine.h - what the numbers were measured on.
 */
#ifndef BENCH_MACHINE_H
#define BENCH_MACHINE_H

#include <stddef.h>
#include <stdint.h>

/* The processor's name, "unknown" if the system does not tell. */
void machine_processor(char *text, size_t size);

/* Bytes of memory that can be had without swapping; -1: unknown. */
int64_t machine_memory(void);

#endif
