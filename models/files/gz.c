/* SPDX-License-Identifier: Apache-2.0 */
/* gz.c - zlib does it: its gzdopen also reads plain files. */
#include "files/gz.h"

#include "disk/disk.h"
#include "output/problem.h"

#include <errno.h>
#include <fcntl.h>
#include <hvd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { CHUNK = 1 << 20 };

int gz_open(struct gz *gz, const char *path)
{
    *gz = (struct gz){0};
    if (!path || strlen(path) >= sizeof gz->path)
        return problem_fail(HVD_ERR_ARGUMENT, "a path is %s",
                            path ? "too long" : "NULL");
    strcpy(gz->path, path);
    int fd = disk__open_regular(path, O_RDONLY);
    if (fd < 0)
        return problem_fail(HVD_ERR_FILE, "%s: %s", path, disk__text(fd));
    gz->file = gzdopen(fd, "rb"); /* zlib, which closes the file */
    if (!gz->file) {
        close(fd);
        return problem_fail(HVD_ERR_MEMORY, "%s: out of memory", path);
    }
    gzbuffer(gz->file, CHUNK / 8);
    errno = 0;
    return 0;
}

void gz_close(struct gz *gz)
{
    if (gz->file)
        gzclose(gz->file);
    gz->file = NULL;
}

int gz_truncated(struct gz *gz, int64_t expected, int64_t got)
{
    int code = Z_OK;
    const char *why = gzerror(gz->file, &code);

    if (code == Z_ERRNO)
        return problem_fail(HVD_ERR_FILE, "%s: %s", gz->path, strerror(errno));
    if (code != Z_OK && code != Z_STREAM_END && code != Z_BUF_ERROR)
        return problem_fail(HVD_ERR_FILE, "%s: damaged: %s", gz->path, why);
    if (expected < 0)
        return problem_fail(HVD_ERR_FILE,
                            "%s: truncated: the compressed file ends after "
                            "%lld bytes",
                            gz->path, (long long)got);
    return problem_fail(HVD_ERR_FILE,
                        "%s: truncated: ends after %lld of %lld bytes",
                        gz->path, (long long)got, (long long)expected);
}

int64_t gz_read(struct gz *gz, void *out, size_t bytes)
{
    size_t got = 0;

    while (got < bytes) {
        size_t want = bytes - got < CHUNK ? bytes - got : CHUNK;
        int n = gzread(gz->file, (char *)out + got, (unsigned)want);

        if (n < 0)
            return gz_truncated(gz, (int64_t)bytes, (int64_t)got);
        if (n == 0)
            break;
        got += (size_t)n;
    }
    return (int64_t)got;
}

/* Reads on in memory that grows. */
static int read_all(struct gz *gz, char **bytes, size_t *length)
{
    size_t room = 0;
    int code = Z_OK;

    for (;;) {
        if (*length + 1 >= room) {
            room = room ? 2 * room : CHUNK;
            char *grown = realloc(*bytes, room);
            if (!grown)
                return problem_fail(HVD_ERR_MEMORY,
                                    "%s: no memory for %zu bytes", gz->path,
                                    room);
            *bytes = grown;
        }
        int64_t n = gz_read(gz, *bytes + *length, room - 1 - *length);
        if (n < 0)
            return (int)n;
        *length += (size_t)n;
        if (*length < room - 1)
            break;
    }
    (*bytes)[*length] = '\0';
    gzerror(gz->file, &code);
    return code == Z_BUF_ERROR ? gz_truncated(gz, -1, (int64_t)*length) : 0;
}

int gz_read_file(const char *path, char **bytes, size_t *length)
{
    struct gz gz;
    int status = gz_open(&gz, path);

    *bytes = NULL;
    *length = 0;
    if (status < 0)
        return status;
    status = read_all(&gz, bytes, length);
    gz_close(&gz);
    if (status < 0) {
        free(*bytes);
        *bytes = NULL;
    }
    return status;
}
