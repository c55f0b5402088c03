/* SPDX-License-Identifier: Apache-2.0 */
#include "report/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "file/replace.h"
#include "graph/error.h"

static int fail(const char *path, const char *what)
{
    return ipu__fail(IPU_ERR_DATA, "%s: %s: %s", path, what, strerror(errno));
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
    if (asprintf(&path, "%s/.profile.XXXXXX", directory) < 0)
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

int ipu__report_file_write(const char *directory, const char *name,
                           const char *data, size_t bytes)
{
    char *path;
    int status = IPU_OK;

    if (asprintf(&path, "%s/%s", directory, name) < 0)
        return ipu__fail_memory(strlen(directory));
    if (ipu__file_replace(path, data, bytes) < 0)
        status = fail(path, "cannot be written");
    free(path);
    return status;
}
