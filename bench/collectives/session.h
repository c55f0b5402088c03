/* SPDX-License-Identifier: Apache-2.0 */
/*
 * session.h - a run from its command line to its exit status, on all ranks.
 *
 * What only one rank can find wrong is agreed on by all before they go on, so
 * that all end, non-zero, and rank 0 says why.
 */
#ifndef BENCH_SESSION_H
#define BENCH_SESSION_H

#include "command/command.h"

#include <stdbool.h>
#include <stdint.h>

/* Exit statuses. */
enum {
    STATUS_ERROR = 1,
    STATUS_WRONG = 7, /* a result is not what it must be */
    STATUS_SLOW = 8,  /* less bandwidth than --min-bw */
    STATUS_USAGE = 64
};

struct session {
    int rank;
    int nranks;
    int argc;
    char **argv; /* as given; owned, the words borrowed */
    int64_t start_time;
    int owns_mpi;    /* libhvd would have ended it */
    int launch_rank; /* before MPI sets it anew for one who is alone */
    char error[512]; /* after a failure on this rank; else "" */
};

/*
 * The whole life of a subcommand: parse argv into options, which begins with a
 * struct command_line and holds the defaults; start libhvd, and MPI if it is
 * not; run; end. Help, version, or a wrong command line: every rank sees the
 * same and settles it alone, without MPI. Returns the exit status.
 */
int session_main(int argc, char **argv, const char *name,
                 const struct argp *parser, void *options,
                 int (*run)(struct session *session, void *options));

/* Collective: 0 if every rank is well, else the status, after rank 0 has said
 * error, which is what this rank has to say if it is not. */
int session_settle(struct session *session, int well, const char *error);

/* Collective: of the ranks whose session->error tells what has failed, the
 * first one's is said. Returns the status. */
int session_fail(struct session *session);

/* Collective: 0, or a status if rank 0 cannot write its standard output. */
int session_flush(struct session *session);

/* Note libhvd's last error; -1. */
int session_note_hvd(struct session *session);

/* Note what an MPI code means; -1. */
int session_note_mpi(struct session *session, int code);

#endif
