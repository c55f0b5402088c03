/* SPDX-License-Identifier: Apache-2.0 */
/*
 * container.h - a file of this room on disk: a head that identifies it, and the
 * bytes that pack.h has made.
 */
#ifndef IPU_FILE_CONTAINER_H
#define IPU_FILE_CONTAINER_H

#include "file/pack.h"

enum ipu__file_kind {
    IPU__FILE_GRAPH = 1,
    IPU__FILE_EXECUTABLE,
    IPU__FILE_VARIABLES
};

/* Leaves room for the head; the caller writes the contents after it. */
void ipu__file_begin(struct ipu__writer *writer);

/* Completes the head and writes the file, which appears whole or, on a failure,
 * not at all. target: the chip's name, or NULL. The caller keeps the writer. */
int ipu__file_write(const char *path, enum ipu__file_kind kind,
                    const char *target, struct ipu__writer *writer);

/* Reads a whole file into memory, which the caller frees, and checks its head
 * and checksum. The reader is then at the start of the contents. */
int ipu__file_read(const char *path, enum ipu__file_kind kind,
                   struct ipu__reader *reader, unsigned char **memory);

#endif
