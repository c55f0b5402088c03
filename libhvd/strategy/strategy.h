/* SPDX-License-Identifier: Apache-2.0 */
/*
 * strategy.h - what the files of this room share.
 */
#ifndef HVD_STRATEGY_STRATEGY_H
#define HVD_STRATEGY_STRATEGY_H

#include <stdatomic.h>
#include <stdbool.h>

#include "hvd_strategy.h"

enum { HVD__MOST_STATES = 2 };

struct hvd__variable {
    char *name;   /* owned; as the program calls it */
    char *key;    /* owned; what its collectives are called; from start on */
    float *value; /* borrowed until free */
    int32_t ndim;
    int64_t shape[HVD_MAX_DIMS];
    int64_t count;
    float *gradient; /* in the strategy's arena; from start on */
    float *states[HVD__MOST_STATES]; /* owned; from start on */
    int64_t steps;                   /* times it was updated */
    /* Of the step under way. The flag is taken by the thread that says
     * ready; handle and status are its until it returns. */
    atomic_bool ready;
    hvd_handle handle; /* 0: nothing is in flight */
    int status;        /* of the submission */
};

struct hvd_strategy {
    hvd_strategy_options options;
    int32_t id;                      /* the same on all ranks; from start on */
    struct hvd_strategy *next;       /* of those that are started; see join.c */
    struct hvd__variable *variables; /* owned */
    int32_t nvariables;
    int32_t capacity;
    float *arena; /* owned, hvd_malloc: all gradients, in order, no gaps */
    bool started;
    int64_t ncalls; /* of hvd_strategy_step since the start */
    int64_t nsteps, ngradients, nbytes, nearly;
    double wait_seconds, update_seconds;
};

/* HVD_ERR_ARGUMENT if the number is none. */
int hvd__variable_check(const struct hvd_strategy *strategy, int32_t variable);

/* Collective: whether all ranks have added the same and chosen the same. */
int hvd__strategy_compare(const struct hvd_strategy *strategy);

/* Collective: the variables of all ranks become those of rank root. */
int hvd__broadcast_values(struct hvd_strategy *strategy, int root);
/* Collective: the same of the optimiser's state. */
int hvd__broadcast_state(struct hvd_strategy *strategy, int root);

/* A strategy counts as started from the first call to the second, which
 * accepts one that was never started. */
void hvd__strategy_enlist(struct hvd_strategy *strategy);
void hvd__strategy_strike(struct hvd_strategy *strategy);

/* Collective: a status of this rank alone becomes one of all. The last error
 * says whose it was. */
int hvd__agree(int status);

#endif
