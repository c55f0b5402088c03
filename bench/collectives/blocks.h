/* SPDX-License-Identifier: Apache-2.0 */
/*
 * blocks.h - times a call in blocks of operations, by each contender in turn.
 */
#ifndef BENCH_BLOCKS_H
#define BENCH_BLOCKS_H

#include "collectives/measure.h"
#include "collectives/reference.h"

enum contender { HVD, RAW_MPI, COPY, CONTENDERS };

/* A call in one placement. */
struct run {
    struct bench *bench;
    const struct call *call;
    enum placement placement;
    struct reference reference;
};

/* Runs one operation of this rank in the next slot. Returns 0 or -1. */
int blocks_once(const struct run *run, enum contender who);

/* Times iters operations of each contender. Returns 0 or, on every rank, -1.
 * Collective. */
int blocks_time(const struct run *run, int iters, struct measured *measured);

#endif
