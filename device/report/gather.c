/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gather.c - makes a program of a profile from an executable and an engine.
 *
 * It takes the executable's steps, blocks and tiles, and joins neighbouring
 * tiles that hold the same: a tensor is spread in runs of equal shares, so a
 * few of them describe a chip, and not many more describe 64 chips. The content
 * of each tile at its peak is summed over the blocks that are alive then; the
 * sum equals the compiler's count.
 */
#include <stdio.h>
#include <string.h>

#include "compiler/program.h"
#include "engine/counts.h"
#include "engine/engine.h"
#include "report/profile.h"
#include "streams/streams.h"

/* -------------------------------------------------------------------- steps */

/* Returns the value whose module is the step's: that of the first part, since
 * what is fused with a product belongs to it. */
static const struct ipu__value *first_made(const struct ipu_executable *e,
                                           const struct ipu__step *step)
{
    struct ipu__step_op place;

    if (step->kind == IPU__FUSED)
        return &e->values[ipu__part_of(e, step, 0, &place)->output];
    return &e->values[step->output];
}

/* Fills the facts about the tensor that a step makes, if it makes one. */
static void gather_made(struct ipu_profile *p, const struct ipu__value *value,
                        struct ipu__profile_step *step)
{
    step->file = ipu__profile_keep(p, value->file);
    step->line = value->line;
    step->block = value->inner ? -1 : value->block;
    step->element_bytes = (int32_t)ipu__dtype_bytes(value->shape.dtype);
}

/* Fills the cycles of a step. All cycles of a host step are the host's. */
static void gather_cycles(const ipu_step_info *info, bool host,
                          struct ipu__profile_step *step)
{
    step->total = info->total_cycles;
    if (host) {
        step->host = info->total_cycles;
        return;
    }
    step->compute = info->compute_cycles;
    step->exchange = info->exchange_cycles;
    step->sync = info->sync_cycles;
    /* The cycles of a loop may include the host's. */
    step->host = step->total - step->compute - step->exchange - step->sync;
    if (step->host < 0)
        step->host = 0;
}

static int gather_step(struct ipu_profile *p, const struct ipu_executable *e,
                       const ipu_engine *engine, int32_t i, int32_t ipu,
                       struct ipu__profile_step *step)
{
    const struct ipu__step *s = &e->steps[i];
    ipu_step_info info = {.size = sizeof info};
    bool call = s->kind == IPU__HOST_CALL;

    IPU_TRY(ipu_executable_step(e, i, &info));
    if (call)
        info.tensor = e->streams[s->stream].name;
    *step = (struct ipu__profile_step){
        .tensor = ipu__profile_keep(p, info.tensor ? info.tensor : ""),
        .op = ipu__profile_keep(p, info.op),
        .parts = ipu__profile_keep(p, info.parts),
        .block = -1,
        .ipu = ipu,
        .times = 1,
        .every = info.update_count,
        .again = info.again,
        .exchange_bytes = info.exchange_bytes,
        .temporary_bytes = info.temporary_bytes,
        .available_memory_proportion = info.available_memory_proportion,
        .flops = info.flops,
        .element_bytes = 4,
        .busy_tiles = info.busy_tiles,
        .fullest_tile = info.fullest_tile,
        .fullest_tile_bytes = info.fullest_tile_bytes,
        .ns = engine ? ipu_engine_step_ns(engine, i) : -1,
        .estimate = ipu__profile_keep(p, info.estimate),
        .calls = info.calls,
        .code_of = info.code_of,
        .copied_bytes = info.copied_bytes,
        .vertex_code_bytes = s->cycles.code_bytes,
        .exchange_code_bytes = s->cycles.exchange_code_bytes,
    };
    gather_cycles(&info, call || s->op == &ipu__host_receive, step);
    if (s->output >= 0) {
        gather_made(p, &e->values[s->output], step);
        step->module = ipu__profile_keep(p, first_made(e, s)->module);
    }
    return IPU_OK;
}

static int gather_steps(struct ipu_profile *p, struct ipu__program *program,
                        const struct ipu_executable *e,
                        const ipu_engine *engine)
{
    IPU_TRY(ipu__new_array(&program->steps, (size_t)e->nsteps,
                           sizeof *program->steps));
    for (int32_t i = 0; i < e->nsteps; i++) {
        IPU_TRY(gather_step(p, e, engine, i, program->ipu, &program->steps[i]));
        program->nsteps = i + 1;
    }
    return IPU_OK;
}

/* ------------------------------------------------------------------- blocks */

