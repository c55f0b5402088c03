/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stall.h - what to say about a request that others keep waiting: pure.
 */
#ifndef HVD_WATCH_STALL_H
#define HVD_WATCH_STALL_H

#include <stddef.h>

#include "watch/page.h"

/* What this rank knows of one. */
struct hvd__view {
    enum {
        HVD__VIEW_ELSEWHERE, /* on another host: nothing is known of it */
        HVD__VIEW_ALIVE,
        HVD__VIEW_SILENT, /* no heartbeat for silent_ns */
        HVD__VIEW_LEFT    /* has shut down */
    } state;
    int64_t silent_ns;
    struct hvd__doing doing;
    const struct hvd__in_flight *flight; /* borrowed; NULL: not known */
};

enum { HVD__STALL_NAMES = 3 }; /* that a summary has */

/* Requests that wait for the same ranks, told together. */
struct hvd__stall {
    uint64_t missing;                        /* stands for those ranks */
    const struct hvd__watch_request *oldest; /* borrowed */
    int n;
    /* Of the others, the first; borrowed. */
    const struct hvd__watch_request *others[HVD__STALL_NAMES];
};

/* Enter a request among n stalls, of which there is room for most. Returns how
 * many there are then; unchanged too if there is no room for another. */
int hvd__stall_add(struct hvd__stall *stalls, int n, int most,
                   const struct hvd__watch_request *request, uint64_t missing);

/* Stands for the ranks that the request waits for: equal for equal ones. */
uint64_t hvd__stall_missing(const struct hvd__view *views, int nranks,
                            const struct hvd__watch_request *request,
                            bool (*is_member)(void *context, int32_t set,
                                              int rank),
                            void *context);

/* After hvd__stall_print of the oldest, in the same text: how many others there
 * are, and the names of some. Returns text. */
const char *hvd__stall_print_others(const struct hvd__stall *stall, char *text,
                                    size_t size);

/* Whether a rank has the request of this key and set in flight. */
bool hvd__view_waits(const struct hvd__view *view, uint64_t key);

/* "allreduce 'grad/7', 0.3 s ago" into text; "nothing yet". */
const char *hvd__doing_print(const struct hvd__doing *doing, int64_t now_ns,
                             char *text, size_t size);

/*
 * One line about request, which has waited too long, given views of nranks
 * ranks: who waits, who is missing, what each of those is doing, and what
 * they have in flight that is like it. Returns text.
 */
const char *hvd__stall_print(const struct hvd__view *views, int nranks,
                             const struct hvd__watch_request *request,
                             bool (*is_member)(void *context, int32_t set,
                                               int rank),
                             void *context, int64_t now_ns, char *text,
                             size_t size);

#endif
