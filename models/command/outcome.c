/* SPDX-License-Identifier: Apache-2.0 */
/*
 * outcome.c - owns the history of a run. The JSON is built by jansson, one tree
 * for each group of fields, and written by outfile. jansson's pack takes
 * ownership of what it is given and reports a missing part once, at the end.
 */
#include "command/outcome.h"

#include "output/outfile.h"
#include "output/problem.h"

#include <hvd_strategy.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

/* -------------------------------------------------------------- the history */

int outcome_add(struct outcome *outcome, const struct outcome_part *part)
{
    size_t count = (size_t)outcome->parts + 1;
    struct outcome_part *grown =
        realloc(outcome->history, count * sizeof *grown);

    if (!grown)
        return problem_set("no memory for the history");
    grown[count - 1] = *part;
    outcome->history = grown;
    outcome->parts++;
    return 0;
}

void outcome_fini(struct outcome *outcome)
{
    free(outcome->history);
    outcome->history = NULL;
    outcome->parts = 0;
}

struct outcome_part outcome_last(const struct outcome *outcome)
{
    return outcome->parts > 0 ? outcome->history[outcome->parts - 1]
                              : (struct outcome_part){0};
}

double outcome_speed(const struct outcome *outcome)
{
    double seconds = outcome->times.training;

    return seconds > 0 ? (double)outcome->trained / seconds : 0;
}

/* Returns part as a share of the training time, 0 to 1; 0 if nothing was
 * trained. */
static double share_of(const struct times *times, double part)
{
    return times->training > 0 ? part / times->training : 0;
}

/* ---------------------------------------------------------------- as lines */

void outcome_report_head(const struct outcome *outcome, hvd_progress *progress,
                         const char *unit)
{
    const struct options *o = outcome->options;
    int size = outcome->world_size;
    char replicas[80] = "";

    if (o->replicas > 1)
        snprintf(replicas, sizeof replicas, " of %d replicas", o->replicas);
    if (o->servers.count > 0)
        snprintf(replicas, sizeof replicas, " and %d parameter server%s (%s)",
                 o->servers.count, o->servers.count > 1 ? "s" : "",
                 servers_modes[o->servers.mode]);
    hvd_progress_line(
        progress,
        "%s: %d rank%s%s, %lld %s per rank and step (%lld in all), %s, "
        "learning rate %g%s, compression %s",
        options_name(o->program), size, size > 1 ? "s" : "", replicas,
        (long long)outcome->per_step, unit, (long long)outcome->per_step * size,
        optimizer_names[o->optimizer.optimizer], o->learning_rate,
        o->serial ? ", serial" : "", hvd_compression_name(o->compression));
}

/* Reports on the modelled chips; the other lines are measured here. */
static void report_partition(const struct partition_stats *s,
                             hvd_progress *progress)
{
    hvd_progress_line(
        progress,
        "pipeline       %d modelled IPUs a rank: %.3g s, idle %.1f "
        "%%, %lld slots, %lld update%s",
        s->ipus, s->seconds, 100 * s->idle, (long long)s->slots,
        (long long)s->updates, s->updates == 1 ? "" : "s");
    hvd_progress_line(
        progress,
        "chips          fullest tile %lld of %lld bytes, most stashed "
        "on an IPU %lld bytes, %lld bytes between IPUs",
        (long long)s->tile_bytes, (long long)s->bytes_per_tile,
        (long long)s->stash_bytes, (long long)s->inter_ipu_bytes);
}

static bool has_sums(const struct outcome *outcome)
{
    const struct options *o = outcome->options;

    return o->replicas > 1 && o->partition.stages == 0;
}

static const char *algorithm_of(const struct options *o)
{
    return sums_algorithms[o->sums.algorithm < 0 ? 0 : o->sums.algorithm];
}

/* Reports on the modelled chips of the replicas. */
static void report_sums(const struct outcome *outcome, hvd_progress *progress)
{
    const struct sums_stats *s = &outcome->sums;

    hvd_progress_line(
        progress,
        "replicas       %lld cycles a step on each modelled IPU, %lld "
        "of them for %lld exchange%s of sums (%s), %lld bytes sent",
        (long long)s->cycles, (long long)s->exchange_cycles,
        (long long)s->exchanges, s->exchanges == 1 ? "" : "s",
        algorithm_of(outcome->options), (long long)s->sent_bytes);
}

