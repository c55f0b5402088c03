/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pack.h - numbers, texts and arrays as bytes, in the machine's own order.
 *
 * A writer grows; once memory has run out it stays so, and the last call says
 * it. A reader is within a file that is in memory; each get_ function fails
 * with IPU_ERR_DATA, naming the file and where it is damaged, rather than read
 * past its end or believe a number that cannot be.
 */
#ifndef IPU_FILE_PACK_H
#define IPU_FILE_PACK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct ipu__writer {
    unsigned char *data; /* owned */
    size_t bytes, capacity;
    bool failed; /* there was no memory */
};

void ipu__put(struct ipu__writer *writer, const void *data, size_t bytes);
void ipu__put_int(struct ipu__writer *writer, int32_t value);
void ipu__put_long(struct ipu__writer *writer, int64_t value);
/* How many, and these. */
void ipu__put_ints(struct ipu__writer *writer, const int32_t *values,
                   int32_t count);
/* NULL is kept apart from "". */
void ipu__put_text(struct ipu__writer *writer, const char *text);
void ipu__put_block(struct ipu__writer *writer, const void *data, size_t bytes);
void ipu__writer_fini(struct ipu__writer *writer);

struct ipu__reader {
    const char *path; /* borrowed */
    const unsigned char *data;
    size_t bytes, at;
    uint32_t version; /* of the format */
};

/* IPU_ERR_DATA: the file is damaged here, in these words. */
__attribute__((format(printf, 2, 3))) int ipu__damaged(
    const struct ipu__reader *reader, const char *format, ...);

int ipu__get(struct ipu__reader *reader, void *data, size_t bytes);
int ipu__get_int(struct ipu__reader *reader, int32_t *value);
int ipu__get_long(struct ipu__reader *reader, int64_t *value);
/* In [least, most]; what names it. */
int ipu__get_index(struct ipu__reader *reader, const char *what, int32_t least,
                   int32_t most, int32_t *value);
/* How many of what follow, each of at least so many bytes. */
int ipu__get_count(struct ipu__reader *reader, const char *what, size_t each,
                   int32_t *count);
/* An array of what put_ints has written, which the caller owns. */
int ipu__get_ints(struct ipu__reader *reader, const char *what,
                  int32_t **values, int32_t *count);
/* The caller owns the text. NULL, if it was, only where that is allowed. */
int ipu__get_text(struct ipu__reader *reader, const char *what, bool or_null,
                  char **text);
/* A block of exactly so many bytes; the caller owns it. */
int ipu__get_block(struct ipu__reader *reader, const char *what, size_t bytes,
                   void **data);
/* Nothing may follow. */
int ipu__get_end(const struct ipu__reader *reader);

#endif
