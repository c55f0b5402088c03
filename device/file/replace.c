/* SPDX-License-Identifier: Apache-2.0 */
#include "file/replace.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int write_all(int file, const unsigned char *data, size_t bytes)
{
    while (bytes > 0) {
        ssize_t n = write(file, data, bytes);

        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return -1;
        data += n;
        bytes -= (size_t)n;
    }
    return 0;
}

/* The name in its folder is on the disk only when the folder is. */
static void sync_folder(const char *path)
{
    char *folder = strdup(path), *slash = folder ? strrchr(folder, '/') : NULL;
    int file;

    if (slash)
        slash[slash == folder] = '\0';
    file = open(slash ? folder : ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (file >= 0) {
        fsync(file); /* some file systems cannot: no reason to fail */
        close(file);
    }
    free(folder);
}

/* Beside it, under a name of this process and call. */
int ipu__file_replace(const char *path, const void *data, size_t bytes)
{
    static atomic_uint calls;
    size_t room = strlen(path) + 48;
    char *temporary = malloc(room);
    int file, kept;

    if (!temporary)
        return -1;
    snprintf(temporary, room, "%s.%ld.%u.tmp", path, (long)getpid(),
             atomic_fetch_add(&calls, 1));
    file = open(temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (file < 0) {
        free(temporary);
        return -1;
    }
    kept = write_all(file, data, bytes) < 0 || fsync(file) < 0;
    if (close(file) < 0 || kept || rename(temporary, path) < 0) {
        kept = errno;
        unlink(temporary);
        free(temporary);
        errno = kept;
        return -1;
    }
    free(temporary);
    sync_folder(path);
    return 0;
}
