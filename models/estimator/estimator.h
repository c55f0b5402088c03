/* SPDX-License-Identifier: Apache-2.0 */
/*
 * estimator.h - the state of an estimator (hvd_estimator.h), which its files
 * share: options.c checks what it is to do, estimator.c makes it, ranks.c says
 * which rank does what, input.h feeds it, train.c and evaluate.c use it,
 * resume.c saves it and takes it up again, record.c tells people of it, and
 * hooks.c those who listen.
 */
#ifndef MODELS_ESTIMATOR_H
#define MODELS_ESTIMATOR_H

#include "estimator/input.h"
#include "trainer/trainer.h"

#include <hvd_checkpoint.h>
#include <hvd_estimator.h>
#include <hvd_log.h>

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

/* A property of a training that its checkpoints keep, and that must be the same
 * for it to go on. */
struct estimator_mark {
    const char *name; /* in the checkpoint */
    const char *what; /* in messages */
    int64_t value;
};

enum { ESTIMATOR_MOST_MARKS = 8, ESTIMATOR_OWN = 2 };

/* What an elastic training counts over all its worlds, the same on all ranks
 * but for number. */
struct elastic_counts {
    int64_t number;     /* of this rank: its rank in the first world; who joins
                           later gets the next number */
    int64_t numbered;   /* ranks that have had one */
    int64_t first_size; /* ranks of the first world, */
    int64_t most;       /* and of the largest */
    int64_t used_again; /* rows of all ranks whose steps were lost */
    int64_t restarts;   /* jobs that went on from a checkpoint, */
    int64_t restarted;  /* and the ranks with which they began */
};

/* What our own programs add to the options: what they have from the command
 * line, and what they do in each step. Those functions are called on all ranks,
 * and return 0 or a problem (problem.h); a failure ends this rank, and the
 * others notice it. Pointers are borrowed until the estimator is freed. */
struct estimator_program {
    const char *name;   /* in checkpoints */
    const char *folder; /* what messages call model_dir: "--model-dir" */
    /* In place of what follows from the options, but for what feeds it. */
    struct trainer_options trainer;
    int workers; /* ranks that train: servers beyond them serve by themselves */
    struct estimator_mark marks[ESTIMATOR_MOST_MARKS];
    int nmarks;
    uint64_t data_mark; /* of the data to train on, for events; 0: none */
    int nlost;          /* ranks of this job, before the training began */
    /* Called when a training is about to make its first step, also if none is
     * left: estimator->step have been made. */
    int (*begin)(void *context, hvd_estimator *estimator);
    int (*before_step)(void *context);
    /* Called with the mean loss of the steps made at once, on this rank. */
    int (*after_step)(void *context, double loss);
    visit_batch_fn *visit; /* looks at batches of evaluations */
    /* An elastic training calls these; each may be NULL. changed: the world is
     * another one; begin is called again then. last: returns the step at which
     * the training ends, if it goes on at estimator->position, and adapts the
     * learning rate. */
    void (*changed)(void *context, hvd_estimator *estimator);
    int64_t (*last)(void *context, hvd_estimator *estimator);
    /* Repeat the worlds of another training. leaves: returns whether this one
     * ends at estimator->step. enter: makes the next one that has this process,
     * and returns 1 if that is the very next, 0 if not. */
    bool (*leaves)(void *context, const hvd_estimator *estimator);
    int (*enter)(void *context);
    /* Of an evaluator: a checkpoint was evaluated, or cannot be, and why. */
    void (*evaluated)(void *context, const hvd_results *results);
    void (*left_out)(void *context, const char *why);
    void *context; /* of the functions */
};

struct elastic; /* elastic.c */

struct hvd_estimator {
    hvd_estimator_options options;           /* the caller's */
    const struct estimator_program *program; /* NULL: it is somebody else's */
    struct trainer *trainer;                 /* NULL: not made yet */
    bool has_met;                  /* the ranks have compared their options */
    int calls;                     /* nested ones, now */
    int workers;                   /* ranks that train; set by ranks_begin */
    int32_t outer_group;           /* of agree.h, before this call */
    struct input *input;           /* of the training now, borrowed */
    hvd_checkpoint_writer *writer; /* of rank 0; NULL: none yet */
    hvd_log *log;                  /* likewise */
    hvd_position position;         /* where the next step begins; zeros before
                                      the first */
    int64_t step;                  /* made since the very first */
    int64_t once;                  /* steps that are made at a time */
    int64_t last;                  /* step at which the training now ends */
    double numbers[NUMBERS];
    float **averages; /* owned, [variables]; NULL: there are none. Those of
                         statistics are the trainer's values */
    int naveraged;    /* the others, each owned */
    struct skip skip;
    bool stops;              /* a hook wants the training to end */
    bool listens;            /* the cluster has an evaluator of its own */
    bool watches;            /* this process is it: nobody calls hooks */
    struct elastic *elastic; /* owned; NULL: nothing is committed */
    int64_t trainings;       /* calls that train elastically */
    bool starts_again;       /* a rank was lost before all had come to it: the
                                program has to make another estimator */
    bool has_too_few;   /* ranks are left: the job has to be started again */
    int64_t first_step; /* with which the present one has begun */
    struct elastic_counts counts;
    int64_t own[ESTIMATOR_OWN]; /* the program's; commits keep them */
    /* What rank 0 has read in the newest checkpoint: */
    bool final;        /* the last of its training */
    bool stopped;      /* which a hook has ended */
    int64_t capacity;  /* rows of a batch of the network */
    int64_t losses;    /* of a row */
    int64_t classes;   /* 0: there is no accuracy */
    double written;    /* time_t at which it was */
    char resumed[512]; /* its path, and what was wrong with newer ones */
    char passed_over[512];
    double saved_at;    /* clock_seconds */
    double saving;      /* seconds that checkpoints have taken */
    int64_t saved_step; /* of the newest checkpoint; -1: none */
};

