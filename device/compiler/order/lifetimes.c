/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lifetimes.c - finds what each step reads and writes, and the lifetime of the
 * memory for it. order.c calls it, before liveness.c has run.
 *
 * A storage is the memory of a value and of all values that are views of it. It
 * is needed from the step that makes the value to the last that touches one of
 * them. Variables and constants are always there, so their views have no
 * storage; a value that only passes between the parts of a step has none
 * either.
 */
#include <stdlib.h>

#include "base/error.h"
#include "compiler/order/order.h"
#include "compiler/program.h"

/* ------------------------------------------------------ accesses of steps */

static void touch_value(struct ipu__lifetimes *c, struct ipu__span *list,
                        int32_t value)
{
    if (c->e->values[value].inner)
        return;
    for (int32_t i = 0; i < list->count; i++)
        if (c->entries[list->first + i] == value)
            return;
    c->entries[list->first + list->count++] = value;
}

static void find_reads(struct ipu__lifetimes *c, int32_t i)
{
    const struct ipu_executable *e = c->e;
    const struct ipu__step *step = &e->steps[i];
    struct ipu__span *list = &c->reads[i];
    struct ipu__step_op place;
    int32_t v;

    list->first = c->nentries;
    if (step->gate >= 0)
        touch_value(c, list, step->gate);
    if (step->kind == IPU__HOST_CALL)
        touch_value(c, list, step->output);
    for (int32_t k = 0; k < ipu__nparts(step); k++) {
        const struct ipu__step_op *part = ipu__part_of(e, step, k, &place);

        for (int n = 0; n < part->op->ninputs; n++)
            touch_value(c, list, part->inputs[n]);
    }
    for (int32_t k = 0; (v = ipu__loop_read(e, step, k)) >= 0; k++)
        touch_value(c, list, v);
    c->nentries += list->count;
}

static void find_writes(struct ipu__lifetimes *c, int32_t i)
{
    const struct ipu_executable *e = c->e;
    const struct ipu__step *step = &e->steps[i];
    struct ipu__span *list = &c->writes[i];
    struct ipu__step_op place;
    int32_t v;

    list->first = c->nentries;
    for (int32_t k = 0; k < ipu__nparts(step); k++)
        touch_value(c, list, ipu__part_of(e, step, k, &place)->output);
    if (step->kind == IPU__LOOP)
        touch_value(c, list, step->output);
    for (int32_t k = 0; (v = ipu__loop_makes(e, step, k)) >= 0; k++)
        touch_value(c, list, v);
    /* The body changes variables, too. */
    for (int32_t k = 0; (v = ipu__loop_read(e, step, k)) >= 0; k++)
        if (e->values[v].shared)
            touch_value(c, list, v);
    c->nentries += list->count;
}

/* Returns the most entries that the lists of all steps can have. */
static size_t count_touched(const struct ipu_executable *e)
{
    size_t count = 1;

    for (int32_t i = 0; i < e->nsteps; i++) {
        const struct ipu__step *step = &e->steps[i];
        int32_t k = 0;

        while (ipu__loop_read(e, step, k) >= 0)
            k++;
        count += 3 + 3 * (size_t)k +
                 (size_t)ipu__nparts(step) * (IPU__MAX_INPUTS + 1);
    }
    return count;
}

/* ---------------------------------------------------------------- storages */

static bool comes_and_goes(const struct ipu__value *value)
{
    return value->kind != IPU__VARIABLE && value->kind != IPU__CONSTANT &&
           !value->inner && !value->remote && !value->bound;
}

static void find_roots(struct ipu__lifetimes *c)
{
    const struct ipu_executable *e = c->e;

    for (int32_t v = 0; v < e->nvalues; v++)
        c->root[v] = v;
    for (int32_t i = 0; i < e->nsteps; i++) {
        const struct ipu__step *step = &e->steps[i];
        struct ipu__step_op place;

        for (int32_t k = 0; k < ipu__nparts(step); k++) {
            const struct ipu__step_op *part = ipu__part_of(e, step, k, &place);

            if (part->op->alias && !e->values[part->output].inner)
                c->root[part->output] =
                    c->root[part->inputs[ipu__in_place(part->op)]];
        }
    }
    for (int32_t v = 0; v < e->nvalues; v++)
        c->storage[v] =
            comes_and_goes(&e->values[c->root[v]]) ? c->root[v] : IPU__NONE;
}

