/* SPDX-License-Identifier: Apache-2.0 */
/*
 * estimator.h - the state of an estimator (hvd_estimator.h), which its files
 * share: estimator.c makes it, input.c feeds it, train.c and evaluate.c use it,
 * resume.c saves it and takes it up again, record.c tells people of it, and
 * hooks.c those who listen.
 */
#ifndef MODELS_ESTIMATOR_H
#define MODELS_ESTIMATOR_H

#include "trainer/trainer.h"

#include <hvd_checkpoint.h>
#include <hvd_estimator.h>
#include <hvd_log.h>

/* Batches of a data set as a trainer asks for them. */
struct input {
    hvd_dataset *data; /* owned */
    hvd_iterator *iterator;
    hvd_batch batch;
    size_t bytes[HVD_MAX_COMPONENTS]; /* of a row of each component */
    int place[HVD_MAX_COMPONENTS];    /* component of each input; -1: none */
    int ninputs;
    bool waits;     /* batch has not been used yet */
    bool over;      /* the data of an evaluation has ended */
    int64_t row;    /* of batch, the next for an evaluation */
    int64_t losses; /* of a row */
    int64_t most;   /* batches of an evaluation; 0: all */
    int64_t made;   /* batches that it has taken */
    bool exact;     /* training: all batches are full, and never end */
};

/* Numbers of a training that checkpoints keep. */
enum {
    NUMBER_RECENT,      /* sum of losses since they were averaged */
    NUMBER_SINCE,       /* steps since then */
    NUMBER_RATE_FACTOR, /* of hooks */
    NUMBER_HEARD,       /* bytes of the evaluator's file that are known */
    NUMBER_SCALE,       /* of the loss; 0: there is none */
    NUMBER_GOOD,        /* updates since it was changed */
    NUMBER_SKIPPED,     /* updates that were skipped since the last that was not
                         */
    NUMBER_AVERAGED,    /* updates that the running averages have */
    NUMBERS
};

/* What an evaluation or a training has found, by the names of the log. */
struct values {
    int32_t count;
    int64_t step; /* of the variables */
    hvd_value list[HVD_EVAL_MOST_METRICS + 2];
    char names[HVD_EVAL_MOST_METRICS + 2][256];
};

/* When hooks are called. */
enum moment {
    MOMENT_BEGIN,
    MOMENT_BEFORE_STEP,
    MOMENT_AFTER_STEP,
    MOMENT_AFTER_AVERAGE,
    MOMENT_AFTER_EVALUATION,
    MOMENT_AFTER_CHECKPOINT,
    MOMENT_END
};

/* An update that was skipped. */
struct skip {
    int64_t count;        /* in this call */
    int rank;             /* the first whose gradient is not finite; -1: none */
    const char *variable; /* NULL: the last step was not skipped */
    char text[256];
};

struct hvd_estimator {
    hvd_estimator_options options; /* the caller's */
    struct trainer *trainer;       /* NULL: not made yet */
    struct input *input;           /* of the training now, borrowed */
    hvd_checkpoint_writer *writer; /* of rank 0; NULL: none yet */
    hvd_log *log;                  /* likewise */
    hvd_position position;         /* where the next step begins */
    bool placed;                   /* there is a position */
    int64_t step;                  /* made since the very first */
    int64_t last;                  /* step at which the training now ends */
    double numbers[NUMBERS];
    float **averages; /* owned, [variables]; NULL: there are none. Those of
                         statistics are the trainer's values */
    int naveraged;    /* the others, each owned */
    struct skip skip;
    bool stops;   /* a hook wants the training to end */
    bool listens; /* the cluster has an evaluator of its own */
    bool watches; /* this process is it: nobody calls hooks */
    /* What rank 0 has read in the newest checkpoint: */
    bool final;         /* the last of its training */
    bool stopped;       /* which a hook has ended */
    int64_t capacity;   /* rows of a batch of the network */
    int64_t losses;     /* of a row */
    int64_t classes;    /* 0: there is no accuracy */
    double saved_at;    /* clock_seconds */
    int64_t saved_step; /* of the newest checkpoint; -1: none */
};

/* --------------------------------------------------------------- estimator.c
 */

/* Collective: makes the trainer for the batches of an input, if there is none
 * yet, and takes up the newest checkpoint. input NULL: this rank has failed. */
int estimator_prepare(hvd_estimator *estimator, const struct input *input);

/* Collective: returns 0 if status is 0 on all ranks, and else a status of hvd.h
 * with the text kept. */
