/* SPDX-License-Identifier: Apache-2.0 */
#ifndef MODELS_CLOCK_H
#define MODELS_CLOCK_H

#include <time.h>

/* Seconds since some fixed moment. */
static inline double clock_seconds(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

#endif
