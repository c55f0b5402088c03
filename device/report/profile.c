/* SPDX-License-Identifier: Apache-2.0 */
/*
 * profile.c - profiles as objects: makes them, adds programs and slots, frees
 * them, checks loaded ones, and provides the few queries that every report
 * needs.
 *
 * All texts of a profile are in one list that is freed as a whole, so rows of
 * tables are plain structs that own nothing.
 */
#include "report/profile.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "report/text.h"
#include "target/target.h"

const char *ipu_stage_kind_name(int32_t kind)
{
    static const char *const names[IPU_NUM_STAGE_KINDS] = {
        [IPU_STAGE_FORWARD] = "forward",
        [IPU_STAGE_BACKWARD] = "backward",
        [IPU_STAGE_RECOMPUTE] = "recompute",
        [IPU_STAGE_UPDATE] = "update",
    };

    return kind >= 0 && kind < IPU_NUM_STAGE_KINDS ? names[kind] : NULL;
}

/* -------------------------------------------------------------------- texts */

static bool grow_texts(struct ipu_profile *p)
{
    size_t capacity = p->text_capacity ? 2 * p->text_capacity : 64;
    char **texts;

    if (p->ntexts < p->text_capacity)
        return true;
    texts = realloc(p->texts, capacity * sizeof *texts);
    if (!texts)
        return false;
    p->texts = texts;
    p->text_capacity = capacity;
    return true;
}

const char *ipu__profile_keep(struct ipu_profile *profile, const char *text)
{
    char *copy;

    if (!text)
        return NULL;
    /* Neighbouring steps often have the same file and op. */
    for (size_t i = profile->ntexts; i > 0 && i + 4 > profile->ntexts; i--)
        if (strcmp(profile->texts[i - 1], text) == 0)
            return profile->texts[i - 1];
    copy = grow_texts(profile) ? strdup(text) : NULL;
    if (!copy) {
        profile->lacks_memory = true;
        return "";
    }
    ipu__make_printable(copy);
    profile->texts[profile->ntexts++] = copy;
    return copy;
}

/* ----------------------------------------------------------------- profiles */

int ipu_profile_new(const char *name, ipu_profile **profile)
{
    struct ipu_profile *p;

    if (!name || !profile)
        return ipu__fail(IPU_ERR_ARGUMENT, "profile: %s is NULL",
                         name ? "the place for it" : "the name");
    IPU_TRY(ipu__new(&p, sizeof *p));
    p->name = ipu__profile_keep(p, name);
    if (p->lacks_memory) {
        ipu_profile_free(p);
        return ipu__fail_memory(strlen(name) + 1);
    }
    *profile = p;
    return IPU_OK;
}

static void free_program(struct ipu__program *program)
{
    for (int32_t b = 0; program->blocks && b < program->nblocks; b++) {
        free(program->blocks[b].shares);
        free(program->blocks[b].uses);
    }
    free(program->steps);
    free(program->blocks);
    free(program->tiles);
    free(program->streams);
}

void ipu_profile_free(ipu_profile *profile)
{
    if (!profile)
        return;
    for (int32_t i = 0; i < profile->nprograms; i++)
        free_program(&profile->programs[i]);
    for (size_t i = 0; i < profile->ntexts; i++)
        free(profile->texts[i]);
    ipu__run_free(&profile->run);
    free(profile->texts);
    free(profile->programs);
    free(profile->slots);
    free(profile);
}

struct ipu__program *ipu__profile_program(struct ipu_profile *profile)
{
    size_t count = (size_t)profile->nprograms + 1;
    struct ipu__program *grown =
        realloc(profile->programs, count * sizeof *grown);

    if (!grown)
        return NULL;
    profile->programs = grown;
    memset(&grown[count - 1], 0, sizeof *grown);
    profile->nprograms++;
    return &grown[count - 1];
}

void ipu__profile_drop(struct ipu_profile *profile)
{
    free_program(&profile->programs[--profile->nprograms]);
}

/* The limit keeps sums over the tables far below what 64 bits can hold. */
static const double MOST_SUM = 0x1p61;

/* The largest schedule that can be drawn: one row per chip, one column per
 * slot. */
