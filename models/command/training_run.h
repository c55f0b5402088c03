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
#include "command/logs.h"
#include "command/losses.h"
#include "command/outcome.h"
#include "estimator/estimator.h"

struct training_run;

/* Functions that return int return 0 or a problem (problem.h). */
struct training_functions {
    enum options_program program;
    const char *unit;     /* of what is trained on: "images" */
    const char *examples; /* elements of the data: "training images" */
    const char *speed;    /* the same in speeds: "tokens" */
    const char *source;   /* option that names the data: "--data" */
    /* Collective: loads the data, and sets the plan, also if that fails, and of
     * the outcome per_step, examples and evaluated. */
    int (*load)(struct training_run *run);
    /* Learns what make_model must know of the data, without other ranks, in a
     * process that does not train; NULL: nothing. */
    int (*look)(struct training_run *run);
    /* Returns the network, valid until fini. NULL with the text kept. */
    const struct hvd_model *(*network)(struct training_run *run);
    /* Makes it a model for batches of a rank, or leaves *model NULL with the
     * problem's text kept: for others, who train it. */
    void (*make_model)(struct training_run *run, struct model **model);
    /* Prints the lines about data and network. */
    void (*report_head)(struct training_run *run);
    /* Writes the place in the training, "epoch 1/5", into text. */
    void (*place)(const struct training_run *run, char *text, size_t size);
    bool named_parts; /* the progress bar shows the place */
    /* Writes what an evaluation found into text: "  test accuracy 97 %". */
    void (*evaluation)(const struct outcome_part *part, char *text,
                       size_t size);
    const char *tests; /* what is evaluated, in tags of logs: "test" */
    /* Looks at what an evaluation computes, with own as its context, and logs
     * what it saw; NULL: nothing. */
    visit_batch_fn *visit_tests;
    int (*log_tests)(struct training_run *run, hvd_log *log);
    /* Prints the last evaluation. */
    void (*report_results)(struct training_run *run);
    /* Return the fields of --summary that only this program has. */
    json_t *(*settings)(const struct training_run *run);
    json_t *(*results)(const struct training_run *run);
    /* Prints more results, after all files; on rank 0. NULL: nothing. */
    int (*write_more)(struct training_run *run);
    /* Frees the program's own data; accepts half-built ones. NULL: nothing. */
    void (*fini)(struct training_run *run);
};

/* A training consists of parts with a line of output each. */
struct training_plan {
    int64_t steps;      /* in all */
    int64_t part;       /* steps of a part */
    int evaluate_every; /* parts; 0: only at the end */
    int interval;       /* steps between two averages of the loss, for the
                           progress bar; 0: a twentieth of a part */
    hvd_dataset *train, *tests; /* owned: batches, to train on and to evaluate;
                                   NULL, with the text kept, if they failed */
    int64_t examples;           /* elements of the former */
    uint64_t data_mark;         /* a hash of these; 0: not known */
};

/* A world of a training that is repeated. */
struct training_world {
    int64_t step; /* behind which it begins */
    int size;     /* ranks */
};

struct training_run {
    const struct training_functions *functions;
    struct command *command;
    const struct options *options; /* the command's */
    struct outcome outcome;
    struct training_plan plan;
    int64_t part;                     /* the present one, from 1 */
    int64_t part_steps, part_made;    /* of it, in this run */
    double part_loss;                 /* sum of losses of this rank */
    double part_began, began;         /* the training, by clock_seconds */
    struct estimator_program program; /* what it does in each step */
    hvd_estimator *estimator;         /* owned; NULL: not made yet */
    int64_t found; /* evaluator: step of the newest checkpoint when it began;
                      -1: there was none */
    struct trainer *trainer; /* the estimator's; NULL before it begins */
    struct logs logs;
    int64_t last_step; /* at which this rank is lost (--elastic-replay); -1:
                          none */
    bool begun;        /* the training, in an earlier world */
    int64_t schedule_steps;        /* of the training as it began */
    struct training_world *worlds; /* [nworlds], owned: those of another
                                      training, which are to be repeated */
    int nworlds, world;            /* the one that stands; -1: none yet */
    int process;                   /* the rank among all that were started */
    struct losses losses;          /* of all steps, with --losses on rank 0 */
    void *own;                     /* the program's */
};

/* Returns the elements of the data that a step of all ranks takes. */
int64_t training_rows(const struct training_run *run);

/* Returns the trained variables, or their running averages. */
float *const *training_values(const struct training_run *run);

/* Does all the work of main. own is for the program's functions. Returns the
 * exit status. */
int training_main(const struct training_functions *functions, void *own,
                  int argc, char **argv);

#endif
