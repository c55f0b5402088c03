/* SPDX-License-Identifier: Apache-2.0 */
/*
 * own_time.h - time as somebody lives through it who looks now and then.
 *
 * Of what passes between two looks no more counts than a limit: the rest is a
 * gap, in which the process was stopped, with its whole job or its machine.
 * Who waits for others for so long only in such a time has not waited.
 */
#ifndef HVD_BASE_OWN_TIME_H
#define HVD_BASE_OWN_TIME_H

#include <stdint.h>

enum { HVD__GAPS = 8 };

struct hvd__own_time {
    int64_t looked_ns; /* hvd__now_ns, the last time; 0: never */
    struct {
        int64_t end_ns, lost_ns;
    } gaps[HVD__GAPS]; /* [ngaps], ascending; the first may be of several */
    int ngaps;
};

/* A look: what has passed since the one before, at most so much. */
int64_t hvd__own_time_pass(struct hvd__own_time *time, int64_t now_ns,
                           int64_t most_ns);

/* What has passed since a moment, without the gaps. */
int64_t hvd__own_time_since(const struct hvd__own_time *time, int64_t since_ns,
                            int64_t now_ns);

#endif
