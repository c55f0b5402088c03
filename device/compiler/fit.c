/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fit.c - does the program fit? If not: which tile, at which step, by how
 * much, what lies there, and what would help.
 *
 * What is said of recomputation, accumulation, float16 and offloading is what
 * a program has that was compiled with them (remedy.h): bytes of its fullest
 * tile, time of a run or, with accumulation, of the runs up to an update. Of
 * sharding and placement, and of the others where a program is not one that
 * could be changed so, it is what they would make of the worst tile at the
 * worst step: another step may then be the worst. So a remedy that is said to
 * fit may need another beside it, and one that is not will not do alone.
 */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "compiler/program.h"
#include "compiler/progress.h"
#include "compiler/remedy.h"
#include "graph/error.h"

enum { LARGEST = 10 };

struct place {
    const struct ipu_executable *e;
    const ipu_graph *graph;
    const ipu_compile_options *options;
    int32_t tile, step;
    int64_t room; /* bytes of a tile */
    /* Bytes on it */
    int64_t total, code, always, rest, temporary;
};

struct line {
    char text[IPU__EXPLANATION_MAX];
    size_t used;
};

__attribute__((format(printf, 2, 3))) static void add(struct line *line,
                                                      const char *format, ...)
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

static double ms(const struct place *p, int64_t cycles)
{
    return 1e3 * ipu_model_seconds(&p->e->target, cycles);
}

static bool alive(const struct place *p, const struct ipu__block *block)
{
    return block->birth <= p->step && p->step <= block->death;
}

/* ------------------------------------------------------- what lies there */

struct tenant {
    int32_t block;
    int64_t bytes;
};

/* Largest first, then in the order of the program. */
static int by_bytes(const void *first, const void *second)
{
    const struct tenant *a = first, *b = second;

    if (a->bytes != b->bytes)
        return a->bytes < b->bytes ? 1 : -1;
    return a->block < b->block ? -1 : a->block > b->block;
}

/* The first value of a block: the others are computed in its place. */
static const struct ipu__value *value_in(const struct ipu_executable *e,
                                         int32_t block)
{
    int32_t v = 0;

    while (e->values[v].block != block)
        v++;
    return &e->values[v];
}

/* Without its folders, of which ten times would be too much. */
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
        return; /* the message is shorter */
    for (int32_t b = 0; b < e->nblocks; b++)
        if (alive(p, &e->blocks[b]) &&
            ipu__bytes_on_tile(e, &e->blocks[b], p->tile) > 0)
            tenants[n++] = (struct tenant){
                b, ipu__bytes_on_tile(e, &e->blocks[b], p->tile)};
    qsort(tenants, (size_t)n, sizeof *tenants, by_bytes);
    if (n > 0)
        add(line, "; largest there:");
    for (int32_t i = 0; i < n && i < LARGEST; i++) {
        const struct ipu__value *v = value_in(e, tenants[i].block);
        char shape[IPU__SHAPE_TEXT];

        add(line, "%s '%.40s' %s %" PRId64, i ? "," : "", v->name,
            ipu__shape_print(&v->shape, shape), tenants[i].bytes);
        if (v->file)
            add(line, " (%s:%d)", file_name(v->file), (int)v->line);
    }
    free(tenants);
}

/* ---------------------------------------------------------------- remedies */

static void add_remedy(struct line *line, const struct place *p, int64_t bytes,
                       const char *what, const char *time)
{
    add(line, "; %s: %" PRId64 " bytes%s, %s", what, bytes,
        bytes <= p->room ? "" : " (still too many)", time);
}

/* Of a run as it is, in all. */
static double ms_now(const struct place *p)
{
    ipu_program_cycles cycles = {.size = sizeof cycles};

    return ipu_executable_cycles(p->e, &cycles) < 0 ? 0 : 1e3 * cycles.seconds;
}

static void add_tried(struct line *line, const struct place *p,
                      const struct ipu__remedy *remedy, const char *what)
{
    char time[64];

    snprintf(time, sizeof time, "%.4g ms instead of %.4g", remedy->ms,
             ms_now(p));
    add_remedy(line, p, remedy->bytes, what, time);
}

