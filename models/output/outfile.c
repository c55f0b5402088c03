/* SPDX-License-Identifier: Apache-2.0 */
/*
 * outfile.c - publishes the name of the temporary file for the signal handler.
 * A program that is killed outright leaves one behind, which the next to write
 * to the same path removes.
 */
#include "output/outfile.h"

#include "output/problem.h"

#include <limits.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>
#include <unistd.h>

enum { FLAGS = DISK__DIRECT | DISK__SYNC | DISK__SWEEP };

/* A copy of the temporary file's name. is_pending publishes it: the store of
 * true in publish_name pairs with the load in outfile_remove_pending, in a
 * signal handler. Once the file is renamed or removed, removing it again does
 * no harm. */
static char pending[PATH_MAX];
static atomic_bool is_pending;

void outfile_remove_pending(void)
{
    if (atomic_load(&is_pending))
        unlink(pending);
}

static void publish_name(const char *temporary)
{
    if (!temporary || strlen(temporary) >= sizeof pending)
        return;
    memcpy(pending, temporary, strlen(temporary) + 1);
    atomic_store(&is_pending, true);
}

static int set_unwritable(const char *option, const char *path, const char *why)
{
    return problem_set("%s %s: cannot be written: %s", option, path, why);
}

int outfile_open(struct outfile *out, const char *option, const char *path)
{
    int status;

    *out = (struct outfile){.option = option, .path = path};
    /* If the path leads to standard output, earlier output comes first. */
    fflush(stdout);
    status = disk__output_open(&out->output, path, FLAGS);
    if (status < 0)
        return set_unwritable(option, path, disk__text(status));
    publish_name(out->output.temporary);
    out->file = disk__output_stream(&out->output);
    if (out->file)
        return 0;
    outfile_discard(out);
    return set_unwritable(option, path, "out of memory");
}

void outfile_discard(struct outfile *out)
{
    if (out->file)
        fclose(out->file);
    out->file = NULL;
    disk__output_close(&out->output);
    atomic_store(&is_pending, false);
}

int outfile_commit(struct outfile *out)
{
    int failed = ferror(out->file), status;

    failed |= fclose(out->file);
    out->file = NULL;
    /* The output remembers a failed write, and then fails the commit. */
    status = disk__output_commit(&out->output);
    atomic_store(&is_pending, false);
    if (status < 0)
        return set_unwritable(out->option, out->path, disk__text(status));
    return failed ? set_unwritable(out->option, out->path, "out of memory") : 0;
}

int outfile_check(const char *option, const char *path)
{
    int status = path ? disk__output_check(path, FLAGS) : 0;

    return status < 0 ? set_unwritable(option, path, disk__text(status)) : 0;
}
