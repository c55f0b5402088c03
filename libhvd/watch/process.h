/* SPDX-License-Identifier: Apache-2.0 */
/*
 * process.h - what the kernel says about another process of this host.
 */
#ifndef HVD_WATCH_PROCESS_H
#define HVD_WATCH_PROCESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* When it started, in clock ticks since boot: tells it from a later process
 * of the same number. 0: it is gone. *state, may be NULL: as in ps. */
uint64_t hvd__process_start_time(int pid, char *state);

/* A descriptor that becomes readable when it ends; -1 if the kernel cannot. */
int hvd__process_open(int pid);

/* How it ended, while it waits to be reaped: "was killed by signal 9
 * (Killed)", "exited with status 3"; "is gone" if nobody knows any more. */
const char *hvd__process_fate(int pid, char *text, size_t size);

#endif
