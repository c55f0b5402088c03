/* SPDX-License-Identifier: Apache-2.0 */
/*
 * main.c - hvd-bench: over types, operations, roots and sizes; tables; files.
 *
 * Exit status: 0, 1 for errors, 7 (as nccl-tests) if a result was wrong.
 */
#include "compare_table.h"
#include "json.h"
#include "machine.h"
#include "nccl_table.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { STATUS_ERROR = 1, STATUS_WRONG = 7 };

static struct bench bench;
static struct bench_options options;
static struct result *results;
static int nresults, capacity;

/* All ranks come here with the same fate; rank 0 speaks. */
static int fail(const char *text)
{
    if (bench.rank == 0) {
        fflush(stdout);
        fprintf(stderr, "hvd-bench: %s\n", text);
    }
    return STATUS_ERROR;
}

/* Collective: whether every rank is well. */
static int all_well(int well)
{
    MPI_Allreduce(MPI_IN_PLACE, &well, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
    return well;
}

static int start(void)
{
    int initialised;

    if (hvd_init() < 0) {
        const char *rank = getenv("OMPI_COMM_WORLD_RANK");
        bench.rank = rank ? atoi(rank) : 0;
        return fail(hvd_last_error());
    }
    bench.rank = hvd_rank();
    bench.nranks = hvd_size();
    /* Alone, libhvd does without MPI; we compare with it. */
    MPI_Initialized(&initialised);
    if (!initialised)
        MPI_Init(NULL, NULL);
    if (options.root >= bench.nranks)
        return fail("-r: there is no such rank");
    return 0;
}

static void *allocate(size_t bytes)
{
    return options.plain_memory ? calloc(1, bytes) : hvd_malloc(bytes);
}

static int prepare(void)
{
    int64_t memory = machine_memory();
    char text[160];

    bench.options = &options;
    if (memory >= 0 &&
        options.max_bytes > memory / (2 * (int64_t)hvd_local_size())) {
        snprintf(text, sizeof text,
                 "two buffers of %lld bytes for each of %d ranks do not fit "
                 "into the memory of this host: choose a smaller -e",
                 (long long)options.max_bytes, hvd_local_size());
        return fail(text);
    }
    bench.in = allocate((size_t)options.max_bytes);
    bench.out = allocate((size_t)options.max_bytes);
    if (!all_well(bench.in != NULL && bench.out != NULL))
        return fail("a rank has no memory for its buffers");
    if (!all_well(bench.rank != 0 || !options.json ||
                  json_check(options.json) == 0))
        return STATUS_ERROR;
    return 0;
}

/* --------------------------------------------------------------- first table
 */

static void print_head(void)
{
    struct nccl_head head = {
        .version = "hvd-bench " HVD_VERSION_STRING
                   ", table of nccl-tests version 2.19",
        .program = hvd_kind_name(options.kind),
        .min_bytes = options.min_bytes,
        .max_bytes = options.max_bytes,
        .step = options.step,
        .step_is_factor = options.step_is_factor,
        .warmup_iters = options.warmup_iters,
        .iters = options.iters ? options.iters : 20,
        .check = options.check,
    };

    nccl_table_head(stdout, &head);
}

/* Collective: every rank tells rank 0 what it runs on. */
static void print_devices(void)
{
    struct {
        int pid, local_rank;
        char host[64], processor[128];
    } mine, *all = calloc((size_t)bench.nranks, sizeof *all);

    memset(&mine, 0, sizeof mine);
    mine.pid = (int)getpid();
    mine.local_rank = hvd_local_rank();
    gethostname(mine.host, sizeof mine.host - 1);
    machine_processor(mine.processor, sizeof mine.processor);
    if (!all_well(all != NULL)) {
        free(all);
        return;
    }
    MPI_Gather(&mine, sizeof mine, MPI_BYTE, all, sizeof mine, MPI_BYTE, 0,
               MPI_COMM_WORLD);
    for (int r = 0; r < bench.nranks && bench.rank == 0; r++) {
        struct nccl_device device = {r, all[r].pid, all[r].local_rank,
                                     all[r].host, all[r].processor};
        nccl_table_device(stdout, &device);
    }
    free(all);
}

static struct nccl_half half_of(const struct result *r, enum placement p)
{
    const struct measured *m = &r->placements[p];
    double algbw = m->hvd_mean > 0 ? (double)r->bytes / m->hvd_mean / 1e9 : 0;

    return (struct nccl_half){.time_us = 1e6 * m->hvd_mean,
                              .alg_bw = algbw,
                              .bus_bw = algbw * bus_factor(r->op, bench.nranks),
                              .nwrong = m->nwrong};
}

static void print_row(const struct result *r)
{
    struct nccl_row row = {
        .bytes = r->bytes,
        .count = r->count,
        .type = r->type->name,
        .redop = r->op ? r->op->name : "none",
        .root = r->op ? -1 : r->root,
        .out_of_place = half_of(r, OUT_OF_PLACE),
        .in_place = half_of(r, IN_PLACE),
    };

    nccl_table_row(stdout, &row);
    fflush(stdout);
}

/* ------------------------------------------------------------------- running
 */

static int run_one(const struct bench_dtype *type, const struct bench_op *op,
                   int root, int64_t bytes)
{
    struct result *grown;

    if (nresults == capacity) {
        capacity = capacity ? 2 * capacity : 64;
        grown = realloc(results, (size_t)capacity * sizeof *grown);
        if (grown)
            results = grown;
        if (!all_well(grown != NULL))
            return fail("a rank is out of memory");
    }
    if (measure(&bench, type, op, root, bytes, &results[nresults]) < 0)
        return fail(hvd_last_error());
    if (bench.rank == 0)
        print_row(&results[nresults]);
    nresults++;
    return 0;
}

static int run_sizes(const struct bench_dtype *type, const struct bench_op *op,
                     int root)
{
    int64_t next;

    for (int64_t bytes = options.min_bytes; bytes <= options.max_bytes;
         bytes = next) {
        int status;

        if (__builtin_mul_overflow(bytes, options.step, &next) ||
            !options.step_is_factor)
            next = options.step_is_factor ? INT64_MAX : bytes + options.step;
        if (bytes < (int64_t)type->bytes)
            continue; /* not one element */
        status = run_one(type, op, root, bytes);
        if (status)
            return status;
    }
    return 0;
}

static int run_type(const struct bench_dtype *type)
{
    int status = 0;

    if (options.kind == HVD_BROADCAST) {
        int first = options.root < 0 ? 0 : options.root;
        int last = options.root < 0 ? bench.nranks - 1 : options.root;

        for (int root = first; root <= last && !status; root++)
            status = run_sizes(type, NULL, root);
        return status;
    }
    for (const struct bench_op *op = bench_ops; op->name && !status; op++)
        if ((!options.op || options.op == op) && bench_op_defined(op, type))
            status = run_sizes(type, op, 0);
    return status;
}

static int run_all(void)
{
    int status = 0;

    for (const struct bench_dtype *t = bench_dtypes; t->name && !status; t++)
        if (!options.type || options.type == t)
            status = run_type(t);
    if (!status && nresults == 0)
        return fail("nothing to measure: no size has room for an element, or "
                    "the operation is not defined for the type");
    return status;
}

/* The foot of the first table, the second table, the file. */
static int conclude(void)
{
    double sum = 0;
    int64_t nwrong = 0;

    for (int i = 0; i < nresults; i++)
        for (int p = 0; p < PLACEMENTS; p++) {
            const struct nccl_half half =
                half_of(&results[i], (enum placement)p);

            sum += half.bus_bw;
            nwrong += half.nwrong > 0 ? half.nwrong : 0;
        }
    if (bench.rank == 0) {
        nccl_table_foot(stdout, nwrong, sum / (2 * nresults),
                        hvd_kind_name(options.kind));
        if (bench.nranks == 1)
            puts("# One rank: nothing crosses a bus, so busbw is 0.");
        if (options.compare)
            compare_table_print(stdout, results, nresults, bench.nranks);
    }
    if (!all_well(bench.rank != 0 || !options.json ||
                  json_write(options.json, &bench, results, nresults) == 0))
        return STATUS_ERROR;
    return nwrong > 0 ? STATUS_WRONG : 0;
}

int main(int argc, char **argv)
{
    int status;

    bench_options_parse(argc, argv, &options);
    status = start();
    if (!status)
        status = prepare();
    if (!status) {
        if (bench.rank == 0)
            print_head();
        print_devices();
        if (bench.rank == 0)
            nccl_table_columns(stdout);
        status = run_all();
    }
    if (!status)
        status = conclude();
    if (options.plain_memory) {
        free(bench.in);
        free(bench.out);
    } else {
        hvd_free(bench.in);
        hvd_free(bench.out);
    }
    free(results);
    hvd_shutdown();
    return status;
}