/* Everything but code divided by so many; 0: not even by 64. */
static int32_t parts_that_fit(const struct place *p, int64_t fixed)
{
    for (int32_t n = 2; n <= IPU_MAX_IPUS; n *= 2)
        if (fixed + (p->total - fixed) / n <= p->room)
            return n;
    return 0;
}

static void add_half(struct line *line, const struct place *p)
{
    struct ipu__remedy remedy;
    char time[64];

    if (ipu__try_half(p->graph, p->options, &remedy) >= 0) {
        add_tried(line, p, &remedy, "float16 throughout");
        return;
    }
    snprintf(time, sizeof time, "%.3g ms instead of %.3g",
             ms(p, ipu__cycles_with(p->e, 2)),
             ms(p, ipu__cycles_with(p->e, 0)));
    add_remedy(line, p, p->code + (p->total - p->code) / 2,
               "float16 throughout", time);
}

/* The first of 2, 4, ... parts that fits, or the most there can be; from half
 * of what the estimate says on, since each is a compilation. */
static bool add_tried_accumulation(struct line *line, const struct place *p)
{
    int32_t estimate = parts_that_fit(p, p->code + p->always);
    struct ipu__remedy remedy = {0}, tried;
    int32_t parts = 0;
    char what[80], time[64];

    for (int32_t n = estimate > 4 ? estimate / 2 : 2; n <= IPU_MAX_IPUS;
         n *= 2) {
        if (ipu__try_accumulation(p->graph, p->options, n, &tried) < 0)
            break;
        parts = n;
        remedy = tried;
        if (remedy.bytes <= p->room)
            break;
    }
    if (parts == 0)
        return false;
    snprintf(what, sizeof what, "1/%d of the batch, gradients accumulated",
             (int)parts);
    snprintf(time, sizeof time, "%d runs, of %.4g ms in all instead of %.4g",
             (int)parts, remedy.ms, ms_now(p));
    add_remedy(line, p, remedy.bytes, what, time);
    return true;
}

static void add_accumulation(struct line *line, const struct place *p)
{
    int64_t fixed = p->code + p->always;
    int32_t n = parts_that_fit(p, fixed);
    char what[80], time[64];

    if (add_tried_accumulation(line, p))
        return;
    if (n == 0 || p->rest + p->temporary == 0)
        return;
    snprintf(what, sizeof what, "1/%d of the batch, gradients accumulated",
             (int)n);
    snprintf(time, sizeof time, "%d runs, of at least %.3g ms in all", (int)n,
             ms(p, ipu__cycles_with(p->e, 0)));
    add_remedy(line, p, fixed + (p->total - fixed) / n, what, time);
}

static void add_sharding(struct line *line, const struct place *p)
{
    int32_t n = parts_that_fit(p, p->code);
    double now = ms(p, ipu__cycles_with(p->e, 0));
    char what[48], time[64];

    if (n == 0)
        return;
    snprintf(what, sizeof what, "sharding over %d chips", (int)n);
    snprintf(time, sizeof time, "%.3g to %.3g ms and what passes between them",
             now / n, now);
    add_remedy(line, p, p->code + (p->total - p->code) / n, what, time);
}

static bool used_by_step(const struct place *p, int32_t block)
{
    const struct ipu_executable *e = p->e;
    const struct ipu__step *step = &e->steps[p->step];

    for (int32_t v = 0; v < e->nvalues; v++)
        if (e->values[v].block == block &&
            (ipu__step_reads(e, step, v) || ipu__step_makes(e, step, v)))
            return true;
    return false;
}

/* Cycles of the steps that make what is in a block. */
static int64_t cycles_to_make(const struct ipu_executable *e, int32_t block)
{
    int64_t cycles = 0;

    for (int32_t i = 0; i < e->nsteps; i++)
        for (int32_t v = 0; v < e->nvalues; v++)
            if (e->values[v].block == block &&
                ipu__step_makes(e, &e->steps[i], v)) {
                cycles += e->steps[i].cycles.total;
                break;
            }
    return cycles;
}

