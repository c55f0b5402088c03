/* SPDX-License-Identifier: Apache-2.0 */
/*
 * disk.h - how our libraries and programs open the files that a user names.
 *
 * A path may lead to anything, so one set of rules holds everywhere.
 *
 * Output. Symbolic links are followed. A regular file is replaced as a whole,
 * and a missing one is made: the new contents are written to a temporary file
 * beside the target, which is renamed when it is complete. Nothing else is
 * ever replaced. A directory, a socket, a block device and a link to nothing
 * are refused. A character device or a FIFO is refused, too, unless the caller
 * asks for DISK__DIRECT: then it is written to, and nobody waits for long for
 * a reader that does not come or does not read. So is the file that standard
 * output or standard error goes to (/dev/stdout of a program whose output was
 * redirected): it is written to at its end, as printing does, since a new file
 * in its place would take away what is printed.
 *
 * Temporary files have random names and are opened with O_EXCL and O_NOFOLLOW,
 * so nothing that somebody has put there is opened. A writer that is killed
 * leaves its temporary file behind; the next output to the same path removes
 * it (temporary.c).
 *
 * Input is from regular files only.
 *
 * Functions return 0 or more on success, and a negative status on failure:
 * an errno negated, or one of those below; disk__text says any of them in
 * words. No function ends the process by SIGPIPE or SIGXFSZ.
 *
 * This room needs nothing but libc. Both libraries and the programs contain
 * it; its names are exported by none of them.
 */
#ifndef DISK_DISK_H
#define DISK_DISK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

/* Far from any errno. */
enum {
    DISK__NOT_REGULAR = -5000,
    DISK__LINK_TO_NOTHING = -5001,
    DISK__PRINTED_TO = -5002,
    DISK__NO_READER = -5003,
    DISK__UNREAD = -5004
};

/* A status in words. Static, or valid until this thread's next call. */
const char *disk__text(int status);

/* ------------------------------------------------------------------- output
 */

enum {
    DISK__DIRECT = 1,  /* devices and FIFOs are written to */
    DISK__BRIEFLY = 2, /* ... waiting for a reader a second, not ten */
    DISK__SYNC = 4,    /* what is committed survives a loss of power */
    DISK__SWEEP = 8    /* remove what killed writers left beside it */
};

/* A file that is being written. One that is zeroed is closed. */
struct disk__output {
    bool is_open;
    int fd;          /* owned, while it is open */
    int flags;       /* of disk__output_open */
    int status;      /* the first failure; 0: none */
    int64_t bytes;   /* written so far */
    char *target;    /* owned; NULL: it is written directly */
    char *temporary; /* owned; NULL: it has its own name, or is direct */
};

/* Begin. On failure there is nothing to close, but closing does no harm. */
int disk__output_open(struct disk__output *output, const char *path, int flags);

/* After a failure no part of data is in a regular file. All further writes
 * fail with the same status. */
int disk__output_write(struct disk__output *output, const void *data,
                       size_t bytes);

/* A stream whose writes go to the output, which must not move in memory: NULL
 * if there is no memory. The caller closes it before the output is committed
 * or closed; a failure to write is found by disk__output_commit. */
FILE *disk__output_stream(struct disk__output *output);

/* Give the file its name now, with what was written so far. More may be
 * written afterwards: this is for files that grow while others read them. */
int disk__output_place(struct disk__output *output);

/* Give the complete file its name and close it. After a failure nothing is
 * left beside it, and what was there before is still there, unless only its
 * folder could not be brought to the disk. */
int disk__output_commit(struct disk__output *output);

/* Close it; without a commit or a place nothing has happened. Accepts closed
 * ones. The status stays. */
void disk__output_close(struct disk__output *output);

/* Can the path be written? What opening would find, but for devices and FIFOs,
 * which are not opened: that alone would tell a reader the end. */
int disk__output_check(const char *path, int flags);

/* Open, write, commit. */
int disk__replace(const char *path, const void *data, size_t bytes, int flags);

/* -------------------------------------------------------------------- input
 */

/* Open a regular file. open_flags: O_RDONLY or O_RDWR. Returns the
 * descriptor. Anything else is DISK__NOT_REGULAR, and is not opened. */
int disk__open_regular(const char *path, int open_flags);

/* A stream to read from; NULL, and *status says why. */
FILE *disk__read_stream(const char *path, int *status);

/* ---------------------------------------------- parts of files that are open
 */

/* Write all of it at an offset. After a failure a part may be written. */
int disk__write_at(int fd, const void *data, size_t bytes, off_t at);

/* Make sure that there is room for these bytes, which lie at the end of the
 * file or beyond it, without changing its size. -EOPNOTSUPP: the file system
 * cannot promise that. */
int disk__reserve(int fd, off_t at, size_t bytes);

#endif
