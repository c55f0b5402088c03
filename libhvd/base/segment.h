/* SPDX-License-Identifier: Apache-2.0 */
/*
 * segment.h - files in memory that processes of one host share. They have no
 * name in a file system: whatever kills their processes, and when, nothing is
 * left behind. Who made one keeps it open while the others open it, each by its
 * address: the process that has it open, and its descriptor there; or, in a
 * container of a user's, by a name that it has for that moment.
 */
#ifndef HVD_BASE_SEGMENT_H
#define HVD_BASE_SEGMENT_H

#include <stdint.h>

/* The same for all processes of a host that see each other in /proc; says
 * nothing to those of another host. All zero: of no file. */
struct hvd__segment_address {
    int32_t process, fd;
    uint64_t device, inode; /* which file that must be */
    char name[48];          /* a path; "": none */
};

/* An empty file of mode 0600: its descriptor, which exec closes; or -errno. */
int hvd__segment_create(void);
/* Of a file that this process has made and open. It gets a name here, if it
 * needs one. */
struct hvd__segment_address hvd__segment_address_of(int fd);
/* All have opened it: its name, if it has one, is taken away. */
void hvd__segment_settle(const struct hvd__segment_address *address);
/* A descriptor of one's own; or -errno. -ESTALE: at this address is another
 * file, or none. */
int hvd__segment_open(const struct hvd__segment_address *address);
/* What such an errno means. Any thread; static, or of the C library. */
const char *hvd__segment_strerror(int code);

#endif
