/* SPDX-License-Identifier: Apache-2.0 */
/* parts.h - functions that the files of this room share. */
#ifndef DISK_PARTS_H
#define DISK_PARTS_H

#include <stddef.h>
#include <sys/types.h>

/* Writes all of data. at: an offset, or -1 for the file's position.
 * patience_ms: how long to wait for a reader that does not read. */
int disk__write_all(int fd, const void *data, size_t bytes, off_t at,
                    int patience_ms);

/* Makes an empty file next to target and locks it. Returns its descriptor;
 * *name, owned by the caller, is its name. */
int disk__temporary_open(const char *target, char **name);

/* Removes what dead writers have left next to target. own: a temporary file
 * made just now, whose time is that of the file system's clock. */
void disk__temporary_sweep(const char *target, int own);

#endif
