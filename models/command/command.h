/* SPDX-License-Identifier: Apache-2.0 */
/*
 * command.h - what a training program does as a command: its name, its help,
 * its one line when it fails.
 */
#ifndef MODELS_COMMAND_H
#define MODELS_COMMAND_H

#include "options/options.h"
#include "output/progress.h"
#include "trainer/agree.h"
#include "trainer/trainer.h"

/* A training program at work. */
struct command {
    const char *program;
    struct progress progress; /* rank 0 talks */
    int rank, size;
    struct options *options; /* what options.h reads; NULL: it did not */
    void *context;           /* the program's own */
};

/*
 * The rest of main, once line was read: outcome is what that returned. Settle
 * what is not LINE_RUN; else start libhvd, run, say what went wrong, end
 * libhvd. run returns 0 or a problem (problem.h), the same on all ranks but for
 * who speaks, and has freed all that needs libhvd. Returns the exit status.
 */
int command_run(const struct line *line, int outcome, struct command *command,
                int (*run)(struct command *command));

/* Collective, before hours pass: options are settled, and the same on all ranks
 * (agree.h), and rank 0's files (--summary, --save-weights, --profile) can be
 * written. */
int command_prepare(struct command *command, const struct agree_number *own,
                    int n);

/* Rank 0's files but the summary, after training. Not collective. */
int command_write_files(const struct command *command,
                        const struct trainer *trainer);

#endif
