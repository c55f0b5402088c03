/* SPDX-License-Identifier: Apache-2.0 */
/*
 * segment.c - files without a name, which processes share. watch/page.c and
 * transport/shm/heap.c make them.
 *
 * The files are made in /dev/shm, because /dev/shm has a size: a file that
 * would exceed it fails to grow. Memory without such a bound would end in the
 * system killing a process. Where /dev/shm is missing, cannot be written to, or
 * has no files without a name, the files are memfds.
 *
 * Another process opens such a file through /proc, if the kernel lets it look
 * at the first process (ptrace(2), PTRACE_MODE_READ). Both must have the same
 * user and the same namespaces of processes and users, and neither may be
 * privileged. (Yama restricts attaching, not looking.) In another namespace of
 * processes, the same number belongs to another process. So the file is
 * compared with the expected one before it is opened, because opening something
 * that is no file may have effects.
 *
 * Containers that users start without privileges are user namespaces, often one
 * for each rank (mpirun ... apptainer exec ...), and may not look at each
 * other. Therefore, in any user namespace but the first, a file in /dev/shm
 * gets a random name until all ranks have opened it. If its process is killed
 * in these milliseconds, the name stays, and the next process that starts this
 * way removes it. To make that safe, only locked files (flock) get names, and
 * they stay locked while the process lives.
 */
#include "base/segment.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#define FOLDER "/dev/shm"
#define PREFIX "hvd-share-"

int hvd__segment_create(void)
{
    int fd = open(FOLDER, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);

    if (fd < 0)
        fd = memfd_create("hvd", MFD_CLOEXEC);
    return fd < 0 ? -errno : fd;
}

/* Returns whether this is not the first user namespace, which is the only one
 * that has all users as they are. */
static bool is_in_container(void)
{
    FILE *map = fopen("/proc/self/uid_map", "re");
    unsigned long inside = 0, outside = 0, n = 0;
    bool is_first;

    if (!map)
        return false;
    is_first = fscanf(map, "%lu %lu %lu", &inside, &outside, &n) == 3 &&
               inside == 0 && outside == 0 && n == UINT32_MAX;
    fclose(map);
    return !is_first;
}

/* Removes a name whose process is gone: no process has the file locked. */
static void sweep_one(int folder, const char *name)
{
    struct stat file;
    int fd;

    if (fstatat(folder, name, &file, AT_SYMLINK_NOFOLLOW) != 0 ||
        !S_ISREG(file.st_mode) || file.st_uid != geteuid())
        return;
    fd = openat(folder, name, O_RDWR | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return;
    if (flock(fd, LOCK_EX | LOCK_NB) == 0)
        unlinkat(folder, name, 0);
    close(fd);
}

static void sweep(void)
{
    DIR *folder = opendir(FOLDER);
    const struct dirent *entry;

    while (folder && (entry = readdir(folder)))
        if (strncmp(entry->d_name, PREFIX, sizeof PREFIX - 1) == 0)
            sweep_one(dirfd(folder), entry->d_name);
    if (folder)
        closedir(folder);
}

/* Gives the file a name; "": it cannot have one. */
static void give_name(int fd, char *name, size_t size)
{
    uint64_t random[2];
    char path[32];

    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    if (getrandom(random, sizeof random, 0) != sizeof random ||
        flock(fd, LOCK_SH | LOCK_NB) != 0)
        return;
    snprintf(name, size, FOLDER "/" PREFIX "%016" PRIx64 "%08" PRIx32,
             random[0], (uint32_t)random[1]);
    if (linkat(AT_FDCWD, path, AT_FDCWD, name, AT_SYMLINK_FOLLOW) != 0)
        name[0] = '\0';
}

void hvd__segment_settle(const struct hvd__segment_address *address)
{
    if (address->name[0])
        unlink(address->name);
}

struct hvd__segment_address hvd__segment_address_of(int fd)
{
    struct hvd__segment_address address = {0};
    struct stat file;

    if (fstat(fd, &file) != 0)
        return address;
    /* /proc knows the thread like a process. The first thread of the process
     * may have ended, and has no descriptors then. */
    address.process = (int32_t)gettid();
    address.fd = fd;
    address.device = file.st_dev;
    address.inode = file.st_ino;
    if (is_in_container()) {
        sweep();
        give_name(fd, address.name, sizeof address.name);
    }
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

    if (address->name[0])
        snprintf(path, sizeof path, "%s", address->name);
    else
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
