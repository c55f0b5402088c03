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

/* This host's name; cut to fit. */
void machine_host(char *text, size_t size);

/* How many cores this process may use. */
int machine_cores(void);

/* Bytes of the last level of cache; what is usual if the system does not
 * tell. */
size_t machine_cache(void);

/* Bytes of memory that can be had without swapping, and within the limit of
 * this process's container; -1: unknown. */
int64_t machine_memory(void);

#endif
