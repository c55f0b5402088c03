/* SPDX-License-Identifier: Apache-2.0 */
#include "common/problem.h"

#include <stdarg.h>
#include <stdio.h>

static _Thread_local char text[1024];

int problem_set(const char *format, ...)
{
    char fresh[sizeof text]; /* arguments may point into the old text */
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(fresh, sizeof fresh, format, arguments);
    va_end(arguments);
    size_t i = 0;
    for (; fresh[i] != '\0'; i++) {
        unsigned char c = (unsigned char)fresh[i];
        text[i] = c < ' ' || c == 127 ? '?' : fresh[i];
    }
    text[i] = '\0';
    return PROBLEM;
}

const char *problem_text(void)
{
    return text;
}
