/* SPDX-License-Identifier: Apache-2.0 */
/*
 * main.c - hvd-bench: over types, operations, roots and sizes; tables; files.
 *
 * Alone, libhvd does without MPI; then it is started here, to be compared
 * with. What only one rank can find wrong is agreed on
 * by all before they go on, so that all end, non-zero, and rank 0 says why.
 * Tables go to standard output, and rank 0 alone prints.
 */
#include "agree.h"
#include "compare_table.h"
#include "devices.h"
#include "json.h"
#include "machine.h"
#include "measure.h"
#include "nccl_table.h"

#include <mpi.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { STATUS_ERROR = 1, STATUS_WRONG = 7, STATUS_USAGE = 64 };

/* The two buffers, and what libraries need for the largest message. */
enum { BUFFERS = 3 };

struct program {
    struct bench_options options;
    struct bench bench;
    struct nccl_device *devices;
    struct result *results;
    int nresults;
    int capacity;
    int argc;
    char **argv; /* as given; owned, the words borrowed */
    int64_t start_time;
    int owns_mpi;    /* libhvd would have ended it */
    int launch_rank; /* before MPI sets it anew for one who is alone */
};

/* ------------------------------------------------------------------ failure */

/* The rank of this process, also before MPI tells, and where a launcher of
 * another MPI has started it and it finds itself alone. */
static int launch_rank(void)
{
    static const char *const names[] = {"OMPI_COMM_WORLD_RANK", "PMIX_RANK",
                                        "PMI_RANK"};

    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const char *rank = getenv(names[i]);

        if (rank)
            return (int)strtol(rank, NULL, 10);
    }
    return 0;
}

/* Collective: of the ranks that know what has failed, the first one's text. */
static int fail(struct program *p)
{
    agree_text(p->bench.error, sizeof p->bench.error);
    if (p->launch_rank == 0) {
        fflush(stdout);
        fprintf(stderr, "hvd-bench: %s\n", p->bench.error);
    }
    return STATUS_ERROR;
}

/* Collective: 0 if every rank is well; error is what this one has to say if it
 * is not. */
static int settle(struct program *p, int well, const char *error)
{
    if (!well)
        snprintf(p->bench.error, sizeof p->bench.error, "%s", error);
    return agree_well(well) ? 0 : fail(p);
}

/* ------------------------------------------------------------------ running */

static void *allocate(const struct program *p)
{
    size_t bytes = (size_t)p->options.max_bytes;

    return p->options.plain_memory ? malloc(bytes) : hvd_malloc(bytes);
}

static void release(const struct program *p, void *memory)
{
    if (p->options.plain_memory)
        free(memory);
    else
        hvd_free(memory);
}

/* mpirun can start ranks with different command lines; they would wait for
 * each other for ever. */
static uint64_t hash_of(int argc, char **argv)
{
    uint64_t hash = 14695981039346656037u; /* FNV-1a */

    for (int i = 1; i < argc; i++)
        for (const char *c = argv[i];; c++) {
            hash = (hash ^ (unsigned char)*c) * 1099511628211u;
            if (!*c)
                break;
        }
    return hash;
}

static int start(struct program *p)
{
    char text[160];
    int status = hvd_init();
    int initialised;

    MPI_Initialized(&initialised);
    p->owns_mpi = !initialised;
    if (p->owns_mpi)
        MPI_Init(NULL, NULL);
    MPI_Comm_rank(MPI_COMM_WORLD, &p->bench.rank);
    MPI_Comm_size(MPI_COMM_WORLD, &p->bench.nranks);
    p->bench.options = &p->options;
    if (settle(p, status >= 0, hvd_last_error()) ||
        settle(p, p->argv != NULL, "out of memory"))
        return STATUS_ERROR;
    if (settle(p, agree_same(hash_of(p->argc, p->argv)),
               "the ranks were started with different arguments"))
        return STATUS_ERROR;
    snprintf(text, sizeof text, "-r: there is no rank %d, only 0 to %d",
             p->options.root, p->bench.nranks - 1);
    return settle(p, p->options.root < p->bench.nranks, text);
}

