/* SPDX-License-Identifier: Apache-2.0 */
/*
 * machine.h - describes the machine that the numbers were measured on.
 */
#ifndef BENCH_MACHINE_H
#define BENCH_MACHINE_H

#include <stddef.h>
#include <stdint.h>

/* Writes the processor's name, or "unknown" if the system does not say. */
void machine_processor(char *text, size_t size);

/* Writes this host's name, cut to fit. */
void machine_host(char *text, size_t size);

/* Returns how many cores this process may use. */
int machine_cores(void);

/* Returns the bytes of the last level of cache; a usual size if the system does
 * not say. */
size_t machine_cache(void);

/* Returns the bytes of memory that are available without swapping and within
 * the limit of this process's container; -1 if unknown. */
int64_t machine_memory(void);

#endif