enum { MOST_CHIPS = 4096, MOST_SLOTS = 1 << 20 };

static int check_slot(const ipu_pipeline_slot *s, int32_t i)
{
    const struct {
        const char *name;
        int64_t value, least, most;
    } members[] = {
        {"ipu", s->ipu, 0, MOST_CHIPS - 1},
        {"slot", s->slot, 0, MOST_SLOTS - 1},
        {"stage", s->stage, 0, INT32_MAX},
        {"kind", s->kind, 0, IPU_NUM_STAGE_KINDS - 1},
        {"mini_batch", s->mini_batch, -1, INT32_MAX},
        {"cycles", s->cycles, 0, INT64_MAX},
    };

    for (size_t k = 0; k < sizeof members / sizeof *members; k++)
        if (members[k].value < members[k].least ||
            members[k].value > members[k].most)
            return ipu__fail(IPU_ERR_ARGUMENT,
                             "pipeline: the %s of entry %d is %" PRId64
                             ": it is %" PRId64 " to %" PRId64,
                             members[k].name, (int)i, members[k].value,
                             members[k].least, members[k].most);
    return IPU_OK;
}

int ipu_profile_set_pipeline(ipu_profile *profile, int32_t count,
                             const ipu_pipeline_slot *slots)
{
    ipu_pipeline_slot *copy;
    double cycles = 0;

    if (!profile || (!slots && count > 0))
        return ipu__fail(IPU_ERR_ARGUMENT, "pipeline: %s NULL",
                         profile ? "the slots are" : "the profile is");
    if (count < 0)
        return ipu__fail(IPU_ERR_ARGUMENT, "pipeline: %d slots", (int)count);
    for (int32_t i = 0; i < count; i++) {
        IPU_TRY(check_slot(&slots[i], i));
        cycles += (double)slots[i].cycles;
    }
    if (!(cycles < MOST_SUM))
        return ipu__fail(IPU_ERR_ARGUMENT,
                         "pipeline: entries of %g cycles in all, too many to "
                         "be true",
                         cycles);
    copy = malloc(((size_t)count + 1) * sizeof *copy);
    if (!copy)
        return ipu__fail_memory((size_t)count * sizeof *copy);
    if (count > 0)
        memcpy(copy, slots, (size_t)count * sizeof *copy);
    free(profile->slots);
    profile->slots = copy;
    profile->nslots = count;
    return IPU_OK;
}

/* ---------------------------------------------------------------- questions */

int32_t ipu__program_tiles(const struct ipu__program *program)
{
    return program->target.tiles * program->ipus;
}

int64_t ipu__step_cycles(const struct ipu__profile_step *step, int64_t cycles)
{
    return cycles * step->times / step->every;
}

int64_t ipu__block_bytes(const struct ipu__profile_block *block)
{
    return block->nshares > 0 ? block->bytes : 0;
}

bool ipu__block_alive(const struct ipu__profile_block *block, int32_t step)
{
    return block->birth <= step && step <= block->death;
}

bool ipu__block_used(const struct ipu__profile_block *block, int32_t step)
{
    int32_t low = 0, high = block->nuses;

    while (low < high) {
        int32_t middle = low + (high - low) / 2;

        if (block->uses[middle] < step)
            low = middle + 1;
        else
            high = middle;
    }
    return low < block->nuses && block->uses[low] == step;
}

int64_t ipu__share_on(const struct ipu__profile_block *block, int32_t tile)
{
    for (int32_t i = 0; i < block->nshares; i++)
        if (tile >= block->shares[i].first &&
            tile - block->shares[i].first < block->shares[i].count)
            return block->shares[i].bytes;
    return 0;
}

/* ------------------------------------------------------------------- checks */

static int broken(const char *where, const char *what, int32_t number)
{
    return ipu__fail(IPU_ERR_DATA, "%s: %s %d has a number that cannot be",
                     where, what, (int)number);
}

static bool run_is_possible(int32_t first, int32_t count, int32_t tiles)
{
    return first >= 0 && count > 0 && first < tiles && count <= tiles - first;
}

