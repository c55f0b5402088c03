/* SPDX-License-Identifier: Apache-2.0 */
/*
 * collectives.c - hvd-bench COLLECTIVE: measures one collective over types,
 * reductions, roots and sizes, and prints the tables.
 *
 * The loops nest: run_all (types), run_type (reductions), run_roots, run_sizes,
 * run_one. Each rank measures and keeps all results; rank 0 prints. Whatever
 * one rank alone can find wrong is settled by all ranks (session_settle) before
 * they go on. main.c calls collectives_main when no subcommand is named.
 */
#include "collectives/subcommands.h"

#include "collectives/devices.h"
#include "collectives/json.h"
#include "collectives/machine.h"
#include "collectives/measure.h"
#include "hvd.h"
#include "tables/compare_table.h"
#include "tables/csv_table.h"
#include "tables/nccl_table.h"
#include "tables/osu_table.h"

#include <mpi.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

struct program {
    struct session *session;
    const struct bench_options *options;
    struct bench bench;
    struct nccl_device *devices;
    struct result *results;
    int nresults;
    int capacity;
    struct table csv;
};

/* ---------------------------------------------------------------- beginning */

static int check_root(struct program *p)
{
    char text[160];

    snprintf(text, sizeof text, "-r: there is no rank %d, only 0 to %d",
             p->options->root, p->session->nranks - 1);
    return session_settle(p->session, p->options->root < p->session->nranks,
                          text);
}

/* Checks that at least one size can be measured. */
static int check_room(struct program *p)
{
    const struct bench_options *o = p->options;
    struct session *s = p->session;
    struct call call;
    int has_room = o->kind == HVD_BARRIER;

    for (int64_t bytes = o->min_bytes; bytes > 0 && !has_room;
         bytes = bench_next_size(o, bytes)) {
        call_init(&call, o->kind, o->type ? o->type : bench_dtype_find("int8"),
                  NULL, 0, s->rank, s->nranks, bytes);
        has_room = call.total > 0;
    }
    return session_settle(s, has_room,
                          "-e: no size has room for an element of each rank");
}

static int check_memory(struct program *p)
{
    int64_t memory = machine_memory();
    int64_t share = memory / hvd_local_size();
    /* hvd and MPI need memory for the largest message, too. */
    int64_t need = buffers_need(p->options, hvd_local_size());
    int64_t all;
    char text[512];
    int beyond = __builtin_add_overflow(need, p->options->max_bytes, &all);

    snprintf(text, sizeof text,
             "-e: %lld bytes: the buffers of %d ranks do not fit into the %lld "
             "bytes of memory this host has left",
             (long long)p->options->max_bytes, hvd_local_size(),
             (long long)memory);
    return session_settle(
        p->session, memory < 0 || (!beyond && need >= 0 && all <= share), text);
}

static int prepare_run(struct program *p)
{
    struct session *s = p->session;
    char text[512] = "";
    int well;

    if (check_root(p) || check_room(p) || check_memory(p))
        return STATUS_ERROR;
    p->bench.options = p->options;
    p->bench.session = s;
    well = buffers_init(&p->bench.buffers, p->options, hvd_local_size()) == 0;
    if (session_settle(
            s, well, "there is no memory for the buffers: choose a smaller -e"))
        return STATUS_ERROR;
    well = !p->options->json || s->rank != 0 ||
           json_check(p->options->json, text, sizeof text) == 0;
    if (session_settle(s, well, text))
        return STATUS_ERROR;
    p->devices = devices_gather(s->nranks);
    return session_settle(s, p->devices != NULL, "out of memory");
}

/* --------------------------------------------------------------------- rows */

static struct nccl_half half_of(const struct program *p, const struct result *r,
                                enum placement placement)
{
    const struct measured *m = &r->placements[placement];

    return (struct nccl_half){
        .time_us = 1e6 * m->hvd.mean,
        .alg_bw = result_algbw(r, placement),
        .bus_bw = result_busbw(r, placement, p->session->nranks),
        .nwrong = m->nwrong};
}

