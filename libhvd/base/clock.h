/* SPDX-License-Identifier: Apache-2.0 */
/*
 * clock.h - the time since some fixed moment, in nanoseconds. No adjustment of
 * the wall clock disturbs it.
 */
#ifndef HVD_BASE_CLOCK_H
#define HVD_BASE_CLOCK_H

#include <stdint.h>
#include <time.h>

static inline int64_t hvd__now_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

/* Returns the time of the same clock at the kernel's last tick, some
 * milliseconds ago at most. It is read in a tenth of the time. */
static inline int64_t hvd__coarse_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC_COARSE, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

#endif
