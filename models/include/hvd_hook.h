/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hvd_hook.h - functions that an estimator (hvd_estimator.h) calls between the
 * steps of a training, and such as are often wanted: a training that stops when
 * an evaluation no longer improves, and a learning rate that falls then.
 *
 *     hvd_early_stopping_options o;
 *     hvd_hook *stop;
 *
 *     hvd_early_stopping_options_init(&o, sizeof o);
 *     o.patience = 3;
 *     hvd_early_stopping_new(&o, &stop);
 *     options.hooks = &stop;
 *     options.nhooks = 1;
 *     ...
 *     hvd_estimator_free(estimator);
 *     hvd_hook_free(stop);
 *
 * All ranks have the same hooks in the same order. A hook is called on every
 * rank, on the thread that trains, between collective operations; it may call
 * collective functions of libhvd, if it does so on all ranks alike. After each
 * round of calls the ranks agree: if a hook of one rank asks for the end, all
 * stop at that step, and if one fails, all fail.
 *
 * Functions return 0 (HVD_OK) or a negative HVD_ERR_*, and hvd_last_error() has
 * the text.
 */
#ifndef HVD_HOOK_H
#define HVD_HOOK_H

#include <hvd_checkpoint.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct hvd_estimator; /* hvd_estimator.h */

/* A number that becomes known during a training. Its name is its tag in the
 * log: "train/loss", "eval/loss", "eval/top_5", ... */
typedef struct hvd_value {
    const char *name;
    double value; /* of all ranks */
} hvd_value;

/* An event says what has happened. It is valid during the call. */
typedef struct hvd_event {
    uint32_t size; /* of the struct */
    int32_t nvalues;
    int64_t step;      /* steps made since the very first */
    int64_t last;      /* the step at which the training ends */
    int64_t evaluated; /* after_evaluation: the step whose variables were
                          evaluated, earlier than step if an evaluator of its
                          own has done it; else step */
    double loss;       /* after_step: of this rank's rows; else NaN */
    double rate; /* that the schedule has for the step; before_step: for the
                    one that follows */
    /* The learning rate is that of the schedule times this. A hook may change
     * it; what rank 0 has counts, from the next step on. */
    double rate_factor;
    /* after_step: why the update was skipped, the first variable whose gradient
     * was not finite, and the first rank where; else NULL, NULL and -1. The
     * rank is -1, too, if only the mean of the ranks was not. */
    const char *skipped;
    const char *skipped_variable;
    int32_t skipped_rank;
    int32_t reserved;
    /* [nvalues]: after_average and after_evaluation; else none */
    const hvd_value *values;
} hvd_event;

/* Sets *value to the value of a name. Returns 0, or HVD_ERR_ARGUMENT if the
 * event has none of that name. */
int hvd_event_value(const hvd_event *event, const char *name, double *value);

enum { HVD_HOOK_STOP = 1 };

/* Returns 0; HVD_HOOK_STOP, so that all ranks stop at this step; or a negative
 * status, which ends the training with a failure, whose text is
 * hvd_last_error(). */
typedef int hvd_hook_fn(void *context, struct hvd_estimator *estimator,
                        hvd_event *event);

/* Functions may be NULL, and then nobody calls them. */
typedef struct hvd_hook {
    uint32_t size;      /* sizeof(hvd_hook) */
    const char *name;   /* of what checkpoints keep; each hook has another; NULL
                           if there is nothing */
    void *context;      /* for the functions */
    hvd_hook_fn *begin; /* of hvd_estimator_train */
    hvd_hook_fn *before_step;
    hvd_hook_fn *after_step;
    hvd_hook_fn *after_average;    /* every log_step_count_steps steps: of
                                      "train/loss" */
    hvd_hook_fn *after_evaluation; /* during a training, or between two */
    hvd_hook_fn *after_checkpoint;
    hvd_hook_fn *end; /* of a training without failure, before its checkpoint */
    /*
     * Returns the tensors, *count, that a checkpoint keeps for the hook, so
     * that a training which is resumed goes on as if it had not stopped. They
     * are the same on all ranks. Called before the first begin, when the
     * network is known; what it returns is valid until the estimator is freed.
     * A checkpoint is then read into them, unless it has none of the hook.
     */
    const hvd_checkpoint_tensor *(*tensors)(void *context,
                                            struct hvd_estimator *estimator,
                                            int32_t *count);
    void (*free)(void *context); /* called by hvd_hook_free */
} hvd_hook;