void outcome_report(const struct outcome *outcome, hvd_progress *progress,
                    const char *unit, const char *speed)
{
    const struct times *t = &outcome->times;

    hvd_progress_line(progress, "speed          %.0f %s/s, %lld %s in %.2f s",
                      outcome_speed(outcome), speed,
                      (long long)outcome->trained, unit, t->training);
    hvd_progress_line(
        progress,
        "time           compute %.1f %%, waiting for communication "
        "%.1f %%, update %.1f %%, data %.1f %%",
        100 * share_of(t, t->compute), 100 * share_of(t, t->wait),
        100 * share_of(t, t->update), 100 * share_of(t, t->data));
    if (outcome->options->partition.stages > 0)
        report_partition(&outcome->partition, progress);
    if (has_sums(outcome))
        report_sums(outcome, progress);
    hvd_progress_line(progress,
                      "weights        equal on all ranks, checksum %016" PRIx64,
                      outcome->weights_hash);
}

/* ----------------------------------------------------------------- as JSON */

json_t *outcome_real_or_null(double value)
{
    return isfinite(value) ? json_real(value) : json_null();
}

static json_t *pack_settings(const struct outcome *outcome)
{
    const struct options *o = outcome->options;

    return json_pack(
        "{s:s, s:s, s:i, s:i, s:i, s:s, s:f, s:f, s:f, s:f, s:i, s:I, s:b, "
        "s:s, s:i}",
        "program", options_name(o->program), "version", HVD_VERSION_STRING,
        "world_size", outcome->world_size, "replicas", o->replicas,
        "batch_size", o->batch_size, "optimizer",
        optimizer_names[o->optimizer.optimizer], "lr", o->learning_rate,
        "weight_decay", o->optimizer.weight_decay, "clip", o->optimizer.clip,
        "ema", o->ema, "accumulate", o->optimizer.accumulate, "seed",
        (json_int_t)o->seed, "serial", o->serial, "compression",
        hvd_compression_name(o->compression), "threads", o->threads);
}

static json_t *pack_results(const struct outcome *outcome)
{
    const struct times *t = &outcome->times;
    double parts = t->compute + t->wait + t->update + t->data;
    char hash[24];

    snprintf(hash, sizeof hash, "%016" PRIx64, outcome->weights_hash);
    return json_pack(
        "{s:I, s:I, s:f, s:f, s:f, s:s, s:{s:f, s:f, s:f, s:f, s:f}}",
        "parameters", (json_int_t)outcome->parameters, "steps",
        (json_int_t)outcome->steps, "seconds", t->training, "total_seconds",
        t->total, "comm_wait_fraction", share_of(t, t->wait), "weights_hash",
        hash, "time_seconds", "compute", t->compute, "communication_wait",
        t->wait, "update", t->update, "data", t->data, "other",
        fmax(t->training - parts, 0));
}

/* Returns an object that has the member "cross_device", or none. */
static json_t *pack_sums(const struct outcome *outcome)
{
    const struct sums_stats *s = &outcome->sums;

    if (!has_sums(outcome))
        return json_object();
    return json_pack(
        "{s:{s:s, s:i, s:I, s:I, s:I, s:I}}", "cross_device", "algorithm",
        algorithm_of(outcome->options), "packs", outcome->options->sums.packs,
        "cycles", (json_int_t)s->cycles, "exchange_cycles",
        (json_int_t)s->exchange_cycles, "exchanges", (json_int_t)s->exchanges,
        "sent_bytes", (json_int_t)s->sent_bytes);
}

/* Joins all objects into one and takes them over. Returns NULL if one of them
 * is missing. */
static json_t *join_objects(int count, json_t *const *objects)
{
    json_t *root = json_object();
    int failed = !root;

    for (int i = 0; i < count; i++) {
        failed = failed || !objects[i] || json_object_update(root, objects[i]);
        json_decref(objects[i]);
    }
    if (!failed)
        return root;
    json_decref(root);
    return NULL;
}

json_t *outcome_settings(const struct outcome *outcome, json_t *settings)
{
    json_t *const objects[] = {pack_settings(outcome), settings};

    return join_objects(sizeof objects / sizeof *objects, objects);
}

int outcome_write(const struct outcome *outcome, json_t *settings,
                  json_t *results, const char *option, const char *path)
{
    json_t *const objects[] = {pack_settings(outcome), settings, results,
                               pack_sums(outcome), pack_results(outcome)};
    json_t *root = join_objects(sizeof objects / sizeof *objects, objects);
    struct outfile out;
    int status;

    if (!root)
        return problem_set("--summary: the results cannot be written as JSON "
                           "(is the %s path UTF-8?)",
                           option);
    status = outfile_open(&out, "--summary", path);
    if (status == 0) {
        json_dumpf(root, out.file, JSON_INDENT(2) | JSON_REAL_PRECISION(10));
        fputc('\n', out.file);
        status = outfile_commit(&out);
    }
    json_decref(root);
    return status;
}
