/* SPDX-License-Identifier: Apache-2.0 */
/*
 * strategy.h - the door of this room: the state of a strategy, and the
 * functions that its files share.
 */
#ifndef HVD_STRATEGY_STRATEGY_H
#define HVD_STRATEGY_STRATEGY_H

#include <stdatomic.h>
#include <stdbool.h>

#include "hvd_strategy.h"
#include "state/state.h"
#include "strategy/rows.h"

enum { HVD__MOST_STATES = 3 };

struct hvd__variable {
    char *name;   /* owned; the program's name for it */
    char *key;    /* owned; the name of its collectives; since start */
    float *value; /* borrowed until free */
    float *mean;  /* of a statistic: its mean when it was last read; borrowed
                     until free */
    int32_t ndim;
    int64_t shape[HVD_MAX_DIMS];
    int64_t count;
    bool is_sparse;  /* its gradients are rows */
    float *gradient; /* in the strategy's arena; since start; NULL: sparse */
    float *states[HVD__MOST_STATES]; /* owned; since start */
    int64_t steps;                   /* number of updates */
    /* The step under way. The thread that calls hvd_strategy_ready takes the
     * flag with an exchange; handle and status belong to that thread until it
     * returns. hvd_strategy_step loads the flag. */
    atomic_bool ready;
    hvd_handle handle; /* 0: nothing in flight */
    int status;        /* status of the submission */
    /* Of a sparse variable, in the same step. */
    hvd_handle values_handle; /* all-reduce: handle is of the indices */
    struct hvd__rows rows;    /* this rank's; later, with all-reduce, the
                                 average */
    int64_t bytes;            /* of this rank's rows */
    char *refusal;            /* owned; why this rank's rows are not used */
};

struct hvd__servers;

struct hvd_strategy {
    hvd_strategy_options options;
    int32_t group; /* process set of the ranks that make steps; 0 until start */
    struct hvd__servers *servers; /* owned; since start; NULL: all-reduce */
    int32_t id;                   /* the same on all ranks; since start */
    struct hvd_strategy *next;    /* in the list of started ones (started.c) */
    struct hvd__variable *variables; /* owned */
    int32_t nvariables;
    int32_t capacity;
    struct hvd__variable *statistics; /* owned; they have no gradients */
    int32_t nstatistics;
    float *statistics_buffer; /* owned, hvd_malloc: all of them, in order */
    float *arena; /* owned, hvd_malloc: all gradients, in order, no gaps */
    bool placed;  /* it is elastic, and has a place */
    int place;    /* among the elastic strategies of this process */
    bool started;
    int64_t ncalls; /* calls of hvd_strategy_step since start */
    int64_t nsteps, ngradients, nbytes, nearly;
    double wait_seconds, update_seconds;
};

/* Returns HVD_ERR_ARGUMENT if strategy is NULL or is not started. */
int hvd__strategy_check_started(const struct hvd_strategy *strategy);
/* Returns HVD_ERR_ARGUMENT, too, on a parameter server. */
int hvd__strategy_check_worker(const struct hvd_strategy *strategy);
/* Returns HVD_ERR_ARGUMENT in the middle of a step. rule is the text in front
 * of "between two steps". */
int hvd__strategy_check_idle(const struct hvd_strategy *strategy,
                             const char *rule);
/* Returns HVD_ERR_ARGUMENT if there is no variable of this number. */
int hvd__variable_check(const struct hvd_strategy *strategy, int32_t variable);

/* Returns the elements of a row of a sparse variable. */
int64_t hvd__variable_width(const struct hvd__variable *v);
/* Returns the first sparse variable; NULL: there is none. */
const struct hvd__variable *hvd__variable_sparse(
    const struct hvd_strategy *strategy);

/* Fills a variable that is to be added, after checks of all that is known of
 * it; v is zeroed. Its name is owned then. */
int hvd__variable_init(const struct hvd_strategy *strategy, const char *name,
                       float *value, int32_t ndim, const int64_t *shape,
                       struct hvd__variable *v);

