/* SPDX-License-Identifier: Apache-2.0 */
/*
 * watch.h - the door of this room. It finds out which ranks are alive, which
 * are frozen and which keep others waiting.
 *
 * Every rank has a thread for it, the watchdog, which never calls MPI and never
 * waits for anything that might be stuck.
 */
#ifndef HVD_WATCH_WATCH_H
#define HVD_WATCH_WATCH_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "transport/transport.h"

/* A request of this rank that is in flight. */
struct hvd__watch_request {
    uint64_t key; /* fingerprint of its name; requests of equal key and set wait
                     for each other */
    int32_t set;  /* process set */
    bool decided; /* all ranks have submitted it */
    int64_t since_ns; /* when it was submitted, as hvd__now_ns */
    char name[80];    /* for people, cut to this length */
    char what[96];    /* "allreduce sum float32 [17,3]" */
};

/* The functions that the owner of the watch provides. The watchdog's thread
 * calls them; they must not block. */
struct hvd__watch_subject {
    void *context;
    /* Writes the requests in flight, the oldest first, at most max of them.
     * Returns how many it wrote. */
    int (*requests)(void *context, struct hvd__watch_request *oldest, int max);
    /* Returns whether a rank is a member of a process set. */
    bool (*is_member)(void *context, int32_t set, int rank);
    /* Informs the owner that nothing can succeed any more, and why. It is
     * called once. */
    void (*end)(void *context, int status, const char *text);
};

struct hvd__members;

struct hvd__watch_options {
    int64_t heartbeat_ns;   /* silence after which a rank counts as frozen; 0:
                               never */
    int64_t stall_check_ns; /* waiting time after which a request is reported;
                               0: never */
    int64_t stall_shutdown_ns; /* waiting time after which the world ends; 0:
                                  never */
    int64_t exit_grace_ns; /* time from the end of the world until the watchdog
                              ends the process; 0: it does not */
    struct hvd__members *members; /* borrowed: to be tended; NULL: none */
    struct hvd__ip address; /* heartbeats of other hosts are listened to there
                               only; "any": on all interfaces */
};

struct hvd__watch;

/*
 * Opens the watch and starts the watchdog. Collective over the transport's
 * ranks. host(context, rank) returns the name of a rank's host. If a host has
 * no shared memory or threads, its ranks are not watched, and a warning says
 * so. Returns HVD_ERR_MPI or HVD_ERR_MEMORY on failure. *watch is NULL for a
 * world of one rank.
 */
int hvd__watch_open(struct hvd__watch **watch, struct hvd__transport *transport,
                    const char *(*host)(const void *context, int rank),
                    const void *context,
                    const struct hvd__watch_options *options,
                    const struct hvd__watch_subject *subject);

/* HVD__GROUP stands for the kind of a group of requests. */
enum { HVD__GROUP = -1 };

/* So many bytes of a name are shown, with its NUL, and may be read: whole words
 * of it are copied. */
enum { HVD__BEGUN_NAME = 120 };

/* Notes, for others to read, that this rank begins a request. kind may be
 * HVD__GROUP. One thread at a time may call it, at any rate: it takes a few
 * nanoseconds. This function and those below accept NULL. */
void hvd__watch_doing(struct hvd__watch *watch, int32_t kind,
                      const char name[static HVD__BEGUN_NAME], int64_t now_ns);

/* Notes the same for a request without a name, by its kind and number. It takes
 * a few nanoseconds. */
void hvd__watch_quick(struct hvd__watch *watch, int32_t kind, uint64_t number,
                      int64_t now_ns);

/* Announces that this rank leaves: from now on this process may end without
 * counting as lost. */
void hvd__watch_leave(struct hvd__watch *watch);

/* Returns why a rank is lost, as far as this host knows, or 0. Any thread. */
hvd_lost_reason hvd__watch_reason(struct hvd__watch *watch, int rank);

/* Returns whether the text of an end, which begins with the lost rank, names
 * this rank: then it has been stopped and learns of the end when it goes on.
 * The text gets HVD__GIVEN_UP in front then. */
bool hvd__end_is_of(const char *text, int rank);
#define HVD__GIVEN_UP "the others have given up this one: "

/* Stops the thread and frees the watch. */
void hvd__watch_close(struct hvd__watch *watch);

#endif
