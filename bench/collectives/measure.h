/* SPDX-License-Identifier: Apache-2.0 */
/*
 * measure.h - measures one size of one collective: hvd, raw MPI and a copy, in
 * turn.
 */
#ifndef BENCH_MEASURE_H
#define BENCH_MEASURE_H

#include "collectives/buffers.h"
#include "collectives/options.h"
#include "collectives/session.h"
#include "tables/call.h"
#include "tables/result.h"

/* The options, the ranks and the memory of all measurements. */
struct bench {
    const struct bench_options *options;
    struct session *session;
    struct buffers buffers;
};

/* Runs untimed operations of the largest and of the smallest size, because
 * the first ones of a process are slow. Returns 0, or -1 on every rank.
 * Collective. */
int measure_warm_up(struct bench *bench);

/* Measures one call and fills result. Returns 0, or -1 on every rank if one has
 * failed. The call must move data, unless it is a barrier. Collective. */
int measure(struct bench *bench, const struct call *call,
            struct result *result);

#endif
