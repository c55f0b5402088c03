/* SPDX-License-Identifier: Apache-2.0 */
/*
 * busy.h - arithmetic that keeps cores busy, in units of equal work.
 */
#ifndef BENCH_BUSY_H
#define BENCH_BUSY_H

#include <pthread.h>
#include <stdatomic.h>

/* Some microseconds of multiplying and adding in registers and near cache. */
void busy_unit(void);

/* Threads that do nothing else. */
struct busy {
    pthread_t *threads; /* owned */
    int n;
    atomic_int stop; /* tells the threads to end */
};

/* Start n threads. 0, or -1 if the system has none to give. */
int busy_start(struct busy *busy, int n);
/* End them; accepts a zeroed struct. */
void busy_stop(struct busy *busy);

#endif
