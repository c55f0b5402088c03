/* SPDX-License-Identifier: Apache-2.0 */
/* say.c - lines for the user, and the clock. */
#include "launch/parts.h"

#include <stdarg.h>
#include <stdio.h>
#include <time.h>

int launch__say(const struct launch *launch, const char *format, ...)
{
    char text[512];
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    /* One call, because the tasks write, too. */
    fprintf(stderr, "%s: %s\n", launch->program, text);
    return -1;
}

int64_t launch__now_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

int launch__delay(int nfailures)
{
    return nfailures < 5 ? 1 << nfailures : 30;
}
