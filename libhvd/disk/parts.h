/* SPDX-License-Identifier: Apache-2.0 */
/* parts.h - what the sources of this room share. */
#ifndef DISK_PARTS_H
#define DISK_PARTS_H

#include <stddef.h>
#include <sys/types.h>

/* Write all of it. at: an offset, or -1 for where the file is. patience_ms:
 * how long to wait for a reader that does not read. */
int disk__write_all(int fd, const void *data, size_t bytes, off_t at,
                    int patience_ms);

/* Make an empty file beside target, whose name *name (owned by the caller)
 * becomes, and lock it: returns its descriptor. */
int disk__temporary_open(const char *target, char **name);

/* Remove what dead writers have left beside target. own: a temporary file that
 * was made just now, whose time is that of the file system's clock. */
void disk__temporary_sweep(const char *target, int own);

#endif
