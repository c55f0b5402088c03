/* SPDX-License-Identifier: Apache-2.0 */
/*
 * blob.h - bytes in a file, with a checksum behind them: what a checkpoint is
 * written to and read from.
 */
#ifndef HVD_STRATEGY_BLOB_H
#define HVD_STRATEGY_BLOB_H

#include <stddef.h>
#include <stdint.h>

#include "disk/disk.h"

/* The checksum is that of blocks of so many bytes, one after the other. */
enum { HVD__BLOB_BLOCK = 64 << 10 };

/* A file being written, beside its place. */
struct hvd__blob_writer {
    const char *path; /* borrowed until it is discarded */
    struct disk__output file;
    uint64_t mark; /* of the blocks so far */
    size_t used;   /* of the next */
    unsigned char block[HVD__BLOB_BLOCK];
};

/* All return HVD_OK or, telling file and reason, HVD_ERR_FILE or _MEMORY.
 * After a failure, as after a success, the writer is to be discarded. */
int hvd__blob_create(struct hvd__blob_writer *writer, const char *path);
int hvd__blob_put(struct hvd__blob_writer *writer, const void *data,
                  size_t bytes);
/* It is on the disk, and has its name. */
int hvd__blob_commit(struct hvd__blob_writer *writer);
/* Whatever is left of it goes. */
void hvd__blob_discard(struct hvd__blob_writer *writer);

/* A file that is complete, its checksum compared. */
struct hvd__blob {
    const char *path; /* borrowed until it is closed */
    int fd;
    int64_t bytes; /* without the checksum */
};

int hvd__blob_open(struct hvd__blob *blob, const char *path);
/* Bytes from an offset on; HVD_ERR_FILE too if the file has not so many. */
int hvd__blob_get(const struct hvd__blob *blob, int64_t offset, void *data,
                  size_t bytes);
void hvd__blob_close(struct hvd__blob *blob);

#endif
