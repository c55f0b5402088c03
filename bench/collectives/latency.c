/* SPDX-License-Identifier: Apache-2.0 */
/*
 * latency.c - hvd-bench latency: times each operation by itself, on every rank.
 * The figures are taken over the times of all ranks together.
 *
 * The four ways take turns in short blocks, with a barrier before each. For the
 * busy half, every core of the host gets a thread that only computes, and the
 * ranks also compute between operations, untimed: so operations do not all fall
 * into one time slice of a rank, and the figures include how soon the scheduler
 * runs a waiting rank. There are fewer operations then.
 */
#include "collectives/subcommands.h"

#include "collectives/agree.h"
#include "collectives/busy.h"
#include "collectives/machine.h"
#include "collectives/session.h"
#include "collectives/sizes.h"
#include "hvd.h"
#include "tables/stats.h"
#include "tables/table.h"

#include <limits.h>
#include <mpi.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

enum { BLOCKS = 20, WARM_UPS = 200, BUSY_SHARE = 4 };

struct latency_options {
    struct command_line line;
    struct sizes sizes;
    int iters;
    int format;
};

enum way { HVD_BLOCKING, HVD_ASYNC, MPI_BLOCKING, MPI_ASYNC, WAYS };

static const struct {
    const char *name;
    enum way against;
} ways[WAYS] = {
    [HVD_BLOCKING] = {"hvd_allreduce", MPI_BLOCKING},
    [HVD_ASYNC] = {"hvd_allreduce_async", MPI_ASYNC},
    [MPI_BLOCKING] = {"MPI_Allreduce", MPI_BLOCKING},
    [MPI_ASYNC] = {"MPI_Iallreduce", MPI_ASYNC},
};

struct latency {
    struct session *session;
    const struct latency_options *options;
    struct table table;
    float *buffer; /* memory of hvd_malloc; all ways use it */
    double *times; /* [WAYS][iters], of this rank */
    double *all;   /* only on rank 0: one way, all ranks */
    bool busy;     /* computing threads run now */
    int iters;     /* operations in this state */
    int counts[WAYS];
};

/* --------------------------------------------------------------- operations */

static int once_hvd_async(float *buffer, int64_t count)
{
    hvd_handle handle;
    int status = hvd_allreduce_async("latency", buffer, buffer, count,
                                     HVD_FLOAT32, HVD_SUM, &handle);

    return status < 0 ? status : hvd_wait(handle);
}

static int once_mpi_async(float *buffer, int count)
{
    MPI_Request request;
    int code = MPI_Iallreduce(MPI_IN_PLACE, buffer, count, MPI_FLOAT, MPI_SUM,
                              MPI_COMM_WORLD, &request);

    return code == MPI_SUCCESS ? MPI_Wait(&request, MPI_STATUS_IGNORE) : code;
}

static int run_once(struct latency *l, enum way way, int count)
{
    int status = 0, code = MPI_SUCCESS;

    switch (way) {
    case HVD_BLOCKING:
        status =
            hvd_allreduce(l->buffer, l->buffer, count, HVD_FLOAT32, HVD_SUM);
        break;
    case HVD_ASYNC: status = once_hvd_async(l->buffer, count); break;
    case MPI_BLOCKING:
        code = MPI_Allreduce(MPI_IN_PLACE, l->buffer, count, MPI_FLOAT, MPI_SUM,
                             MPI_COMM_WORLD);
        break;
    default: code = once_mpi_async(l->buffer, count); break;
    }
    if (status < 0)
        return session_note_hvd(l->session);
    return code == MPI_SUCCESS ? 0 : session_note_mpi(l->session, code);
}

/* Computes as long as a training program does between two gradients. */
static void compute_a_while(void)
{
    const double seconds = 50e-6;
    double start = MPI_Wtime();

    while (MPI_Wtime() - start < seconds)
        busy_unit();
}

static int run_block(struct latency *l, enum way way, int count, int n,
                     double *times)
{
    int failed = 0;

    memset(l->buffer, 0, (size_t)count * sizeof(float));
    MPI_Barrier(MPI_COMM_WORLD);
    for (int i = 0; i < n && !failed; i++) {
        double start;

        if (l->busy)
            compute_a_while();
        start = MPI_Wtime();
        failed = run_once(l, way, count);
        if (times)
            times[i] = MPI_Wtime() - start;
    }
    return agree_well(!failed) ? 0 : -1;
}

static int run_size(struct latency *l, int count)
{
    int block = l->iters / BLOCKS > 0 ? l->iters / BLOCKS : 1;

    memset(l->counts, 0, sizeof l->counts);
    for (int way = 0; way < WAYS; way++)
        if (run_block(l, (enum way)way, count,
                      l->iters < WARM_UPS ? l->iters : WARM_UPS, NULL) < 0)
            return -1;
    for (int b = 0; l->counts[0] + block <= l->iters; b++)
        for (int turn = 0; turn < WAYS; turn++) {
            int way = (b + turn) % WAYS;
            double *times = l->times + (size_t)way * (size_t)l->iters;

            if (run_block(l, (enum way)way, count, block,
                          times + l->counts[way]) < 0)
                return -1;
            l->counts[way] += block;
        }
    return 0;
}

/* ------------------------------------------------------------------- output */

static void print_row(struct latency *l, const char *state, int count,
                      enum way way, const struct stats_spread *spreads)
{
    const struct stats_spread *s = &spreads[way];
    const double times[] = {s->mean, s->least, s->median,
                            s->p95,  s->p99,   s->most};

