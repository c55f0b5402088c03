/* SPDX-License-Identifier: Apache-2.0 */
/*
 * container.h - a file of this room on disk: a head that says what it is, and
 * the bytes that pack.h has made.
 */
#ifndef IPU_FILE_CONTAINER_H
#define IPU_FILE_CONTAINER_H

#include "file/pack.h"

enum ipu__file_kind {
    IPU__FILE_GRAPH = 1,
    IPU__FILE_EXECUTABLE,
    IPU__FILE_VARIABLES
};

/* Room for the head; what is written comes after it. */
void ipu__file_begin(struct ipu__writer *writer);

/* Complete the head and write the file: it appears whole or, on a failure, not
 * at all. target: the chip's name, or NULL. The writer stays the caller's. */
int ipu__file_write(const char *path, enum ipu__file_kind kind,
                    const char *target, struct ipu__writer *writer);

/* Read a whole file into memory, which the caller frees, and check its head
 * and checksum; the reader is where the contents begin. */
int ipu__file_read(const char *path, enum ipu__file_kind kind,
                   struct ipu__reader *reader, unsigned char **memory);

#endif
