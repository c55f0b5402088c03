/* SPDX-License-Identifier: Apache-2.0 */
/*
 * text.h - builds a text piece by piece in a buffer of fixed size. The text is
 * cut where the buffer ends.
 */
#ifndef HVD_BASE_TEXT_H
#define HVD_BASE_TEXT_H

#include <stddef.h>

struct hvd__text {
    char *data; /* borrowed; always ends with a NUL */
    size_t size;
    size_t used;
};

struct hvd__text hvd__text_at(char *data, size_t size);

__attribute__((format(printf, 2, 3))) void hvd__text_add(struct hvd__text *text,
                                                         const char *format,
                                                         ...);

/* Adds "rank 1" or "ranks 0-2,5": the ranks world[r] (NULL: r) of nranks for
 * which of[r] == which. */
void hvd__text_add_ranks(struct hvd__text *text, const int *world,
                         const int *of, int nranks, int which);

#endif
