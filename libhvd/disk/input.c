/* SPDX-License-Identifier: Apache-2.0 */
/* input.c - opens files that exist. */
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "disk/disk.h"

int disk__open_regular(const char *path, int open_flags)
{
    struct stat info;
    int fd;

    /* The path is looked at first: opening a device may have effects. */
    if (stat(path, &info) < 0)
        return -errno;
    if (!S_ISREG(info.st_mode))
        return DISK__NOT_REGULAR;
    /* The path may lead to a FIFO by now, on which opening must not wait. */
    fd = open(path, open_flags | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0)
        return -errno;
    if (fstat(fd, &info) == 0 && S_ISREG(info.st_mode))
        return fd;
    close(fd);
    return DISK__NOT_REGULAR;
}

FILE *disk__read_stream(const char *path, int *status)
{
    int fd = disk__open_regular(path, O_RDONLY);
    FILE *file = fd < 0 ? NULL : fdopen(fd, "rb");

    *status = 0;
    if (file)
        return file;
    *status = fd < 0 ? fd : -errno;
    if (fd >= 0)
        close(fd);
    return NULL;
}
