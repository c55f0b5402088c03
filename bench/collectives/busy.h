/* SPDX-License-Identifier: Apache-2.0 */
/*
 * busy.h - arithmetic that keeps cores busy, in units of equal work.
 */
#ifndef BENCH_BUSY_H
#define BENCH_BUSY_H

#include <pthread.h>
#include <stdatomic.h>

/* Multiplies and adds in registers and near cache for some microseconds. */
void busy_unit(void);

/* Threads that run busy_unit until they are stopped. */
struct busy {
    pthread_t *threads; /* owned */
    int n;
    atomic_int stop; /* 1: threads end. Stored by busy_stop, loaded by each
                        thread in busy.c; relaxed: it publishes nothing else */
};

/* Starts n threads. Returns 0, or -1 if the system has none to give. */
int busy_start(struct busy *busy, int n);
/* Ends the threads; accepts a zeroed struct. */
void busy_stop(struct busy *busy);

#endif
