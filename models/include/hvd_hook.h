/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hvd_hook.h - functions that an estimator (hvd_estimator.h) calls between the
 * steps of a training.
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

/* What has happened. Valid during the call. */
typedef struct hvd_event {
    uint32_t size; /* of the struct */
    int32_t nvalues;
    int64_t step; /* steps made since the very first */
    int64_t last; /* the step at which the training ends */
    double loss;  /* after_step: of this rank's rows; else NaN */
    double rate;  /* that the schedule has for the step; before_step: for the
                     one that follows */
    /* The learning rate is that of the schedule times this. A hook may change
     * it; what rank 0 has counts, from the next step on. */
    double rate_factor;
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

#ifdef __cplusplus
}
#endif

#endif
