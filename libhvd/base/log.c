/* SPDX-License-Identifier: Apache-2.0 */
#include "base/log.h"

#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <unistd.h>

/* The level and the rank. hvd__log_set stores them, hvd__log and hvd__log_hears
 * load them; they publish nothing else. They are atomic because a thread may
 * fail, and log, before hvd_init. */
static atomic_int log_level = HVD__LOG_WARNING;
static atomic_int log_rank = -1;

void hvd__log_set(enum hvd__log_level level, int rank)
{
    atomic_store(&log_level, (int)level);
    atomic_store(&log_rank, rank);
}

bool hvd__log_hears(enum hvd__log_level level)
{
    return (int)level <= atomic_load(&log_level);
}

void hvd__log(enum hvd__log_level level, const char *format, ...)
{
    static const char *const marks[] = {"error: ", "warning: ", "", "", ""};
    char line[1200];
    int rank = atomic_load(&log_rank);
    va_list arguments;
    int n;

    if (!hvd__log_hears(level))
        return;
    n = rank < 0 ? snprintf(line, sizeof line, "hvd: %s", marks[level])
                 : snprintf(line, sizeof line, "hvd: rank %d: %s", rank,
                            marks[level]);
    va_start(arguments, format);
    n += vsnprintf(line + n, sizeof line - (size_t)n, format, arguments);
    va_end(arguments);
    if (n > (int)sizeof line - 2)
        n = (int)sizeof line - 2;
    line[n++] = '\n';
    /* One write keeps lines of different ranks apart. Nothing can be done about
     * a closed stderr. */
    if (write(STDERR_FILENO, line, (size_t)n) < 0)
        return;
}
