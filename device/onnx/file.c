/* SPDX-License-Identifier: Apache-2.0 */
/*
 * file.c - an ONNX file's bytes in memory, and the memory of all that is read
 * from them, which is freed with them.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "disk/disk.h"
#include "onnx/model.h"

/* What is read may take so much memory beside the file itself: two bytes of a
 * file can be a node of 100 bytes in memory. */
static const size_t MOST_KEPT = (size_t)1 << 30;

/* ------------------------------------------------------------------- memory */

struct ipu__onnx_piece {
    struct ipu__onnx_piece *next;
    max_align_t data[];
};

void *ipu__onnx_keep_outside(struct ipu__onnx_file *file, size_t bytes)
{
    struct ipu__onnx_piece *piece;

    piece = calloc(1, sizeof *piece + (bytes ? bytes : 1));
    if (!piece) {
        ipu__fail_memory(bytes);
        return NULL;
    }
    piece->next = file->kept;
    file->kept = piece;
    return piece->data;
}

void *ipu__onnx_keep(struct ipu__onnx_file *file, size_t bytes)
{
    size_t most = MOST_KEPT + 32 * file->size;

    if (bytes > most - file->kept_bytes) {
        ipu__fail(IPU_ERR_DATA,
                  "%s: its contents would take more than %zu bytes", file->path,
                  most);
        return NULL;
    }
    file->kept_bytes += bytes;
    return ipu__onnx_keep_outside(file, bytes);
}

/* --------------------------------------------------------------------- file */

static int read_all(int fd, unsigned char *to, size_t bytes)
{
    while (bytes > 0) {
        ssize_t n = read(fd, to, bytes);

        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return n < 0 ? -errno : -EIO; /* it became shorter */
        to += n;
        bytes -= (size_t)n;
    }
    return 0;
}

static int read_open(struct ipu__onnx_file *file, int fd)
{
    struct stat status;

    if (fstat(fd, &status) < 0)
        return -errno;
    file->bytes = malloc((size_t)status.st_size + 1);
    if (!file->bytes)
        return -ENOMEM;
    file->size = (size_t)status.st_size;
    return read_all(fd, file->bytes, file->size);
}

int ipu__onnx_file_open(struct ipu__onnx_file *file, const char *path)
{
    int fd = disk__open_regular(path, O_RDONLY), status;

    memset(file, 0, sizeof *file);
    file->path = strdup(path);
    status = fd < 0 ? fd : read_open(file, fd);
    if (fd >= 0)
        close(fd);
    if (!file->path)
        return ipu__fail_memory(strlen(path));
    return status < 0 ? ipu__fail(IPU_ERR_DATA, "%s: cannot be read: %s", path,
                                  disk__text(status))
                      : IPU_OK;
}

void ipu__onnx_file_close(struct ipu__onnx_file *file)
{
    while (file->kept) {
        struct ipu__onnx_piece *next = file->kept->next;

        free(file->kept);
        file->kept = next;
    }
    free(file->bytes);
    free(file->path);
    memset(file, 0, sizeof *file);
}
