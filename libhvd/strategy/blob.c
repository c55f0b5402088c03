/* SPDX-License-Identifier: Apache-2.0 */
/*
 * blob.c - a file that exists whole or not at all, and is known to be whole.
 * checkpoint.c writes and reads it.
 *
 * It is written as a temporary file, brought to the disk, and renamed (disk/).
 * A program that is killed meanwhile leaves the old file as it was, and the
 * next checkpoint removes the temporary one. The last eight bytes are a
 * checksum of all before. It is compared when the file is opened, before
 * anything of it is used: that reads the file once more, and lets a reader
 * trust what it reads.
 */
#include "strategy/blob.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fingerprint.h"
#include "base/status.h"

static int cannot(const char *what, const char *path, const char *why)
{
    return hvd__fail(HVD_ERR_FILE, "%s cannot be %s: %s", path, what, why);
}

/* ------------------------------------------------------------------ writing */

int hvd__blob_create(struct hvd__blob_writer *w, const char *path)
{
    int status = disk__output_open(&w->file, path, DISK__SYNC | DISK__SWEEP);

    w->path = path;
    w->mark = 0;
    w->used = 0;
    return status < 0 ? cannot("written", path, disk__text(status)) : HVD_OK;
}

static int write_all(struct hvd__blob_writer *w, const void *data, size_t bytes)
{
    int status = disk__output_write(&w->file, data, bytes);

    return status < 0 ? cannot("written", w->path, disk__text(status)) : HVD_OK;
}

static int flush(struct hvd__blob_writer *w)
{
    w->mark = hvd__fingerprint(w->mark, w->block, w->used);
    HVD_TRY(write_all(w, w->block, w->used));
    w->used = 0;
    return HVD_OK;
}

int hvd__blob_put(struct hvd__blob_writer *w, const void *data, size_t bytes)
{
    const unsigned char *at = data;

    while (bytes > 0) {
        size_t n = sizeof w->block - w->used;

        n = n < bytes ? n : bytes;
        memcpy(w->block + w->used, at, n);
        w->used += n;
        at += n;
        bytes -= n;
        if (w->used == sizeof w->block)
            HVD_TRY(flush(w));
    }
    return HVD_OK;
}

int hvd__blob_commit(struct hvd__blob_writer *w)
{
    int status;

    if (w->used > 0)
        HVD_TRY(flush(w));
    HVD_TRY(write_all(w, &w->mark, sizeof w->mark));
    status = disk__output_commit(&w->file);
    return status < 0 ? cannot("written", w->path, disk__text(status)) : HVD_OK;
}

void hvd__blob_discard(struct hvd__blob_writer *w)
{
    disk__output_close(&w->file);
}

/* ------------------------------------------------------------------ reading */

int hvd__blob_get(const struct hvd__blob *b, int64_t offset, void *data,
                  size_t bytes)
{
    unsigned char *at = data;

    if (offset < 0 || offset > b->bytes || bytes > (size_t)(b->bytes - offset))
        return cannot("read", b->path, "it ends too early");
    while (bytes > 0) {
        ssize_t n = pread(b->fd, at, bytes, offset);

        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return cannot("read", b->path,
                          n < 0 ? strerror(errno) : "it ends too early");
        at += n;
        offset += n;
        bytes -= (size_t)n;
    }
    return HVD_OK;
}

/* Computes the checksum of all bytes before it, block by block. */
static int make_checksum(const struct hvd__blob *b, unsigned char *block,
                         uint64_t *mark)
{
    *mark = 0;
    for (int64_t at = 0; at < b->bytes; at += HVD__BLOB_BLOCK) {
        size_t n = b->bytes - at < HVD__BLOB_BLOCK ? (size_t)(b->bytes - at)
                                                   : (size_t)HVD__BLOB_BLOCK;

        HVD_TRY(hvd__blob_get(b, at, block, n));
        *mark = hvd__fingerprint(*mark, block, n);
    }
    return HVD_OK;
}

static int compare_checksum(const struct hvd__blob *b)
{
    struct hvd__blob all = *b;
    uint64_t mark = 0, stored = 0;
    unsigned char *block = calloc(1, HVD__BLOB_BLOCK);
    int status;

    if (!block)
        return hvd__fail_memory(HVD__BLOB_BLOCK);
    status = make_checksum(b, block, &mark);
    free(block);
    HVD_TRY(status);
    all.bytes += (int64_t)sizeof stored;
    HVD_TRY(hvd__blob_get(&all, b->bytes, &stored, sizeof stored));
    if (mark != stored)
        return cannot("read", b->path,
                      "its checksum is wrong: it is damaged, or no checkpoint");
    return HVD_OK;
}

int hvd__blob_open(struct hvd__blob *b, const char *path)
{
    struct stat info;
    int status;

    b->path = path;
    b->fd = disk__open_regular(path, O_RDONLY);
    if (b->fd < 0)
        return cannot("read", path, disk__text(b->fd));
    if (fstat(b->fd, &info) < 0)
        status = cannot("read", path, strerror(errno));
    else if (info.st_size < (off_t)sizeof(uint64_t))
        status = cannot("read", path, "it is too short to be a checkpoint");
    else {
        b->bytes = (int64_t)info.st_size - (int64_t)sizeof(uint64_t);
        status = compare_checksum(b);
    }
    if (status < 0)
        hvd__blob_close(b);
    return status;
}

void hvd__blob_close(struct hvd__blob *b)
{
    if (b->fd >= 0)
        close(b->fd);
    b->fd = -1;
}
