/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fault.h - a connection that broke, until it is known why.
 *
 * Who is dead is the verdict of the watch, which names the rank and says why.
 * So a transport only notes that a connection broke: what was to be moved over
 * it counts as still under way, until the watch breaks the world. If the watch
 * does not, because the rank is alive, the transport fails after a grace.
 */
#ifndef HVD_TRANSPORT_FAULT_H
#define HVD_TRANSPORT_FAULT_H

#include "base/own_time.h"

/* The time for the watch to find the reason, beside the heartbeat. */
#define HVD__FAULT_GRACE_NS INT64_C(3000000000)

/* The first connection that broke. */
struct hvd__fault {
    int64_t grace_ns; /* for the watch to find the reason */
    int64_t since_ns; /* 0: none broke */
    struct hvd__own_time time;
    const char *transport; /* static: "UCX" */
    int peer;
    char why[128];
};

/* Notes that the connection to a rank broke, unless one did before. */
void hvd__fault_note(struct hvd__fault *fault, int peer, const char *why);

/* Takes back what was noted of a rank, which has been reached again. */
void hvd__fault_clear(struct hvd__fault *fault, int peer);

/* Returns 0, or HVD_ERR_LOST if a connection broke longer ago than the grace.
 */
int hvd__fault_judge(struct hvd__fault *fault);

#endif
