/* SPDX-License-Identifier: Apache-2.0 */
/*
 * json.c - key names as in the files of nccl-tests where there is such a key;
 * seconds, bytes and counts as plain numbers. Times there are microseconds.
 */
#include "json.h"

#include "compare_table.h"
#include "machine.h"

#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static int complain(const char *path, const char *what)
{
    fprintf(stderr, "hvd-bench: --json '%s': %s: %s\n", path, what,
            strerror(errno));
    return -1;
}

static char *temporary(const char *path)
{
    char *name;

    return asprintf(&name, "%s.tmp%d", path, (int)getpid()) < 0 ? NULL : name;
}

int json_check(const char *path)
{
    char *name = temporary(path);
    FILE *file = name ? fopen(name, "w") : NULL;
    int status = file ? 0 : complain(path, "cannot be written");

    if (file) {
        fclose(file);
        unlink(name);
    }
    free(name);
    return status;
}

static json_t *json_placement(const struct result *r, const struct measured *m,
                              int nranks)
{
    double algbw = m->hvd_mean > 0 ? (double)r->bytes / m->hvd_mean / 1e9 : 0;

    return json_pack(
        "{s:f, s:f, s:f, s:I, s:f, s:f, s:f}", "time", 1e6 * m->hvd_mean,
        "alg_bw", algbw, "bus_bw", algbw * bus_factor(r->op, nranks), "nwrong",
        (json_int_t)m->nwrong, "hvd_median_us", 1e6 * m->hvd_median,
        "mpi_median_us", 1e6 * m->mpi_median, "mpi_over_hvd",
        m->hvd_median > 0 ? m->mpi_median / m->hvd_median : 0.0);
}

static json_t *json_result(const struct result *r, int nranks)
{
    return json_pack(
        "{s:I, s:I, s:s, s:s, s:i, s:i, s:f, s:o, s:o}", "size",
        (json_int_t)r->bytes, "count", (json_int_t)r->count, "type",
        r->type->name, "redop", r->op ? r->op->name : "none", "root",
        r->op ? -1 : r->root, "iterations", r->iters, "copy_median_us",
        1e6 * r->copy_seconds, "out_of_place",
        json_placement(r, &r->placements[OUT_OF_PLACE], nranks), "in_place",
        json_placement(r, &r->placements[IN_PLACE], nranks));
}

static json_t *json_config(const struct bench *bench)
{
    const struct bench_options *o = bench->options;
    char processor[256], library[MPI_MAX_LIBRARY_VERSION_STRING], host[256];
    int length;

    machine_processor(processor, sizeof processor);
    MPI_Get_library_version(library, &length);
    library[strcspn(library, ",\n")] = '\0';
    gethostname(host, sizeof host);
    return json_pack(
        "{s:s, s:i, s:s, s:s, s:s, s:s, s:I, s:I, s:I, s:b, s:i, s:i, s:b, "
        "s:b, s:s}",
        "collective", hvd_kind_name(o->kind), "ranks", bench->nranks,
        "hvd_version", hvd_version(), "mpi_version", library, "processor",
        processor, "host", host, "minimum_bytes", (json_int_t)o->min_bytes,
        "maximum_bytes", (json_int_t)o->max_bytes, "step", (json_int_t)o->step,
        "step_is_factor", (int)o->step_is_factor, "warmup_iters",
        o->warmup_iters, "iterations", o->iters, "validation", (int)o->check,
        "compared", (int)o->compare, "memory",
        o->plain_memory ? "plain" : "hvd");
}

int json_write(const char *path, const struct bench *bench,
               const struct result *results, int n)
{
    json_t *rows = json_array();
    json_t *root;
    char *name = temporary(path);
    int status = -1;

    for (int i = 0; i < n; i++)
        json_array_append_new(rows, json_result(&results[i], bench->nranks));
    root = json_pack("{s:i, s:I, s:o, s:o}", "version", 1, "start_time",
                     (json_int_t)time(NULL), "config", json_config(bench),
                     "results", rows);
    if (root && name && json_dump_file(root, name, JSON_INDENT(2)) == 0 &&
        rename(name, path) == 0)
        status = 0;
    else
        complain(path, "cannot be written");
    if (status < 0 && name)
        unlink(name);
    json_decref(root);
    free(name);
    return status;
}
