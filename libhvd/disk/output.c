/* SPDX-License-Identifier: Apache-2.0 */
/*
 * output.c - writes files as disk.h says: what a path leads to decides how it
 * is written, and a file appears whole or not at all. Both libraries and all
 * programs call it.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "disk/disk.h"
#include "disk/parts.h"

enum { PATIENCE_MS = 10000, BRIEF_MS = 1000, PAUSE_MS = 20 };

static int patience_of(const struct disk__output *o)
{
    return o->flags & DISK__BRIEFLY ? BRIEF_MS : PATIENCE_MS;
}

static int remember(struct disk__output *o, int status)
{
    if (status < 0 && o->status == 0)
        o->status = status;
    return status;
}

/* ------------------------------------------------------- the file at a path */

/* Returns the descriptor, 1 or 2, of standard output or error that goes to this
 * very file; -1: neither does. */
static int printed_by(const struct stat *file)
{
    struct stat info;

    for (int fd = STDOUT_FILENO; fd <= STDERR_FILENO; fd++)
        if (fstat(fd, &info) == 0 && info.st_dev == file->st_dev &&
            info.st_ino == file->st_ino)
            return fd;
    return -1;
}

/* Returns 0 if there is nothing at the path, or a regular file; 1 if what is
 * there can be written directly. */
static int look_at(const char *path, int flags)
{
    struct stat info;

    while (stat(path, &info) < 0) {
        if (errno != ENOENT)
            return -errno;
        if (lstat(path, &info) < 0)
            return errno == ENOENT ? 0 : -errno;
        if (S_ISLNK(info.st_mode))
            return DISK__LINK_TO_NOTHING;
        /* Another process has made it just now. */
    }
    if (S_ISREG(info.st_mode) && printed_by(&info) < 0)
        return 0;
    if (S_ISREG(info.st_mode))
        return flags & DISK__DIRECT ? 1 : DISK__PRINTED_TO;
    if (S_ISDIR(info.st_mode))
        return -EISDIR;
    if (flags & DISK__DIRECT &&
        (S_ISCHR(info.st_mode) || S_ISFIFO(info.st_mode)))
        return 1;
    return DISK__NOT_REGULAR;
}

static char *resolve_folder(const char *path, const char *name)
{
    char *folder =
        name == path ? strdup(".") : strndup(path, (size_t)(name - path));
    char *resolved = folder ? realpath(folder, NULL) : NULL, *whole = NULL;

    if (resolved &&
        asprintf(&whole, "%s/%s", strcmp(resolved, "/") == 0 ? "" : resolved,
                 name) < 0)
        whole = NULL;
    free(resolved);
    free(folder);
    return whole;
}

/* Returns the path without links. A file that does not exist yet has a
 * folder. */
static char *resolve(const char *path)
{
    char *resolved = realpath(path, NULL);
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;

    if (resolved || errno != ENOENT || !*name)
        return resolved;
    return resolve_folder(path, name);
}

/* ------------------------------------------------------------------ opening */

static int open_beside(struct disk__output *o, const char *path)
{
    o->target = resolve(path);
    if (!o->target)
        return -errno;
    o->fd = disk__temporary_open(o->target, &o->temporary);
    if (o->fd < 0)
        return o->fd;
    o->is_open = true;
    if (o->flags & DISK__SWEEP)
        disk__temporary_sweep(o->target, o->fd);
    return 0;
}

/* Opens a FIFO, waiting for its reader. */
static int open_patiently(const char *path, int patience_ms)
{
    static const struct timespec pause = {0, PAUSE_MS * 1000000L};

    for (int waited = 0;; waited += PAUSE_MS) {
        int fd = open(path, O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);

        if (fd >= 0 || errno != ENXIO)
            return fd < 0 ? -errno : fd;
        if (waited >= patience_ms)
            return DISK__NO_READER;
        nanosleep(&pause, NULL);
    }
}

static int duplicate(int fd)
{
    int other = fcntl(fd, F_DUPFD_CLOEXEC, 3);

    return other < 0 ? -errno : other;
}

/* Opens a target directly. A regular file comes here only if this process
 * prints to it. It is written through the same description, so the new bytes
 * follow the printed ones. */
