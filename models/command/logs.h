/* SPDX-License-Identifier: Apache-2.0 */
/*
 * logs.h - what --log-dir has of a run (docs/LOGS.md): rank 0 writes it, and
 * gets the figures of the other ranks. Without --log-dir all functions return
 * at once.
 *
 * Functions that return int return 0 or a problem (problem.h). A log that
 * cannot be written does not end a training: it is told once, tried again, and
 * is a failure of the run only at its end.
 */
#ifndef MODELS_LOGS_H
#define MODELS_LOGS_H

#include <hvd_log.h>
#include <stdbool.h>
#include <stdint.h>

struct command;
struct outcome_part;
struct training_run;

/* What the time of a rank goes to; the rest is none of these. */
enum logs_share {
    LOGS_DEVICE,
    LOGS_COMMUNICATION, /* it only waits for other ranks */
    LOGS_UPDATE,
    LOGS_DATA, /* it fills mini-batches */
    LOGS_CHECKPOINT,
    LOGS_EVALUATION,
    LOGS_SHARES
};

/* A step of this rank, or those of an update. */
struct logs_step {
    int64_t step;   /* the last of them */
    double seconds; /* without those of communication */
    double shares[LOGS_SHARES];
};

struct logs {
    double began;                /* by clock_seconds */
    double seconds[LOGS_SHARES]; /* of this rank, since it began */
    double before[LOGS_SHARES];  /* the same, before the present step */
    double step_began;           /* by clock_seconds */
    struct logs_step slowest;    /* since the last point */
    int64_t steps;               /* since the last point */
    double loss;                 /* their sum on this rank */
    double *ranks, *last;        /* owned: figures of all ranks, and those of
                                    the last point */
    bool told;                   /* that something could not be written */
};

/* On rank 0, before hours pass: opens the log of the command. */
int logs_open(struct command *command);

/* Begins to measure, and logs what the training is: its configuration, and the
 * network as a graph. */
int logs_begin(struct training_run *run);

/* Log, on rank 0, the settings and the options that were given, and the
 * network. They are parts of logs_begin. */
int logs_settings(struct training_run *run);
int logs_network(struct training_run *run);

/* Has the next functions measure a step of this rank from here. */
void logs_step_begins(struct training_run *run);

/* Collective: counts the steps that were made, with the mean of their losses on
 * this rank, and logs what is due. */
int logs_step_ends(struct training_run *run, int count, double loss);

/* Counts seconds for something else. */
void logs_spend(struct training_run *run, enum logs_share share,
                double seconds);

/* Logs an evaluation. */
void logs_evaluated(struct training_run *run, const struct outcome_part *part);

/* Collective: logs the last steps. */
int logs_end(struct training_run *run);

/* Closes the log of the command, and has a page made of it. */
int logs_close(struct command *command);

/* Frees what a run has, and closes the log, whatever comes of it. */
void logs_fini(struct training_run *run);

#endif
