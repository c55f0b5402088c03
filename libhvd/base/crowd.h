/* SPDX-License-Identifier: Apache-2.0 */
/*
 * crowd.h - whether other threads want the core of a thread that waits.
 *
 * A thread that yields a free core goes on at once. If another one runs first,
 * the call takes the time of two switches or more. Where that happens again and
 * again, a thread that waits should sleep until it is woken: each look at what
 * it waits for costs two switches, in which those that it waits for do not run.
 */
#ifndef HVD_BASE_CROWD_H
#define HVD_BASE_CROWD_H

#include <stdbool.h>

/* What the last yields were like; all zeros at first. */
struct hvd__crowd {
    int signs;
    int nsleeps; /* since the last yield */
};

/* Yields the core, and notes whether another thread wanted it. */
void hvd__crowd_yield(struct hvd__crowd *crowd);

/* Returns true if the thread should sleep instead, if it can. From time to time
 * it should yield all the same, to see whether that still holds. */
bool hvd__crowd_is_thick(struct hvd__crowd *crowd);

#endif
