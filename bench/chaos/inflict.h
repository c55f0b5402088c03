/* SPDX-License-Identifier: Apache-2.0 */
/*
 * inflict.h - when which rank is hurt, and how.
 */
#ifndef BENCH_CHAOS_INFLICT_H
#define BENCH_CHAOS_INFLICT_H

#include "chaos/harm.h"

struct inflict {
    const struct chaos_settings *settings; /* borrowed */
    struct chaos_record *record;           /* borrowed */
    struct harms harms;
    uint64_t state; /* of the drawing */
    double start;   /* when the command was started */
    double next;    /* when the next fault is due; 0: there is none */
    double end;     /* of all faults; 0: never */
    double since;   /* nothing has changed since then */
    int seen;       /* what was seen of the ranks, as one number */
};

void inflict_init(struct inflict *inflict,
                  const struct chaos_settings *settings,
                  struct chaos_record *record);

/* Does what is due. job is what was seen just now. Returns when to come again;
 * 0: any time. */
double inflict_continue(struct inflict *inflict, const struct job *job,
                        double now);

/* Begins no more faults, and takes back those that last. */
void inflict_end(struct inflict *inflict);

#endif
