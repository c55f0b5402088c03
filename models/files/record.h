/* SPDX-License-Identifier: Apache-2.0 */
/*
 * record.h - files of records as TensorFlow has them (TFRecord, event files):
 * for each record its length (8 bytes, little-endian), a checksum of these 8
 * bytes, the bytes, and a checksum of them. A checksum is a CRC-32C, turned by
 * 15 bits and moved by a constant.
 */
#ifndef MODELS_RECORD_H
#define MODELS_RECORD_H

#include "files/bytes.h"

#include <stddef.h>
#include <stdint.h>

enum { RECORD_HEAD = 12, RECORD_TAIL = 4 };

/* Returns the checksum of bytes as a record has it. */
uint32_t record_checksum(const void *bytes, size_t count);

/*
 * Finds the record at an offset of a file whose bytes these are. Returns 1 and
 * sets *at and *length; 0 at the end of the file; or HVD_ERR_FILE, with the
 * text kept (problem.h): a checksum is wrong, or the file ends within the
 * record. The next record begins at offset + RECORD_HEAD + *length +
 * RECORD_TAIL.
 */
int record_find(const char *path, const void *bytes, size_t count,
                size_t offset, const unsigned char **at, size_t *length);

/* Adds a record. */
void record_add(struct bytes *file, const void *data, size_t length);

#endif
