/* SPDX-License-Identifier: Apache-2.0 */
/*
 * outfile.h - writes a result file that appears whole or not at all. disk.h
 * says where a path may lead and what happens there; a FIFO and a device are
 * written to directly.
 */
#ifndef MODELS_OUTFILE_H
#define MODELS_OUTFILE_H

#include "disk/disk.h"

#include <stdio.h>

/* A file that is being written. It must not move in memory while it is open. */
struct outfile {
    FILE *file;
    const char *option; /* name for messages: "--summary"; borrowed */
    const char *path;   /* path from the command line; borrowed */
    struct disk__output output;
};

/* Checks that a file can be written, by making the temporary file and removing
 * it. path NULL: there is nothing to check. PROBLEM with the text kept. */
int outfile_check(const char *option, const char *path);

int outfile_open(struct outfile *out, const char *option, const char *path);
/* Flushes the file and puts it in its place; on failure nothing is left. */
int outfile_commit(struct outfile *out);
/* Removes the file; nothing is left. Accepts a file that is closed already. */
void outfile_discard(struct outfile *out);

/* Removes the temporary file that is being written, if any. Async-signal-safe,
 * for signal handlers. */
void outfile_remove_pending(void);

#endif
