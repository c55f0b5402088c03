/* SPDX-License-Identifier: Apache-2.0 */
/*
 * outfile.h - a result file that appears whole or not at all: written beside
 * its place under a temporary name and renamed when it is complete.
 */
#ifndef MODELS_OUTFILE_H
#define MODELS_OUTFILE_H

#include <stdio.h>

struct outfile {
    FILE *file;
    const char *option; /* for messages: "--summary"; borrowed */
    char *target;       /* links resolved; owned */
    char *temporary;    /* NULL: target is no regular file, written directly */
};

/* Can it be written? Tried by making the temporary file and removing it.
 * path NULL: nothing to do. PROBLEM with the text kept. */
int outfile_check(const char *option, const char *path);

int outfile_open(struct outfile *out, const char *option, const char *path);
/* Flush, and put the file in its place; on failure nothing is left. */
int outfile_commit(struct outfile *out);
/* Give up; nothing is left. Accepts zeroed and committed ones. */
void outfile_discard(struct outfile *out);

/* Remove the temporary file that is being written, if any. Async-signal-safe:
 * for signal handlers. */
void outfile_remove_pending(void);

#endif
