/* SPDX-License-Identifier: Apache-2.0 */
/*
 * command.h - the begin and the end of a training program: it starts libhvd,
 * prints help, and reports a failure in one line.
 */
#ifndef MODELS_COMMAND_H
#define MODELS_COMMAND_H

#include "command/log_folder.h"
#include "options/options.h"

#include <hvd_cluster.h>
#include <hvd_progress.h>

/* A training program while it runs. */
struct command {
    const char *program;
    bool quiet;             /* prints nothing but failures */
    hvd_progress *progress; /* owned, of the run; its check is for the world */
    hvd_role role;          /* of this process in its cluster */
    int rank, size; /* with parameter servers size counts the workers only, and
                       a rank beyond is a server */
    bool serves;    /* this rank is a parameter server */
    bool is_temporary; /* a failure is one: the exit status is EX_TEMPFAIL */
    struct log_folder log; /* it is open on rank 0 */
    struct options
        *options; /* read by options.h; NULL: by the program itself */
    /* Does the work between the start and the end of libhvd, and frees all that
     * needs libhvd. Returns 0 or a problem (problem.h): if one rank fails, all
     * do. */
    int (*run)(struct command *command);
    void *context; /* the program's own */
};

/*
 * Does the rest of main after line_parse has returned outcome. Handles an
 * outcome that is not LINE_RUN; otherwise starts libhvd, calls command->run,
 * reports a failure, and ends libhvd; with --spawn, in each of several new
 * processes. Returns the exit status.
 */
int command_run(const struct line *line, int outcome, struct command *command);

/* Has this process show what goes on, when it has become rank 0. */
void command_show(struct command *command);

/* Collective, before hours pass: tells parameter servers from workers, sets the
 * learning rate, and checks that the options are the same on all ranks
 * (agree.h) and that rank 0's files
 * (--summary, --save-weights, --profile) can be written. */
int command_prepare(struct command *command);

#endif