    table_text(&l->table, state);
    table_number(&l->table, count * (double)sizeof(float));
    table_text(&l->table, ways[way].name);
    for (size_t i = 0; i < sizeof times / sizeof *times; i++)
        table_number(&l->table, 1e6 * times[i]);
    table_number(&l->table, spreads[ways[way].against].median / s->median);
}

static void print_size(struct latency *l, const char *state, int count)
{
    struct stats_spread spreads[WAYS];
    int rank = l->session->rank;

    for (int way = 0; way < WAYS; way++) {
        int n = l->counts[way];

        MPI_Gather(l->times + (size_t)way * (size_t)l->iters, n, MPI_DOUBLE,
                   l->all, n, MPI_DOUBLE, 0, MPI_COMM_WORLD);
        if (rank == 0)
            stats_spread_of(l->all, (size_t)n * (size_t)l->session->nranks,
                            &spreads[way]);
    }
    for (int way = 0; way < WAYS && rank == 0; way++)
        print_row(l, state, count, (enum way)way, spreads);
}

static int run_state(struct latency *l, const char *state)
{
    const struct latency_options *o = l->options;

    for (int64_t bytes = o->sizes.least; bytes <= o->sizes.most;
         bytes *= o->sizes.factor) {
        int count = (int)(bytes / (int64_t)sizeof(float));

        if (run_size(l, count) < 0)
            return session_fail(l->session);
        print_size(l, state, count);
    }
    return 0;
}

static int run_busy(struct latency *l)
{
    int local = hvd_local_size();
    struct busy busy;
    int well = busy_start(&busy, (machine_cores() + local - 1) / local) == 0;
    int status = session_settle(l->session, well, "no threads can be started");

    l->iters = l->options->iters / BUSY_SHARE;
    if (l->iters < 1)
        l->iters = 1;
    l->busy = true;
    if (!status)
        status = run_state(l, "busy");
    if (well)
        busy_stop(&busy);
    return status;
}

static int run_states(struct latency *l)
{
    static const struct table_column columns[] = {
        {"cores", -5, 0},      {"bytes", 9, 0},  {"way", -20, 0},
        {"mean_us", 9, 2},     {"min_us", 9, 2}, {"p50_us", 9, 2},
        {"p95_us", 9, 2},      {"p99_us", 9, 2}, {"max_us", 9, 2},
        {"mpi_over_it", 11, 2}};
    int rank = l->session->rank;
    int status;

    if (rank == 0)
        table_begin(&l->table, stdout, (enum table_format)l->options->format,
                    "one allreduce of float32 in place, hvd_malloc memory",
                    columns, sizeof columns / sizeof *columns);
    l->iters = l->options->iters;
    status = run_state(l, "idle");
    if (!status)
        status = run_busy(l);
    if (rank == 0) {
        table_note(&l->table, "mpi_over_it: median of MPI's blocking call, or "
                              "of its nonblocking one, over this one's");
        table_end(&l->table);
    }
    return status ? status : session_flush(l->session);
}

static int run_latency(struct session *session, void *options)
{
    const struct latency_options *o = options;
    struct latency l = {.session = session, .options = o};
    size_t n = (size_t)o->iters;
    int status;

    l.buffer = hvd_malloc((size_t)o->sizes.most);
    l.times = calloc(WAYS * n, sizeof *l.times);
    l.all = calloc(n * (size_t)session->nranks, sizeof *l.all);
    status = session_settle(session, l.buffer && l.times && l.all,
                            "there is no memory for so many times: choose a "
                            "smaller -n or -e");
    if (!status && l.buffer)
        status = run_states(&l);
    hvd_free(l.buffer);
    free(l.times);
    free(l.all);
    return status;
}

/* ------------------------------------------------------------------ options */

enum { KEY_FORMAT = 256 };

static const struct argp_option flags[] = {
    {"minbytes", 'b', "BYTES", 0, "smallest size, a multiple of 4 (4)", 0},
    {"maxbytes", 'e', "BYTES", 0, "largest size (4K)", 0},
    {"stepfactor", 'f', "N", 0, "each size is N times the one before (32)", 0},
    {"iters", 'n', "N", 0,
     "operations of each way and size; a quarter of them with busy cores "
     "(2000)",
     0},
    {"format", KEY_FORMAT, "FORMAT", 0, "text, csv or json (text)", 0},
    COMMAND_FLAGS,
};

static error_t parse_option(int key, char *text, struct argp_state *state)
{
    struct latency_options *o = state->input;
    struct command_line *line = &o->line;

    switch (key) {
    case 'b':
    case 'e':
    case 'f': return sizes_key(line, key, text, &o->sizes);
    case 'n': return command_number(line, "-n", text, 1, 100000000, &o->iters);
    case KEY_FORMAT:
        return command_choice(line, "--format", text, table_formats,
                              &o->format);
    case ARGP_KEY_END: return sizes_check(line, &o->sizes, INT_MAX);
    default: return command_key(line, flags, key, state);
    }
}

int latency_main(int argc, char **argv)
{
    static const struct argp parser = {
        .options = flags,
        .parser = parse_option,
        .doc = "Time small allreduces one by one: blocking, and from "
               "submission to the end of waiting; by hvd and by raw MPI in "
               "turn; with idle cores, and with a computing thread on each.",
    };
    struct latency_options options = {
        .sizes = {.least = 4, .most = 4096, .factor = 32}, .iters = 2000};

    return session_main(argc, argv, "hvd-bench latency", &parser, &options,
                        run_latency);
}