/* Results that wait for a later step. */
static void add_recompute(struct line *line, const struct place *p)
{
    const struct ipu_executable *e = p->e;
    int64_t bytes = 0, cycles = 0;
    struct ipu__remedy remedy;
    char time[64];

    if (ipu__try_recompute(p->graph, p->options, &remedy) >= 0) {
        add_tried(line, p, &remedy,
                  "recomputing results that only later steps need");
        return;
    }
    for (int32_t b = 0; b < e->nblocks; b++) {
        const struct ipu__block *block = &e->blocks[b];

        if (!alive(p, block) || block->birth < 0 || block->death == e->nsteps ||
            used_by_step(p, b))
            continue;
        bytes += ipu__bytes_on_tile(e, block, p->tile);
        cycles += cycles_to_make(e, b);
    }
    if (bytes == 0)
        return;
    snprintf(time, sizeof time, "%.3g ms more", ms(p, cycles));
    add_remedy(line, p, p->total - bytes,
               "recomputing results that only later steps need", time);
}

/* Variables that the step does not use, in the DRAM beside the chip. */
static void add_offload(struct line *line, const struct place *p)
{
    const struct ipu_executable *e = p->e;
    double speed = e->target.streaming_bytes_per_second;
    int64_t here = 0, all = 0;
    struct ipu__remedy remedy;
    char time[64];

    if (speed > 0 && ipu__try_offload(p->graph, p->options, &remedy) >= 0) {
        add_tried(line, p, &remedy, "offloading what only the update uses");
        return;
    }
    for (int32_t b = 0; b < e->nblocks; b++)
        if (e->blocks[b].always && !used_by_step(p, b)) {
            here += ipu__bytes_on_tile(e, &e->blocks[b], p->tile);
            all += (int64_t)e->blocks[b].bytes;
        }
    if (here == 0 || !(speed > 0))
        return;
    snprintf(time, sizeof time, "%.3g ms more", 2e3 * (double)all / speed);
    add_remedy(line, p, p->total - here,
               "offloading variables that this step does not use", time);
}

static void add_placement(struct line *line, const struct place *p)
{
    const struct ipu_executable *e = p->e;
    int64_t live = 0, even;

    for (int32_t b = 0; b < e->nblocks; b++)
        if (alive(p, &e->blocks[b]))
            live += (int64_t)e->blocks[b].bytes;
    even = p->code + p->temporary + live / e->target.tiles;
    if (even < p->total && even <= p->room)
        add_remedy(line, p, even, "an even placement of what is alive",
                   "as fast");
}

/* ------------------------------------------------------------- the judgement
 */

static struct place worst(const struct ipu_executable *e)
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

/* Each compiles the program anew, which may be long: somebody may stop it. */
static int add_remedies(struct line *line, const struct place *p)
{
    static void (*const remedies[])(struct line *, const struct place *) = {
        add_half,    add_accumulation, add_recompute,
        add_offload, add_sharding,     add_placement};
    enum { REMEDIES = sizeof remedies / sizeof *remedies };

    add(line, ". What would change that");
    for (int i = 0; i < REMEDIES; i++) {
        IPU_TRY(ipu__progress(p->e->progress, "remedies", i, REMEDIES));
        remedies[i](line, p);
    }
    return IPU_OK;
}

int ipu__check_fit(const struct ipu_executable *e, const ipu_graph *graph,
                   const ipu_compile_options *options)
{
    struct place p = worst(e);
    struct line line = {.used = 0};

    if (p.total <= p.room)
        return IPU_OK;
    p.graph = graph;
    p.options = options;
    add(&line,
        "the program does not fit on '%s': tile %d would hold %" PRId64
        " bytes, %" PRId64 " more than it has, ",
        e->target.name, (int)p.tile, p.total, p.total - p.room);
    if (e->nsteps == 0) {
        add(&line, "of variables and streams");
        return ipu__fail_explained(IPU_ERR_FULL, line.text);
    }
    add(&line,
        "at step %d, %s '%.60s': code %" PRId64 ", variables %" PRId64
        ", other tensors %" PRId64 ", temporary %" PRId64,
        (int)p.step, ipu__step_name(&e->steps[p.step]),
        e->values[e->steps[p.step].output].name, p.code, p.always, p.rest,
        p.temporary);
    add_largest(&line, &p);
    IPU_TRY(add_remedies(&line, &p));
    return ipu__fail_explained(IPU_ERR_FULL, line.text);
}
