/* SPDX-License-Identifier: Apache-2.0 */
/*
 * harm.h - does harm to a process, and takes it back when its time is over.
 */
#ifndef BENCH_CHAOS_HARM_H
#define BENCH_CHAOS_HARM_H

#include "chaos/chaos.h"
#include "chaos/job.h"

enum { HARM_MOST = 256 }; /* processes that are under harm at a time */

struct harm {
    enum chaos_kind kind;
    struct job_rank rank;
    int process;    /* a pidfd; -1: none */
    int network;    /* of the rank's namespace; -1: none */
    unsigned links; /* bit i: the link with index i was cut */
    double until;   /* 0: for ever */
    double next;    /* a slow rank stops or continues then */
    bool is_stopped;
    double share;
};

struct harms {
    struct harm all[HARM_MOST];
    int n;
};

/* Begins. Returns 0, or -1 and writes why not. A process that is killed is not
 * kept in harms. */
int harm_begin(struct harms *harms, const struct chaos_settings *settings,
               const struct job_rank *rank, enum chaos_kind kind, char *error,
               size_t size);

/* Is this process, or for cuts its network, under harm? */
bool harm_has(const struct harms *harms, const struct job_rank *rank);

/* Does what is due at this time, and returns when something will be due; 0:
 * nothing. */
double harm_continue(struct harms *harms, double now);

/* Takes all back at once. */
void harm_end(struct harms *harms);

#endif
