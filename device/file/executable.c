/* SPDX-License-Identifier: Apache-2.0 */
/*
 * executable.c - a compiled program in a file.
 *
 *     target     struct, name
 *     program    struct
 *     estimates  texts: why cycles are only an estimate
 *     values     struct, name, file (or none); of constants, the elements
 *     blocks     struct
 *     steps      struct, estimate (-1: none); of those that compute, the op's
 *                name and attributes; of fused ones, whether the first part is
 *                a head, and what they say of their parts
 *     parts      struct, the op's name and attributes
 *     streams    struct, name
 *     tiles      struct
 *
 * each after how many there are. What follows from the rest is not kept:
 * sizes of values, scratch. verify.c looks at the whole before anyone uses it.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "compiler/program.h"
#include "file/container.h"
#include "file/members.h"
#include "file/shared.h"
#include "file/verify.h"
#include "graph/error.h"

enum {
    LEAST_VALUE = IPU__LEAST_STRUCT + 2 * IPU__LEAST_TEXT,
    LEAST_STEP = IPU__LEAST_STRUCT + 4,
    LEAST_PART = 2 * IPU__LEAST_STRUCT + IPU__LEAST_TEXT,
    LEAST_STREAM = IPU__LEAST_STRUCT + IPU__LEAST_TEXT
};

/* ------------------------------------------------------------------ writing */

static void put_head(struct ipu__writer *w, const ipu_executable *e,
                     struct ipu__texts *estimates)
{
    ipu__put_struct(w, &ipu__target_layout, &e->target);
    ipu__put_text(w, e->target.name);
    ipu__put_struct(w, &ipu__executable_layout, e);
    for (int32_t i = 0; i < e->nsteps; i++)
        if (ipu__text_number(estimates, e->steps[i].cycles.estimate) < -1)
            w->failed = true;
    ipu__put_texts(w, estimates);
}

static void put_values(struct ipu__writer *w, const ipu_executable *e)
{
    ipu__put_int(w, e->nvalues);
    for (int32_t i = 0; i < e->nvalues; i++) {
        const struct ipu__value *v = &e->values[i];

        ipu__put_struct(w, &ipu__value_layout, v);
        ipu__put_text(w, v->name);
        ipu__put_text(w, v->file);
        if (v->kind == IPU__CONSTANT)
            ipu__put_block(w, v->data, v->bytes);
    }
    ipu__put_int(w, e->nblocks);
    for (int32_t i = 0; i < e->nblocks; i++)
        ipu__put_struct(w, &ipu__block_layout, &e->blocks[i]);
}

static int put_steps(struct ipu__writer *w, const ipu_executable *e,
                     struct ipu__texts *estimates)
{
    ipu__put_int(w, e->nsteps);
    for (int32_t i = 0; i < e->nsteps; i++) {
        const struct ipu__step *s = &e->steps[i];

        if (s->kind != IPU__COMPUTE && s->kind != IPU__HOST_CALL &&
            s->kind != IPU__FUSED)
            return ipu__fail(IPU_ERR_STATE,
                             "save: step %d, %s, is of a kind that files do "
                             "not hold: compile the graph again instead",
                             (int)i, ipu__step_name(s));
        ipu__put_struct(w, &ipu__step_layout, s);
        ipu__put_int(w, ipu__text_number(estimates, s->cycles.estimate));
        if (s->kind == IPU__FUSED) {
            ipu__put_int(w, s->head != NULL);
            ipu__put_text(w, s->text);
        }
        if (s->kind != IPU__COMPUTE)
            continue;
        IPU_TRY(ipu__put_op(w, s->op));
        ipu__put_struct(w, &ipu__attributes_layout, &s->attributes);
    }
    ipu__put_int(w, e->nparts);
    for (int32_t i = 0; i < e->nparts; i++) {
        ipu__put_struct(w, &ipu__part_layout, &e->parts[i]);
        IPU_TRY(ipu__put_op(w, e->parts[i].op));
        ipu__put_struct(w, &ipu__attributes_layout, &e->parts[i].attributes);
    }
    return IPU_OK;
}

static void put_rest(struct ipu__writer *w, const ipu_executable *e)
{
    ipu__put_int(w, e->nstreams);
    for (int32_t i = 0; i < e->nstreams; i++) {
        ipu__put_struct(w, &ipu__stream_layout, &e->streams[i]);
        ipu__put_text(w, e->streams[i].name);
    }
    ipu__put_int(w, e->target.tiles);
    for (int32_t i = 0; i < e->target.tiles; i++)
        ipu__put_struct(w, &ipu__tile_layout, &e->tiles[i]);
}