/* Makes the buffer of the statistics. */
int hvd__statistics_allocate(struct hvd_strategy *strategy);
/* Collective over a process set. Gives all of its ranks the statistics of rank
 * 0, as values and as means. */
int hvd__statistics_share(struct hvd_strategy *strategy, int32_t process_set);
void hvd__statistics_free(struct hvd_strategy *strategy);

/* Returns whether all ranks that make steps hold the same after each. */
bool hvd__strategy_is_alike(const struct hvd_strategy *strategy);

/* Collective. Checks whether all ranks have added and chosen the same. */
int hvd__strategy_compare(const struct hvd_strategy *strategy);

/*
 * What a rank writes of the optimiser's state is in the variables (steps and
 * states) from borrow to return: parameter servers have it, and the newest
 * values come with it. Not collective. return is needed after a failure, too.
 */
int hvd__state_borrow(struct hvd_strategy *strategy);
void hvd__state_return(struct hvd_strategy *strategy);

/* Fills rank 0's variables, statistics and state, in the same places. Returns 1
 * with state, 0 without; a failure has changed nothing. */
typedef int hvd__state_source(struct hvd_strategy *strategy,
                              const void *context);
/* Collective. Gives all ranks what a source fills in on rank 0; where it
 * returns 0, the optimiser begins anew. Returns what it has returned. when: as
 * the rule of hvd__strategy_check_idle. */
int hvd__state_replace(struct hvd_strategy *strategy, const char *when,
                       hvd__state_source *source, const void *context);

/* Collective. Gives all ranks the variables of rank root. */
int hvd__broadcast_values(struct hvd_strategy *strategy, int root);
/* Collective. Gives all ranks the optimiser's state of rank root. */
int hvd__broadcast_state(struct hvd_strategy *strategy, int root);

/* A strategy counts as started from the first call to the second, which accepts
 * one that was never started. */
void hvd__strategy_enlist(struct hvd_strategy *strategy);
void hvd__strategy_strike(struct hvd_strategy *strategy);
/* Returns a number that no strategy of this process has had. */
int32_t hvd__strategy_number(void);
/* Returns the first strategy that is started, in the order of ids; the others
 * follow by next. NULL: there is none. */
struct hvd_strategy *hvd__strategy_first(void);

/* ------------------------------------------------------------- elastic.c */

/* Checks the option. */
int hvd__elastic_strategy_check(const hvd_strategy_options *options);
/* Returns whether the process has joined a job whose others have such a
 * strategy already, so that it starts without them. */
bool hvd__elastic_strategy_joins(const struct hvd_strategy *strategy);
/* Finds a place, by which all ranks know the strategy. */
int hvd__elastic_strategy_name(struct hvd_strategy *strategy);
/* Registers all that it has; takes that, and the place, back, if there is one.
 */
int hvd__elastic_strategy_start(struct hvd_strategy *strategy);
void hvd__elastic_strategy_end(struct hvd_strategy *strategy);

/* Submits the gradient of a variable, also of sparse ones. */
int hvd__gradient_submit(struct hvd_strategy *strategy,
                         struct hvd__variable *v);
/* Says that it will not come, for the reason of the last error. */
void hvd__gradient_refuse(struct hvd_strategy *strategy,
                          struct hvd__variable *v);
/* Submits the rows of a sparse variable to an all-reduce; waits for it, after
 * which v->rows are those of all ranks; makes the update with them; and forgets
 * them when the step is over. */
int hvd__sparse_submit(struct hvd_strategy *strategy, struct hvd__variable *v);
int hvd__sparse_wait(struct hvd__variable *v);
void hvd__sparse_update(struct hvd_strategy *strategy, struct hvd__variable *v);
void hvd__sparse_forget(struct hvd__variable *v);

/* Ends the step under way, as hvd_strategy_abandon does. Returns whether any
 * gradient was left to be refused. */
bool hvd__strategy_give_up(struct hvd_strategy *strategy, const char *reason);

#endif
