/* SPDX-License-Identifier: Apache-2.0 */
/*
 * guard_peers.h - the state that guard.c and guard_peers.c share: the ranks of
 * this host that have called, and how they are judged. guard.c has the thread
 * and the limit.
 */
#ifndef HVD_WATCH_GUARD_PEERS_H
#define HVD_WATCH_GUARD_PEERS_H

#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>

#include "base/own_time.h"
#include "base/text.h"
#include "watch/guard.h"
#include "watch/roll.h"

struct hvd__guard_peer {
    int pid;            /* 0: not heard of, or not visible from here */
    int pidfd;          /* owned; -1: none */
    uint64_t start;     /* start time of the process */
    int stage;          /* last known stage */
    int number;         /* once remembered: its rank in that world */
    bool is_here;       /* it has called */
    bool has_left;      /* it goes on and is not waited for */
    int status;         /* negative: it has failed by itself */
    char why[200];      /* the text of that failure */
    int64_t stopped_ns; /* time for which it has been stopped */
    int64_t over_ns;    /* time since it is gone, or has failed */
};

struct hvd__guard {
    pthread_mutex_t lock; /* of all below, except the thread's own */
    struct hvd__guard_options options;
    struct hvd__roll roll;
    enum hvd__stage stage;
    bool is_watched; /* the watchdog watches the others */
    bool is_chosen;  /* number_of is valid */
    bool is_last;    /* the process exits after MPI_Finalize */
    int *number_of;  /* owned, [size]: ranks in the new world, or -1 */
    struct hvd__guard_peer *peers; /* owned, [size] */
    struct pollfd *polls;          /* owned, [size + 2]; used by the thread */
    char host[64];
    struct hvd__own_time time; /* these are used by the thread */
    int64_t spent_ns, reported_ns, concluded_ns;
    char text[1024];   /* constant once status is set */
    atomic_int status; /* the verdict; publishes text (guard.c) */
    int stop;          /* owned eventfd */
    pthread_t thread;
};

/* Returns the number that a rank of MPI_COMM_WORLD has in the new world, or a
 * negative number if none is known. */
int hvd__number_of(const struct hvd__guard *guard, int rank);

/* Takes in the calls that have come. */
void hvd__guard_peers_hear(struct hvd__guard *guard);

/* Returns whether this rank waits for another. */
bool hvd__guard_peer_matters(const struct hvd__guard *guard, int rank);

/* Judges all peers for which this rank waits, given the time since the last
 * call. Returns true if there are any. */
bool hvd__guard_peers_look(struct hvd__guard *guard, int64_t passed_ns);

/* Adds the ranks that have not come as far as this one. */
void hvd__guard_peers_add_missing(const struct hvd__guard *guard,
                                  struct hvd__text *out);
/* Adds the ranks of this host that have not come to MPI_Finalize, and the
 * number of processes of which nothing is known. */
void hvd__guard_peers_add_absent(const struct hvd__guard *guard,
                                 struct hvd__text *out);
/* Returns whether this rank reports for its host: the lowest of those that have
 * come as far does. */
bool hvd__guard_peers_are_above(const struct hvd__guard *guard);

/* Returns a stage in words. */
const char *hvd__stage_name(enum hvd__stage stage);
/* Returns whether a stage is an MPI call that does not return before others
 * come. */
bool hvd__stage_blocks(enum hvd__stage stage);

/* Stores a verdict unless there is one (guard.c). is_heard is true if it came
 * from a peer, which has sent it to the others. */
void hvd__guard_conclude(struct hvd__guard *guard, int status, const char *text,
                         bool is_heard);

#endif
