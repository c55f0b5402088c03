/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stall.h - what to say about a request that others keep waiting: pure.
 */
#ifndef HVD_WATCH_STALL_H
#define HVD_WATCH_STALL_H

#include <stddef.h>

#include "watch/board.h"

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
