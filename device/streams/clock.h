/* SPDX-License-Identifier: Apache-2.0 */
#ifndef IPU_STREAMS_CLOCK_H
#define IPU_STREAMS_CLOCK_H

#include <time.h>

/* Seconds since some fixed moment. */
static inline double ipu__seconds(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

#endif
