/* SPDX-License-Identifier: Apache-2.0 */
/*
 * roll.h - the roll call: the ranks of a host call each other when MPI cannot
 * carry messages yet or any more.
 *
 * Each rank in hvd_init or MPI_Finalize has a datagram socket of the kernel's
 * (AF_UNIX, in the abstract namespace: no file), named after the job and the
 * rank, which the launcher gives. A rank that comes calls all others, and they
 * answer. The kernel reports the process that sent a call, so calls of other
 * users are ignored. Nothing blocks: a call to a rank that is not there, or
 * does not listen, is lost.
 */
#ifndef HVD_WATCH_ROLL_H
#define HVD_WATCH_ROLL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum hvd__call_kind {
    HVD__CALL_HERE = 1, /* this rank has come to a stage */
    HVD__CALL_ANSWER,   /* the same, in answer to a call */
    HVD__CALL_LEFT,     /* it goes on; status 0, or why it has failed */
    HVD__CALL_END       /* nothing can succeed any more: status and text */
};

struct hvd__call {
    uint32_t magic;
    int32_t kind;
    int32_t rank; /* of the caller, in MPI_COMM_WORLD */
    int32_t stage;
    int32_t status;
    char text[1024]; /* last field: only the bytes in use travel */
};

struct hvd__roll {
    int fd;         /* owned; -1: no rank can be called */
    int rank, size; /* in MPI_COMM_WORLD; -1 and 0 if unknown */
    int nlocals;    /* ranks of this host; 0 if unknown */
    uint64_t job;   /* number made from the job's name */
};

/* Reads this rank's identity from the launcher's environment, and opens a
 * socket if other ranks can be on this host. */
void hvd__roll_open(struct hvd__roll *roll);
/* Closes the socket. Accepts a zeroed roll, and one without a socket. */
void hvd__roll_close(struct hvd__roll *roll);

void hvd__roll_call(const struct hvd__roll *roll, int to,
                    const struct hvd__call *call);
void hvd__roll_call_all(const struct hvd__roll *roll,
                        const struct hvd__call *call);

/* Receives the next call and the process that sent it; *pid is 0 if that
 * process is not visible from here. Returns false if there is none now. */
bool hvd__roll_hear(const struct hvd__roll *roll, struct hvd__call *call,
                    int *pid);

#endif
