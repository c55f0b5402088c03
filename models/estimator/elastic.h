/* SPDX-License-Identifier: Apache-2.0 */
/*
 * elastic.h - what the files of an elastic training share: commits and restores
 * (elastic.c), worlds that lose ranks or gain some (elastic_worlds.c), and the
 * file of events (elastic_events.c), also of an earlier job
 * (elastic_earlier.c).
 */
#ifndef MODELS_ESTIMATOR_ELASTIC_H
#define MODELS_ESTIMATOR_ELASTIC_H

#include "estimator/estimator.h"
#include "trainer/agree.h"

#include <jansson.h>

enum { ELASTIC_MOST_RANKS = 1024, ELASTIC_NEWCOMER = -1 };

/* The numbers of a commit, the same on all ranks. A thread may be copying them
 * until hvd_commit_wait or hvd_restore has returned. */
struct elastic_moment {
    int64_t step, rows; /* rows of all ranks, as many as are in the variables */
    hvd_position position;
    int64_t first_step, log_step_count_steps;
    int64_t saved_step; /* of the newest checkpoint before; -1: there is none */
    hvd_schedule rate;  /* without its arrays */
    int64_t own[ESTIMATOR_OWN];
};

/* The ranks of the newest event that all ranks know to be written, and those
 * that have got a number since. A loss tells of all of them that are lost:
 * whoever was to write of an earlier loss may have been lost before it did. */
struct elastic_told {
    int64_t newcomers; /* ranks that are lost since, and are none of them */
    int64_t count;     /* 0: there is no such event of this job */
    /* [count]: their numbers in the training. */
    int32_t ranks[2 * ELASTIC_MOST_RANKS];
};

struct elastic {
    char *image; /* owned; a piece; NULL: not made yet */
    size_t bytes;
    struct elastic_moment now;         /* the other piece */
    int32_t size;                      /* ranks of this world, */
    int32_t ranks[ELASTIC_MOST_RANKS]; /* and their numbers in the training,
                                          [size]; ELASTIC_NEWCOMER: it has none
                                          yet */
    struct elastic_told told;
    int64_t reached, rows; /* steps and rows of the world that ended last */
    struct agree_number alike[AGREE_MOST]; /* [nalike]: what the ranks had
                                              alike when it began */
    int nalike;
    bool changed; /* this world is not the first, */
    bool goes_on; /* and nothing is restored yet */
    bool meets;   /* it has newcomers, and its ranks have not yet compared where
                     they are */
    bool resumed; /* this job has taken up a checkpoint, and its ranks have got
                     new numbers */
    bool committed; /* there is a commit that all ranks have */
    bool ends;      /* too few ranks are left: when they have the commit, it is
                       saved, and that is all */
    bool lost;      /* a rank was lost since the last restore */
    bool is_left;   /* hvd_grow has left out ranks that were lost meanwhile */
};

/* -------------------------------------------------------- elastic_events.c */

/* Makes an event with what is known at each. */
json_t *elastic_event(const hvd_estimator *estimator, const char *name);
/* Adds a line to a file of events, if this is rank 0. path may be NULL. Takes
 * json over. */
int elastic_add(const char *path, json_t *json);
/* Adds one to the file of the estimator. */
int elastic_write(const hvd_estimator *estimator, json_t *json);
/* Makes the event of a training that begins, with the mark of its data. */
json_t *elastic_describe_start(const hvd_estimator *estimator);
/* Notes that all ranks, each of which has a number, are in an event. */
void elastic_note_told(struct elastic *elastic);
/* Notes a number that no event has told yet. */
void elastic_note_number(struct elastic *elastic, int32_t number);
/* Returns whether the number is among these, [count]. */
bool elastic_has(const int32_t *numbers, int64_t count, int32_t number);
/* Makes the event of ranks that hvd_recover, or hvd_grow, has left out. left:
 * how many of the ranks in the struct are left, the first ones. */
json_t *elastic_describe_lost(const hvd_estimator *estimator, int32_t left);

/* Makes the event of ranks that stop, because they are too few. */
json_t *elastic_describe_stop(const hvd_estimator *estimator);

/* ------------------------------------------------------- elastic_earlier.c */

/* Makes the event of the ranks that were the last of the job of which a file of
 * events tells, and were lost together. Returns NULL if there are none. */
json_t *elastic_describe_earlier(const char *path);
/* Collective, unless this process has joined the training of a job, which has
 * looked: writes that event, once. */
int elastic_tell_earlier(const hvd_estimator *estimator, bool is_new);

/* -------------------------------------------------------- elastic_worlds.c */

/* Collective, in a world that is not the first: gives numbers to those who have
 * none, and all ranks what is counted. *joined, a list of these numbers, is the
 * caller's. */
int elastic_meet(hvd_estimator *estimator, json_t **joined);
/* Says that too few ranks are left. Returns HVD_ERR_LOST. */
int elastic_fail_short(hvd_estimator *estimator, const char *more);
/* Says that too few ranks are left, and writes that event; nothing is saved.
 * Returns HVD_ERR_LOST, or HVD_ERR_FILE. */
int elastic_stop(hvd_estimator *estimator);

/* The failure of a function of libhvd. */
int elastic_failed(int status);

#endif
