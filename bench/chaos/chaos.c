/* SPDX-License-Identifier: Apache-2.0 */
#include "chaos/chaos.h"

#include <stdarg.h>
#include <stdio.h>
#include <time.h>

const char *const chaos_names[CHAOS_KINDS] = {"kill", "stop", "slow", "cut"};

double chaos_now(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

uint64_t chaos_draw(uint64_t *state)
{
    uint64_t z = *state += UINT64_C(0x9e3779b97f4a7c15);

    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
}

double chaos_draw_real(uint64_t *state)
{
    return (double)(chaos_draw(state) >> 11) * 0x1p-53;
}

void chaos_say(const char *format, ...)
{
    char text[512];
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    /* One call, because the ranks write, too. */
    fprintf(stderr, "hvd-chaos: %s\n", text);
}