/* Finds the runs of tiles with equal shares; if shares is NULL, it only counts
 * them. */
static int32_t find_shares(const struct ipu_executable *e, int32_t block,
                           struct ipu__profile_share *shares)
{
    int32_t n = 0, first = 0;
    int64_t last = 0;

    for (int32_t t = 0; t <= e->target.tiles; t++) {
        int64_t bytes = t < e->target.tiles
                            ? ipu__bytes_on_tile(e, &e->blocks[block], t)
                            : -1;

        if (t > 0 && bytes != last && last > 0) {
            if (shares)
                shares[n] = (struct ipu__profile_share){first, t - first, last};
            n++;
        }
        if (t == 0 || bytes != last)
            first = t;
        last = bytes;
    }
    return n;
}

/* Notes that a step uses a block. Tensors between the ops of one step have no
 * block. */
static void note_use(struct ipu__program *program,
                     const struct ipu_executable *e, int32_t value,
                     int32_t step, bool count_only)
{
    struct ipu__profile_block *b;

    if (value < 0 || e->values[value].inner || e->values[value].block < 0)
        return;
    b = &program->blocks[e->values[value].block];
    if (count_only)
        b->nuses++;
    else if (b->nuses == 0 || b->uses[b->nuses - 1] != step)
        b->uses[b->nuses++] = step;
}

static void note_step(struct ipu__program *program,
                      const struct ipu_executable *e, int32_t i,
                      bool count_only)
{
    const struct ipu__step *s = &e->steps[i];
    struct ipu__step_op place;
    int32_t v;

    note_use(program, e, s->output, i, count_only);
    for (int32_t k = 0; k < ipu__nparts(s); k++) {
        const struct ipu__step_op *part = ipu__part_of(e, s, k, &place);

        note_use(program, e, part->output, i, count_only);
        for (int n = 0; n < part->op->ninputs; n++)
            note_use(program, e, part->inputs[n], i, count_only);
    }
    for (int32_t n = 0; (v = ipu__loop_read(e, s, n)) >= 0; n++)
        note_use(program, e, v, i, count_only);
    for (int32_t n = 0; (v = ipu__loop_makes(e, s, n)) >= 0; n++)
        note_use(program, e, v, i, count_only);
}

static void note_uses(struct ipu__program *program,
                      const struct ipu_executable *e, bool count_only)
{
    for (int32_t i = 0; i < e->nsteps; i++)
        note_step(program, e, i, count_only);
}

static int gather_uses(struct ipu__program *program,
                       const struct ipu_executable *e)
{
    note_uses(program, e, true);
    for (int32_t b = 0; b < program->nblocks; b++) {
        struct ipu__profile_block *block = &program->blocks[b];

        IPU_TRY(ipu__new_array(&block->uses, (size_t)block->nuses,
                               sizeof *block->uses));
        block->nuses = 0;
    }
    note_uses(program, e, false);
    return IPU_OK;
}

static int gather_block(struct ipu_profile *p, const struct ipu_executable *e,
                        int32_t i, struct ipu__profile_block *block)
{
    ipu_block_info info = {.size = sizeof info};
    struct ipu__shape shape = {0};

    IPU_TRY(ipu_executable_block(e, i, &info));
    shape.dtype = info.dtype;
    shape.ndim = info.ndim;
    memcpy(shape.extents, info.shape, sizeof shape.extents);
    *block = (struct ipu__profile_block){
        .tensor = ipu__profile_keep(p, info.tensor),
        .op = ipu__profile_keep(p, info.op),
        .file = ipu__profile_keep(p, info.file),
        .line = info.line,
        .module = ipu__profile_keep(p, info.module),
        .category = ipu_category_name(info.category),
        .sort = info.category,
        .type = ipu__profile_keep(p, ipu__shape_print(&shape).text),
        .element_bytes = (int32_t)ipu__dtype_bytes(info.dtype),
        .tensors = info.tensors,
        .bytes = info.bytes,
        .birth = info.birth,
        .death = info.death,
        .always = info.always_live,
        .nshares = find_shares(e, i, NULL),
    };
    IPU_TRY(ipu__new_array(&block->shares, (size_t)block->nshares,
                           sizeof *block->shares));
    find_shares(e, i, block->shares);
    return IPU_OK;
}

static int gather_blocks(struct ipu_profile *p, struct ipu__program *program,
                         const struct ipu_executable *e)
{
    IPU_TRY(ipu__new_array(&program->blocks, (size_t)e->nblocks,
                           sizeof *program->blocks));
    for (int32_t b = 0; b < e->nblocks; b++) {
        program->nblocks = b + 1;
        IPU_TRY(gather_block(p, e, b, &program->blocks[b]));
    }
    return gather_uses(program, e);
}

