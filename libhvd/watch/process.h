/* SPDX-License-Identifier: Apache-2.0 */
/*
 * process.h - what the kernel says about another process of this host.
 */
#ifndef HVD_WATCH_PROCESS_H
#define HVD_WATCH_PROCESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Returns when a process started, in clock ticks since boot, which tells it
 * from a later process of the same number; 0: it is gone. *state, which may be
 * NULL, becomes its state as in ps. */
uint64_t hvd__process_start_time(int pid, char *state);

/* Returns a descriptor that becomes readable when the process ends; -1 if the
 * kernel has none. */
int hvd__process_open(int pid);

/* Writes how a process ended, while it waits to be reaped: "was killed by
 * signal 9 (Killed)", "exited with status 3"; "is gone" if nobody knows any
 * more. */
const char *hvd__process_fate(int pid, char *text, size_t size);

#endif
