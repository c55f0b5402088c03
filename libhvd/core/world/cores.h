/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cores.h - may a rank spin while it waits, or is its core wanted by another
 * rank, perhaps the one it waits for?
 */
#ifndef HVD_CORE_CORES_H
#define HVD_CORE_CORES_H

#include <sched.h>
#include <stdbool.h>

/* What a rank may use. */
struct hvd__cores {
    cpu_set_t mask;
    double quota; /* cores' worth of time, of a cgroup; 0: no limit */
};

/* Of this process. Without an answer from the system: one core. */
void hvd__cores_read(struct hvd__cores *cores);

/* The quota in a line of cgroup v2's cpu.max; 0: none, or not understood. */
double hvd__cores_quota(const char *line);

/* Whether there is a core for each rank of a host, as far as this one can
 * tell. of(context, i) is what the i-th of n may use; self is our number. */
bool hvd__cores_suffice(int n, int self,
                        const struct hvd__cores *(*of)(const void *context,
                                                       int i),
                        const void *context);

#endif
