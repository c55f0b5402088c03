/* SPDX-License-Identifier: Apache-2.0 */
/*
 * json.c - writes the file of --json.
 *
 * Keys are those of nccl-tests' files if these have such a key, with the same
 * units (times in microseconds, bandwidths in GB/s). Values have real types:
 * numbers, true and false, and null for what was not measured. The file lists
 * only those environment variables that change what is measured.
 */
#include "collectives/json.h"

#include "collectives/machine.h"
#include "disk/disk.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ------------------------------------------------------------------ content */

static json_t *number_or_null(int known, double value)
{
    return known ? json_real(value) : json_null();
}

static json_t *json_each(const struct stats_spread *each)
{
    if (each->most <= 0)
        return json_null();
    return json_pack("{s:f, s:f, s:f, s:f, s:f, s:f}", "min_us",
                     1e6 * each->least, "max_us", 1e6 * each->most, "avg_us",
                     1e6 * each->mean, "p50_us", 1e6 * each->median, "p95_us",
                     1e6 * each->p95, "p99_us", 1e6 * each->p99);
}

static json_t *json_placement(const struct result *r, enum placement p,
                              int nranks)
{
    const struct measured *m = &r->placements[p];
    int compared = m->mpi.median > 0;

    return json_pack(
        "{s:f, s:f, s:f, s:o, s:f, s:f, s:f, s:o, s:o, s:f, s:f, s:o, s:o}",
        "time", 1e6 * m->hvd.mean, "alg_bw", result_algbw(r, p), "bus_bw",
        result_busbw(r, p, nranks), "nwrong",
        m->nwrong < 0 ? json_null() : json_integer(m->nwrong), "median_us",
        1e6 * m->hvd.median, "min_us", 1e6 * m->hvd.least, "max_us",
        1e6 * m->hvd.most, "mpi_median_us",
        number_or_null(compared, 1e6 * m->mpi.median), "mpi_over_hvd",
        number_or_null(compared, result_ratio(r, p)), "copy_median_us",
        1e6 * m->copy.median, "share_of_copy", result_share(r, p, nranks),
        "per_iter", json_each(&m->hvd.each), "mpi_per_iter",
        json_each(&m->mpi.each));
}

static json_t *json_result(const struct result *r, int nranks)
{
    return json_pack("{s:I, s:I, s:s, s:s, s:i, s:i, s:o, s:o}", "size",
                     (json_int_t)r->bytes, "count", (json_int_t)r->count,
                     "type", result_type(r), "redop", result_redop(r), "root",
                     result_root(r), "iterations", r->iters, "out_of_place",
                     json_placement(r, OUT_OF_PLACE, nranks), "in_place",
                     json_placement(r, IN_PLACE, nranks));
}

static json_t *json_results(const struct result *results, int n, int nranks)
{
    json_t *list = json_array();

    for (int i = 0; i < n; i++)
        json_array_append_new(list, json_result(&results[i], nranks));
    return list;
}

static json_t *json_devices(const struct run_facts *facts)
{
    json_t *list = json_array();

    for (int i = 0; i < facts->nranks; i++) {
        const struct nccl_device *d = &facts->devices[i];

        json_array_append_new(
            list, json_pack("{s:i, s:i, s:s, s:i, s:s}", "rank", d->rank, "pid",
                            d->pid, "hostname", d->host, "device",
                            d->local_rank, "device_info", d->what));
    }
    return list;
}

static json_t *json_config(const struct bench_options *o,
                           const struct run_facts *facts)
{
    return json_pack(
        "{s:s, s:i, s:o, s:I, s:I, s:I, s:i, s:o, s:b, s:i, s:b, s:s, s:b, "
        "s:b, s:b}",
        "collective", hvd_kind_name(o->kind), "ranks", facts->nranks, "devices",
        json_devices(facts), "minimum_bytes", (json_int_t)o->min_bytes,
        "maximum_bytes", (json_int_t)o->max_bytes,
        o->step_is_factor ? "step_factor" : "step_bytes", (json_int_t)o->step,
        "warmup_iters", o->warmup_iters, "iterations",
        o->iters > 0 ? json_integer(o->iters) : json_null(), "validation",
        (int)o->check, "average", (int)o->average, "compared", (int)o->compare,
        "memory", o->plain_memory ? "malloc" : "hvd", "cold", (int)o->cold,
        "apart", (int)o->apart, "per_iter_timing", (int)o->each);
}

