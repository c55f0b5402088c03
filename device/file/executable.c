/* SPDX-License-Identifier: Apache-2.0 */
/*
 * executable.c - writes a compiled program to a file, and reads it.
 *
 *     target     struct, name
 *     numbers    struct
 *     estimates  texts: reasons for estimated cycles, of all bodies too
 *     program
 *
 * The layout of a program, and also of the body of a loop:
 *
 *     values     struct, name, file (or none); for constants, the elements
 *     blocks     struct
 *     steps      struct, estimate (-1: none); if it computes, the op's
 *                name and attributes; if it is fused, whether the first part is
 *                a head, and the text of its parts
 *     parts      struct, the op's name and attributes
 *     streams    struct, name
 *     tiles      struct
 *     loops      iterations; values: initial, outputs; the body; a condition or
 *                none. Both consist of the bound values, the values they are
 *                bound to, numbers as above, and a program
 *     feeds      a flag for an infeed, queue, values, bytes, cycles
 *
 * Each list begins with its count. Files of version 1 have neither loops nor
 * feeds. The file leaves out data that follow from the rest: sizes of values,
 * scratch. verify.c checks the whole program before anyone uses it.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "compiler/program.h"
#include "file/container.h"
#include "file/members.h"
#include "file/modules.h"
#include "file/queues.h"
#include "file/shared.h"
#include "file/verify.h"
#include "streams/streams.h"

enum {
    LEAST_VALUE = IPU__LEAST_STRUCT + 2 * IPU__LEAST_TEXT,
    LEAST_STEP = IPU__LEAST_STRUCT + 4,
    LEAST_PART = 2 * IPU__LEAST_STRUCT + IPU__LEAST_TEXT,
    LEAST_STREAM = IPU__LEAST_STRUCT + IPU__LEAST_TEXT,
    LEAST_LOOP = 8 + 2 * 4 + 2 * 4 + IPU__LEAST_STRUCT,
    LEAST_FEED = 4 + IPU__LEAST_QUEUE
};

/* ------------------------------------------------------------------ writing */

static void find_estimates(struct ipu__writer *w, const ipu_executable *e,
                           struct ipu__texts *estimates)
{
    if (!e)
        return;
    for (int32_t i = 0; i < e->nsteps; i++)
        if (ipu__text_number(estimates, e->steps[i].cycles.estimate) < -1)
            w->failed = true;
    for (int32_t i = 0; i < e->nloops; i++) {
        find_estimates(w, e->loops[i].body.program, estimates);
        find_estimates(w, e->loops[i].condition.program, estimates);
    }
}

static void put_head(struct ipu__writer *w, const ipu_executable *e,
                     struct ipu__texts *estimates)
{
    ipu__put_struct(w, &ipu__target_layout, &e->target);
    ipu__put_text(w, e->target.name);
    ipu__put_struct(w, &ipu__executable_layout, e);
    find_estimates(w, e, estimates);
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
    ipu__put_structs(w, &ipu__block_layout, e->blocks, e->nblocks);
}

