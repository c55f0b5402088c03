/* SPDX-License-Identifier: Apache-2.0 */
/*
 * temporary.c - names the files that are being written, and removes those whose
 * writer was killed. output.c calls it.
 *
 *     checkpoint.0f3a92c41b7e88d25c6a9e01.tmp
 *     target     boot    random
 *
 * A file without a name (O_TMPFILE) would need no cleaning up. But it needs a
 * name for a moment before it can replace another file, and some file systems,
 * NFS among them, have no such files. So each file has a name, and its writer
 * holds a lock on it (flock). The lock ends with the writer, however the writer
 * ends. The next writer of the same target removes the files that it can lock.
 *
 * Such a lock can be trusted among processes of one kernel, on any file system
 * that has locks at all. Between hosts it depends on the file system and on its
 * mount options. Therefore the name contains 8 hexadecimal digits that stand
 * for the boot of the kernel under which it was made. A file of another boot is
 * removed only if it was also not written to for an hour. On a file system
 * without locks nothing is removed.
 *
 * A writer locks its file a moment after it has made it. If it finds the file
 * locked or gone, another writer has mistaken it for the file of a dead one,
 * and the writer makes a new file. Once a file is locked, the others leave it
 * alone until it is renamed.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "disk/disk.h"
#include "disk/parts.h"

enum {
    BOOT_DIGITS = 8,
    RANDOM_DIGITS = 16,
    MOST_BASE = 200, /* bytes of the target's name; NAME_MAX is 255 */
    TRIES = 100,
    OLD_SECONDS = 3600
};

static const char ending[] = ".tmp";

/* Returns a number for this boot of this kernel: a hash (FNV-1a) of the
 * kernel's name for it; 0 if that cannot be read. */
static uint32_t this_boot(void)
{
    char text[64];
    int fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? 0 : read(fd, text, sizeof text);
    uint32_t hash = 0x811c9dc5;

    if (fd >= 0)
        close(fd);
    for (ssize_t i = 0; i < n; i++)
        hash = (hash ^ (unsigned char)text[i]) * 0x01000193;
    return n > 0 ? hash : 0;
}

static const char *base_of(const char *target)
{
    const char *slash = strrchr(target, '/');

    return slash ? slash + 1 : target;
}

/* ------------------------------------------------------------------- making */

/* Returns a new name; NULL, with errno, on failure. */
static char *make_name(const char *target)
{
    const char *base = base_of(target);
    uint64_t number;
    char *name;

    /* getrandom returns so few bytes at once, or not at all. */
    if (getrandom(&number, sizeof number, 0) != (ssize_t)sizeof number)
        return NULL;
    if (asprintf(&name, "%.*s%.*s.%08" PRIx32 "%016" PRIx64 "%s",
                 (int)(base - target), target, MOST_BASE, base, this_boot(),
                 number, ending) < 0)
        return NULL;
    return name;
}

/* Locks a file. Returns true if no other process has it locked and it still has
 * its name. On file systems without locks only the name counts. */
static bool lock(int fd)
{
    struct stat info;

    if (flock(fd, LOCK_EX | LOCK_NB) < 0 && errno == EWOULDBLOCK)
        return false;
    return fstat(fd, &info) == 0 && info.st_nlink > 0;
}

/* Tries to make the file. -EAGAIN: try another name. */
static int try_open(const char *name)
{
    int fd = open(name,
                  O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC | O_NOCTTY,
                  0666);

    if (fd < 0)
        return errno == EEXIST ? -EAGAIN : -errno;
    if (lock(fd))
        return fd;
    close(fd);
    return -EAGAIN;
}

int disk__temporary_open(const char *target, char **name)
{
    int fd = -EAGAIN;

    for (int i = 0; i < TRIES && fd == -EAGAIN; i++) {
        *name = make_name(target);
        if (!*name)
            return -errno;
        fd = try_open(*name);
        if (fd >= 0)
            break;
        free(*name);
        *name = NULL;
    }
    return fd;
}

/* ----------------------------------------------------------------- removing */

/* Returns the digits of a temporary file of this target; NULL: it is none. */
static const char *digits_of(const char *name, const char *base)
{
    size_t length = strnlen(base, MOST_BASE);
    const char *digits = name + length + 1;

    if (strncmp(name, base, length) != 0 || name[length] != '.')
        return NULL;
    if (strspn(digits, "0123456789abcdef") != BOOT_DIGITS + RANDOM_DIGITS)
        return NULL;
    return strcmp(digits + BOOT_DIGITS + RANDOM_DIGITS, ending) == 0 ? digits
                                                                     : NULL;
}

static bool is_of_this_boot(const char *digits)
{
    char text[BOOT_DIGITS + 1] = "";
    uint32_t boot = this_boot();

    memcpy(text, digits, BOOT_DIGITS);
    return boot != 0 && strtoul(text, NULL, 16) == boot;
}

/* Removes a dead writer's file. It is opened for writing, for NFS has exclusive
 * locks on no other files. */
static void collect(int folder, const char *name, const char *digits,
                    time_t now)
{
    int fd = openat(folder, name,
                    O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC | O_NOCTTY);
    struct stat info;

    if (fd < 0)
        return;
    if (fstat(fd, &info) == 0 && S_ISREG(info.st_mode) &&
        info.st_uid == geteuid() &&
        (is_of_this_boot(digits) || now - info.st_mtime > OLD_SECONDS) &&
        flock(fd, LOCK_EX | LOCK_NB) == 0)
        unlinkat(folder, name, 0);
    close(fd);
}

static DIR *open_folder(const char *target)
{
    const char *base = base_of(target);
    char *path = strndup(target, (size_t)(base - target));
    DIR *folder = path ? opendir(path[0] ? path : ".") : NULL;

    free(path);
    return folder;
}

void disk__temporary_sweep(const char *target, int own)
{
    DIR *folder = open_folder(target);
    struct stat info;
    const struct dirent *entry;

    if (!folder)
        return;
    while (fstat(own, &info) == 0 && (entry = readdir(folder))) {
        const char *digits = digits_of(entry->d_name, base_of(target));

        if (digits)
            collect(dirfd(folder), entry->d_name, digits, info.st_mtime);
    }
    closedir(folder);
}
