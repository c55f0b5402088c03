/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pack.h - numbers, texts and arrays as bytes, in the machine's byte order.
 *
 * A writer grows; once memory has run out it stays failed, and the last call
 * reports it. A reader works on a file that is in memory. Each get_ function
 * fails with IPU_ERR_DATA, with the file and the place of the damage, rather
 * than read past the end or accept an impossible number.
 */
#ifndef IPU_FILE_PACK_H
#define IPU_FILE_PACK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct ipu__writer {
    unsigned char *data; /* owned */
    size_t bytes, capacity;
    bool failed; /* memory ran out */
};

void ipu__put(struct ipu__writer *writer, const void *data, size_t bytes);
void ipu__put_int(struct ipu__writer *writer, int32_t value);
void ipu__put_long(struct ipu__writer *writer, int64_t value);
/* Writes the count, then the values. */
void ipu__put_ints(struct ipu__writer *writer, const int32_t *values,
                   int32_t count);
/* Writes a text; NULL and "" stay different. */
void ipu__put_text(struct ipu__writer *writer, const char *text);
void ipu__put_block(struct ipu__writer *writer, const void *data, size_t bytes);
void ipu__writer_fini(struct ipu__writer *writer);

struct ipu__reader {
    const char *path; /* borrowed */
    const unsigned char *data;
    size_t bytes, at;
    uint32_t version; /* of the file's format */
};

/* Reports that the file is damaged here. Returns IPU_ERR_DATA. */
__attribute__((format(printf, 2, 3))) int ipu__damaged(
    const struct ipu__reader *reader, const char *format, ...);

int ipu__get(struct ipu__reader *reader, void *data, size_t bytes);
int ipu__get_int(struct ipu__reader *reader, int32_t *value);
int ipu__get_long(struct ipu__reader *reader, int64_t *value);
/* Reads a number in [least, most]; what names it in errors. */
int ipu__get_index(struct ipu__reader *reader, const char *what, int32_t least,
                   int32_t most, int32_t *value);
/* Reads the count of items that follow, each of at least that many bytes. */
int ipu__get_count(struct ipu__reader *reader, const char *what, size_t each,
                   int32_t *count);
/* Reads an array that put_ints has written; the caller owns it. */
int ipu__get_ints(struct ipu__reader *reader, const char *what,
                  int32_t **values, int32_t *count);
/* Reads a text, which the caller owns. NULL is accepted only if or_null. */
int ipu__get_text(struct ipu__reader *reader, const char *what, bool or_null,
                  char **text);
/* Reads a block of exactly that many bytes; the caller owns it. */
int ipu__get_block(struct ipu__reader *reader, const char *what, size_t bytes,
                   void **data);
/* Checks that nothing follows. */
int ipu__get_end(const struct ipu__reader *reader);

#endif
