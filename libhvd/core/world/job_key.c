/* SPDX-License-Identifier: Apache-2.0 */
#include "core/world/job_key.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/status.h"

static int fail(const char *where, const char *why)
{
    return hvd__fail(HVD_ERR_CONFIG, "the key of the job (%s): %s", where, why);
}

/* Reads to the end. key->bytes has room for one byte more than the longest key.
 */
static int read_all(int fd, const char *where, struct hvd__job_key *key)
{
    while (key->count <= HVD__KEY_MOST) {
        ssize_t got =
            read(fd, key->bytes + key->count, HVD__KEY_MOST + 1 - key->count);

        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return fail(where, strerror(errno));
        if (got == 0)
            break;
        key->count += (size_t)got;
    }
    if (key->count < HVD__KEY_LEAST)
        return fail(where, "it has fewer than 16 bytes");
    if (key->count > HVD__KEY_MOST)
        return fail(where, "it has more than 4096 bytes");
    return HVD_OK;
}

/* A key that others can read is none. */
static int check_file(int fd, const char *path)
{
    struct stat status;

    if (fstat(fd, &status) != 0)
        return fail(path, strerror(errno));
    if (!S_ISREG(status.st_mode))
        return fail(path, "it is not a regular file");
    if (status.st_uid != geteuid() && status.st_uid != 0)
        return fail(path, "the file belongs to somebody else");
    if (status.st_mode & (S_IRWXG | S_IRWXO))
        return fail(path, "others may use the file: chmod 600");
    return HVD_OK;
}

static int read_file(const char *path, struct hvd__job_key *key)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    int status;

    if (fd < 0)
        return fail(path, strerror(errno));
    status = check_file(fd, path);
    if (status == HVD_OK)
        status = read_all(fd, path, key);
    close(fd);
    return status;
}

/* A file is left where it was, so that the program can start again. */
static int read_descriptor(const char *number, struct hvd__job_key *key)
{
    char *end;
    long fd = strtol(number, &end, 10);
    off_t place;
    int status;

    if (*end || fd < 0 || fd > 1 << 20)
        return hvd__fail(HVD_ERR_CONFIG,
                         "HVD_JOB_KEY_FD='%s' is not a number of a descriptor",
                         number);
    place = lseek((int)fd, 0, SEEK_CUR);
    status = read_all((int)fd, "HVD_JOB_KEY_FD", key);
    if (place >= 0)
        lseek((int)fd, place, SEEK_SET);
    return status;
}

int hvd__job_key_read(const struct hvd__settings *settings,
                      struct hvd__job_key *key)
{
    const char *path = settings->job_key_file, *fd = settings->job_key_fd;
    int status;

    *key = (struct hvd__job_key){NULL, 0};
    if (!*path && !*fd)
        return HVD_OK;
    if (*path && *fd)
        return hvd__fail(HVD_ERR_CONFIG, "HVD_JOB_KEY_FILE and HVD_JOB_KEY_FD "
                                         "are both set: give one of them");
    key->bytes = calloc(1, HVD__KEY_MOST + 1);
    if (!key->bytes)
        return hvd__fail_memory(HVD__KEY_MOST + 1);
    status = *path ? read_file(path, key) : read_descriptor(fd, key);
    if (status < 0)
        hvd__job_key_forget(key);
    return status;
}

void hvd__job_key_forget(struct hvd__job_key *key)
{
    if (key->bytes)
        explicit_bzero(key->bytes, HVD__KEY_MOST + 1);
    free(key->bytes);
    *key = (struct hvd__job_key){NULL, 0};
}
