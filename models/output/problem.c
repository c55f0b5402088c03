/* SPDX-License-Identifier: Apache-2.0 */
#include "output/problem.h"

#include <hvd.h>
#include <stdarg.h>
#include <string.h>

/* A refusal of the device is the longest. */
static _Thread_local char text[4096]; /* as hvd_set_last_error has */

static int keep(int status, const char *format, va_list arguments)
{
    char fresh[sizeof text]; /* the arguments may point into text */

    vsnprintf(fresh, sizeof fresh, format, arguments);
    hvd_set_last_error(status, fresh);
    strcpy(text, hvd_last_error());
    return status;
}

int problem_set(const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    keep(PROBLEM, format, arguments);
    va_end(arguments);
    return PROBLEM;
}

int problem_fail(int status, const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    keep(status, format, arguments);
    va_end(arguments);
    return status;
}

const char *problem_text(void)
{
    return text;
}