/* Frees a hook that a function below has made, behind the estimator that uses
 * it. NULL is accepted. */
void hvd_hook_free(hvd_hook *hook);

/* ----------------------------------------------------------- early stopping */

/* The defaults and the rules are those of Keras. */
typedef struct hvd_early_stopping_options {
    uint32_t size;        /* as hvd_early_stopping_options_init got it */
    int32_t largest;      /* 1: larger values are better; 0 */
    const char *monitor;  /* "eval/loss"; copied */
    double min_delta;     /* a change of less is no improvement; 0 */
    int64_t patience;     /* values without improvement after which the training
                             stops; with 0, the first; 0 */
    int64_t start;        /* values of earlier steps do not count; 0 */
    int32_t restore_best; /* 1: in the end the variables, and their running
                             averages, get the values that they had at the best
                             evaluation, which the hook keeps in memory and in
                             checkpoints; not with an evaluator of its own; 0 */
    int32_t reserved;
} hvd_early_stopping_options;

void hvd_early_stopping_options_init(hvd_early_stopping_options *options,
                                     size_t size);

/* Makes a hook that stops the training when a value has not improved for some
 * time. A training that it has stopped ends at once when it is resumed. NaN is
 * no improvement. HVD_ERR_ARGUMENT, HVD_ERR_MEMORY. */
int hvd_early_stopping_new(const hvd_early_stopping_options *options,
                           hvd_hook **hook);

/* -------------------------------------------------------- reduce on plateau */

/* The defaults and the rules are those of Keras. */
typedef struct hvd_plateau_options {
    uint32_t size;       /* as hvd_plateau_options_init got it */
    int32_t largest;     /* 1: larger values are better; 0 */
    const char *monitor; /* "eval/loss"; copied */
    double factor;       /* of the learning rate, in (0, 1); 0.1 */
    int64_t patience;    /* values without improvement before it falls; 10 */
    double min_delta;    /* a change of less is no improvement; 1e-4 */
    int64_t cooldown;    /* values after a fall that do not count; 0 */
    double min_rate;     /* the rate does not fall below this; 0 */
} hvd_plateau_options;

void hvd_plateau_options_init(hvd_plateau_options *options, size_t size);

/* Makes a hook that multiplies the learning rate by a factor when a value has
 * not improved for some time. HVD_ERR_ARGUMENT, HVD_ERR_MEMORY. */
int hvd_plateau_new(const hvd_plateau_options *options, hvd_hook **hook);

/* ----------------------------------------------------------------- profiler */

typedef struct hvd_profiler_options {
    uint32_t size; /* as hvd_profiler_options_init got it */
    int32_t reserved;
    const char *timeline; /* file of hvd_start_timeline: what all ranks do;
                             copied; NULL (default): none */
    const char *report;   /* folder for profile.json and report.html of rank 0's
                             device (docs/PROFILE.md), which is made; copied;
                             NULL (default): none */
    int64_t first;        /* steps that are made before; 10 */
    int64_t steps;        /* that are looked at; 10 */
} hvd_profiler_options;

void hvd_profiler_options_init(hvd_profiler_options *options, size_t size);

/* Makes a hook that profiles a few steps of a training. With several replicas
 * the report has no measured times. HVD_ERR_ARGUMENT, HVD_ERR_MEMORY. */
int hvd_profiler_new(const hvd_profiler_options *options, hvd_hook **hook);

#ifdef __cplusplus
}
#endif

#endif