static void needed_until(struct ipu__lifetimes *c, int32_t value, int32_t step)
{
    int32_t storage = c->storage[value];

    if (storage != IPU__NONE && c->death[storage] < step)
        c->death[storage] = step;
}

static void find_ends(struct ipu__lifetimes *c)
{
    const struct ipu_executable *e = c->e;

    for (int32_t i = 0; i < e->nstreams; i++) {
        if (e->streams[i].kind != IPU__STREAM_OUT)
            continue;
        needed_until(c, e->streams[i].value, e->nsteps);
        if (e->streams[i].gate >= 0)
            needed_until(c, e->streams[i].gate, e->nsteps);
    }
    for (int32_t i = 0; i < e->nfeeds; i++)
        for (int32_t k = 0; e->feeds[i].outfeed && k < e->feeds[i].count; k++)
            needed_until(c, e->feeds[i].values[k], e->nsteps);
}

/* Finds the lifetime of each storage, and the bytes alive between two steps. */
static void find_storages(struct ipu__lifetimes *c)
{
    const struct ipu_executable *e = c->e;

    for (int32_t v = 0; v < e->nvalues; v++)
        c->birth[v] = c->death[v] = -1;
    for (int32_t i = 0; i < e->nsteps; i++) {
        for (int32_t k = 0; k < c->reads[i].count; k++)
            needed_until(c, c->entries[c->reads[i].first + k], i);
        for (int32_t k = 0; k < c->writes[i].count; k++) {
            int32_t v = c->entries[c->writes[i].first + k];

            needed_until(c, v, i);
            if (c->storage[v] == v)
                c->birth[v] = i;
        }
    }
    find_ends(c);
    for (int32_t v = 0; v < e->nvalues; v++) {
        if (c->storage[v] != v || c->death[v] <= c->birth[v])
            continue;
        c->alive[c->birth[v] + 1] += (int64_t)e->values[v].bytes;
        if (c->death[v] < e->nsteps)
            c->alive[c->death[v] + 1] -= (int64_t)e->values[v].bytes;
    }
    for (int32_t i = 1; i <= e->nsteps; i++)
        c->alive[i] += c->alive[i - 1];
}

int64_t ipu__bytes_during(const struct ipu__lifetimes *c, int32_t i)
{
    int64_t bytes = c->alive[i];

    for (int32_t k = 0; k < c->writes[i].count; k++) {
        int32_t v = c->entries[c->writes[i].first + k];

        if (c->storage[v] == v && c->birth[v] == i)
            bytes += (int64_t)c->e->values[v].bytes;
    }
    return bytes;
}

int ipu__lifetimes_init(struct ipu__lifetimes *c,
                        const struct ipu_executable *e)
{
    size_t nvalues = (size_t)e->nvalues + 1, nsteps = (size_t)e->nsteps + 1;
    size_t nentries = count_touched(e);

    *c = (struct ipu__lifetimes){
        .e = e,
        .root = calloc(nvalues, sizeof *c->root),
        .storage = calloc(nvalues, sizeof *c->storage),
        .birth = calloc(nvalues, sizeof *c->birth),
        .death = calloc(nvalues, sizeof *c->death),
        .alive = calloc(nsteps + 1, sizeof *c->alive),
        .reads = calloc(nsteps, sizeof *c->reads),
        .writes = calloc(nsteps, sizeof *c->writes),
        .entries = calloc(nentries, sizeof *c->entries),
    };
    if (!c->root || !c->storage || !c->birth || !c->death || !c->alive ||
        !c->reads || !c->writes || !c->entries)
        return ipu__fail_memory(nentries * sizeof *c->entries);
    for (int32_t i = 0; i < e->nsteps; i++) {
        find_reads(c, i);
        find_writes(c, i);
    }
    find_roots(c);
    find_storages(c);
    return IPU_OK;
}

void ipu__lifetimes_fini(struct ipu__lifetimes *c)
{
    free(c->root);
    free(c->storage);
    free(c->birth);
    free(c->death);
    free(c->alive);
    free(c->reads);
    free(c->writes);
    free(c->entries);
}
