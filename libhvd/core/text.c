/* SPDX-License-Identifier: Apache-2.0 */
#include "core/text.h"

#include <stdarg.h>
#include <stdio.h>

#include "core/request.h"

struct hvd__text hvd__text_at(char *data, size_t size)
{
    data[0] = '\0';
    return (struct hvd__text){.data = data, .size = size};
}

void hvd__text_add(struct hvd__text *text, const char *format, ...)
{
    size_t left = text->size - text->used;
    va_list arguments;
    int wanted;

    va_start(arguments, format);
    wanted = vsnprintf(text->data + text->used, left, format, arguments);
    va_end(arguments);
    if (wanted > 0)
        text->used += (size_t)wanted < left ? (size_t)wanted : left - 1;
}

void hvd__text_add_ranks(struct hvd__text *text, const int *of, int nranks,
                         int which)
{
    int total = 0;
    const char *separator = " ";

    for (int rank = 0; rank < nranks; rank++)
        total += of[rank] == which;
    hvd__text_add(text, total == 1 ? "rank" : "ranks");
    for (int first = 0; first < nranks; first++) {
        int last = first;

        if (of[first] != which)
            continue;
        while (last + 1 < nranks && of[last + 1] == which)
            last++;
        hvd__text_add(text, "%s%d", separator, first);
        if (last > first)
            hvd__text_add(text, "%s%d", last == first + 1 ? "," : "-", last);
        separator = ",";
        first = last;
    }
}

void hvd__text_add_key(struct hvd__text *text, const char *key)
{
    if (key[0] == HVD__UNNAMED)
        hvd__text_add(text, "unnamed operation %s", key + 1);
    else
        hvd__text_add(text, "'%s'", key);
}
