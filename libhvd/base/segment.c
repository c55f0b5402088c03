/* SPDX-License-Identifier: Apache-2.0 */
/*
 * segment.c - files without a name.
 *
 * They are made in /dev/shm, which has a size: a file there that is full, or
 * as large as it may become, fails to grow, where memory without such a bound
 * would end in the system killing somebody. Where there is no /dev/shm to
 * write to, or it knows no files without a name, they are a memfd's.
 *
 * Another process opens one through /proc, if the kernel lets it look at the
 * first (ptrace(2), PTRACE_MODE_READ): one of the same user and of the same
 * namespaces of processes and users, and neither is privileged. (Yama
 * restricts attaching, not looking.) Within another namespace of processes
 * the number is somebody else's, so what is there is compared with what was
 * meant, before it is opened: opening may do something to what is no file.
 */
#include "base/segment.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

int hvd__segment_create(void)
{
    int fd = open("/dev/shm", O_TMPFILE | O_EXCL | O_RDWR | O_CLOEXEC, 0600);

    if (fd < 0)
        fd = memfd_create("hvd", MFD_CLOEXEC);
    return fd < 0 ? -errno : fd;
}

struct hvd__segment_address hvd__segment_address_of(int fd)
{
    struct hvd__segment_address address = {0};
    struct stat file;

    if (fstat(fd, &file) != 0)
        return address;
    /* The thread, which /proc knows like a process: the first of the process
     * may have ended, and has no descriptors then. */
    address.process = (int32_t)gettid();
    address.fd = fd;
    address.device = file.st_dev;
    address.inode = file.st_ino;
    return address;
}

static bool is_meant(const struct hvd__segment_address *address,
                     const struct stat *file)
{
    return S_ISREG(file->st_mode) && file->st_dev == address->device &&
           file->st_ino == address->inode;
}

int hvd__segment_open(const struct hvd__segment_address *address)
{
    char path[64];
    struct stat file;
    int fd;

    snprintf(path, sizeof path, "/proc/%d/fd/%d", (int)address->process,
             (int)address->fd);
    if (stat(path, &file) != 0)
        return errno == ENOENT ? -ESTALE : -errno;
    if (!is_meant(address, &file))
        return -ESTALE;
    fd = open(path, O_RDWR | O_CLOEXEC);
    if (fd < 0)
        return -errno;
    if (fstat(fd, &file) != 0 || !is_meant(address, &file)) {
        close(fd);
        return -ESTALE;
    }
    return fd;
}

const char *hvd__segment_strerror(int code)
{
    switch (code) {
    case ESTALE:
        return "no such process here (is it of another PID namespace?)";
    case EACCES:
    case EPERM:
        return "may not be opened (is it of another user, or of another user "
               "namespace?)";
    default: return strerror(code);
    }
}
