/* SPDX-License-Identifier: Apache-2.0 */
/*
 * guard_peers.h - what the files about the guard share: the ranks of this host
 * that have called, and how they are judged. guard.c has the thread and the
 * limit.
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
    int pid;            /* 0: not heard of, or from where we cannot see it */
    int pidfd;          /* owned; -1: none */
    uint64_t start;     /* of the process */
    int stage;          /* where it was last */
    int number;         /* once kept in mind: its rank in that world */
    bool is_here;       /* it has called */
    bool has_left;      /* it goes its way */
    int status;         /* negative: it has failed by itself */
    char why[200];      /* likewise */
    int64_t stopped_ns; /* so long */
    int64_t over_ns;    /* since it is gone, or has failed, and we are here */
};

struct hvd__guard {
    pthread_mutex_t lock; /* of all below, but what the thread alone has */
    struct hvd__guard_options options;
    struct hvd__roll roll;
    enum hvd__stage stage;
    bool is_watched; /* by the watchdog */
    bool is_chosen;  /* number_of counts */
    bool is_last;    /* of MPI_Finalize */
    int *number_of;  /* owned, [size]: ranks in the new world, or -1 */
    struct hvd__guard_peer *peers; /* owned, [size] */
    struct pollfd *polls;          /* owned, [size + 2]; the thread's */
    char host[64];
    struct hvd__own_time time; /* these are the thread's */
    int64_t spent_ns, reported_ns, concluded_ns;
    char text[1024];   /* fixed once status is set */
    atomic_int status; /* the verdict; publishes text */
    int stop;          /* owned eventfd */
    pthread_t thread;
};

/* The number that a rank of MPI_COMM_WORLD has in the new world; negative:
 * none, as far as is known. */
int hvd__number_of(const struct hvd__guard *guard, int rank);

/* Take in the calls that have come. */
void hvd__guard_peers_hear(struct hvd__guard *guard);

/* Whether this rank waits for another. */
bool hvd__guard_peer_matters(const struct hvd__guard *guard, int rank);

/* Judge all that matter; so much time has passed. Whether there are any. */
bool hvd__guard_peers_look(struct hvd__guard *guard, int64_t passed_ns);

/* Who has not come as far as this rank. */
void hvd__guard_peers_add_missing(const struct hvd__guard *guard,
                                  struct hvd__text *out);
/* Who of this host has not come to MPI_Finalize, and of how many processes
 * nothing is known. */
void hvd__guard_peers_add_absent(const struct hvd__guard *guard,
                                 struct hvd__text *out);
/* Of those that have come as far, the lowest speaks for all of a host. */
bool hvd__guard_peers_are_above(const struct hvd__guard *guard);

/* Where a rank is, in words. */
const char *hvd__stage_name(enum hvd__stage stage);
/* Whether it is a call of MPI that does not return before others come. */
bool hvd__stage_blocks(enum hvd__stage stage);

/* guard.c: it has come to a verdict, unless it has one. is_heard: from a
 * peer, which has told the others. */
void hvd__guard_conclude(struct hvd__guard *guard, int status, const char *text,
                         bool is_heard);

#endif
