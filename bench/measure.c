/* SPDX-License-Identifier: Apache-2.0 */
/*
 * measure.c - timing.
 *
 * What a shared machine can do changes from one second to the next. So hvd,
 * raw MPI and the copy are not measured one after the other but in turn, in
 * short blocks:
 *
 *     hvd mpi copy | mpi hvd copy | hvd mpi copy | ...
 *
 * A block is a barrier (MPI's, which is neither's), then operations back to
 * back, timed together. What is compared is the median of the blocks; the
 * table of nccl-tests shows the mean, as that does. -a says what becomes of
 * the times of the ranks; their mean unless told otherwise.
 *
 * Sums in place are repeated on their own result. The copy that ends each
 * round writes the first values again, for hvd and MPI alike, so that numbers
 * rarely leave the range of their type; where they do, time does not depend
 * on it.
 *
 * A broadcast has one buffer. Out of place, its root copies the input there
 * first, and that is timed with it, for hvd and MPI alike.
 *
 * Results are checked in a run of their own, before the timed ones: every
 * element, and that the input of an operation out of place has stayed.
 */
#include "measure.h"

#include "agree.h"
#include "pattern.h"
#include "reference.h"
#include "stats.h"

#include <string.h>

enum { BLOCKS = 10, LEAST_ITERS = 20, SMALL_WARM_UPS = 200 };

/* Enough operations that a block is longer than what disturbs it. */
static int choose_iters(const struct bench_options *options, int64_t bytes)
{
    if (options->iters > 0)
        return options->iters;
    if (bytes <= 64 << 10)
        return 25 * LEAST_ITERS;
    return bytes <= 1 << 20 ? 5 * LEAST_ITERS : LEAST_ITERS;
}

enum contender { HVD, RAW_MPI, COPY, CONTENDERS };

struct run {
    struct bench *bench;
    const struct bench_dtype *type;
    const struct bench_op *op; /* NULL: broadcast */
    int root;
    int64_t count;
    const void *in;
    void *out;
    struct reference reference;
};

static void run_init(struct run *r, struct bench *bench,
                     const struct bench_dtype *type, const struct bench_op *op,
                     int root, int64_t bytes)
{
    *r = (struct run){.bench = bench,
                      .type = type,
                      .op = op,
                      .root = root,
                      .count = bytes / (int64_t)type->bytes};
    reference_init(&r->reference, type, op, bench->nranks, root);
}

static void run_place(struct run *r, enum placement placement)
{
    r->out = r->bench->out;
    r->in = placement == IN_PLACE ? r->out : r->bench->in;
}

static size_t bytes_of(const struct run *r)
{
    return (size_t)r->count * r->type->bytes;
}

static int once_hvd(const struct run *r)
{
    int status =
        r->op ? hvd_allreduce(r->in, r->out, r->count, r->type->id, r->op->id)
              : hvd_broadcast(r->out, r->count, r->type->id, r->root);

    if (status >= 0)
        return 0;
    snprintf(r->bench->error, sizeof r->bench->error, "%s", hvd_last_error());
    return -1;
}

static int once_mpi(const struct run *r)
{
    char text[MPI_MAX_ERROR_STRING];
    int length;
    int code = r->op
                   ? reference_allreduce(&r->reference, r->in, r->out, r->count)
                   : reference_broadcast(&r->reference, r->out, r->count);

    if (code == MPI_SUCCESS)
        return 0;
    MPI_Error_string(code, text, &length);
    snprintf(r->bench->error, sizeof r->bench->error, "raw MPI: %s", text);
    return -1;
}

/* One operation of this rank. 0 or -1. */
static int once(const struct run *r, enum contender who)
{
    if (who == COPY) {
        memcpy(r->bench->out, r->bench->in, bytes_of(r));
        /* Copies that nobody reads must not be dropped. */
        __asm__ volatile("" ::"r"(r->bench->out) : "memory");
        return 0;
    }
    if (!r->op && r->in != r->out && r->bench->rank == r->root)
        memcpy(r->out, r->in, bytes_of(r));
    return who == HVD ? once_hvd(r) : once_mpi(r);
}

/* Collective: of the times of all ranks, the one that counts. */
static double over_ranks(const struct run *r, double seconds)
{
    static const int mpi_op_of[] = {0, 0, 1, 2};
    const MPI_Op ops[] = {MPI_SUM, MPI_MIN, MPI_MAX};
    enum bench_average average = r->bench->options->average;
    double mine = seconds, all;

    if (average == AVERAGE_RANK_0 && r->bench->rank != 0)
        mine = 0;
    MPI_Allreduce(&mine, &all, 1, MPI_DOUBLE, ops[mpi_op_of[average]],
                  MPI_COMM_WORLD);
    return average == AVERAGE_MEAN ? all / r->bench->nranks : all;
}

