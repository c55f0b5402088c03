/* SPDX-License-Identifier: Apache-2.0 */
/*
 * shared.h - what files of graphs and of executables have in common: ops, what
 * they are told, shapes, arrays, loops, and texts that occur often.
 */
#ifndef IPU_FILE_SHARED_H
#define IPU_FILE_SHARED_H

#include "file/members.h"
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

/* Room for as many as the file says, zeroed: each takes size bytes in memory,
 * and least in the file. array: the address of the pointer, which owns it. */
int ipu__get_array(struct ipu__reader *reader, const char *what, size_t least,
                   size_t size, void *array, int32_t *count);

/* How many, and the structs, one after the other. */
void ipu__put_structs(struct ipu__writer *writer,
                      const struct ipu__layout *layout, const void *array,
                      int32_t count);
int ipu__get_structs(struct ipu__reader *reader, const char *what,
                     const struct ipu__layout *layout, void *array,
                     int32_t *count);

/* How a loop begins: iterations, and what it carries, by numbers that the
 * reader owns. */
void ipu__put_loop(struct ipu__writer *writer, int64_t iterations,
                   const int32_t *initial, const int32_t *outputs,
                   int32_t ncarried);
int ipu__get_loop(struct ipu__reader *reader, int64_t *iterations,
                  int32_t **initial, int32_t **outputs, int32_t *ncarried);

/* Loops within loops, at most: files are written, read and checked body within
 * body. More: IPU_ERR_STATE, or IPU_ERR_DATA. */
enum { IPU__MOST_NESTING = 64 };
int ipu__put_depth(int depth);
int ipu__get_depth(const struct ipu__reader *reader, int depth);

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