static int prepare(struct program *p)
{
    int64_t memory = machine_memory();
    int64_t share = memory / (BUFFERS * (int64_t)hvd_local_size());
    char text[512];

    snprintf(text, sizeof text,
             "-e: buffers of %lld bytes for %d ranks do not fit into the %lld "
             "bytes of memory this host has left: at most %lld",
             (long long)p->options.max_bytes, hvd_local_size(),
             (long long)memory, (long long)share);
    if (settle(p, memory < 0 || p->options.max_bytes <= share, text))
        return STATUS_ERROR;
    p->bench.in = allocate(p);
    p->bench.out = allocate(p);
    if (settle(p, p->bench.in && p->bench.out,
               "there is no memory for the buffers: choose a smaller -e"))
        return STATUS_ERROR;
    if (p->options.json && p->bench.rank == 0 &&
        json_check(p->options.json, text, sizeof text) < 0)
        return settle(p, 0, text);
    if (settle(p, 1, ""))
        return STATUS_ERROR;
    p->devices = devices_gather(p->bench.nranks);
    return settle(p, p->devices != NULL, "out of memory");
}

/* The next free result. */
static struct result *grow(struct program *p)
{
    struct result *grown = p->results;

    if (p->nresults == p->capacity) {
        p->capacity = p->capacity ? 2 * p->capacity : 64;
        grown = realloc(p->results, (size_t)p->capacity * sizeof *grown);
        if (grown)
            p->results = grown;
    }
    return grown ? &grown[p->nresults] : NULL;
}

static struct nccl_half half_of(const struct program *p, const struct result *r,
                                enum placement placement)
{
    const struct measured *m = &r->placements[placement];

    return (struct nccl_half){.time_us = 1e6 * m->hvd_mean,
                              .alg_bw = result_algbw(r, placement),
                              .bus_bw =
                                  result_busbw(r, placement, p->bench.nranks),
                              .nwrong = m->nwrong};
}

static void print_row(const struct program *p, const struct result *r)
{
    struct nccl_row row = {
        .bytes = r->bytes,
        .count = r->count,
        .type = r->type->name,
        .redop = result_redop(r),
        .root = result_root(r),
        .out_of_place = half_of(p, r, OUT_OF_PLACE),
        .in_place = half_of(p, r, IN_PLACE),
    };

    nccl_table_row(stdout, &row);
    fflush(stdout);
}

static int run_one(struct program *p, const struct bench_dtype *type,
                   const struct bench_op *op, int root, int64_t bytes)
{
    struct result *result = grow(p);

    if (settle(p, result != NULL, "out of memory"))
        return STATUS_ERROR;
    if (measure(&p->bench, type, op, root, bytes, result) < 0)
        return fail(p);
    if (p->bench.rank == 0)
        print_row(p, result);
    p->nresults++;
    return 0;
}

static int run_sizes(struct program *p, const struct bench_dtype *type,
                     const struct bench_op *op, int root)
{
    int status = 0;

    for (int64_t bytes = p->options.min_bytes; bytes > 0 && !status;
         bytes = bench_next_size(&p->options, bytes))
        if (bytes >= (int64_t)type->bytes) /* room for an element */
            status = run_one(p, type, op, root, bytes);
    return status;
}

static int run_type(struct program *p, const struct bench_dtype *type)
{
    const struct bench_options *o = &p->options;
    int status = 0;

    if (o->kind == HVD_BROADCAST) {
        int first = o->root < 0 ? 0 : o->root;
        int last = o->root < 0 ? p->bench.nranks - 1 : o->root;

        for (int root = first; root <= last && !status; root++)
            status = run_sizes(p, type, NULL, root);
        return status;
    }
    for (const struct bench_op *op = bench_ops; op->name && !status; op++)
        if ((!o->op || o->op == op) && bench_op_defined(op, type))
            status = run_sizes(p, type, op, 0);
    return status;
}

static int run_all(struct program *p)
{
    int status = 0;

    if (measure_warm_up(&p->bench) < 0)
        return fail(p);
    for (const struct bench_dtype *t = bench_dtypes; t->name && !status; t++)
        if (!p->options.type || p->options.type == t)
            status = run_type(p, t);
    return status;
}

/* ------------------------------------------------------------------- output */

