/* SPDX-License-Identifier: Apache-2.0 */
/*
 * shared.h - the parts that files of graphs and of executables have in common:
 * ops and their attributes, shapes, arrays, loops, and frequent texts.
 */
#ifndef IPU_FILE_SHARED_H
#define IPU_FILE_SHARED_H

#include "file/members.h"
#include "file/pack.h"
#include "graph/graph.h"

/* The least bytes that a text takes. */
enum { IPU__LEAST_TEXT = 4 };

/* Writes an op by its name. Returns IPU_ERR_STATE if the op is not in the
 * list. */
int ipu__put_op(struct ipu__writer *writer, const struct ipu__op *op);
int ipu__get_op(struct ipu__reader *reader, const struct ipu__op **op);

int ipu__get_attributes(struct ipu__reader *reader,
                        struct ipu__attributes *attributes);

/* Checks that a shape is as ipu__shape_make leaves it, so that no computation
 * with it overflows. */
int ipu__check_shape(struct ipu__reader *reader, const char *what,
                     const struct ipu__shape *shape);

/* Reads a count and allocates that many zeroed items, each of size bytes in
 * memory and at least least bytes in the file. array: the address of the
 * pointer that owns them. */
int ipu__get_array(struct ipu__reader *reader, const char *what, size_t least,
                   size_t size, void *array, int32_t *count);

/* Writes the count, then the structs one after the other. */
void ipu__put_structs(struct ipu__writer *writer,
                      const struct ipu__layout *layout, const void *array,
                      int32_t count);
int ipu__get_structs(struct ipu__reader *reader, const char *what,
                     const struct ipu__layout *layout, void *array,
                     int32_t *count);

/* Write and read the start of a loop: the iterations, and the numbers of the
 * values that it carries; the reader's caller owns these. */
void ipu__put_loop(struct ipu__writer *writer, int64_t iterations,
                   const int32_t *initial, const int32_t *outputs,
                   int32_t ncarried);
int ipu__get_loop(struct ipu__reader *reader, int64_t *iterations,
                  int32_t **initial, int32_t **outputs, int32_t *ncarried);

/* The deepest nesting of loops: files are written, read and checked body within
 * body. Deeper loops fail with IPU_ERR_STATE or IPU_ERR_DATA. */
enum { IPU__MOST_NESTING = 64 };
int ipu__put_depth(int depth);
int ipu__get_depth(const struct ipu__reader *reader, int depth);

/* A list of distinct texts, borrowed. */
struct ipu__texts {
    const char **texts; /* owned */
    int32_t count, capacity;
};

/* Returns the number of a text, a new one if the text is new; -1 for NULL;
 * less: IPU_ERR_MEMORY. */
int ipu__text_number(struct ipu__texts *texts, const char *text);
void ipu__put_texts(struct ipu__writer *writer, const struct ipu__texts *texts);
/* Reads a list of texts. The caller owns the array and its texts, even those
 * that were read before a failure. */
int ipu__get_texts(struct ipu__reader *reader, const char *what, char ***texts,
                   int32_t *count);

#endif