int estimator_agree(int status);

/* ------------------------------------------------------------------- input.c
 */

/* Opens the data, and gets the first batch. Takes data over, also on failure.
 */
int input_open(struct input *input, const hvd_estimator *estimator,
               hvd_dataset *data, bool exact);
/* Finds the component of each input of the network. */
int input_match(struct input *input, const hvd_estimator *estimator,
                bool predicts);
void input_close(struct input *input); /* zeroed is accepted */

/* A fill_batch_fn and a fill_test_fn (trainer.h) with an input as context. */
int input_fill(void *context, int64_t number, void *const *inputs);
int64_t input_fill_test(void *context, int64_t step, void *const *inputs);

/* ------------------------------------------------------------------ resume.c
 */

/* Rank 0: has a checkpoint written; final: the training is over. */
int resume_save(hvd_estimator *estimator, bool final);

/* Collective: asks hooks for their tensors, and takes up the newest checkpoint
 * of the folder, if there is one. */
int resume_load(hvd_estimator *estimator);

/* ------------------------------------------------------------------ record.c
 */

/* Rank 0: opens the log, if there is to be one. */
int record_open(hvd_estimator *estimator);

/* Rank 0: tells an open log of the steps since the last time, and of an
 * evaluation, whose spec may be NULL. */
int record_training(const hvd_estimator *estimator, double loss, double rate,
                    double steps_per_second);
int record_values(const hvd_estimator *estimator, const struct values *values);

/* Adds a value. name is copied; PROBLEM if it is too long. */
int values_add(struct values *values, const char *name, double value);

/* Lists what an evaluation has found. The spec may be NULL. */
int values_of(struct values *values, const hvd_eval_spec *spec,
              const hvd_results *results);

/* ------------------------------------------------------------------- train.c
 */

/* Collective: hvd_estimator_train, with an evaluation beside it; eval NULL:
 * none. */
int train_beside(hvd_estimator *estimator, hvd_dataset *data,
                 const hvd_train_spec *spec, const hvd_eval_spec *eval,
                 hvd_results *training, hvd_results *evaluation);

/* ------------------------------------------------------------- evaluations.c
 */

/* The evaluator: adds what it has found to the file of evaluations. */
int evaluations_write(const hvd_estimator *estimator,
                      const struct values *values);

/* Rank 0 of a new training: passes over what the file has already. */
void evaluations_skip(hvd_estimator *estimator);

/* Collective: has hooks hear of what is new in the file. */
int evaluations_hear(hvd_estimator *estimator);

/* --------------------------------------------------------------- evaluator.c
 */

/* The process of an evaluator: evaluates checkpoints until the last. */
int evaluator_watch(hvd_estimator *estimator, const hvd_train_spec *train,
                    const hvd_eval_spec *eval, hvd_results *results);

/* ------------------------------------------------------------------- hooks.c
 */

int hooks_check(const hvd_estimator_options *options);

/* Collective, if a hook listens to the moment: calls all that do, and has the
 * ranks agree on what they want. loss as in hvd_event; values may be NULL. */
int hooks_call(hvd_estimator *estimator, enum moment moment, double loss,
               const struct values *values);

/* ----------------------------------------------------------------- average.c
 */

/* Makes room for running averages, if there are to be any; has them be the
 * variables, if nothing has been averaged yet; and averages. HVD_ERR_MEMORY. */
int averages_init(hvd_estimator *estimator);
void averages_start(hvd_estimator *estimator);
void averages_update(hvd_estimator *estimator);
void averages_fini(hvd_estimator *estimator);

/* ------------------------------------------------------------------- guard.c
 */

/* Before a step, and collectively behind an update: skips those whose gradients
 * are not finite, says so by estimator->skip, and finds a scale of the loss. */
int guard_begin(hvd_estimator *estimator);
int guard_end(hvd_estimator *estimator);

/* ------------------------------------------------------------------- state.c
 */

/* What a checkpoint keeps that is not the trainer's. A file may lack it. */
struct state {
    hvd_checkpoint_tensor *list; /* owned, [count]; the data is borrowed */
    char **names;                /* owned, [count], each owned */
    int count, capacity;
};

int state_init(struct state *state, hvd_estimator *estimator);
void state_fini(struct state *state); /* zeroed is accepted */

/* Rank 0: reads what a checkpoint has of it. */
int state_read(const struct state *state, const hvd_checkpoint *checkpoint);

#endif