/* Collective: seconds for one operation. 0 or, on every rank, -1. */
static int time_block(const struct run *r, enum contender who, int iters,
                      double *seconds)
{
    double start;
    int failed = 0;

    MPI_Barrier(MPI_COMM_WORLD);
    start = MPI_Wtime();
    for (int i = 0; i < iters && !failed; i++)
        failed = once(r, who);
    *seconds = over_ranks(r, (MPI_Wtime() - start) / iters);
    return agree_well(!failed) ? 0 : -1;
}

/* How many of total operations belong to a block. */
static int iters_of(int total, int nblocks, int number)
{
    return total / nblocks + (number < total % nblocks);
}

static int time_all(const struct run *r, int iters, struct measured *measured)
{
    double times[CONTENDERS][BLOCKS], total = 0;
    int nblocks = iters < BLOCKS ? iters : BLOCKS;
    bool compare = r->bench->options->compare;

    for (int b = 0; b < nblocks; b++) {
        int n = iters_of(iters, nblocks, b);

        for (int turn = 0; turn < CONTENDERS; turn++) {
            /* First and second swap from block to block. */
            int who = turn == COPY ? COPY : b % 2 ? RAW_MPI - turn : turn;

            if (who == RAW_MPI && !compare)
                continue;
            if (time_block(r, (enum contender)who, n, &times[who][b]) < 0)
                return -1;
        }
        total += times[HVD][b] * n;
    }
    measured->hvd_mean = total / iters;
    measured->hvd_median = stats_median(times[HVD], (size_t)nblocks);
    measured->copy_median = stats_median(times[COPY], (size_t)nblocks);
    measured->mpi_median =
        compare ? stats_median(times[RAW_MPI], (size_t)nblocks) : 0;
    return 0;
}

static int warm_up(const struct run *r, int iters)
{
    int failed = 0;

    for (int i = 0; i < iters && !failed; i++) {
        failed = once(r, HVD);
        if (!failed && r->bench->options->compare)
            failed = once(r, RAW_MPI);
    }
    return agree_well(!failed) ? 0 : -1;
}

/* One operation on known data. */
static int check(const struct run *r, const struct pattern *pattern,
                 int64_t *nwrong)
{
    int failed;
    int64_t mine;

    if (r->in != r->out)
        memset(r->out, 0xff, bytes_of(r));
    failed = once(r, HVD);
    if (!agree_well(!failed))
        return -1;
    mine = pattern_check_result(pattern, r->out, r->count);
    if (r->in != r->out)
        mine += pattern_check_input(pattern, r->bench->rank, r->in, r->count);
    MPI_Allreduce(&mine, nwrong, 1, MPI_INT64_T, MPI_SUM, MPI_COMM_WORLD);
    return 0;
}

static int measure_placement(struct run *r, enum placement placement, int iters,
                             struct measured *measured)
{
    const struct bench_options *options = r->bench->options;
    struct pattern pattern;
    int status = 0;

    run_place(r, placement);
    /* Also where nothing is checked: memory that was never written is one
     * page of zeros, and faster to read than any other. */
    pattern_init(&pattern, r->type, r->op, r->bench->nranks, r->root);
    pattern_fill(&pattern, r->bench->rank, r->bench->in, r->count);
    memcpy(r->bench->out, r->bench->in, bytes_of(r));
    measured->nwrong = -1;
    if (options->check)
        status = check(r, &pattern, &measured->nwrong);
    if (status >= 0)
        status = warm_up(r, options->warmup_iters);
    if (status >= 0)
        status = time_all(r, iters, measured);
    return status;
}

int measure(struct bench *bench, const struct bench_dtype *type,
            const struct bench_op *op, int root, int64_t bytes,
            struct result *result)
{
    struct run run;
    int status = 0;

    run_init(&run, bench, type, op, root, bytes);
    *result = (struct result){.bytes = (int64_t)bytes_of(&run),
                              .count = run.count,
                              .type = type,
                              .op = op,
                              .root = root,
                              .iters = choose_iters(bench->options, bytes)};
    for (int p = 0; p < PLACEMENTS && status >= 0; p++)
        status = measure_placement(&run, (enum placement)p, result->iters,
                                   &result->placements[p]);
    reference_fini(&run.reference);
    return status;
}

/* Bytes, so that any size is a count. */
static int warm_up_bytes(struct bench *bench, int64_t bytes, int iters)
{
    const struct bench_op *op =
        bench->options->kind == HVD_ALLREDUCE ? bench_op_find("sum") : NULL;
    struct run run;
    int status;

    run_init(&run, bench, bench_dtype_find("uint8"), op, 0, bytes);
    run_place(&run, OUT_OF_PLACE);
    status = warm_up(&run, iters);
    reference_fini(&run.reference);
    return status;
}

int measure_warm_up(struct bench *bench)
{
    const struct bench_options *options = bench->options;
    int64_t iters = (int64_t)options->warmup_iters * SMALL_WARM_UPS;

    if (warm_up_bytes(bench, options->max_bytes, options->warmup_iters) < 0)
        return -1;
    return warm_up_bytes(bench, options->min_bytes,
                         iters < INT32_MAX ? (int)iters : INT32_MAX);
}
