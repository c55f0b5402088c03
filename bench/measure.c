/* SPDX-License-Identifier: Apache-2.0 */
/*
 * measure.c - timing.
 *
 * This machine is shared: what it can do changes from one second to the next.
 * So hvd, raw MPI and the copy are not measured one after the other but in
 * turn, in short blocks:
 *
 *     hvd mpi copy | mpi hvd copy | hvd mpi copy | ...
 *
 * A block is a barrier (MPI's, which is neither's), then operations back to
 * back, timed together. What is compared is the median of the blocks; the
 * table of nccl-tests shows the mean, as that does. Times are averaged over
 * ranks.
 *
 * Results are checked in a run of their own, before the timed ones: every
 * element, and that the input of an operation out of place has stayed.
 */
#include "measure.h"

#include "stats.h"

#include <string.h>

enum { BLOCKS = 10, LEAST_ITERS = 20 };

static double now(void)
{
    return MPI_Wtime();
}

/* Enough operations that a block is longer than what disturbs it. */
static int choose_iters(const struct bench_options *options, int64_t bytes)
{
    if (options->iters > 0)
        return options->iters;
    if (bytes <= 64 << 10)
        return 25 * LEAST_ITERS;
    return bytes <= 1 << 20 ? 5 * LEAST_ITERS : LEAST_ITERS;
}

enum contender { HVD, RAW_MPI, COPY };

struct run {
    const struct bench *bench;
    const struct reference *reference;
    const struct bench_op *op;
    const struct bench_dtype *type;
    int root;
    int64_t count;
    const void *in;
    void *out;
};

static int once(const struct run *r, enum contender who)
{
    int broadcast = r->op == NULL;

    switch (who) {
    case HVD:
        return broadcast ? hvd_broadcast(r->out, r->count, r->type->id, r->root)
                         : hvd_allreduce(r->in, r->out, r->count, r->type->id,
                                         r->op->id);
    case RAW_MPI:
        if (broadcast)
            reference_broadcast(r->reference, r->out, r->count);
        else
            reference_allreduce(r->reference, r->in, r->out, r->count);
        return HVD_OK;
    default:
        memcpy(r->bench->out, r->bench->in, (size_t)r->count * r->type->bytes);
        /* Copies that nobody reads must not be dropped. */
        __asm__ volatile("" ::"r"(r->bench->out) : "memory");
        return HVD_OK;
    }
}

/* Seconds for one operation, averaged over ranks; negative: a status. */
static double block(const struct run *r, enum contender who, int iters)
{
    double seconds, sum, start;
    int status = HVD_OK;

    MPI_Barrier(MPI_COMM_WORLD);
    start = now();
    for (int i = 0; i < iters && status >= 0; i++)
        status = once(r, who);
    seconds = (now() - start) / iters;
    if (status < 0)
        return status;
    MPI_Allreduce(&seconds, &sum, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    return sum / r->bench->nranks;
}

static int iters_of(int total, int nblocks, int number)
{
    return total / nblocks + (number < total % nblocks);
}

static int time_all(const struct run *r, int iters, bool compare,
                    struct measured *measured, double *copy_seconds)
{
    double times[COPY + 1][BLOCKS], total = 0;
    int nblocks = iters < BLOCKS ? iters : BLOCKS;

    for (int b = 0; b < nblocks; b++) {
        int n = iters_of(iters, nblocks, b);

        for (int turn = HVD; turn <= COPY; turn++) {
            /* First and second swap from block to block. */
            int who = turn == COPY ? COPY : b % 2 ? RAW_MPI - turn : turn;

            if (who == RAW_MPI && !compare)
                continue;
            times[who][b] = block(r, (enum contender)who, n);
            if (times[who][b] < 0)
                return (int)times[who][b];
        }
        total += times[HVD][b] * n;
    }
    measured->hvd_mean = total / iters;
    measured->hvd_median = stats_median(times[HVD], (size_t)nblocks);
    measured->mpi_median =
        compare ? stats_median(times[RAW_MPI], (size_t)nblocks) : 0;
    *copy_seconds = stats_median(times[COPY], (size_t)nblocks);
    return HVD_OK;
}

static int warm_up(const struct run *r, int iters, bool compare)
{
    for (int i = 0; i < iters; i++) {
        int status = once(r, HVD);

        if (status < 0)
            return status;
        if (compare)
            once(r, RAW_MPI);
    }
    return HVD_OK;
}

/* One operation on known data. */
static int check(const struct run *r, int64_t *nwrong)
{
    struct pattern pattern;
    int64_t mine;
    int rank = r->bench->rank, status;

    pattern_init(&pattern, r->type, r->op, r->bench->nranks, r->root);
    memset(r->out, 0xff, (size_t)r->count * r->type->bytes);
    /* A broadcast has one buffer, and leaves what is not its own alone. */
    pattern_fill(&pattern, rank, r->op ? r->bench->in : r->out, r->count);
    if (r->op && r->in == r->out)
        memcpy(r->out, r->bench->in, (size_t)r->count * r->type->bytes);
    status = once(r, HVD);
    if (status < 0)
        return status;
    mine = pattern_check_result(&pattern, r->out, r->count);
    if (r->op && r->in != r->out)
        mine += pattern_check_input(&pattern, rank, r->in, r->count);
    MPI_Allreduce(&mine, nwrong, 1, MPI_INT64_T, MPI_SUM, MPI_COMM_WORLD);
    return HVD_OK;
}

static int measure_placement(struct run *r, enum placement placement, int iters,
                             struct measured *measured, double *copy_seconds)
{
    const struct bench_options *options = r->bench->options;
    int status = HVD_OK;

    r->out = r->bench->out;
    r->in = placement == IN_PLACE ? r->out : r->bench->in;
    measured->nwrong = -1;
    if (options->check)
        status = check(r, &measured->nwrong);
    if (status >= 0)
        status = warm_up(r, options->warmup_iters, options->compare);
    if (status >= 0)
        status = time_all(r, iters, options->compare, measured, copy_seconds);
    return status;
}

int measure(const struct bench *bench, const struct bench_dtype *type,
            const struct bench_op *op, int root, int64_t bytes,
            struct result *result)
{
    struct reference reference;
    struct run run = {.bench = bench,
                      .reference = &reference,
                      .op = op,
                      .type = type,
                      .root = root,
                      .count = bytes / (int64_t)type->bytes};
    int status = HVD_OK;

    *result = (struct result){.bytes = run.count * (int64_t)type->bytes,
                              .count = run.count,
                              .type = type,
                              .op = op,
                              .root = root,
                              .iters = choose_iters(bench->options, bytes)};
    reference_init(&reference, type, op, bench->nranks, root);
    for (int p = 0; p < PLACEMENTS && status >= 0; p++)
        status =
            measure_placement(&run, (enum placement)p, result->iters,
                              &result->placements[p], &result->copy_seconds);
    reference_fini(&reference);
    return status;
}