/* -------------------------------------------------------------- estimator.c */

/* Collective: makes the trainer for the batches of an input, if there is none
 * yet, and takes up the newest checkpoint. input NULL: this rank has failed. */
int estimator_prepare(hvd_estimator *estimator, const struct input *input);

/* Has a new estimator be that of a program, within a process set of workers
 * (agree_among) if there are servers. */
void estimator_adopt(hvd_estimator *estimator,
                     const struct estimator_program *program);

/* Opens data for this rank, as input_open does. */
int estimator_open(const hvd_estimator *estimator, hvd_dataset *data,
                   bool exact, struct input *input);

/* Collective: returns 0 if status is 0 on all ranks, and else a status of hvd.h
 * with the text kept. */
int estimator_agree(int status);

/* ---------------------------------------------------------------- options.c */

/* Copies options that are in order, with what the cluster adds to them. */
int estimator_take_options(hvd_estimator_options *own,
                           const hvd_estimator_options *given);

/* All but what fills. */
struct trainer_options estimator_trainer_options(
    const hvd_estimator *estimator);

/* ------------------------------------------------------------------ ranks.c */

/* What a call has found, the same on all ranks. */
struct found {
    int32_t status;
    int32_t evaluated; /* 1: evaluation is set */
    hvd_results training, evaluation;
    char text[1024]; /* of a failure */
};

/*
 * Collective: begins a call. Returns 1 on a rank that is to do what was asked
 * for, and then to call ranks_end. A parameter server serves the others, and
 * returns 0 or a failure when they have ended, with what they have found. Calls
 * may be nested.
 */
int ranks_begin(hvd_estimator *estimator, struct found *found);

/* Collective over the workers: ends a call with that status, which it returns
 * with its text. */
int ranks_end(hvd_estimator *estimator, struct found *found, int status);

/* Copies results to the caller's, which may be NULL. */
void found_tell(const struct found *found, hvd_results *training,
                hvd_results *evaluation);

/* ---------------------------------------------------------------- cluster.c */

/* Has a process that has come to a job that runs already be apart (agree.h)
 * until it trains. elastic: its training can take part. */
int cluster_arrive(bool elastic);

bool cluster_is_evaluator(void);
int cluster_servers(void); /* tasks of type ps; 0 without a cluster */

/* Collective: finds whether the cluster has an evaluator of its own. */
int cluster_find_evaluator(bool *found);

/* ----------------------------------------------------------------- resume.c */

/* Rank 0: has a checkpoint written; final: the training is over. */
int resume_save(hvd_estimator *estimator, bool final);

/* Collective: asks hooks for their tensors, and takes up the newest checkpoint
 * of the folder, if there is one, and no newer commit. */
int resume_load(hvd_estimator *estimator);

/* ---------------------------------------------- elastic.c, elastic_worlds.c */

/* Collective, before the trainer is made for a world that is not the first:
 * checks that processes that have joined train what the others do. input NULL:
 * this rank has failed. */
int elastic_compare(hvd_estimator *estimator, const struct input *input);
/* Makes what an elastic training keeps, if this is to be one. */
int elastic_open(hvd_estimator *estimator);
/* Collective, before the first step in a world, if the training is elastic:
 * goes on from the newest commit, or makes the first one. */
int elastic_begin(hvd_estimator *estimator);
/* Counts the rows of the steps just made. */
void elastic_count(hvd_estimator *estimator);
/* Collective: commits; whole: returns when all ranks have all of it. */
int elastic_commit(hvd_estimator *estimator, bool whole);
/* Collective, behind a commit: 1: the training is to go on in another world, by
 * elastic_change; 0: in this one. */
