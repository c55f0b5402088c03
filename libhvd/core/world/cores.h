/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cores.h - finds which cores a rank may use, and so whether it may spin while
 * it waits: another rank may need its core, perhaps the one that it waits for.
 */
#ifndef HVD_CORE_CORES_H
#define HVD_CORE_CORES_H

#include <sched.h>
#include <stdbool.h>

/* The cores that a rank may use. */
struct hvd__cores {
    cpu_set_t mask;
    double quota; /* CPU time limit of the cgroup, in cores; 0: no limit */
};

/* Reads the cores of this process. If the system gives no answer, it is one
 * core. */
void hvd__cores_read(struct hvd__cores *cores);

/* Returns the quota in a line of cgroup v2's cpu.max, or 0 if there is none or
 * the line is not understood. */
double hvd__cores_quota(const char *line);

/* Returns true if there is a core for each rank of a host, as far as this rank
 * can determine. of(context, i) returns the cores of the i-th of n ranks; self
 * is this rank's number. */
bool hvd__cores_suffice(int n, int self,
                        const struct hvd__cores *(*of)(const void *context,
                                                       int i),
                        const void *context);

#endif