static void print_nccl_row(const struct program *p, const struct result *r)
{
    struct nccl_row row = {
        .bytes = r->bytes,
        .count = r->count,
        .type = result_type(r),
        .redop = result_redop(r),
        .root = result_root(r),
        .out_of_place = half_of(p, r, OUT_OF_PLACE),
        .in_place = half_of(p, r, IN_PLACE),
    };

    nccl_table_row(stdout, &row);
}

static struct osu_head osu_head_of(const struct program *p)
{
    return (struct osu_head){.kind = p->options->kind,
                             .in_place = p->options->in_place,
                             .check = p->options->check,
                             .each = p->options->each};
}

static int count_hosts(const struct program *p)
{
    int nhosts = 0;

    for (int r = 0; r < p->session->nranks; r++)
        nhosts += p->devices[r].local_rank == 0;
    return nhosts;
}

static void print_row(struct program *p, const struct result *r)
{
    const struct bench_options *o = p->options;
    struct osu_head head = osu_head_of(p);

    switch (o->format) {
    case FORMAT_NCCL: print_nccl_row(p, r); break;
    case FORMAT_OSU: osu_table_row(stdout, &head, r); break;
    case FORMAT_CSV:
        csv_table_rows(&p->csv, r, p->session->nranks, count_hosts(p),
                       o->plain_memory ? "malloc" : "hvd",
                       o->cold ? "cold" : "hot");
        break;
    default: break; /* JSON is printed at the end */
    }
    fflush(stdout);
}

static void print_nccl_head(const struct program *p)
{
    const struct bench_options *o = p->options;
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
    for (int r = 0; r < p->session->nranks; r++)
        nccl_table_device(stdout, &p->devices[r]);
    nccl_table_columns(stdout);
}

static void print_head(struct program *p)
{
    struct osu_head head = osu_head_of(p);

    switch (p->options->format) {
    case FORMAT_NCCL: print_nccl_head(p); break;
    case FORMAT_OSU: osu_table_head(stdout, &head); break;
    case FORMAT_CSV: csv_table_begin(&p->csv, stdout); break;
    default: break;
    }
    fflush(stdout);
}

/* ------------------------------------------------------------------ running */

/* Returns the next free result; NULL without memory. */
static struct result *next_result(struct program *p)
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

static int run_one(struct program *p, const struct call *call)
{
    struct result *result = next_result(p);

    if (session_settle(p->session, result != NULL, "out of memory"))
        return STATUS_ERROR;
    if (measure(&p->bench, call, result) < 0)
        return session_fail(p->session);
    if (p->session->rank == 0)
        print_row(p, result);
    p->nresults++;
    return 0;
}

static int run_sizes(struct program *p, const struct bench_dtype *type,
                     const struct bench_op *op, int root)
{
    const struct session *s = p->session;
    struct call call;
    int status = 0;

    for (int64_t bytes = p->options->min_bytes; bytes > 0 && !status;
         bytes = bench_next_size(p->options, bytes)) {
        call_init(&call, p->options->kind, type, op, root, s->rank, s->nranks,
                  bytes);
        if (call.total > 0 || call.kind == HVD_BARRIER)
            status = run_one(p, &call);
        if (call.kind == HVD_BARRIER)
            break;
    }
    return status;
}

static int run_roots(struct program *p, const struct bench_dtype *type,
                     const struct bench_op *op)
{
    const struct bench_options *o = p->options;
    int first = o->root < 0 ? 0 : o->root;
    int last = o->root < 0 ? p->session->nranks - 1 : o->root;
    int status = 0;

    if (!call_has_root(o->kind))
        return run_sizes(p, type, op, 0);
    for (int root = first; root <= last && !status; root++)
        status = run_sizes(p, type, op, root);
    return status;
}

