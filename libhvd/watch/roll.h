/* SPDX-License-Identifier: Apache-2.0 */
/*
 * roll.h - the ranks of a host call out to each other, before MPI can carry
 * anything and after it no longer does.
 *
 * Each rank that is in hvd_init, or in MPI_Finalize, has a datagram socket of
 * the kernel's own (AF_UNIX, in the abstract namespace: no file), whose name
 * follows from the job and the rank, as the launcher has told them. Whoever
 * comes calls all others, who answer; the kernel says which process a call is
 * from, so that nobody of another user is believed. Nothing blocks: a call to
 * somebody who is not there, or does not listen, is lost.
 */
#ifndef HVD_WATCH_ROLL_H
#define HVD_WATCH_ROLL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum hvd__call_kind {
    HVD__CALL_HERE = 1, /* this rank has come to a stage */
    HVD__CALL_ANSWER,   /* the same, to one that has called */
    HVD__CALL_LEFT,     /* it goes its way; status 0, or why it has failed */
    HVD__CALL_END       /* nothing can succeed any more: status and text */
};

struct hvd__call {
    uint32_t magic;
    int32_t kind;
    int32_t rank; /* the caller's, in MPI_COMM_WORLD */
    int32_t stage;
    int32_t status;
    char text[1024]; /* the last: only what is used travels */
};

struct hvd__roll {
    int fd;         /* owned; -1: nobody can be called */
    int rank, size; /* in MPI_COMM_WORLD; -1 and 0 if unknown */
    int nlocals;    /* ranks of this host; 0 if unknown */
    uint64_t job;   /* of its name */
};

/* What the launcher has told, and a socket if others can be on this host. */
void hvd__roll_open(struct hvd__roll *roll);
/* A zeroed one, or one without a socket, is accepted. */
void hvd__roll_close(struct hvd__roll *roll);

void hvd__roll_call(const struct hvd__roll *roll, int to,
                    const struct hvd__call *call);
void hvd__roll_call_all(const struct hvd__roll *roll,
                        const struct hvd__call *call);

/* The next call, and the process it came from, which may be 0: one that this
 * process cannot see. False: there is none now. */
bool hvd__roll_hear(const struct hvd__roll *roll, struct hvd__call *call,
                    int *pid);

#endif