static bool block_is_possible(const struct ipu__program *p,
                              const struct ipu__profile_block *b)
{
    if (b->birth < -1 || b->birth >= p->nsteps || b->death < b->birth ||
        b->death > p->nsteps || b->bytes < 0)
        return false;
    for (int32_t i = 0; i < b->nshares; i++)
        if (!run_is_possible(b->shares[i].first, b->shares[i].count,
                             ipu__program_tiles(p)) ||
            b->shares[i].bytes < 0)
            return false;
    for (int32_t i = 0; i < b->nuses; i++)
        if (b->uses[i] < 0 || b->uses[i] >= p->nsteps ||
            (i > 0 && b->uses[i] <= b->uses[i - 1]))
            return false;
    return true;
}

static bool step_is_possible(const struct ipu__program *p,
                             const struct ipu__profile_step *s)
{
    return s->times > 0 && s->every > 0 && s->compute >= 0 &&
           s->exchange >= 0 && s->sync >= 0 && s->host >= 0 && s->total >= 0 &&
           s->busy_tiles >= 0 && s->fullest_tile >= 0 &&
           s->fullest_tile < ipu__program_tiles(p) && s->block >= -1 &&
           s->block < p->nblocks && s->ipu >= p->ipu &&
           s->ipu - p->ipu < p->ipus && s->calls >= 0 && s->code_of >= 0 &&
           s->available_memory_proportion >= 0 &&
           s->available_memory_proportion <= 1 && s->code_of < p->nsteps &&
           s->copied_bytes >= 0;
}

static bool sums_are_possible(const struct ipu__program *p)
{
    double cycles = 0, bytes = 0;

    for (int32_t i = 0; i < p->nsteps; i++) {
        const struct ipu__profile_step *s = &p->steps[i];

        cycles +=
            ((double)s->compute + (double)s->exchange + (double)s->sync +
             (double)s->host + (double)s->total + (double)s->exchange_bytes) *
            s->times;
        bytes += (double)s->temporary_bytes + (double)s->fullest_tile_bytes;
    }
    for (int32_t i = 0; i < p->nblocks; i++)
        bytes += (double)p->blocks[i].bytes;
    for (int32_t i = 0; i < p->ntiles; i++) {
        const struct ipu__profile_tiles *t = &p->tiles[i];

        bytes += (double)t->total * t->count;
        for (int c = 0; c < IPU_NUM_CATEGORIES; c++)
            bytes += (double)t->bytes[c] * t->count;
    }
    for (int32_t i = 0; i < p->nstreams; i++)
        cycles += (double)p->streams[i].cycles + (double)p->streams[i].bytes;
    return cycles < MOST_SUM && bytes < MOST_SUM &&
           (double)p->memory.bytes_per_tile * ipu__program_tiles(p) < MOST_SUM;
}

int ipu__program_check(const char *where, const struct ipu__program *program)
{
    if (program->ipus < 1 || program->ipus > IPU_MAX_IPUS || program->ipu < 0)
        return ipu__fail(
            IPU_ERR_DATA,
            "%s: it runs on %d IPUs, from %d on: 1 to %d, from 0 on", where,
            (int)program->ipus, (int)program->ipu, IPU_MAX_IPUS);
    for (int32_t i = 0; i < program->nsteps; i++)
        if (!step_is_possible(program, &program->steps[i]))
            return broken(where, "step", i);
    for (int32_t i = 0; i < program->nblocks; i++)
        if (!block_is_possible(program, &program->blocks[i]))
            return broken(where, "block", i);
    for (int32_t i = 0; i < program->ntiles; i++)
        if (!run_is_possible(program->tiles[i].first, program->tiles[i].count,
                             ipu__program_tiles(program)) ||
            program->tiles[i].peak_step < 0)
            return broken(where, "tiles", i);
    if (!sums_are_possible(program))
        return ipu__fail(IPU_ERR_DATA,
                         "%s: its cycles or bytes are too many to be true",
                         where);
    if (program->memory.fullest_tile < 0 ||
        program->memory.fullest_tile >= ipu__program_tiles(program) ||
        (program->memory.fullest_step >= program->nsteps &&
         program->nsteps > 0) ||
        program->memory.fullest_step < 0)
        return ipu__fail(IPU_ERR_DATA,
                         "%s: its fullest tile or step is none of its own",
                         where);
    return IPU_OK;
}