static int run_type(struct program *p, const struct bench_dtype *type)
{
    const struct bench_options *o = p->options;
    int status = 0;

    if (!call_reduces(o->kind))
        return run_roots(p, type, NULL);
    for (const struct bench_op *op = bench_ops; op->name && !status; op++)
        if ((!o->op || o->op == op) && bench_op_defined(op, type))
            status = run_roots(p, type, op);
    return status;
}

static int run_all(struct program *p)
{
    const struct bench_options *o = p->options;
    int status = 0;

    if (measure_warm_up(&p->bench) < 0)
        return session_fail(p->session);
    for (const struct bench_dtype *t = bench_dtypes; t->name && !status; t++)
        if (o->kind == HVD_BARRIER ? t == bench_dtypes
                                   : !o->type || o->type == t)
            status = run_type(p, t);
    return status;
}

/* ------------------------------------------------------------------- output */

/* Prints the foot of the first table, and the tables that follow it. */
static void print_nccl_end(const struct program *p,
                           const struct summary *summary)
{
    const struct bench_options *o = p->options;

    nccl_table_foot(stdout, summary->nwrong, summary->average_busbw, o->min_bw,
                    hvd_kind_name(o->kind));
    if (p->session->nranks == 1 && call_bus_factor(o->kind, 1) <= 0)
        puts("# One rank: nothing crosses a bus, so busbw is 0.");
    if (o->compare)
        compare_table_print(stdout, p->results, p->nresults,
                            p->session->nranks);
    if (o->each)
        compare_table_percentiles(stdout, p->results, p->nresults);
}

/* Writes to the file, or to standard output if path is NULL. */
static int write_json(struct program *p, const char *path, char *error,
                      size_t size)
{
    char library[MPI_MAX_LIBRARY_VERSION_STRING];
    int length;
    struct run_facts facts = {.argc = p->session->argc,
                              .argv = p->session->argv,
                              .nranks = p->session->nranks,
                              .devices = p->devices,
                              .mpi_version = library,
                              .start_time = p->session->start_time,
                              .end_time = time(NULL)};

    MPI_Get_library_version(library, &length);
    library[strcspn(library, ",\n")] = '\0';
    if (!path)
        return json_print(stdout, p->options, &facts, p->results, p->nresults);
    return json_write(path, p->options, &facts, p->results, p->nresults, error,
                      size);
}

static int conclude_run(struct program *p)
{
    const struct bench_options *o = p->options;
    struct session *s = p->session;
    struct summary summary;
    char text[512] = "out of memory";
    int well = 1;

    result_summarize(p->results, p->nresults, s->nranks, &summary);
    if (s->rank == 0) {
        if (o->format == FORMAT_NCCL)
            print_nccl_end(p, &summary);
        else if (o->format == FORMAT_CSV)
            table_end(&p->csv);
        else if (o->format == FORMAT_JSON)
            well = write_json(p, NULL, text, sizeof text) == 0;
    }
    if (session_settle(s, well, text) || session_flush(s))
        return STATUS_ERROR;
    if (o->json && s->rank == 0)
        well = write_json(p, o->json, text, sizeof text) == 0;
    if (session_settle(s, well, text))
        return STATUS_ERROR;
    if (summary.nwrong > 0)
        return STATUS_WRONG;
    return summary.average_busbw < o->min_bw ? STATUS_SLOW : 0;
}

/* --------------------------------------------------------------------- main */

static int run_collective(struct session *session, void *options)
{
    struct program p = {.session = session, .options = options};
    int status = prepare_run(&p);

    if (!status && session->rank == 0)
        print_head(&p);
    if (!status)
        status = run_all(&p);
    if (!status)
        status = conclude_run(&p);
    buffers_fini(&p.bench.buffers);
    free(p.devices);
    free(p.results);
    return status;
}

int collectives_main(int argc, char **argv)
{
    struct bench_options options;

    bench_options_init(&options);
    return session_main(argc, argv, "hvd-bench", &bench_options_parser,
                        &options, run_collective);
}
