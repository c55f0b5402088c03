/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cores.h - which cores a rank may use, and so whether it may spin while it
 * waits: another rank may want its core, perhaps the one that it waits for.
 */
#ifndef HVD_CORE_CORES_H
#define HVD_CORE_CORES_H

#include <sched.h>
#include <stdbool.h>

/* The cores that a rank may use. */
struct hvd__cores {
    cpu_set_t mask;
    double quota; /* cores' worth of time, of a cgroup; 0: no limit */
};

/* Reads those of this process; one core, if the system gives no answer. */
void hvd__cores_read(struct hvd__cores *cores);

/* The quota in a line of cgroup v2's cpu.max; 0: none, or not understood. */
double hvd__cores_quota(const char *line);

/* Returns true if there is a core for each rank of a host, as far as this one
 * can tell. of(context, i) gives the cores of the i-th of n ranks; self is our
 * number. */
bool hvd__cores_suffice(int n, int self,
                        const struct hvd__cores *(*of)(const void *context,
                                                       int i),
                        const void *context);

#endif
