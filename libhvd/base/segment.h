/* SPDX-License-Identifier: Apache-2.0 */
/*
 * segment.h - files in memory that processes of one host share. They have no
 * name in a file system, so nothing is left behind, whatever kills their
 * processes, and when. The process that makes a file keeps it open while the
 * others open it by its address: the process that has it open and its
 * descriptor there; or, in a user's container, a name that it has for that
 * moment.
 */
#ifndef HVD_BASE_SEGMENT_H
#define HVD_BASE_SEGMENT_H

#include <stdint.h>

/* An address means the same to all processes of a host that see each other in
 * /proc, and nothing to those of another host. All zero: no file. */
struct hvd__segment_address {
    int32_t process, fd;
    uint64_t device, inode; /* identify the file */
    char name[48];          /* a path; "": none */
};

/* Creates an empty file of mode 0600. Returns its descriptor, which exec
 * closes, or -errno. */
int hvd__segment_create(void);
/* Returns the address of a file that this process has made and open, and gives
 * it a name if it needs one. */
struct hvd__segment_address hvd__segment_address_of(int fd);
/* Removes that name, if there is one, once all have opened the file. */
void hvd__segment_settle(const struct hvd__segment_address *address);
/* Opens a file. Returns a descriptor or -errno; -ESTALE: another file, or none,
 * is at this address. */
int hvd__segment_open(const struct hvd__segment_address *address);
/* Returns the text of such an errno, static or of the C library. Any thread. */
const char *hvd__segment_strerror(int code);

#endif
