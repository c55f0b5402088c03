/* SPDX-License-Identifier: Apache-2.0 */
/*
 * training_run.h - a run of a program that trains a model: from the command
 * line to the exit status, in the order that all such programs have in common.
 * A program gives the functions that differ.
 *
 * Ranks agree before they go on: a failure that only one rank has (a file that
 * is missing on its host, an output that cannot be written) ends all of them
 * with a status other than 0, and one of them reports it.
 */
#ifndef MODELS_TRAINING_RUN_H
#define MODELS_TRAINING_RUN_H

#include "command/command.h"
#include "command/outcome.h"

struct training_run;

/* Functions that return int return 0 or a problem (problem.h). */
struct training_functions {
    enum options_program program;
    /* Collective: calls command_prepare with the options of this program. */
    int (*prepare)(struct training_run *run);
    /* Collective: loads the data. */
    int (*load)(struct training_run *run);
    /* Makes the model, or leaves *model NULL with the problem's text kept, and
     * adds what feeds it to the options. */
    void (*make_model)(struct training_run *run,
                       struct trainer_options *options, struct model **model);
    void (*report_head)(struct training_run *run);
    /* Collective: runs the loop of steps and evaluations. */
    int (*train)(struct training_run *run);
    void (*report_results)(struct training_run *run);
    /* Writes the file of --summary; on rank 0. */
    int (*write_summary)(struct training_run *run, const char *path);
    /* Prints more results, after all files; on rank 0. NULL: nothing. */
    int (*write_more)(struct training_run *run);
    /* Frees the program's own data; accepts half-built ones. */
    void (*fini)(struct training_run *run);
};

struct training_run {
    const struct training_functions *functions;
    struct command *command;
    const struct options *options; /* the command's */
    struct outcome *outcome;       /* the program's */
    struct trainer *trainer;       /* NULL before make_model */
    void *own;                     /* the program's */
};

/* Does all the work of main. Returns the exit status. */
int training_main(const struct training_functions *functions,
                  struct outcome *outcome, void *own, int argc, char **argv);

#endif
