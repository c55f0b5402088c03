/* SPDX-License-Identifier: Apache-2.0 */
#include "report/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "graph/error.h"

static int fail(const char *path, const char *what)
{
    return ipu__fail(IPU_ERR_DATA, "%s: %s: %s", path, what, strerror(errno));
}

/* directory/name and something unique. */
static char *temporary_name(const char *directory, const char *name)
{
    char *path = NULL;

    return asprintf(&path, "%s/.%s.XXXXXX", directory, name) < 0 ? NULL : path;
}

static int make_directory(const char *directory)
{
    struct stat info;

    if (mkdir(directory, 0777) == 0)
        return IPU_OK;
    if (errno != EEXIST)
        return fail(directory, "the directory cannot be made");
    if (stat(directory, &info) < 0)
        return fail(directory, "cannot be looked at");
    if (S_ISDIR(info.st_mode))
        return IPU_OK;
    return ipu__fail(IPU_ERR_DATA, "%s: is there, and no directory", directory);
}

int ipu__directory_check(const char *directory)
{
    char *path;
    int file, status = IPU_OK;

    IPU_TRY(make_directory(directory));
    path = temporary_name(directory, "profile");
    if (!path)
        return ipu__fail_memory(strlen(directory));
    file = mkstemp(path);
    if (file < 0) {
        status = fail(directory, "no file can be made in it");
    } else {
        close(file);
        unlink(path);
    }
    free(path);
    return status;
}

static int write_all(int file, const char *data, size_t bytes)
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

/* The permissions that a new file would have; mkstemp gives fewer. */
static mode_t usual_mode(void)
{
    mode_t mask = umask(0);

    umask(mask);
    return 0666 & ~mask;
}

int ipu__report_file_write(const char *directory, const char *name,
                           const char *data, size_t bytes)
{
    char *temporary = temporary_name(directory, name), *path = NULL;
    int file = -1, failed = 0, status = IPU_OK;

    if (!temporary || asprintf(&path, "%s/%s", directory, name) < 0) {
        free(temporary);
        return ipu__fail_memory(strlen(directory));
    }
    file = mkstemp(temporary);
    if (file < 0) {
        status = fail(path, "cannot be written");
    } else {
        /* On the disk before it is renamed: a crash between leaves the old
         * one, not an empty one. */
        failed = write_all(file, data, bytes) < 0 ||
                 fchmod(file, usual_mode()) < 0 || fsync(file) < 0;
        if (failed)
            status = fail(path, "cannot be written");
        if (close(file) < 0 && !failed) {
            failed = 1;
            status = fail(path, "cannot be written");
        }
        if (!failed && rename(temporary, path) < 0) {
            failed = 1;
            status = fail(path, "cannot be replaced");
        }
        if (failed)
            unlink(temporary);
    }
    free(temporary);
    free(path);
    return status;
}
