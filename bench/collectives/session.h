/* SPDX-License-Identifier: Apache-2.0 */
/*
 * session.h - a run from its command line to its exit status, on all ranks.
 *
 * If only one rank can find something wrong, all ranks agree on it before they
 * go on, so that all end with an error status and rank 0 says why.
 */
#ifndef BENCH_SESSION_H
#define BENCH_SESSION_H

#include "command/command.h"

#include <stdint.h>

/* The exit statuses. */
enum {
    STATUS_ERROR = 1,
    STATUS_WRONG = 7, /* a result is wrong */
    STATUS_SLOW = 8,  /* less bandwidth than --min-bw */
    STATUS_USAGE = 64
};

struct session {
    int rank;
    int nranks;
    int argc;
    char **argv; /* arguments of main; the array is owned */
    int64_t start_time;
    int owns_mpi;    /* MPI was started here */
    int launch_rank; /* rank that the launcher gave; MPI's is 0 for a single
                        process */
    char error[512]; /* the failure on this rank, or "" */
};

/*
 * Runs a whole subcommand: parses argv into options, which begins with a struct
 * command_line and holds the defaults; starts libhvd, and MPI if libhvd has
 * not; calls run; ends both. For help, version, or a wrong command line every
 * rank does the same without MPI. Returns the exit status.
 */
int session_main(int argc, char **argv, const char *name,
                 const struct argp *parser, void *options,
                 int (*run)(struct session *session, void *options));

/* Returns 0 if every rank is well. Else rank 0 prints the error of a rank that
 * is not, and the status is returned. error is this rank's text. Collective. */
int session_settle(struct session *session, int well, const char *error);

/* Prints the session->error of the first rank that has one. Returns the status.
 * Collective. */
int session_fail(struct session *session);

/* Returns 0, or a status if rank 0 cannot write its standard output.
 * Collective. */
int session_flush(struct session *session);

/* Notes libhvd's last error as this rank's error. Returns -1. */
int session_note_hvd(struct session *session);

/* Notes the text of an MPI code as this rank's error. Returns -1. */
int session_note_mpi(struct session *session, int code);

#endif
