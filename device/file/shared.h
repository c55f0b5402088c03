/* SPDX-License-Identifier: Apache-2.0 */
/*
 * shared.h - what files of graphs and of executables have in common: ops, what
 * they are told, shapes, and texts that occur often.
 */
#ifndef IPU_FILE_SHARED_H
#define IPU_FILE_SHARED_H

#include "file/pack.h"
#include "graph/graph.h"

/* Bytes that a text takes at least. */
enum { IPU__LEAST_TEXT = 4 };

/* An op, by its name. IPU_ERR_STATE if it is not in the list. */
int ipu__put_op(struct ipu__writer *writer, const struct ipu__op *op);
int ipu__get_op(struct ipu__reader *reader, const struct ipu__op **op);

int ipu__get_attributes(struct ipu__reader *reader,
                        struct ipu__attributes *attributes);

/* A shape as ipu__shape_make leaves it: then nothing computed of it
 * overflows. */
int ipu__check_shape(struct ipu__reader *reader, const char *what,
                     const struct ipu__shape *shape);

/* Distinct texts, borrowed. */
struct ipu__texts {
    const char **texts; /* owned */
    int32_t count, capacity;
};

/* Its number, a new one if there is none so far; -1: NULL has none. Less:
 * IPU_ERR_MEMORY. */
int ipu__text_number(struct ipu__texts *texts, const char *text);
void ipu__put_texts(struct ipu__writer *writer, const struct ipu__texts *texts);
/* The caller owns the array and its texts, also those read before a failure. */
int ipu__get_texts(struct ipu__reader *reader, const char *what, char ***texts,
                   int32_t *count);

#endif
