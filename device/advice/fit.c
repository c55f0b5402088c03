/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fit.c - refuses a program that does not fit: the text names the tile that is
 * too full, the step, the excess, the contents of the tile, and the remedies.
 *
 * The figures of a remedy are those of a program that was compiled with it
 * (remedy.h): bytes of its fullest tile, time of a run or, with accumulation,
 * of the runs up to an update. A remedy with "still too many" is not enough by
 * itself. A remedy that is impossible for the program is named with the reason.
 */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "advice/remedy.h"
#include "base/error.h"

enum { LARGEST = 10 };

struct place {
    const struct ipu_executable *e;
    int32_t tile, step;
    int64_t room; /* bytes of a tile */
    /* Bytes on it */
    int64_t total, code, always, rest, temporary;
};

struct line {
    char text[IPU__EXPLANATION_MAX];
    size_t used;
};

__attribute__((format(printf, 2, 3))) static void add_text(struct line *line,
                                                           const char *format,
                                                           ...)
{
    va_list arguments;
    int n;

    va_start(arguments, format);
    n = vsnprintf(line->text + line->used, sizeof line->text - line->used,
                  format, arguments);
    va_end(arguments);
    if (n > 0)
        line->used += (size_t)n;
    if (line->used >= sizeof line->text)
        line->used = sizeof line->text - 1;
}

static bool is_alive(const struct place *p, const struct ipu__block *block)
{
    return block->birth <= p->step && p->step <= block->death;
}

/* --------------------------------------------------- contents of the tile */

struct tenant {
    int32_t block;
    int64_t bytes;
};

/* Sorts the largest first, then in the order of the program. */
static int by_bytes(const void *first, const void *second)
{
    const struct tenant *a = first, *b = second;

    if (a->bytes != b->bytes)
        return a->bytes < b->bytes ? 1 : -1;
    return a->block < b->block ? -1 : a->block > b->block;
}

/* Returns the first value of a block: the others are computed in its place. */
static const struct ipu__value *value_in(const struct ipu_executable *e,
                                         int32_t block)
{
    int32_t v = 0;

    while (e->values[v].block != block)
        v++;
    return &e->values[v];
}

/* Returns a path without its folders, which are too long for ten lines. */
static const char *file_name(const char *path)
{
    const char *slash = strrchr(path, '/');

    return slash ? slash + 1 : path;
}

static void add_largest(struct line *line, const struct place *p)
{
    const struct ipu_executable *e = p->e;
    struct tenant *tenants = calloc((size_t)e->nblocks + 1, sizeof *tenants);
    int32_t n = 0;

    if (!tenants)
        return; /* the message does without */
    for (int32_t b = 0; b < e->nblocks; b++)
        if (is_alive(p, &e->blocks[b]) &&
            ipu__bytes_on_tile(e, &e->blocks[b], p->tile) > 0)
            tenants[n++] = (struct tenant){
                b, ipu__bytes_on_tile(e, &e->blocks[b], p->tile)};
    qsort(tenants, (size_t)n, sizeof *tenants, by_bytes);
    if (n > 0)
        add_text(line, "; largest there:");
    for (int32_t i = 0; i < n && i < LARGEST; i++) {
        const struct ipu__value *v = value_in(e, tenants[i].block);

        add_text(line, "%s '%.40s' %s %" PRId64, i ? "," : "", v->name,
                 ipu__shape_print(&v->shape).text, tenants[i].bytes);
        if (v->file)
            add_text(line, " (%s:%d)", file_name(v->file), (int)v->line);
    }
    free(tenants);
}

/* ---------------------------------------------------------------- remedies */

struct remedies {
    struct line *line;
    struct ipu__trial trial;
    ipu_remedy plain;   /* the program without any */
    bool hopeless;      /* the current remedy */
    struct line cannot; /* an impossible remedy, with the reason */
};

/* Describes a remedy in words. */
static void describe_remedy(const struct remedies *r, ipu_remedy_kind kind,
                            int parts, char *text, size_t size)
{
    switch (kind) {
    case IPU_REMEDY_HALF: snprintf(text, size, "float16 throughout"); break;
    case IPU_REMEDY_ACCUMULATE:
        snprintf(text, size, "1/%d of the batch%s", parts,
                 ipu__has_gradients(r->trial.graph) ? ", gradients accumulated"
                                                    : " at a time");
        break;
    case IPU_REMEDY_RECOMPUTE:
        snprintf(text, size, "recomputing results that only later steps need");
        break;
    case IPU_REMEDY_OFFLOAD:
        snprintf(text, size, "offloading what only the update uses");
        break;
    case IPU_REMEDY_OFFLOAD_ALL:
        snprintf(text, size, "offloading weights and accumulators, too");
        break;
    case IPU_REMEDY_SHARD:
        snprintf(text, size, "sharding over %d chips", parts);
        break;
    case IPU_REMEDY_PIPELINE:
        snprintf(text, size, "a pipeline of %d stages, %d mini-batches", parts,
                 2 * parts);
        break;
    default:
        snprintf(text, size, "the compiler's placement, not the program's");
        break;
    }
}

