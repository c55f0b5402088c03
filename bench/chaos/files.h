/* SPDX-License-Identifier: Apache-2.0 */
/*
 * files.h - a folder for temporary files, of one run.
 */
#ifndef BENCH_CHAOS_FILES_H
#define BENCH_CHAOS_FILES_H

#include <stddef.h>

/* Makes a folder of a short name in TMPDIR or /tmp: sockets are made in it,
 * whose paths may have 107 bytes. Returns 0, or -1 with errno set. */
int files_make_folder(char *path, size_t size);

/* Removes the folder and all that is in it, after calling found for each thing
 * that is no folder. */
void files_remove_folder(char *path,
                         void (*found)(void *context, const char *path),
                         void *context);

#endif
