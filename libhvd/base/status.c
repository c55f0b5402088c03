/* SPDX-License-Identifier: Apache-2.0 */
#include "base/status.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"

static _Thread_local char last_error[HVD__SET_MESSAGE_MAX];

const char *hvd_strerror(int status)
{
    switch (status) {
#define X(constant, text)                                                      \
    case constant: return text;
        HVD__STATUSES(X)
#undef X
    default: return status > 0 ? "success" : "unknown status";
    }
}

const char *hvd_last_error(void)
{
    return last_error;
}

static int keep(int status)
{
    for (char *c = last_error; *c; c++)
        if ((unsigned char)*c < 0x20 || *c == 0x7f)
            *c = '?';
    hvd__log(HVD__LOG_INFO, "error: %s", last_error);
    return status;
}

int hvd__fail(int status, const char *format, ...)
{
    /* An argument may be the last error itself, so the text is built apart from
     * it. */
    char text[HVD__MESSAGE_MAX];
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    memcpy(last_error, text, sizeof text);
    return keep(status);
}

int hvd__fail_text(int status, const char *text)
{
    return hvd__fail(status, "%s", text);
}

int hvd_set_last_error(int status, const char *text)
{
    size_t size = text ? strnlen(text, sizeof last_error - 1) : 0;

    /* text may be the last error itself. */
    if (size > 0)
        memmove(last_error, text, size);
    last_error[size] = '\0';
    return keep(status);
}

int hvd__fail_memory(size_t bytes)
{
    return hvd__fail(HVD_ERR_MEMORY, "out of memory: %zu bytes wanted", bytes);
}

int hvd__allocate(void *pointer, size_t n, size_t each)
{
    void *memory = calloc(n ? n : 1, each);

    memcpy(pointer, &memory, sizeof memory);
    /* The memory is the caller's now: memcpy has passed it on. */
    /* cppcheck-suppress memleak */
    return memory ? HVD_OK : hvd__fail_memory(n * each);
}