static bool has_rows(const ipu_executable *e)
{
    for (int32_t i = 0; i < e->nsteps; i++)
        if (e->steps[i].op == &ipu__row_load ||
            e->steps[i].op == &ipu__row_store)
            return true;
    return false;
}

int ipu_executable_save(const ipu_executable *executable, const char *path)
{
    struct ipu__writer w = {0};
    struct ipu__texts estimates = {0};
    int status;

    if (!executable || !path)
        return ipu__fail(IPU_ERR_ARGUMENT, "save: %s is NULL",
                         executable ? "the file's name" : "the executable");
    if (executable->nloops || executable->nfeeds || has_rows(executable))
        return ipu__fail(IPU_ERR_STATE,
                         "save: a program with %s cannot be saved: compile it "
                         "again",
                         executable->nloops   ? "loops"
                         : executable->nfeeds ? "queues"
                                              : "remote buffers");
    ipu__file_begin(&w);
    put_head(&w, executable, &estimates);
    put_values(&w, executable);
    status = put_steps(&w, executable, &estimates);
    put_rest(&w, executable);
    if (status == IPU_OK)
        status = ipu__file_write(path, IPU__FILE_EXECUTABLE,
                                 executable->target.name, &w);
    free(estimates.texts);
    ipu__writer_fini(&w);
    return status;
}

/* ------------------------------------------------------------------ reading */

/* count things, each of size bytes in memory and least in the file. */
static int get_array(struct ipu__reader *r, const char *what, size_t least,
                     size_t size, void *array, int32_t *count)
{
    void *made;

    IPU_TRY(ipu__get_count(r, what, least, count));
    made = calloc((size_t)*count + 1, size);
    memcpy(array, &made, sizeof made);
    return made ? IPU_OK : ipu__fail_memory((size_t)*count * size);
}

static int get_head(struct ipu__reader *r, ipu_executable *e)
{
    char *name;
    bool fits;

    e->target.size = sizeof e->target;
    e->info.size = sizeof e->info;
    IPU_TRY(ipu__get_struct(r, &ipu__target_layout, &e->target));
    IPU_TRY(ipu__get_text(r, "the target's name", false, &name));
    fits = strlen(name) < sizeof e->target.name;
    snprintf(e->target.name, sizeof e->target.name, "%s", name);
    free(name);
    if (!fits)
        return ipu__damaged(r, "the target's name is too long");
    if (ipu_target_check(&e->target) < 0)
        return ipu__damaged(r, "%s", ipu_last_error());
    IPU_TRY(ipu__get_struct(r, &ipu__executable_layout, e));
    return ipu__get_texts(r, "estimates", &e->texts, &e->ntexts);
}

static int get_value(struct ipu__reader *r, struct ipu__value *v)
{
    IPU_TRY(ipu__get_struct(r, &ipu__value_layout, v));
    IPU_TRY(ipu__check_shape(r, "a value", &v->shape));
    v->bytes = ipu__shape_bytes(&v->shape);
    IPU_TRY(ipu__get_text(r, "a value's name", false, &v->name));
    IPU_TRY(ipu__get_text(r, "a value's file", true, &v->file));
    if (v->kind == IPU__CONSTANT)
        IPU_TRY(ipu__get_block(r, "a constant", v->bytes, &v->data));
    return IPU_OK;
}

/* Counted one by one: what is freed on failure is what was read. */
static int get_values(struct ipu__reader *r, ipu_executable *e)
{
    int32_t count;

    IPU_TRY(get_array(r, "values", LEAST_VALUE, sizeof *e->values, &e->values,
                      &count));
    while (e->nvalues < count)
        IPU_TRY(get_value(r, &e->values[e->nvalues++]));
    IPU_TRY(get_array(r, "blocks", IPU__LEAST_STRUCT, sizeof *e->blocks,
                      &e->blocks, &count));
    while (e->nblocks < count)
        IPU_TRY(
            ipu__get_struct(r, &ipu__block_layout, &e->blocks[e->nblocks++]));
    return IPU_OK;
}

