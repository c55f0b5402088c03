/* SPDX-License-Identifier: Apache-2.0 */
/*
 * watch.h - who is alive, who is frozen, who keeps others waiting: the door
 * of this room.
 *
 * A thread of its own in every rank, the watchdog, which never calls MPI and
 * never waits for anything that might be stuck.
 */
#ifndef HVD_WATCH_WATCH_H
#define HVD_WATCH_WATCH_H

#include <stdbool.h>
#include <stdint.h>

#include "transport/transport.h"

/* A request of this rank that is in flight. */
struct hvd__watch_request {
    uint64_t key;     /* with set: who waits for the same has the same */
    int32_t set;      /* process set */
    bool decided;     /* all ranks have submitted it */
    int64_t since_ns; /* submitted then, hvd__now_ns */
    char name[80];    /* as people read it, cut */
    char what[96];    /* "allreduce sum float32 [17,3]" */
};

/* What core answers and is told. Called on the watchdog's thread; must not
 * block. */
struct hvd__watch_subject {
    void *context;
    /* The requests in flight, the oldest first, at most max; returns how
     * many. */
    int (*requests)(void *context, struct hvd__watch_request *oldest, int max);
    /* Whether a rank is a member of a process set. */
    bool (*is_member)(void *context, int32_t set, int rank);
    /* Nothing can succeed any more, for this reason. Called once. */
    void (*end)(void *context, int status, const char *text);
};

struct hvd__watch_options {
    int64_t heartbeat_ns;      /* silent for so long: frozen; 0: never */
    int64_t stall_check_ns;    /* waited for so long: reported; 0: never */
    int64_t stall_shutdown_ns; /* ... and ended; 0: never */
    int64_t exit_grace_ns;     /* from the end to the end of the process; 0:
                                  it is left alone */
};

struct hvd__watch;

/*
 * Collective over the transport's ranks. host(context, rank) names a rank's
 * host. Where shared memory or threads cannot be had, that host's ranks are
 * not watched, and a warning says so. HVD_ERR_MPI, HVD_ERR_MEMORY. *watch is
 * NULL for a world of one rank.
 */
int hvd__watch_open(struct hvd__watch **watch, struct hvd__transport *transport,
                    const char *(*host)(const void *context, int rank),
                    const void *context,
                    const struct hvd__watch_options *options,
                    const struct hvd__watch_subject *subject);

/* A group of requests, for a kind. */
enum { HVD__GROUP = -1 };

/* This rank begins a request of that kind, or HVD__GROUP, and name, of so many
 * bytes: what is kept for those who ask. Any thread, at any rate: some ten
 * nanoseconds. NULL is accepted, here and below. */
void hvd__watch_doing(struct hvd__watch *watch, int32_t kind, const char *name,
                      size_t bytes, int64_t now_ns);

/* The same for a request without a name, by its kind and number: a few. */
void hvd__watch_quick(struct hvd__watch *watch, int32_t kind, uint64_t number,
                      int64_t now_ns);

/* Goodbye: from now on this process may end without being missed. */
void hvd__watch_leave(struct hvd__watch *watch);

/* Whether the text of an end, which begins with the rank that was lost, is of
 * that one: it has been stopped, and finds out when it goes on. What is put
 * before the text then. */
bool hvd__end_is_of(const char *text, int rank);
#define HVD__GIVEN_UP "the others have given up this one: "

/* Stop the thread and forget all. */
void hvd__watch_close(struct hvd__watch *watch);

#endif
