/* SPDX-License-Identifier: Apache-2.0 */
/*
 * outfile.h - a result file that appears whole or not at all. What a path may
 * lead to, and what becomes of it, disk.h says; a FIFO and a device are
 * written to directly.
 */
#ifndef MODELS_OUTFILE_H
#define MODELS_OUTFILE_H

#include "disk/disk.h"

#include <stdio.h>

/* It must not move in memory while it is open. */
struct outfile {
    FILE *file;
    const char *option; /* for messages: "--summary"; borrowed */
    const char *path;   /* as it was given; borrowed */
    struct disk__output output;
};

/* Can it be written? Tried by making the temporary file and removing it.
 * path NULL: nothing to do. PROBLEM with the text kept. */
int outfile_check(const char *option, const char *path);

int outfile_open(struct outfile *out, const char *option, const char *path);
/* Flush, and put the file in its place; on failure nothing is left. */
int outfile_commit(struct outfile *out);
/* Give up; nothing is left. Accepts those that are closed already. */
void outfile_discard(struct outfile *out);

/* Remove the temporary file that is being written, if any. Async-signal-safe:
 * for signal handlers. */
void outfile_remove_pending(void);

#endif
