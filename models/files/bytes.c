/* SPDX-License-Identifier: Apache-2.0 */
#include "files/bytes.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Makes room for so many more bytes. */
static bool reserve(struct bytes *bytes, size_t count)
{
    size_t room = bytes->room ? bytes->room : 256;
    char *data;

    if (bytes->failed || count > SIZE_MAX / 2 - bytes->count) {
        bytes->failed = true;
        return false;
    }
    while (room < bytes->count + count)
        room *= 2;
    if (room == bytes->room)
        return true;
    data = realloc(bytes->data, room);
    if (!data) {
        bytes->failed = true;
        return false;
    }
    bytes->data = data;
    bytes->room = room;
    return true;
}

void bytes_add(struct bytes *bytes, const void *data, size_t count)
{
    if (count == 0 || !reserve(bytes, count))
        return;
    memcpy(bytes->data + bytes->count, data, count);
    bytes->count += count;
}

void bytes_print(struct bytes *bytes, const char *format, ...)
{
    va_list arguments;
    int count;

    va_start(arguments, format);
    count = vsnprintf(NULL, 0, format, arguments);
    va_end(arguments);
    if (count < 0 || !reserve(bytes, (size_t)count + 1))
        return;
    va_start(arguments, format);
    vsnprintf(bytes->data + bytes->count, (size_t)count + 1, format, arguments);
    va_end(arguments);
    bytes->count += (size_t)count;
}

void bytes_fini(struct bytes *bytes)
{
    free(bytes->data);
    *bytes = (struct bytes){0};
}
