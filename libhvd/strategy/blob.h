/* SPDX-License-Identifier: Apache-2.0 */
/*
 * blob.h - bytes in a file, followed by a checksum: the form of a checkpoint.
 */
#ifndef HVD_STRATEGY_BLOB_H
#define HVD_STRATEGY_BLOB_H

#include <stddef.h>
#include <stdint.h>

#include "disk/disk.h"

/* The number of bytes of a block; the checksum is computed block by block. */
enum { HVD__BLOB_BLOCK = 64 << 10 };

/* A file being written, under a temporary name. */
struct hvd__blob_writer {
    const char *path; /* borrowed until discarded */
    struct disk__output file;
    uint64_t mark; /* checksum of the blocks so far */
    size_t used;   /* bytes of the next block */
    unsigned char block[HVD__BLOB_BLOCK];
};

/* These functions return HVD_OK or, with file and reason in the last error,
 * HVD_ERR_FILE or _MEMORY. The writer must be discarded after a failure and
 * after a success. */
int hvd__blob_create(struct hvd__blob_writer *writer, const char *path);
int hvd__blob_put(struct hvd__blob_writer *writer, const void *data,
                  size_t bytes);
/* Writes the file to the disk and gives it its final name. */
int hvd__blob_commit(struct hvd__blob_writer *writer);
/* Closes the writer. An unfinished file does not stay. */
void hvd__blob_discard(struct hvd__blob_writer *writer);

/* A complete file, whose checksum was compared. */
struct hvd__blob {
    const char *path; /* borrowed until closed */
    int fd;
    int64_t bytes; /* without the checksum */
};

int hvd__blob_open(struct hvd__blob *blob, const char *path);
/* Reads bytes from an offset on. Also returns HVD_ERR_FILE if the file has
 * fewer bytes. */
int hvd__blob_get(const struct hvd__blob *blob, int64_t offset, void *data,
                  size_t bytes);
void hvd__blob_close(struct hvd__blob *blob);

#endif
