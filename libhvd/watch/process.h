/* SPDX-License-Identifier: Apache-2.0 */
/*
 * process.h - asks the kernel about another process of this host.
 */
#ifndef HVD_WATCH_PROCESS_H
#define HVD_WATCH_PROCESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Returns when a process started, in clock ticks since boot, which differs for
 * a later process of the same number, or 0 if it is gone. *state, which may be
 * NULL, becomes its state as in ps. */
uint64_t hvd__process_start_time(int pid, char *state);

/* Returns a descriptor that becomes readable when the process ends, or -1 if
 * the kernel has no such descriptors. */
int hvd__process_open(int pid);

/* Writes how a process ended, while it waits to be reaped: "was killed by
 * signal 9 (Killed)", "exited with status 3"; "is gone" if that is not known
 * any more. */
const char *hvd__process_fate(int pid, char *text, size_t size);

#endif