static int put_steps(struct ipu__writer *w, const ipu_executable *e,
                     struct ipu__texts *estimates)
{
    ipu__put_int(w, e->nsteps);
    for (int32_t i = 0; i < e->nsteps; i++) {
        const struct ipu__step *s = &e->steps[i];

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

static void put_ends(struct ipu__writer *w, const ipu_executable *e)
{
    ipu__put_int(w, e->nstreams);
    for (int32_t i = 0; i < e->nstreams; i++) {
        ipu__put_struct(w, &ipu__stream_layout, &e->streams[i]);
        ipu__put_text(w, e->streams[i].name);
    }
    ipu__put_structs(w, &ipu__tile_layout, e->tiles, e->target.tiles);
}

static int put_program(struct ipu__writer *w, const ipu_executable *e,
                       struct ipu__texts *estimates, int depth);

static int put_inner(struct ipu__writer *w, const struct ipu__inner *inner,
                     struct ipu__texts *estimates, int depth)
{
    ipu__put_ints(w, inner->inner, inner->nbound);
    ipu__put_ints(w, inner->outer, inner->nbound);
    ipu__put_struct(w, &ipu__executable_layout, inner->program);
    return put_program(w, inner->program, estimates, depth + 1);
}

static int put_loops(struct ipu__writer *w, const ipu_executable *e,
                     struct ipu__texts *estimates, int depth)
{
    ipu__put_int(w, e->nloops);
    for (int32_t i = 0; i < e->nloops; i++) {
        const struct ipu__loop_code *loop = &e->loops[i];

        ipu__put_loop(w, loop->count, loop->initial, loop->outputs,
                      loop->ncarried);
        IPU_TRY(put_inner(w, &loop->body, estimates, depth));
        ipu__put_int(w, loop->condition.program != NULL);
        if (loop->condition.program)
            IPU_TRY(put_inner(w, &loop->condition, estimates, depth));
    }
    return IPU_OK;
}

static void put_feeds(struct ipu__writer *w, const ipu_executable *e)
{
    ipu__put_int(w, e->nfeeds);
    for (int32_t i = 0; i < e->nfeeds; i++) {
        const struct ipu__feed_code *f = &e->feeds[i];

        ipu__put_int(w, f->infeed != NULL);
        if (f->infeed)
            ipu__put_infeed(w, f->infeed);
        else
            ipu__put_outfeed(w, f->outfeed);
        ipu__put_ints(w, f->values, f->count);
        ipu__put_long(w, f->bytes);
        ipu__put_long(w, f->cycles);
    }
}

static int put_program(struct ipu__writer *w, const ipu_executable *e,
                       struct ipu__texts *estimates, int depth)
{
    IPU_TRY(ipu__put_depth(depth));
    put_values(w, e);
    IPU_TRY(put_steps(w, e, estimates));
    put_ends(w, e);
    IPU_TRY(put_loops(w, e, estimates, depth));
    put_feeds(w, e);
    return IPU_OK;
}

int ipu_executable_save(const ipu_executable *executable, const char *path)
{
    struct ipu__writer w = {0};
    struct ipu__texts estimates = {0};
    int status;

    if (!executable || !path)
        return ipu__fail(IPU_ERR_ARGUMENT, "save: %s is NULL",
                         executable ? "the file's name" : "the executable");
    ipu__file_begin(&w);
    put_head(&w, executable, &estimates);
    status = put_program(&w, executable, &estimates, 0);
    ipu__put_program_modules(&w, executable);
    if (status == IPU_OK)
        status = ipu__file_write(path, IPU__FILE_EXECUTABLE,
                                 executable->target.name, &w);
    free(estimates.texts);
    ipu__writer_fini(&w);
    return status;
}

/* ------------------------------------------------------------------ reading */

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

/* Values are counted one by one, so that after a failure exactly those that
 * were read are freed. */
static int get_values(struct ipu__reader *r, ipu_executable *e)
{
    int32_t count;

    IPU_TRY(ipu__get_array(r, "values", LEAST_VALUE, sizeof *e->values,
                           &e->values, &count));
    while (e->nvalues < count)
        IPU_TRY(get_value(r, &e->values[e->nvalues++]));
    return ipu__get_structs(r, "blocks", &ipu__block_layout, &e->blocks,
                            &e->nblocks);
}

/* Reads a fused step. head: any op until the parts are known. */
static int get_fused(struct ipu__reader *r, struct ipu__step *s)
{
    int32_t has_head;

    IPU_TRY(ipu__get_index(r, "a head", 0, 1, &has_head));
    s->op = &ipu__fused_step;
    s->head = has_head ? s->op : NULL;
    return ipu__get_text(r, "the parts of a step", false, &s->text);
}

/* Reads a step. root: the outermost program, which has the texts. */
static int get_step(struct ipu__reader *r, const ipu_executable *root,
                    struct ipu__step *s)
{
    int32_t estimate;

    s->cycles.size = sizeof s->cycles;
    IPU_TRY(ipu__get_struct(r, &ipu__step_layout, s));
    IPU_TRY(ipu__get_index(r, "an estimate", -1, root->ntexts - 1, &estimate));
    if (estimate >= 0)
        s->cycles.estimate = root->texts[estimate];
    if (s->kind == IPU__FUSED)
        return get_fused(r, s);
    if (s->kind == IPU__LOOP)
        s->op = &ipu__loop_op;
    if (s->kind != IPU__COMPUTE)
        return IPU_OK;
    IPU_TRY(ipu__get_op(r, &s->op));
    return ipu__get_attributes(r, &s->attributes);
}

static int get_parts(struct ipu__reader *r, ipu_executable *e)
{
    int32_t count;

    IPU_TRY(ipu__get_array(r, "parts", LEAST_PART, sizeof *e->parts, &e->parts,
                           &count));
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

static int get_steps(struct ipu__reader *r, ipu_executable *e,
                     const ipu_executable *root)
{
    int32_t count;

    IPU_TRY(ipu__get_array(r, "steps", LEAST_STEP, sizeof *e->steps, &e->steps,
                           &count));
    while (e->nsteps < count)
        IPU_TRY(get_step(r, root, &e->steps[e->nsteps++]));
    return get_parts(r, e);
}

static int get_ends(struct ipu__reader *r, ipu_executable *e)
{
    int32_t count;

    IPU_TRY(ipu__get_array(r, "streams", LEAST_STREAM, sizeof *e->streams,
                           &e->streams, &count));
    while (e->nstreams < count) {
        struct ipu__stream *s = &e->streams[e->nstreams++];

        IPU_TRY(ipu__get_struct(r, &ipu__stream_layout, s));
        IPU_TRY(ipu__get_text(r, "a stream's name", false, &s->name));
        if (s->kind == IPU__STREAM_CALL)
            s->fn = ipu__no_call;
    }
    IPU_TRY(ipu__get_structs(r, "tiles", &ipu__tile_layout, &e->tiles, &count));
    if (count != e->target.tiles)
        return ipu__damaged(r, "%d tiles of a target that has %d", (int)count,
                            (int)e->target.tiles);
    return IPU_OK;
}

static int get_program(struct ipu__reader *r, ipu_executable *e,
                       const ipu_executable *root, int depth);

static int get_inner(struct ipu__reader *r, const ipu_executable *root,
                     struct ipu__inner *inner, int depth)
{
    ipu_executable *e;
    int32_t count;

    IPU_TRY(ipu__get_depth(r, depth + 1));
    IPU_TRY(ipu__get_ints(r, "bound values", &inner->inner, &inner->nbound));
    IPU_TRY(ipu__get_ints(r, "values around", &inner->outer, &count));
    if (count != inner->nbound)
        return ipu__damaged(r, "%d values are bound to %d", (int)inner->nbound,
                            (int)count);
    IPU_TRY(ipu__new(&e, sizeof *e));
    inner->program = e;
    e->target = root->target;
    e->info.size = sizeof e->info;
    IPU_TRY(ipu__get_struct(r, &ipu__executable_layout, e));
    return get_program(r, e, root, depth + 1);
}

static int get_loop(struct ipu__reader *r, const ipu_executable *root,
                    struct ipu__loop_code *loop, int depth)
{
    int32_t conditional;

    IPU_TRY(ipu__get_loop(r, &loop->count, &loop->initial, &loop->outputs,
                          &loop->ncarried));
    IPU_TRY(get_inner(r, root, &loop->body, depth));
    IPU_TRY(ipu__get_index(r, "a condition", 0, 1, &conditional));
    loop->name = conditional ? "while" : "repeat";
    return conditional ? get_inner(r, root, &loop->condition, depth) : IPU_OK;
}

static int get_loops(struct ipu__reader *r, ipu_executable *e,
                     const ipu_executable *root, int depth)
{
    int32_t count;

    IPU_TRY(ipu__get_array(r, "loops", LEAST_LOOP, sizeof *e->loops, &e->loops,
                           &count));
    while (e->nloops < count)
        IPU_TRY(get_loop(r, root, &e->loops[e->nloops++], depth));
    return IPU_OK;
}

static int get_feeds(struct ipu__reader *r, ipu_executable *e)
{
    int32_t count, is_infeed;

    IPU_TRY(ipu__get_array(r, "queues", LEAST_FEED, sizeof *e->feeds, &e->feeds,
                           &count));
    for (int32_t i = 0; i < count; i++) {
        struct ipu__feed_code *f = &e->feeds[i];

        IPU_TRY(ipu__get_index(r, "a queue's kind", 0, 1, &is_infeed));
        IPU_TRY(is_infeed ? ipu__get_infeed(r, &f->infeed)
                          : ipu__get_outfeed(r, &f->outfeed));
        e->nfeeds++;
        IPU_TRY(ipu__get_ints(r, "values of a queue", &f->values, &f->count));
        IPU_TRY(ipu__get_long(r, &f->bytes));
        IPU_TRY(ipu__get_long(r, &f->cycles));
    }
    return IPU_OK;
}

static int get_program(struct ipu__reader *r, ipu_executable *e,
                       const ipu_executable *root, int depth)
{
    IPU_TRY(get_values(r, e));
    IPU_TRY(get_steps(r, e, root));
    IPU_TRY(get_ends(r, e));
    if (r->version < 2)
        return IPU_OK;
    IPU_TRY(get_loops(r, e, root, depth));
    return get_feeds(r, e);
}

/* Computes values that follow from the rest and are not in the file. */
static int derive_rest(ipu_executable *e)
{
    if (!e)
        return IPU_OK;
    ipu__find_scratch(e);
    IPU_TRY(ipu__find_variables(e));
    IPU_TRY(ipu__find_tenants(e));
    for (int32_t i = 0; i < e->nloops; i++) {
        IPU_TRY(derive_rest(e->loops[i].body.program));
        IPU_TRY(derive_rest(e->loops[i].condition.program));
    }
    return IPU_OK;
}

static int get_executable(struct ipu__reader *r, ipu_executable *e)
{
    IPU_TRY(get_head(r, e));
    IPU_TRY(get_program(r, e, e, 0));
    if (r->version >= 3)
        IPU_TRY(ipu__get_program_modules(r, e));
    IPU_TRY(ipu__get_end(r));
    IPU_TRY(ipu__verify(r, e));
    IPU_TRY(ipu__check_queues(r, NULL, e));
    return derive_rest(e);
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
