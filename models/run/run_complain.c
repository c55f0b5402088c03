/* SPDX-License-Identifier: Apache-2.0 */
#include "run/run_complain.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

/* Complaints are kept; the first of them. */
static bool later;
static char *kept; /* owned; NULL: none, or there was no memory for it */

int run_complain(const char *format, ...)
{
    char *text = NULL;
    va_list arguments;

    va_start(arguments, format);
    if (vasprintf(&text, format, arguments) < 0)
        text = NULL;
    va_end(arguments);
    if (later && !kept) {
        kept = text;
        return -1;
    }
    if (!later)
        fprintf(stderr, "ipu-run: %s\n", text ? text : format);
    free(text);
    return -1;
}

void run_complain_later(void)
{
    later = true;
}

void run_complain_now(void)
{
    later = false;
    run_complain("%s", kept ? kept : "it failed");
    free(kept);
    kept = NULL;
}
