/* SPDX-License-Identifier: Apache-2.0 */
/*
 * command.h - the begin and the end of a training program: it starts libhvd,
 * prints help, and reports a failure in one line.
 */
#ifndef MODELS_COMMAND_H
#define MODELS_COMMAND_H

#include "options/options.h"
#include "output/progress.h"

/* A training program while it runs. */
struct command {
    const char *program;
    struct progress progress; /* only rank 0 prints */
    int rank, size;
    struct options
        *options;  /* read by options.h; NULL: by the program itself */
    void *context; /* the program's own */
};

/*
 * Does the rest of main after line_parse has returned outcome. Handles an
 * outcome that is not LINE_RUN; otherwise starts libhvd, calls run, reports a
 * failure, and ends libhvd. run frees all that needs libhvd, and returns 0 or a
 * problem (problem.h): if one rank fails, all do. Returns the exit status.
 */
int command_run(const struct line *line, int outcome, struct command *command,
                int (*run)(struct command *command));

/* Collective, before hours pass: sets the learning rate, and checks that the
 * options are the same on all ranks (agree.h) and that rank 0's files
 * (--summary, --save-weights, --profile) can be written. */
int command_prepare(struct command *command);

#endif