/* Returns the time of the transfers to and from streaming memory. */
static double streaming_seconds(const ipu_remedy *remedy)
{
    return remedy->cycles > 0
               ? remedy->seconds * (double)remedy->streaming_cycles /
                     (double)remedy->cycles
               : 0;
}

static void add_remedy(struct remedies *r, const ipu_remedy *remedy)
{
    char what[80];

    describe_remedy(r, remedy->kind, remedy->parts, what, sizeof what);
    add_text(r->line, "; %s: %" PRId64 " bytes%s%s, ", what, remedy->tile_bytes,
             r->hopeless ? " at least" : "",
             remedy->fits ? "" : " (still too many)");
    if (remedy->runs > 1)
        add_text(r->line, "%d runs, of %.4g ms in all", (int)remedy->runs,
                 1e3 * remedy->seconds);
    else
        add_text(r->line, "%.4g ms", 1e3 * remedy->seconds);
    add_text(r->line, " instead of %.4g", 1e3 * r->plain.seconds);
    if (remedy->remote_bytes > 0)
        add_text(r->line,
                 ", with %" PRId64
                 " bytes beside the chip, which takes %.4g ms of "
                 "that",
                 remedy->remote_bytes, 1e3 * streaming_seconds(remedy));
}

static void add_reason(struct remedies *r, ipu_remedy_kind kind)
{
    add_text(&r->cannot, "%s %s: %.120s", r->cannot.used ? ";" : "",
             ipu_remedy_name(kind), ipu_last_error());
}

/* Adds all remedies. Each compiles the program anew, which may take long, so
 * the progress function may stop it. */
static int add_remedies(struct line *line, const struct ipu_executable *e,
                        const ipu_graph *graph,
                        const ipu_compile_options *options,
                        struct ipu__plans *plans)
{
    struct ipu__progress progress = {.fn = options->progress,
                                     .context = options->progress_context};
    struct remedies r = {.line = line,
                         .trial = {.graph = graph,
                                   .options = options,
                                   .automatic = IPU_OFFLOAD_OFF,
                                   .plans = plans},
                         .plain = {.size = sizeof r.plain}};

    r.trial.hopeless = &r.hopeless;
    IPU_TRY(ipu__remedy_of(e, graph, &r.plain));
    r.trial.plain_bytes = r.plain.tile_bytes;
    add_text(line, ". " IPU_FULL_REMEDIES);
    for (int i = 0; i < IPU_NUM_REMEDIES; i++) {
        ipu_remedy remedy = {.size = sizeof remedy};
        int status;

        IPU_TRY(ipu__progress(&progress, "remedies", i, IPU_NUM_REMEDIES));
        status = ipu__try_remedy(&r.trial, i, 0, &remedy);
        if (status == IPU_ERR_STATE)
            add_reason(&r, i);
        else if (status < 0)
            return status;
        else
            add_remedy(&r, &remedy);
    }
    if (r.cannot.used > 0)
        add_text(line, ". " IPU_FULL_REASONS ";%s", r.cannot.text);
    return IPU_OK;
}

/* ------------------------------------------------------------ the judgement */

static struct place worst_place(const struct ipu_executable *e)
{
    const ipu_memory_info *info = &e->info;
    struct place p = {.e = e,
                      .tile = info->fullest_tile,
                      .step = info->fullest_step,
                      .room = e->target.bytes_per_tile,
                      .total = info->fullest_tile_bytes,
                      .code = e->code_bytes};

    p.always = e->tiles[p.tile].always_bytes;
    p.temporary = e->nsteps > 0 ? e->steps[p.step].cycles.temporary_bytes : 0;
    p.rest = p.total - p.code - p.always - p.temporary;
    return p;
}

/* Describes the excess on the fullest tile and its contents. */
static void describe_worst(struct line *line, const struct place *p)
{
    const struct ipu_executable *e = p->e;

    add_text(line,
             "the program does not fit on '%s': tile %d would hold %" PRId64
             " bytes, %" PRId64 " more than it has, ",
             e->target.name, (int)p->tile, p->total, p->total - p->room);
    if (e->nsteps == 0) {
        add_text(line, "of variables and streams");
        return;
    }
    add_text(line,
             "at step %d, %s '%.60s': code %" PRId64 ", variables %" PRId64
             ", other tensors %" PRId64 ", temporary %" PRId64,
             (int)p->step, ipu__step_name(&e->steps[p->step]),
             e->values[e->steps[p->step].output].name, p->code, p->always,
             p->rest, p->temporary);
    add_largest(line, p);
}

int ipu__check_fit(const struct ipu_executable *e, const ipu_graph *graph,
                   const ipu_compile_options *options, struct ipu__plans *plans)
{
    struct place p = worst_place(e);
    struct line line = {.used = 0};

    if (ipu_executable_shards(e) > 1) {
        int status = ipu__check_shards(e);

        if (status != IPU_ERR_FULL)
            return status;
        add_text(&line, "%s", ipu_last_error());
    } else {
        if (p.total <= p.room)
            return IPU_OK;
        describe_worst(&line, &p);
    }
    if (!options->brief && e->nsteps > 0)
        IPU_TRY(add_remedies(&line, e, graph, options, plans));
    return ipu__fail_explained(IPU_ERR_FULL, line.text);
}
