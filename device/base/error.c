/* SPDX-License-Identifier: Apache-2.0 */
#include "base/error.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The one list: X(constant, text). */
#define STATUSES(X)                                                            \
    X(IPU_OK, "success")                                                       \
    X(IPU_ERR_ARGUMENT, "invalid argument")                                    \
    X(IPU_ERR_SHAPE, "shapes or dtypes do not fit")                            \
    X(IPU_ERR_NAME, "a name is unknown, or taken")                             \
    X(IPU_ERR_STATE, "not possible in this state")                             \
    X(IPU_ERR_MEMORY, "out of memory")                                         \
    X(IPU_ERR_CALLBACK, "a host call failed")                                  \
    X(IPU_ERR_DATA, "a value is out of range")                                 \
    X(IPU_ERR_FULL, "the chip's memory is too small")                          \
    X(IPU_ERR_END, "the data of an infeed has ended")

static _Thread_local char last_error[IPU__EXPLANATION_MAX];

const char *ipu_strerror(int status)
{
    switch (status) {
#define X(constant, text)                                                      \
    case constant: return text;
        STATUSES(X)
#undef X
    default: return status > 0 ? "success" : "unknown status";
    }
}

const char *ipu_last_error(void)
{
    return last_error;
}

int ipu__fail_explained(int status, const char *text)
{
    snprintf(last_error, sizeof last_error, "%s", text);
    /* An error is one line, whatever names are in it. */
    for (char *c = last_error; *c; c++)
        if ((unsigned char)*c < 0x20 || *c == 0x7f)
            *c = '?';
    return status;
}

int ipu__fail(int status, const char *format, ...)
{
    char text[IPU__MESSAGE_MAX]; /* The last error itself may be an argument, so
                                    the text is made aside. */
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    return ipu__fail_explained(status, text);
}

int ipu__fail_memory(size_t bytes)
{
    return ipu__fail(IPU_ERR_MEMORY, "out of memory: %zu bytes wanted", bytes);
}

int ipu__new(void *place, size_t bytes)
{
    void *made = calloc(1, bytes);

    memcpy(place, &made, sizeof made);
    /* cppcheck-suppress memleak; the place has it */
    return made ? IPU_OK : ipu__fail_memory(bytes);
}

int ipu__new_array(void *place, size_t count, size_t each)
{
    void *made = calloc(count + 1, each);

    memcpy(place, &made, sizeof made);
    /* cppcheck-suppress memleak; the place has it */
    return made ? IPU_OK : ipu__fail_memory(count * each);
}

int ipu__check_size(const char *what, uint32_t size, size_t ours)
{
    return size >= ours ? IPU_OK
                        : ipu__fail(IPU_ERR_ARGUMENT,
                                    "the %s's size is %u, not %zu: set it "
                                    "before the call",
                                    what, (unsigned)size, ours);
}
