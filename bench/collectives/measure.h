/* SPDX-License-Identifier: Apache-2.0 */
/*
 * measure.h - one size of one collective: hvd, raw MPI, a copy, in turn.
 */
#ifndef BENCH_MEASURE_H
#define BENCH_MEASURE_H

#include "collectives/buffers.h"
#include "collectives/options.h"
#include "collectives/session.h"
#include "tables/call.h"
#include "tables/result.h"

/* What is measured, and in which memory. */
struct bench {
    const struct bench_options *options;
    struct session *session;
    struct buffers buffers;
};

/* Untimed operations of the largest and of the smallest size: the first ones
 * of a process find nothing in place. 0, or -1 on every rank. Collective. */
int measure_warm_up(struct bench *bench);

/* Collective; fills result, or returns -1 on every rank if one has failed.
 * call is not empty, but for a barrier. */
int measure(struct bench *bench, const struct call *call,
            struct result *result);

#endif