/* head: any op until the parts are known. */
static int get_fused(struct ipu__reader *r, struct ipu__step *s)
{
    int32_t has_head;

    IPU_TRY(ipu__get_index(r, "a head", 0, 1, &has_head));
    s->op = &ipu__fused_step;
    s->head = has_head ? s->op : NULL;
    return ipu__get_text(r, "the parts of a step", false, &s->text);
}

static int get_step(struct ipu__reader *r, const ipu_executable *e,
                    struct ipu__step *s)
{
    int32_t estimate;

    s->cycles.size = sizeof s->cycles;
    IPU_TRY(ipu__get_struct(r, &ipu__step_layout, s));
    IPU_TRY(ipu__get_index(r, "an estimate", -1, e->ntexts - 1, &estimate));
    if (estimate >= 0)
        s->cycles.estimate = e->texts[estimate];
    if (s->kind == IPU__FUSED)
        return get_fused(r, s);
    if (s->kind != IPU__COMPUTE)
        return IPU_OK;
    IPU_TRY(ipu__get_op(r, &s->op));
    return ipu__get_attributes(r, &s->attributes);
}

static int get_parts(struct ipu__reader *r, ipu_executable *e)
{
    int32_t count;

    IPU_TRY(
        get_array(r, "parts", LEAST_PART, sizeof *e->parts, &e->parts, &count));
    while (e->nparts < count) {
        struct ipu__step_op *part = &e->parts[e->nparts++];

        IPU_TRY(ipu__get_struct(r, &ipu__part_layout, part));
        IPU_TRY(ipu__get_op(r, &part->op));
        IPU_TRY(ipu__get_attributes(r, &part->attributes));
    }
    for (int32_t i = 0; i < e->nsteps; i++) {
        struct ipu__step *s = &e->steps[i];

        if (s->kind == IPU__FUSED && s->head && s->first_part >= 0 &&
            s->first_part < count)
            s->head = e->parts[s->first_part].op;
    }
    return IPU_OK;
}

static int get_steps(struct ipu__reader *r, ipu_executable *e)
{
    int32_t count;

    IPU_TRY(
        get_array(r, "steps", LEAST_STEP, sizeof *e->steps, &e->steps, &count));
    while (e->nsteps < count)
        IPU_TRY(get_step(r, e, &e->steps[e->nsteps++]));
    return get_parts(r, e);
}

static int get_rest(struct ipu__reader *r, ipu_executable *e)
{
    int32_t count;

    IPU_TRY(get_array(r, "streams", LEAST_STREAM, sizeof *e->streams,
                      &e->streams, &count));
    while (e->nstreams < count) {
        struct ipu__stream *s = &e->streams[e->nstreams++];

        IPU_TRY(ipu__get_struct(r, &ipu__stream_layout, s));
        IPU_TRY(ipu__get_text(r, "a stream's name", false, &s->name));
        if (s->kind == IPU__STREAM_CALL)
            s->fn = ipu__no_call;
    }
    IPU_TRY(get_array(r, "tiles", IPU__LEAST_STRUCT, sizeof *e->tiles,
                      &e->tiles, &count));
    if (count != e->target.tiles)
        return ipu__damaged(r, "%d tiles of a target that has %d", (int)count,
                            (int)e->target.tiles);
    for (int32_t i = 0; i < count; i++)
        IPU_TRY(ipu__get_struct(r, &ipu__tile_layout, &e->tiles[i]));
    return ipu__get_end(r);
}

static int get_executable(struct ipu__reader *r, ipu_executable *e)
{
    IPU_TRY(get_head(r, e));
    IPU_TRY(get_values(r, e));
    IPU_TRY(get_steps(r, e));
    IPU_TRY(get_rest(r, e));
    IPU_TRY(ipu__verify(r, e));
    ipu__find_scratch(e);
    return IPU_OK;
}

int ipu_executable_load(const char *path, ipu_executable **executable)
{
    struct ipu__reader reader;
    unsigned char *memory;
    ipu_executable *e;
    int status;

    if (!path || !executable)
        return ipu__fail(IPU_ERR_ARGUMENT, "load: %s is NULL",
                         path ? "the place for an executable"
                              : "the file's name");
    IPU_TRY(ipu__file_read(path, IPU__FILE_EXECUTABLE, &reader, &memory));
    e = calloc(1, sizeof *e);
    status = e ? get_executable(&reader, e) : ipu__fail_memory(sizeof *e);
    free(memory);
    if (status < 0) {
        ipu_executable_free(e);
        return status;
    }
    *executable = e;
    return IPU_OK;
}
