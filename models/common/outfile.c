/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The temporary file lies in the directory of the target, so that the rename
 * stays in one file system. A target that exists and is no regular file
 * (/dev/null, a pipe) is written directly: renaming over it would replace it.
 * A symbolic link is followed first, for the same reason.
 *
 * The name of the temporary file is published for the signal handler; the
 * window in which a killed program leaves one behind is that of the write.
 */
#include "common/outfile.h"

#include "common/problem.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* The temporary file being written; read by signal handlers. */
static _Atomic(const char *) pending;

void outfile_remove_pending(void)
{
    const char *path = atomic_load(&pending);

    if (path)
        unlink(path);
}

/* What realpath gives, or for a file yet to be made a copy of path. */
static char *resolve(const char *path)
{
    char *resolved = realpath(path, NULL);

    return resolved ? resolved : strdup(path);
}

/* The permissions a new file of this process gets. */
static mode_t default_mode(void)
{
    mode_t mask = umask(0);

    umask(mask);
    return 0666 & ~mask;
}

static int open_temporary(struct outfile *out)
{
    static const char suffix[] = ".XXXXXX";
    size_t length = strlen(out->target);

    out->temporary = malloc(length + sizeof suffix);
    if (!out->temporary)
        return -1;
    memcpy(out->temporary, out->target, length);
    memcpy(out->temporary + length, suffix, sizeof suffix);
    int fd = mkstemp(out->temporary);
    if (fd < 0) {
        free(out->temporary);
        out->temporary = NULL;
        return -1;
    }
    atomic_store(&pending, out->temporary);
    if (fchmod(fd, default_mode()) < 0 || !(out->file = fdopen(fd, "wb"))) {
        close(fd);
        return -1;
    }
    return 0;
}

int outfile_open(struct outfile *out, const char *option, const char *path)
{
    struct stat info;
    int status;

    *out = (struct outfile){.option = option, .target = resolve(path)};
    if (!out->target)
        return problem_set("%s: out of memory", option);
    if (stat(out->target, &info) == 0 && !S_ISREG(info.st_mode)) {
        out->file = fopen(out->target, "wb");
        status = out->file ? 0 : -1;
    } else {
        status = open_temporary(out);
    }
    if (status < 0) {
        problem_set("%s %s: cannot be written: %s", option, path,
                    strerror(errno));
        outfile_discard(out);
        return PROBLEM;
    }
    return 0;
}

void outfile_discard(struct outfile *out)
{
    if (out->file)
        fclose(out->file);
    if (out->temporary) {
        unlink(out->temporary);
        atomic_store(&pending, NULL);
    }
    free(out->temporary);
    free(out->target);
    *out = (struct outfile){0};
}

int outfile_commit(struct outfile *out)
{
    int failed = ferror(out->file) | fflush(out->file);

    /* To the disk before the rename: otherwise a crash may leave the name
     * with nothing in it. */
    if (!failed && out->temporary)
        failed = fsync(fileno(out->file));
    failed |= fclose(out->file);
    out->file = NULL;
    if (!failed && out->temporary)
        failed = rename(out->temporary, out->target);
    if (failed) {
        problem_set("%s %s: cannot be written: %s", out->option, out->target,
                    strerror(errno));
        outfile_discard(out);
        return PROBLEM;
    }
    atomic_store(&pending, NULL);
    free(out->temporary);
    out->temporary = NULL;
    outfile_discard(out);
    return 0;
}

int outfile_check(const char *option, const char *path)
{
    struct outfile out;
    struct stat info;

    if (!path)
        return 0;
    /* Opening a pipe may block, and closing it tells its reader the end. */
    if (stat(path, &info) == 0 && !S_ISREG(info.st_mode) &&
        !S_ISDIR(info.st_mode) && access(path, W_OK) == 0)
        return 0;
    if (outfile_open(&out, option, path) < 0)
        return PROBLEM;
    outfile_discard(&out);
    return 0;
}
