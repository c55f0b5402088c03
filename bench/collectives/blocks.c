/* SPDX-License-Identifier: Apache-2.0 */
/*
 * blocks.c - times a call.
 *
 * The speed of a shared machine changes from one second to the next. So hvd,
 * raw MPI and the copy are not measured one after the other but in turn, in
 * short blocks:
 *
 *     hvd mpi copy | mpi hvd copy | hvd mpi copy | ...
 *
 * A block is a barrier (MPI's, which favours neither), then operations back to
 * back, timed together. The comparison uses the median of the blocks; the table
 * of nccl-tests shows the mean, as nccl-tests does. -a chooses how the times of
 * the ranks are combined; the default is their mean. With -I the clock is also
 * read after each operation, for every contender.
 *
 * Sums in place are repeated on their own result. The copy that ends each round
 * writes the first values again, for hvd and MPI alike, so that numbers rarely
 * leave the range of their type; if they do, the time does not depend on it.
 *
 * With --apart a block is one operation: a root that returns before the others
 * have called cannot run ahead of them, and -a 3 gives the time until the last
 * rank is done.
 *
 * A broadcast has one buffer. Out of place, its root first copies the input
 * there, and that copy is timed, for hvd and MPI alike.
 */
#include "collectives/blocks.h"

#include "collectives/agree.h"
#include "collectives/ours.h"

#include <stdlib.h>
#include <string.h>

enum { LEAST_BLOCKS = 10, COLD_BLOCK = 32 };

/* --------------------------------------------------------------- operations */

static void copy_once(const struct run *r, char *out, const char *in)
{
    memcpy(out, in, call_bytes(r->call));
    /* The compiler must not drop copies that no code reads. */
    __asm__ volatile("" ::"r"(out) : "memory");
}

int blocks_once(const struct run *r, enum contender who)
{
    const struct call *call = r->call;
    struct buffers *buffers = &r->bench->buffers;
    size_t offset = buffers_next(buffers);
    char *in = buffers->in + offset, *out = buffers->out + offset;
    int code;

    if (who == COPY) {
        copy_once(r, out, in);
        return 0;
    }
    if (r->placement == IN_PLACE)
        in = call_input_of(call, out);
    else if (call->kind == HVD_BROADCAST && call->rank == call->root)
        memcpy(out, in, call_bytes(call));
    if (who == HVD)
        return ours_run(call, in, out) < 0 ? session_note_hvd(r->bench->session)
                                           : 0;
    code = reference_run(&r->reference, call, in, out);
    return code == MPI_SUCCESS ? 0 : session_note_mpi(r->bench->session, code);
}

/* -------------------------------------------------------------------- times */

/* The times of one contender on this rank, in seconds per operation. */
struct series {
    double *blocks;
    double *each; /* NULL: only blocks are timed */
    size_t nblocks;
    size_t neach;
    double total;
};

/* Combines the times of all ranks as -a says. Collective. */
static void over_ranks(const struct run *r, double *times, size_t n)
{
    static const int mpi_op_of[] = {0, 0, 1, 2};
    const MPI_Op ops[] = {MPI_SUM, MPI_MIN, MPI_MAX};
    enum bench_average average = r->bench->options->average;
    int nranks = r->call->nranks;

    if (average == AVERAGE_RANK_0 && r->call->rank != 0)
        memset(times, 0, n * sizeof *times);
    MPI_Allreduce(MPI_IN_PLACE, times, (int)n, MPI_DOUBLE,
                  ops[mpi_op_of[average]], MPI_COMM_WORLD);
    for (size_t i = 0; i < n && average == AVERAGE_MEAN; i++)
        times[i] /= nranks;
}

/* Times one block. Returns 0 or, on every rank, -1. Collective. */
static int time_block(const struct run *r, enum contender who, int iters,
                      struct series *series)
{
    double start, last;
    int failed = 0;