int elastic_look(hvd_estimator *estimator);
/* Collective, behind a whole commit: has a checkpoint of it written. */
int elastic_save(hvd_estimator *estimator);
/* Collective: commits the state of the end, saves it, and waits until all have
 * it. */
int elastic_finish(hvd_estimator *estimator);
/* Where a rank is when it makes a new world with others. */
enum elastic_place { PLACE_TRAINING, PLACE_STARTING, PLACE_OVER };
/* Collective over all that have recovered, or come as spares: returns
 * PLACE_OVER if the training of one of them is over, which means that all have
 * the state of its end; PLACE_STARTING if one has not come to the training yet;
 * PLACE_TRAINING otherwise; or a problem. */
int elastic_compare_places(enum elastic_place mine);
/* Collective: makes a world with those who wait to join. Returns 1, or a
 * failure. */
int elastic_change(hvd_estimator *estimator);
/* Collective: waits until least ranks are there, those that wait to join
 * included. Returns 1; 0 if they have not come in ten minutes, or nobody can
 * come; or a problem. */
int elastic_wait_for(int least);
/* Says that too few ranks are left for an option. Returns HVD_ERR_LOST. */
int elastic_say_short(const char *option, int least, const char *more);
/* Rank 0 notes, in a file of events, that its job stops before its training has
 * begun, after it has lost so many ranks. path may be NULL. */
int elastic_tell_unbegun(const char *path, int nlost);
/* Returns whether the world is not the first of its training. */
bool elastic_has_changed(const hvd_estimator *estimator);

/* The numbers of an elastic training that checkpoints keep: all ranks have the
 * same. */
struct elastic_kept {
    int64_t rows; /* as in the variables; -1: the training was not elastic */
    struct elastic_counts counts;
    int64_t own[ESTIMATOR_OWN];
};

/* Returns the numbers that a checkpoint is to keep now. */
struct elastic_kept elastic_keep(const hvd_estimator *estimator);
/* Goes on from the numbers of a checkpoint, if the training is elastic. The
 * ranks are numbered anew. */
void elastic_take_up(hvd_estimator *estimator, const struct elastic_kept *kept);
/* Returns whether a commit is complete, from which the training goes on. */
bool elastic_is_committed(const hvd_estimator *estimator);
/* What elastic_recover returns, if it does not fail. */
enum elastic_way {
    WAY_NONE,  /* it was not the loss of a rank, or the training not elastic */
    WAY_AGAIN, /* there is a new world, in which there is no trainer */
    WAY_OVER   /* there is one, in which the training is over */
};
/* After a failure: a way, or the failure to find one. */
int elastic_recover(hvd_estimator *estimator);
/* Frees what elastic_open has made. */
void elastic_end(hvd_estimator *estimator);

/* ----------------------------------------------------------------- record.c */

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

/* ------------------------------------------------------------------ train.c */

/* Collective: hvd_estimator_train, with an evaluation beside it; eval NULL:
 * none. */
int train_beside(hvd_estimator *estimator, hvd_dataset *data,
                 const hvd_train_spec *spec, const hvd_eval_spec *eval,
                 struct found *found);

/* ------------------------------------------------------------ evaluations.c */

/* The evaluator: adds what it has found to the file of evaluations. */
int evaluations_write(const hvd_estimator *estimator,
                      const struct values *values);

/* Rank 0 of a new training: passes over what the file has already. */
void evaluations_skip(hvd_estimator *estimator);

/* Collective: has hooks hear of what is new in the file. */
int evaluations_hear(hvd_estimator *estimator);

/* -------------------------------------------------------------- evaluator.c */

/* The process of an evaluator: evaluates checkpoints until the last. */
int evaluator_watch(hvd_estimator *estimator, const hvd_train_spec *train,
                    const hvd_eval_spec *eval, hvd_results *results);

/* ------------------------------------------------------------------ hooks.c */

int hooks_check(const hvd_estimator_options *options);

/* Collective, if a hook listens to the moment: calls all that do, and has the
 * ranks agree on what they want. loss as in hvd_event; values may be NULL. */
int hooks_call(hvd_estimator *estimator, enum moment moment, double loss,
               const struct values *values);

/* ---------------------------------------------------------------- average.c */

/* Makes room for running averages, if there are to be any; has them be the
 * variables, if nothing has been averaged yet; and averages. HVD_ERR_MEMORY. */
int averages_init(hvd_estimator *estimator);
void averages_start(hvd_estimator *estimator);
void averages_update(hvd_estimator *estimator);
void averages_fini(hvd_estimator *estimator);

/* ------------------------------------------------------------------ guard.c */

/* Before a step, and collectively behind an update: skips those whose gradients
 * are not finite, says so by estimator->skip, and finds a scale of the loss. */
int guard_begin(hvd_estimator *estimator);
int guard_end(hvd_estimator *estimator);

/* ------------------------------------------------------------------ state.c */

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
