/* SPDX-License-Identifier: Apache-2.0 */
#include "report/file.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/error.h"
#include "disk/disk.h"

static int fail_path(const char *path, const char *what)
{
    return ipu__fail(IPU_ERR_DATA, "%s: %s: %s", path, what, strerror(errno));
}

static int make_directory(const char *directory)
{
    struct stat info;

    if (mkdir(directory, 0777) == 0)
        return IPU_OK;
    if (errno != EEXIST)
        return fail_path(directory, "the directory cannot be made");
    if (stat(directory, &info) < 0)
        return fail_path(directory, "cannot be looked at");
    if (S_ISDIR(info.st_mode))
        return IPU_OK;
    return ipu__fail(IPU_ERR_DATA, "%s: is there, and no directory", directory);
}

static int cannot_write(const char *path, int status)
{
    return ipu__fail(IPU_ERR_DATA, "%s: cannot be written: %s", path,
                     disk__text(status));
}

int ipu__directory_check(const char *directory)
{
    int status;
    char *path;

    IPU_TRY(make_directory(directory));
    if (asprintf(&path, "%s/profile.json", directory) < 0)
        return ipu__fail_memory(strlen(directory));
    status = disk__output_check(path, DISK__SWEEP);
    if (status < 0)
        status = cannot_write(path, status);
    free(path);
    return status;
}

int ipu__report_file_write(const char *directory, const char *name,
                           const char *data, size_t bytes)
{
    int status;
    char *path;

    if (asprintf(&path, "%s/%s", directory, name) < 0)
        return ipu__fail_memory(strlen(directory));
    status = disk__replace(path, data, bytes, DISK__SYNC | DISK__SWEEP);
    if (status < 0)
        status = cannot_write(path, status);
    free(path);
    return status;
}