/* -------------------------------------------------------------------- tiles */

/* Adds a block's bytes to the tiles whose peak it is part of. */
static void add_block(const struct ipu__profile_block *block,
                      struct ipu__profile_tiles *tiles)
{
    for (int32_t i = 0; i < block->nshares; i++)
        for (int32_t k = 0; k < block->shares[i].count; k++) {
            struct ipu__profile_tiles *t = &tiles[block->shares[i].first + k];

            if (ipu__block_alive(block, t->peak_step))
                t->bytes[block->sort] += block->shares[i].bytes;
        }
}

static bool tiles_equal(const struct ipu__profile_tiles *a,
                        const struct ipu__profile_tiles *b)
{
    return a->peak_step == b->peak_step && a->total == b->total &&
           memcmp(a->bytes, b->bytes, sizeof a->bytes) == 0;
}

/* Joins neighbours that are equal. Returns how many runs remain. */
static int32_t merge_tiles(struct ipu__profile_tiles *tiles, int32_t count)
{
    int32_t n = 0;

    for (int32_t t = 0; t < count; t++)
        if (n > 0 && tiles_equal(&tiles[n - 1], &tiles[t]))
            tiles[n - 1].count++;
        else
            tiles[n++] = tiles[t];
    return n;
}

static int gather_tile(const struct ipu_executable *e, int32_t t,
                       const struct ipu__program *program,
                       struct ipu__profile_tiles *tile)
{
    ipu_tile_info info = {.size = sizeof info};

    IPU_TRY(ipu_executable_tile(e, t, &info));
    *tile = (struct ipu__profile_tiles){
        .first = t, .count = 1, .peak_step = info.peak_step};
    tile->bytes[IPU_CATEGORY_CODE] = program->code_bytes -
                                     program->exchange_code_bytes -
                                     program->state_bytes;
    tile->bytes[IPU_CATEGORY_EXCHANGE_CODE] = program->exchange_code_bytes;
    tile->bytes[IPU_CATEGORY_STATE] = program->state_bytes;
    tile->bytes[IPU_CATEGORY_TEMPORARY] = info.temporary_bytes;
    tile->total = info.peak_bytes;
    return IPU_OK;
}

static int gather_tiles(struct ipu__program *program,
                        const struct ipu_executable *e)
{
    int32_t count = e->target.tiles;

    IPU_TRY(
        ipu__new_array(&program->tiles, (size_t)count, sizeof *program->tiles));
    for (int32_t t = 0; t < count; t++)
        IPU_TRY(gather_tile(e, t, program, &program->tiles[t]));
    for (int32_t b = 0; b < program->nblocks; b++)
        add_block(&program->blocks[b], program->tiles);
    program->ntiles = merge_tiles(program->tiles, count);
    return IPU_OK;
}

/* -------------------------------------------------------------- the program */

static int gather_streams(struct ipu_profile *p, struct ipu__program *program,
                          const struct ipu_executable *e)
{
    static const char *const kinds[] = {[IPU__STREAM_IN] = "input",
                                        [IPU__STREAM_OUT] = "output",
                                        [IPU__STREAM_CALL] = "call"};

    size_t count = (size_t)e->nstreams + (size_t)e->nfeeds;

    IPU_TRY(ipu__new_array(&program->streams, count, sizeof *program->streams));
    for (int32_t i = 0; i < e->nstreams; i++)
        program->streams[i] = (struct ipu__profile_stream){
            .name = ipu__profile_keep(p, e->streams[i].name),
            .kind = kinds[e->streams[i].kind],
            .bytes = (int64_t)e->streams[i].bytes,
            .cycles = e->streams[i].cycles,
        };
    /* A queue is a stream, too: an element is read before the first step, or
     * written after the last. */
    for (int32_t i = 0; i < e->nfeeds; i++) {
        const struct ipu__feed_code *feed = &e->feeds[i];

        program->streams[e->nstreams + i] = (struct ipu__profile_stream){
            .name = ipu__profile_keep(
                p, feed->infeed ? ipu__infeed_name(feed->infeed)
                                : ipu__outfeed_name(feed->outfeed)),
            .kind = feed->infeed ? "input" : "output",
            .bytes = feed->bytes,
            .cycles = feed->cycles,
        };
    }
    program->nstreams = (int32_t)count;
    return IPU_OK;
}