static json_t *json_machine(const struct run_facts *facts)
{
    char processor[256], host[256];

    machine_processor(processor, sizeof processor);
    machine_host(host, sizeof host);
    return json_pack("{s:s, s:s, s:i, s:s, s:s}", "host", host, "processor",
                     processor, "cores", machine_cores(), "hvd_version",
                     hvd_version(), "mpi_version", facts->mpi_version);
}

static json_t *json_args(const struct run_facts *facts)
{
    json_t *list = json_array();

    for (int i = 0; i < facts->argc; i++) {
        json_t *word = json_string(facts->argv[i]);

        /* JSON cannot hold a word that is not UTF-8. */
        json_array_append_new(list, word ? word : json_string("?"));
    }
    return list;
}

static json_t *json_env(void)
{
    /* OMPI_MCA_ alone would match the many variables that mpirun sets itself,
     * with its addresses. */
    static const char *const prefixes[] = {
        "HVD_",           "UCX_",           "OMPI_MCA_btl", "OMPI_MCA_coll",
        "OMPI_MCA_hwloc", "OMPI_MCA_mpi_",  "OMPI_MCA_osc", "OMPI_MCA_pml",
        "OMPI_MCA_rmaps", "OMP_NUM_THREADS"};
    json_t *object = json_object();

    for (char **variable = environ; *variable; variable++)
        for (size_t i = 0; i < sizeof prefixes / sizeof *prefixes; i++) {
            const char *equals = strchr(*variable, '=');
            char name[256];

            if (!equals ||
                strncmp(*variable, prefixes[i], strlen(prefixes[i])) != 0)
                continue;
            snprintf(name, sizeof name, "%.*s", (int)(equals - *variable),
                     *variable);
            json_object_set_new(object, name, json_string(equals + 1));
        }
    return object;
}

static json_t *json_document(const struct bench_options *options,
                             const struct run_facts *facts,
                             const struct result *results, int n)
{
    struct summary s;

    result_summarize(results, n, facts->nranks, &s);
    return json_pack(
        "{s:i, s:I, s:I, s:o, s:o, s:o, s:o, s:o, s:{s:I, s:b}, s:{s:f}, "
        "s:{s:f}, s:o}",
        "version", 1, "start_time", (json_int_t)facts->start_time, "end_time",
        (json_int_t)facts->end_time, "args", json_args(facts), "env",
        json_env(), "machine", json_machine(facts), "config",
        json_config(options, facts), "results",
        json_results(results, n, facts->nranks), "out_of_bounds", "count",
        (json_int_t)s.nwrong, "okay", s.nwrong == 0, "average_bus_bandwidth",
        "bandwidth", s.average_busbw, "peak_bus_bandwidth", "bandwidth",
        s.peak_busbw, "mpi_over_hvd",
        options->compare
            ? json_pack("{s:f, s:f}", "out_of_place", s.ratio[OUT_OF_PLACE],
                        "in_place", s.ratio[IN_PLACE])
            : json_null());
}

int json_print(FILE *out, const struct bench_options *options,
               const struct run_facts *facts, const struct result *results,
               int n)
{
    json_t *root = json_document(options, facts, results, n);

    if (!root)
        return -1;
    json_dumpf(root, out, JSON_INDENT(2)); /* out remembers errors */
    fputc('\n', out);
    json_decref(root);
    return 0;
}

/* --------------------------------------------------------------------- file */

enum { FLAGS = DISK__DIRECT | DISK__SYNC | DISK__SWEEP };

static int report_path(const char *path, const char *why, char *error,
                       size_t size)
{
    snprintf(error, size, "--json %s: cannot be written: %s", path, why);
    return -1;
}

int json_check(const char *path, char *error, size_t size)
{
    int status = disk__output_check(path, FLAGS);

    return status < 0 ? report_path(path, disk__text(status), error, size) : 0;
}

int json_write(const char *path, const struct bench_options *options,
               const struct run_facts *facts, const struct result *results,
               int n, char *error, size_t size)
{
    json_t *root = json_document(options, facts, results, n);
    char *text = root ? json_dumps(root, JSON_INDENT(2)) : NULL;
    size_t length = text ? strlen(text) : 0;
    int status;

    json_decref(root);
    if (!text)
        return report_path(path, "out of memory", error, size);
    text[length] = '\n'; /* replaces the NUL */
    /* Output printed so far must come first, even if the path leads to standard
     * output. */
    fflush(stdout);
    status = disk__replace(path, text, length + 1, FLAGS);
    free(text);
    return status < 0 ? report_path(path, disk__text(status), error, size) : 0;
}
