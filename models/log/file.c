/* SPDX-License-Identifier: Apache-2.0 */
/* file.c - appends to files so that they are whole after every flush. */
#include "log/sink.h"

#include "output/problem.h"

#include <errno.h>
#include <fcntl.h>
#include <hvd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static int refuse_file(const struct log_file *file, const char *what, int error)
{
    return problem_fail(HVD_ERR_FILE, "%s: cannot be %s: %s", file->path, what,
                        strerror(error));
}

/* Finds where the last whole line ends. */
static int find_end(struct log_file *file)
{
    char last;

    file->end = lseek(file->fd, 0, SEEK_END);
    if (file->end < 0)
        return refuse_file(file, "read", errno);
    for (; file->end > 0; file->end--) {
        if (pread(file->fd, &last, 1, file->end - 1) != 1)
            return refuse_file(file, "read", errno);
        if (last == '\n')
            break;
    }
    return 0;
}

int log_file_open(struct log_file *file, const char *folder, const char *name,
                  int exclusive)
{
    struct stat about;

    file->fd = -1;
    if (asprintf(&file->path, "%s/%s", folder, name) < 0) {
        file->path = NULL;
        return log_no_memory();
    }
    file->fd = open(file->path,
                    O_RDWR | O_CREAT | O_CLOEXEC | O_NONBLOCK | O_NOCTTY |
                        (exclusive ? O_EXCL : 0),
                    0666);
    if (file->fd < 0)
        return refuse_file(file, "written", errno);
    if (fstat(file->fd, &about) < 0 || !S_ISREG(about.st_mode))
        return problem_fail(HVD_ERR_FILE,
                            "%s: cannot be written: it is no regular file",
                            file->path);
    return exclusive ? 0 : find_end(file);
}

/* Writes bytes behind the first *at, and moves *at behind them. */
static int write_behind(struct log_file *file, const struct bytes *bytes,
                        off_t *at)
{
    for (size_t done = 0; done < bytes->count;) {
        ssize_t wrote =
            pwrite(file->fd, bytes->data + done, bytes->count - done, *at);

        if (wrote < 0 && errno == EINTR)
            continue;
        if (wrote <= 0) {
            int error = wrote < 0 ? errno : ENOSPC;

            if (ftruncate(file->fd, file->end) < 0)
                return refuse_file(file, "cut", errno);
            return refuse_file(file, "written", error);
        }
        done += (size_t)wrote;
        *at += wrote;
    }
    return 0;
}

int log_file_flush(struct log_file *file)
{
    off_t at = file->end, end;
    int status;

    if (file->pending.failed || file->tail.failed) {
        bytes_fini(&file->pending);
        bytes_fini(&file->tail);
        return log_no_memory();
    }
    status = write_behind(file, &file->pending, &at);
    end = at;
    if (!status)
        status = write_behind(file, &file->tail, &at);
    if (status < 0)
        return status;
    /* An old file may have had a line that was not whole. */
    if (ftruncate(file->fd, at) < 0)
        return refuse_file(file, "cut", errno);
    file->end = end;
    file->pending.count = 0;
    return 0;
}

void log_file_close(struct log_file *file)
{
    if (file->fd >= 0)
        close(file->fd);
    free(file->path);
    bytes_fini(&file->pending);
    bytes_fini(&file->tail);
    *file = (struct log_file){.fd = -1};
}