static int gather_times(struct ipu__program *program, const ipu_engine **engine)
{
    program->times.size = sizeof program->times;
    if (!*engine ||
        ipu_engine_get_times(*engine, &program->times) == IPU_ERR_STATE ||
        program->times.runs == 0)
        *engine = NULL;
    program->measured = *engine != NULL;
    return IPU_OK;
}

static int gather_program(struct ipu_profile *p, struct ipu__program *program,
                          const struct ipu_executable *e,
                          const ipu_engine *engine)
{
    program->memory.size = sizeof program->memory;
    program->cycles.size = sizeof program->cycles;
    program->target = e->target;
    program->half_cycles = ipu__cycles_with(e, 2);
    program->code_bytes = e->code_bytes;
    program->exchange_code_bytes = e->exchange_code_bytes;
    program->state_bytes = e->state_bytes;
    IPU_TRY(ipu_executable_memory(e, &program->memory));
    IPU_TRY(ipu_executable_cycles(e, &program->cycles));
    IPU_TRY(gather_times(program, &engine));
    IPU_TRY(gather_steps(p, program, e, engine));
    IPU_TRY(gather_blocks(p, program, e));
    IPU_TRY(gather_tiles(program, e));
    IPU_TRY(gather_streams(p, program, e));
    return p->lacks_memory ? ipu__fail_memory(sizeof *program) : IPU_OK;
}

static int check_arguments(const ipu_profile *profile, const char *name,
                           int32_t ipu, const ipu_executable *executable,
                           const ipu_engine *engine)
{
    if (!profile || !name || !executable)
        return ipu__fail(IPU_ERR_ARGUMENT, "profile: %s is NULL",
                         !profile ? "the profile"
                         : !name  ? "the program's name"
                                  : "the executable");
    if (ipu < 0)
        return ipu__fail(IPU_ERR_ARGUMENT, "profile: there is no IPU %d",
                         (int)ipu);
    if (engine && ipu__engine_executable(engine) != executable)
        return ipu__fail(IPU_ERR_ARGUMENT,
                         "profile: the engine runs another program than '%s'",
                         name);
    for (int32_t i = 0; i < profile->nprograms; i++)
        if (strcmp(profile->programs[i].name, name) == 0)
            return ipu__fail(IPU_ERR_NAME,
                             "profile: there is a program '%s' already", name);
    return IPU_OK;
}

static int add_program(ipu_profile *profile, const char *name, int32_t ipu,
                       const ipu_executable *executable,
                       const ipu_engine *engine)
{
    struct ipu__program *program = ipu__profile_program(profile);
    int status;

    if (!program)
        return ipu__fail_memory(sizeof *program);
    program->name = ipu__profile_keep(profile, name);
    program->iterations = 1;
    program->ipu = ipu;
    program->ipus = 1;
    status = gather_program(profile, program, executable, engine);
    if (status < 0)
        ipu__profile_drop(profile);
    return status;
}

/* Adds the bodies of a program's loops, which are programs themselves, after
 * it. */
static int add_bodies(ipu_profile *profile, const char *name, int32_t ipu,
                      const ipu_executable *executable,
                      const ipu_engine *engine)
{
    for (int32_t i = 0; i < executable->nsteps; i++) {
        const ipu_executable *body = NULL;
        struct ipu__program *added;
        int64_t count = 1;
        char text[256];

        IPU_TRY(ipu_executable_body(executable, i, &body, &count));
        if (!body)
            continue;
        snprintf(text, sizeof text, "%.200s, loop at step %d", name, (int)i);
        IPU_TRY(ipu_profile_add(profile, text, ipu, body,
                                engine ? ipu__engine_body(engine, i) : NULL));
        for (int32_t k = 0; k < profile->nprograms; k++) {
            added = &profile->programs[k];
            if (strcmp(added->name, text) != 0)
                continue;
            added->parent = ipu__profile_keep(profile, name);
            added->iterations = count;
        }
    }
    return profile->lacks_memory ? ipu__fail_memory(1) : IPU_OK;
}

int ipu_profile_add(ipu_profile *profile, const char *name, int32_t ipu,
                    const ipu_executable *executable, const ipu_engine *engine)
{
    int32_t before;
    int status;

    IPU_TRY(check_arguments(profile, name, ipu, executable, engine));
    before = profile->nprograms;
    IPU_TRY(add_program(profile, name, ipu, executable, engine));
    status = add_bodies(profile, name, ipu, executable, engine);
    while (status < 0 && profile->nprograms > before)
        ipu__profile_drop(profile);
    return status;
}