    buffers_sweep(&r->bench->buffers);
    MPI_Barrier(MPI_COMM_WORLD);
    start = last = MPI_Wtime();
    for (int i = 0; i < iters && !failed; i++) {
        failed = blocks_once(r, who);
        if (series->each) {
            double now = MPI_Wtime();

            series->each[series->neach++] = now - last;
            last = now;
        }
    }
    last = MPI_Wtime();
    series->total += last - start;
    series->blocks[series->nblocks++] = (last - start) / iters;
    return agree_well(!failed) ? 0 : -1;
}

static void summarize_series(const struct run *r, struct series *s, int iters,
                             struct timing *timing)
{
    double mean = s->total / iters;
    struct stats_spread blocks;

    if (s->nblocks == 0)
        return;
    MPI_Allreduce(&mean, &timing->fastest_rank, 1, MPI_DOUBLE, MPI_MIN,
                  MPI_COMM_WORLD);
    MPI_Allreduce(&mean, &timing->slowest_rank, 1, MPI_DOUBLE, MPI_MAX,
                  MPI_COMM_WORLD);
    over_ranks(r, &mean, 1);
    timing->mean = mean;
    over_ranks(r, s->blocks, s->nblocks);
    stats_spread_of(s->blocks, s->nblocks, &blocks);
    timing->median = blocks.median;
    timing->least = blocks.least;
    timing->most = blocks.most;
    if (s->each) {
        over_ranks(r, s->each, s->neach);
        stats_spread_of(s->each, s->neach, &timing->each);
    }
}

/* ------------------------------------------------------------------- blocks */

/* Returns how many of total operations the block of this number has. */
static int iters_of(int total, int nblocks, int number)
{
    return total / nblocks + (number < total % nblocks);
}

/* Returns enough blocks that no slot of a sweep is used twice. */
static int choose_blocks(const struct bench_options *o, int iters)
{
    int nblocks = iters < LEAST_BLOCKS ? iters : LEAST_BLOCKS;
    int swept = (iters - 1) / COLD_BLOCK + 1;

    if (o->apart)
        return iters;
    return o->cold && swept > nblocks ? swept : nblocks;
}

static int time_rounds(const struct run *r, int iters, int nblocks,
                       struct series *series)
{
    for (int b = 0; b < nblocks; b++)
        for (int turn = 0; turn < CONTENDERS; turn++) {
            /* hvd and MPI swap places from block to block. */
            int who = turn == COPY ? COPY : b % 2 ? RAW_MPI - turn : turn;

            if (who == RAW_MPI && !r->bench->options->compare)
                continue;
            if (time_block(r, (enum contender)who, iters_of(iters, nblocks, b),
                           &series[who]) < 0)
                return -1;
        }
    return 0;
}

int blocks_time(const struct run *r, int iters, struct measured *measured)
{
    struct timing *timings[] = {&measured->hvd, &measured->mpi,
                                &measured->copy};
    struct series series[CONTENDERS] = {{0}};
    int nblocks = choose_blocks(r->bench->options, iters);
    size_t neach = r->bench->options->each ? (size_t)iters : 0;
    size_t length = (size_t)nblocks + neach;
    double *times = calloc(CONTENDERS * length, sizeof *times);
    int status;

    if (!times)
        snprintf(r->bench->session->error, sizeof r->bench->session->error,
                 "-n: there is no memory for the times of %d operations",
                 iters);
    if (!agree_well(times != NULL) || !times) {
        free(times);
        return -1;
    }
    for (size_t i = 0; i < CONTENDERS; i++) {
        series[i].blocks = times + i * length;
        if (neach)
            series[i].each = series[i].blocks + nblocks;
    }
    status = time_rounds(r, iters, nblocks, series);
    for (int i = 0; i < CONTENDERS && status == 0; i++)
        summarize_series(r, &series[i], iters, timings[i]);
    free(times);
    return status;
}
