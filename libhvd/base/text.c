/* SPDX-License-Identifier: Apache-2.0 */
#include "base/text.h"

#include <stdarg.h>
#include <stdio.h>

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

void hvd__text_add_ranks(struct hvd__text *text, const int *world,
                         const int *of, int nranks, int which)
{
    int total = 0;
    const char *separator = " ";

    for (int i = 0; i < nranks; i++)
        total += of[i] == which;
    hvd__text_add(text, total == 1 ? "rank" : "ranks");
    for (int first = 0; first < nranks; first++) {
        int last = first;
        int from = world ? world[first] : first;

        if (of[first] != which)
            continue;
        while (last + 1 < nranks && of[last + 1] == which &&
               (!world || world[last + 1] == from + last + 1 - first))
            last++;
        hvd__text_add(text, "%s%d", separator, from);
        if (last > first)
            hvd__text_add(text, "%s%d", last == first + 1 ? "," : "-",
                          from + last - first);
        separator = ",";
        first = last;
    }
}