static void print_head(const struct program *p)
{
    const struct bench_options *o = &p->options;
    struct nccl_head head = {
        .version = "hvd-bench " HVD_VERSION_STRING
                   ", table of nccl-tests version 2.19",
        .program = hvd_kind_name(o->kind),
        .min_bytes = o->min_bytes,
        .max_bytes = o->max_bytes,
        .step = o->step,
        .step_is_factor = o->step_is_factor,
        .warmup_iters = o->warmup_iters,
        .iters = o->iters ? o->iters : 20,
        .check = o->check,
    };

    nccl_table_head(stdout, &head);
    for (int r = 0; r < p->bench.nranks; r++)
        nccl_table_device(stdout, &p->devices[r]);
    nccl_table_columns(stdout);
    fflush(stdout);
}

/* The foot of the first table, and the second. */
static void print_end(const struct program *p, const struct summary *summary)
{
    nccl_table_foot(stdout, summary->nwrong, summary->average_busbw,
                    hvd_kind_name(p->options.kind));
    if (p->bench.nranks == 1 && p->options.kind == HVD_ALLREDUCE)
        puts("# One rank: nothing crosses a bus, so busbw is 0.");
    if (p->options.compare)
        compare_table_print(stdout, p->results, p->nresults, p->bench.nranks);
}

static int write_json(struct program *p, char *error, size_t size)
{
    char library[MPI_MAX_LIBRARY_VERSION_STRING];
    int length;
    struct run_facts facts = {.argc = p->argc,
                              .argv = p->argv,
                              .nranks = p->bench.nranks,
                              .devices = p->devices,
                              .mpi_version = library,
                              .start_time = p->start_time,
                              .end_time = time(NULL)};

    MPI_Get_library_version(library, &length);
    library[strcspn(library, ",\n")] = '\0';
    return json_write(p->options.json, &p->options, &facts, p->results,
                      p->nresults, error, size);
}

static int conclude(struct program *p)
{
    struct summary summary;
    char text[512] = "standard output cannot be written";
    int well = 1;

    result_summarize(p->results, p->nresults, p->bench.nranks, &summary);
    if (p->bench.rank == 0) {
        print_end(p, &summary);
        well = fflush(stdout) == 0 && !ferror(stdout);
        if (well && p->options.json)
            well = write_json(p, text, sizeof text) == 0;
    }
    if (settle(p, well, text))
        return STATUS_ERROR;
    return summary.nwrong > 0 ? STATUS_WRONG : 0;
}

/* --------------------------------------------------------------------- main */

/* Help, version, or a wrong command line: every rank sees the same and settles
 * it alone, without MPI. */
static int settle_alone(const struct bench_options *options, int outcome,
                        int rank)
{
    if (outcome == OPTIONS_ERROR) {
        /* mpirun ends all ranks as soon as one fails; let rank 0 speak. */
        if (rank > 0)
            usleep(500000);
        else
            fprintf(stderr, "hvd-bench: %s\n", options->error);
        return STATUS_USAGE;
    }
    if (rank == 0 && outcome == OPTIONS_HELP)
        bench_options_help(stdout);
    else if (rank == 0)
        puts("hvd-bench " HVD_VERSION_STRING);
    return fflush(stdout) == 0 ? 0 : STATUS_ERROR;
}

/* Parsing may reorder the words. */
static char **copy_words(int argc, char **argv)
{
    char **words = calloc((size_t)argc + 1, sizeof *words);

    if (words)
        memcpy(words, argv, (size_t)argc * sizeof *words);
    return words;
}

static int run(struct program *p)
{
    int status = start(p);

    if (!status)
        status = prepare(p);
    if (!status && p->bench.rank == 0)
        print_head(p);
    if (!status)
        status = run_all(p);
    if (!status)
        status = conclude(p);
    return status;
}

int main(int argc, char **argv)
{
    struct program p = {.argc = argc,
                        .argv = copy_words(argc, argv),
                        .start_time = time(NULL),
                        .launch_rank = launch_rank()};
    int outcome = bench_options_parse(argc, argv, &p.options);
    int status;

    if (outcome != OPTIONS_RUN) {
        free(p.argv);
        return settle_alone(&p.options, outcome, p.launch_rank);
    }
    status = run(&p);
    release(&p, p.bench.in);
    release(&p, p.bench.out);
    devices_free(p.devices);
    free(p.results);
    free(p.argv);
    hvd_shutdown();
    if (p.owns_mpi)
        MPI_Finalize();
    return status;
}
