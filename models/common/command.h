/* SPDX-License-Identifier: Apache-2.0 */
/*
 * command.h - what a training program does as a command: its name, its help,
 * its one line when it fails.
 */
#ifndef MODELS_COMMAND_H
#define MODELS_COMMAND_H

#include "common/joint.h"
#include "common/options.h"
#include "common/progress.h"

/* A training program at work. */
struct command {
    struct options options;
    struct progress progress; /* rank 0 talks */
    int rank, size;
};

/*
 * The main of a training program: read the command line, start libhvd, run, say
 * what went wrong, end libhvd. run returns 0 or a problem (problem.h), the same
 * on all ranks but for who speaks, and has freed all that needs libhvd. Returns
 * the exit status.
 */
int command_main(enum options_program program, int argc, char **argv,
                 int (*run)(struct command *command));

/* Collective: that rank 0's files (--summary, --save-weights, --profile) can be
 * written, before hours pass. */
int command_check_files(const struct command *command);

/* Rank 0's files but the summary, after training. Not collective. */
int command_write_files(const struct command *command,
                        const struct joint *joint);

/*
 * Carry out what options_parse returned if it is not OPTIONS_RUN: help,
 * version, or a wrong command line. Every rank sees the same and settles it
 * alone, without a world; rank 0 prints. Returns the exit status.
 */
int command_settle(enum options_program program, int outcome);

/* The line of a failure (problem.h) on stderr, if this rank should say it. */
void command_complain(const char *program, int status, int rank, int size);

/* PROBLEM if what was printed went nowhere. */
int command_flush(void);

#endif
