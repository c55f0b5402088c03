/* SPDX-License-Identifier: Apache-2.0 */
/*
 * own_time.h - time as a process lives through it that looks at the clock now
 * and then.
 *
 * Between two looks no more than a limit counts: the rest is a gap, in which
 * the process was stopped, with its whole job or its machine. A process that
 * waited for others only in a gap has not waited.
 */
#ifndef HVD_BASE_OWN_TIME_H
#define HVD_BASE_OWN_TIME_H

#include <stdint.h>

enum { HVD__GAPS = 8 };

struct hvd__own_time {
    int64_t looked_ns; /* time of the last look, hvd__now_ns; 0: never */
    struct {
        int64_t end_ns, lost_ns;
    } gaps[HVD__GAPS]; /* [ngaps], ascending; the first may stand for several */
    int ngaps;
};

/* Looks at the clock. Returns what has passed since the last look, at most
 * most_ns. */
int64_t hvd__own_time_pass(struct hvd__own_time *time, int64_t now_ns,
                           int64_t most_ns);

/* Returns what has passed since a moment, without the gaps. */
int64_t hvd__own_time_since(const struct hvd__own_time *time, int64_t since_ns,
                            int64_t now_ns);

#endif