static int open_direct(struct disk__output *o, const char *path)
{
    struct stat info;
    int printing;

    if (stat(path, &info) < 0)
        return -errno;
    printing = S_ISREG(info.st_mode) ? printed_by(&info) : -1;
    o->fd = printing < 0 ? open_patiently(path, patience_of(o))
                         : duplicate(printing);
    if (o->fd < 0)
        return o->fd;
    o->is_open = true;
    if (fstat(o->fd, &info) < 0)
        return -errno;
    if (printing < 0 && !S_ISCHR(info.st_mode) && !S_ISFIFO(info.st_mode))
        return DISK__NOT_REGULAR;
    return 0;
}

int disk__output_open(struct disk__output *o, const char *path, int flags)
{
    int status = look_at(path, flags);

    *o = (struct disk__output){.flags = flags};
    if (status >= 0)
        status = status ? open_direct(o, path) : open_beside(o, path);
    if (status < 0)
        disk__output_close(o);
    return status;
}

int disk__output_check(const char *path, int flags)
{
    struct disk__output o;
    int status = look_at(path, flags);

    if (status < 0)
        return status;
    if (status > 0)
        return access(path, W_OK) == 0 ? 0 : -errno;
    status = disk__output_open(&o, path, flags);
    disk__output_close(&o);
    return status;
}

/* ------------------------------------------------------------------ writing */

int disk__output_write(struct disk__output *o, const void *data, size_t bytes)
{
    int status;

    if (o->status < 0)
        return o->status;
    status = disk__write_all(o->fd, data, bytes, -1, patience_of(o));
    if (status >= 0)
        o->bytes += (int64_t)bytes;
    else if (o->target && ftruncate(o->fd, o->bytes) < 0)
        return remember(o, -errno);
    return remember(o, status);
}

/* Writes for a stream. Returns the bytes written; 0 is a failure. */
static ssize_t write_cookie(void *cookie, const char *data, size_t bytes)
{
    return disk__output_write(cookie, data, bytes) < 0 ? 0 : (ssize_t)bytes;
}

FILE *disk__output_stream(struct disk__output *o)
{
    static const cookie_io_functions_t functions = {.write = write_cookie};
    FILE *stream = fopencookie(o, "w", functions);

    if (stream)
        setvbuf(stream, NULL, _IOFBF, 64 << 10);
    return stream;
}

/* ------------------------------------------------------------------- ending */

/* A network file system reports only at a close what it could not write. The
 * lock stays with the other descriptor. */
static int flush_to_server(int fd)
{
    int other = duplicate(fd);

    if (other < 0)
        return other;
    return close(other) < 0 && errno != EINTR ? -errno : 0;
}

/* Brings the folder to the disk, and with it the name of the file. Some file
 * systems cannot do that, and some folders cannot be read. */
static int sync_folder(const char *target)
{
    const char *slash = strrchr(target, '/');
    char *path = strndup(target, (size_t)(slash - target) + 1);
    int fd = path ? open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
    int status = 0;

    free(path);
    if (fd < 0)
        return 0;
    if (fsync(fd) < 0 && (errno == EIO || errno == ENOSPC || errno == EDQUOT))
        status = -errno;
    close(fd);
    return status;
}

int disk__output_place(struct disk__output *o)
{
    int status = o->status;

    if (!o->temporary)
        return status;
    if (status == 0 && o->flags & DISK__SYNC && fsync(o->fd) < 0)
        status = -errno;
    if (status == 0)
        status = flush_to_server(o->fd);
    if (status == 0 && rename(o->temporary, o->target) < 0)
        status = -errno;
    if (status < 0)
        return remember(o, status);
    free(o->temporary);
    o->temporary = NULL;
    if (o->flags & DISK__SYNC)
        status = sync_folder(o->target);
    return remember(o, status);
}

int disk__output_commit(struct disk__output *o)
{
    int status = disk__output_place(o);

    disk__output_close(o);
    return status;
}

void disk__output_close(struct disk__output *o)
{
    if (o->temporary)
        unlink(o->temporary);
    if (o->is_open)
        close(o->fd);
    free(o->temporary);
    free(o->target);
    *o = (struct disk__output){.status = o->status};
}

int disk__replace(const char *path, const void *data, size_t bytes, int flags)
{
    struct disk__output o;
    int status = disk__output_open(&o, path, flags);

    if (status < 0)
        return status;
    disk__output_write(&o, data, bytes);
    return disk__output_commit(&o);
}
