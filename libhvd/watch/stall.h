/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stall.h - writes texts about requests that wait for other ranks. The
 * functions do no I/O.
 */
#ifndef HVD_WATCH_STALL_H
#define HVD_WATCH_STALL_H

#include <stddef.h>

#include "watch/page.h"

/* The state of another rank as this rank knows it. */
struct hvd__view {
    enum hvd__view_state {
        HVD__VIEW_ELSEWHERE, /* on another host: nothing is known of it */
        HVD__VIEW_ALIVE,
        HVD__VIEW_SILENT, /* no heartbeat for silent_ns */
        HVD__VIEW_LEFT    /* it has shut down */
    } state;
    int64_t silent_ns;
    struct hvd__doing doing;
    /* Some of its requests in flight; borrowed until another is looked at. */
    const struct hvd__watch_request *requests;
    int nrequests;
};

/* The ranks of the world as this rank knows them, for the texts below. */
struct hvd__scene {
    void *context;
    int nranks;
    bool (*is_member)(void *context, int32_t set, int rank);
    /* Returns whether a rank has a request of this key in flight. */
    bool (*waits)(void *context, int rank, uint64_t key);
    void (*look)(void *context, int rank, struct hvd__view *view);
};

enum { HVD__STALL_NAMES = 3 }; /* other requests that a summary names */

/* Requests that wait for the same ranks and are reported together. */
struct hvd__stall {
    uint64_t missing; /* number that stands for those ranks */
    const struct hvd__watch_request *oldest; /* borrowed */
    int n;
    /* the first of the other requests; borrowed */
    const struct hvd__watch_request *others[HVD__STALL_NAMES];
};

/* Adds a request to n stalls, of which there is room for most. Returns their
 * number then, which is n if there was no room for another. */
int hvd__stall_add(struct hvd__stall *stalls, int n, int most,
                   const struct hvd__watch_request *request, uint64_t missing);

/* Returns a number that stands for the ranks that the request waits for: equal
 * sets of ranks have equal numbers. */
uint64_t hvd__stall_missing(const struct hvd__scene *scene,
                            const struct hvd__watch_request *request);

/* Adds to the text of hvd__stall_print, which is about the oldest, how many
 * others there are, and the names of some. Returns text. */
const char *hvd__stall_print_others(const struct hvd__stall *stall, char *text,
                                    size_t size);

/* Writes "allreduce 'grad/7', 0.3 s ago", or "nothing yet". Returns text. */
const char *hvd__doing_print(const struct hvd__doing *doing, int64_t now_ns,
                             char *text, size_t size);

/*
 * Writes one line about a request that has waited too long: who waits, who is
 * missing, what each missing rank is doing, and which request it has in flight
 * that is like this one. Returns text.
 */
const char *hvd__stall_print(const struct hvd__scene *scene,
                             const struct hvd__watch_request *request,
                             int64_t now_ns, char *text, size_t size);

#endif
