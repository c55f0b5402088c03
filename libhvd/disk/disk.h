/* SPDX-License-Identifier: Apache-2.0 */
/*
 * disk.h - the door of this room. It opens the files that a user names, for
 * both libraries and the programs.
 *
 * A path may lead to anything, so the same rules hold everywhere.
 *
 * Output follows symbolic links. It replaces a regular file as a whole, and
 * makes a missing one: it writes the new contents to a temporary file next to
 * the target and renames that file when it is complete. Output never replaces
 * anything else. It refuses a directory, a socket, a block device and a link to
 * nothing. It also refuses a character device or a FIFO, unless the caller
 * gives DISK__DIRECT. In that case it writes to the device or FIFO, and does
 * not wait long for a reader that does not come or does not read. Output to the
 * file of standard output or standard error (/dev/stdout of a program whose
 * output was redirected) is appended, as printing does, because a new file in
 * its place would remove the printed text.
 *
 * Temporary files have random names and are opened with O_EXCL and O_NOFOLLOW,
 * so a file that somebody else has put there is never opened. A writer that is
 * killed leaves its temporary file behind; the next output to the same path
 * removes it (temporary.c).
 *
 * Input is from regular files only.
 *
 * Functions return 0 or more on success, and a negative status on failure: a
 * negated errno, or one of the statuses below. disk__text returns the text of
 * either. No function ends the process by SIGPIPE or SIGXFSZ.
 *
 * This room needs nothing but libc. Both libraries and the programs contain it;
 * none of them exports its names.
 */
#ifndef DISK_DISK_H
#define DISK_DISK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

/* The statuses that are not errnos are far from any errno. */
enum {
    DISK__NOT_REGULAR = -5000,
    DISK__LINK_TO_NOTHING = -5001,
    DISK__PRINTED_TO = -5002,
    DISK__NO_READER = -5003,
    DISK__UNREAD = -5004
};

/* Returns the text of a status, static or valid until this thread's next
 * call. */
const char *disk__text(int status);

/* ------------------------------------------------------------------- output */

enum {
    DISK__DIRECT = 1,  /* devices and FIFOs are written to */
    DISK__BRIEFLY = 2, /* ... waiting for a reader one second, not ten */
    DISK__SYNC = 4,    /* what is committed survives a loss of power */
    DISK__SWEEP = 8    /* remove what killed writers have left */
};

/* A file that is being written. A zeroed one is closed. */
struct disk__output {
    bool is_open;
    int fd;          /* owned, while it is open */
    int flags;       /* of disk__output_open */
    int status;      /* the first failure; 0: none */
    int64_t bytes;   /* written so far */
    char *target;    /* owned; NULL: written directly */
    char *temporary; /* owned; NULL: renamed already, or direct */
};

/* Opens an output. After a failure there is nothing to close, but closing does
 * no harm. */
int disk__output_open(struct disk__output *output, const char *path, int flags);

/* Writes data. After a failure no part of it is in a regular file, and all
 * further writes fail with the same status. */
int disk__output_write(struct disk__output *output, const void *data,
                       size_t bytes);

/* Returns a stream that writes to the output, which must not move in memory;
 * NULL: out of memory. The caller closes it before the output is committed or
 * closed; disk__output_commit reports a failure to write. */
FILE *disk__output_stream(struct disk__output *output);

/* Gives the file its name now, with the bytes written so far. More may be
 * written afterwards: this is for files that grow while others read them. */
int disk__output_place(struct disk__output *output);

/* Gives the complete file its name and closes it. After a failure no temporary
 * file is left, and the old file is still there, unless only its folder could
 * not be brought to the disk. */
int disk__output_commit(struct disk__output *output);

/* Closes an output, which changes nothing on the disk unless it was committed
 * or placed. Accepts closed ones. The status stays. */
void disk__output_close(struct disk__output *output);

/* Checks whether the path can be written, as opening would find, but for
 * devices and FIFOs, which are not opened: that alone would tell a reader the
 * end. */
int disk__output_check(const char *path, int flags);

/* Opens, writes and commits. */
int disk__replace(const char *path, const void *data, size_t bytes, int flags);

/* -------------------------------------------------------------------- input */

/* Opens a regular file. open_flags: O_RDONLY or O_RDWR. Returns the descriptor.
 * Anything else is DISK__NOT_REGULAR, and is not opened. */
int disk__open_regular(const char *path, int open_flags);

/* Returns a stream to read from; NULL, with *status set, on failure. */
FILE *disk__read_stream(const char *path, int *status);

/* --------------------------------------------- parts of files that are open */

/* Writes all of data at an offset. After a failure a part may be written. */
int disk__write_at(int fd, const void *data, size_t bytes, off_t at);

/* Makes sure that there is room for these bytes, at the end of the file or
 * beyond it, without changing its size. -EOPNOTSUPP: the file system cannot
 * promise that. */
int disk__reserve(int fd, off_t at, size_t bytes);

#endif
