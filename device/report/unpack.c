/* SPDX-License-Identifier: Apache-2.0 */
/*
 * unpack.c - reads a profile from JSON, which anyone may have written.
 *
 * Each table is read by its list of members; then the program is checked as a
 * whole, so that the code that draws and prints can trust its numbers. A file
 * of another version is refused by its number before anything else is read;
 * unknown members are ignored.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "report/json.h"
#include "report/members.h"
#include "report/run.h"
#include "target/target.h"

/* A place in the file: "profile.json, program 'training', steps[3]". */
struct place {
    char text[512];
};

struct reading {
    struct ipu_profile *profile;
    struct ipu__program *program;
    const char *path;
};

/* Returns the name of the program (part is NULL), of a part of it, or of row i
 * of a table. */
static struct place say_where(const struct reading *r, const char *part,
                              int32_t i)
{
    struct place where;
    size_t size = sizeof where.text;
    int n = snprintf(where.text, size, "%.300s, program '%.80s'", r->path,
                     r->program->name ? r->program->name : "?");

    if (part)
        n += snprintf(where.text + n, size - (size_t)n, ", %.40s", part);
    if (i >= 0)
        snprintf(where.text + n, size - (size_t)n, "[%d]", (int)i);
    return where;
}

static int get_array(const struct reading *r, const json_t *json,
                     const char *name, json_t **array)
{
    *array = json_object_get(json, name);
    if (json_is_array(*array) && json_array_size(*array) < INT32_MAX / 2)
        return IPU_OK;
    return ipu__fail(IPU_ERR_DATA, "%s: '%s' %s", say_where(r, NULL, -1).text,
                     name, *array ? "must be a list" : "is missing");
}

static int read_part(const struct reading *r, const json_t *json,
                     const char *name, const struct ipu__json_member *members,
                     void *object)
{
    return ipu__json_unpack(members, say_where(r, name, -1).text,
                            json_object_get(json, name), r->profile, object);
}

/* Reads a table of rows of stride bytes each. table: the address of the pointer
 * that owns them. */
static int read_rows(const struct reading *r, const json_t *json,
                     const char *name, const struct ipu__json_member *members,
                     size_t stride, void *table, int32_t *count)
{
    json_t *array = NULL;
    char *rows;
    size_t n;

    IPU_TRY(get_array(r, json, name, &array));
    n = json_array_size(array);
    IPU_TRY(ipu__new_array(&rows, n, stride));
    memcpy(table, &rows, sizeof rows);
    *count = (int32_t)n;
    for (size_t i = 0; i < n; i++) {
        IPU_TRY(ipu__json_unpack(members, say_where(r, name, (int32_t)i).text,
                                 json_array_get(array, i), r->profile,
                                 rows + i * stride));
    }
    return IPU_OK;
}

/* ------------------------------------------------------------------- blocks */

static int read_uses(const struct reading *r, const json_t *json,
                     struct ipu__profile_block *block)
{
    json_t *array = NULL;

    IPU_TRY(get_array(r, json, "uses", &array));
    IPU_TRY(ipu__new_array(&block->uses, json_array_size(array),
                           sizeof *block->uses));
    block->nuses = (int32_t)json_array_size(array);
    for (int32_t i = 0; i < block->nuses; i++) {
        json_int_t step = json_integer_value(json_array_get(array, (size_t)i));

        block->uses[i] = step < 0 || step > INT32_MAX ? -1 : (int32_t)step;
    }
    return IPU_OK;
}

static int read_shares(const struct reading *r, const json_t *json,
                       struct ipu__profile_block *block)
{
    json_t *array = NULL;

    IPU_TRY(get_array(r, json, "tiles", &array));
    IPU_TRY(ipu__new_array(&block->shares, json_array_size(array),
                           sizeof *block->shares));
    block->nshares = (int32_t)json_array_size(array);
    for (int32_t i = 0; i < block->nshares; i++) {
        int first, count;
        json_int_t bytes;

        if (json_unpack(json_array_get(array, (size_t)i), "[i,i,I]", &first,
                        &count, &bytes) < 0)
            return ipu__fail(IPU_ERR_DATA,
                             "%s: the tiles of '%s' must be lists of three "
                             "numbers: the first, how many, bytes on each",
                             say_where(r, NULL, -1).text, block->tensor);
        block->shares[i] =
            (struct ipu__profile_share){first, count, (int64_t)bytes};
    }
    return IPU_OK;
}

static int check_category(const struct reading *r,
                          struct ipu__profile_block *block)
{
    for (block->sort = 0; block->sort < IPU_NUM_CATEGORIES; block->sort++)
        if (strcmp(block->category, ipu_category_name(block->sort)) == 0)
            return IPU_OK;
    return ipu__fail(
        IPU_ERR_DATA, "%s: '%s' is of category '%s', and there is none",
        say_where(r, NULL, -1).text, block->tensor, block->category);
}

static int read_blocks(const struct reading *r, const json_t *json)
{
    struct ipu__program *p = r->program;
    json_t *array;

    IPU_TRY(read_rows(r, json, "blocks", ipu__block_json, sizeof *p->blocks,
                      &p->blocks, &p->nblocks));
    array = json_object_get(json, "blocks");
    for (int32_t i = 0; i < p->nblocks; i++) {
        const json_t *row = json_array_get(array, (size_t)i);

        IPU_TRY(check_category(r, &p->blocks[i]));
        IPU_TRY(read_shares(r, row, &p->blocks[i]));
        IPU_TRY(read_uses(r, row, &p->blocks[i]));
    }
    return IPU_OK;
}

/* ---------------------------------------------------------------- a program */

static int read_target(const struct reading *r, const json_t *json)
{
    json_t *target = json_object_get(json, "target");

    if (!target)
        return ipu__fail(IPU_ERR_DATA, "%s: is missing",
                         say_where(r, "target", -1).text);
    ipu_target_init(&r->program->target, sizeof r->program->target);
    return ipu__target_from_json(say_where(r, "target", -1).text, target,
                                 &r->program->target);
}

static int read_measured(const struct reading *r, const json_t *json)
{
    const json_t *measured = json_object_get(json, "measured");

    r->program->times.size = sizeof r->program->times;
    if (!measured || json_is_null(measured))
        return IPU_OK;
    IPU_TRY(
        read_part(r, json, "measured", ipu__times_json, &r->program->times));
    if (r->program->times.runs < 1)
        return ipu__fail(IPU_ERR_DATA, "%s: measured in %lld runs: 1 or more",
                         say_where(r, NULL, -1).text,
                         (long long)r->program->times.runs);
    r->program->measured = true;
    return IPU_OK;
}

static int read_tables(const struct reading *r, const json_t *json)
{
    struct ipu__program *p = r->program;

    IPU_TRY(read_rows(r, json, "steps", ipu__step_json, sizeof *p->steps,
                      &p->steps, &p->nsteps));
    p->memory.steps = p->nsteps;
    IPU_TRY(read_rows(r, json, "tiles", ipu__tiles_json, sizeof *p->tiles,
                      &p->tiles, &p->ntiles));
    IPU_TRY(read_rows(r, json, "streams", ipu__stream_json, sizeof *p->streams,
                      &p->streams, &p->nstreams));
    return read_blocks(r, json);
}

static int read_program(struct reading *r, const json_t *json)
{
    struct ipu__program *p = r->program;
    char where[sizeof(struct place)];

    snprintf(where, sizeof where, "%.300s, programs[%d]", r->path,
             (int)r->profile->nprograms - 1);
    IPU_TRY(ipu__json_unpack(ipu__program_json, where, json, r->profile, p));
    p->memory.size = sizeof p->memory;
    p->cycles.size = sizeof p->cycles;
    IPU_TRY(read_target(r, json));
    IPU_TRY(read_part(r, json, "memory", ipu__memory_json, &p->memory));
    IPU_TRY(read_part(r, json, "cycles", ipu__cycles_json, &p->cycles));
    p->memory.code_bytes_per_tile = p->code_bytes;
    IPU_TRY(read_measured(r, json));
    IPU_TRY(read_tables(r, json));
    return ipu__program_check(say_where(r, NULL, -1).text, p);
}

/* ------------------------------------------------------------- the document */

static int read_slot(const char *path, const json_t *json, int32_t i,
                     struct ipu_profile *profile, ipu_pipeline_slot *slot)
{
    const char *word = json_string_value(json_object_get(json, "kind"));
    char where[sizeof(struct place)];

    snprintf(where, sizeof where, "%.300s, pipeline[%d]", path, (int)i);
    IPU_TRY(ipu__json_unpack(ipu__slot_json, where, json, profile, slot));
    for (slot->kind = 0; slot->kind < IPU_NUM_STAGE_KINDS; slot->kind++)
        if (word && strcmp(word, ipu_stage_kind_name(slot->kind)) == 0)
            return IPU_OK;
    return ipu__fail(IPU_ERR_DATA,
                     "%s: 'kind' is none of forward, backward, "
                     "recompute, update",
                     where);
}

static int read_pipeline(const char *path, const json_t *array,
                         struct ipu_profile *profile)
{
    size_t n = json_array_size(array);
    ipu_pipeline_slot *slots;
    int status = IPU_OK;

    if (!array)
        return IPU_OK;
    if (!json_is_array(array) || n > INT32_MAX / 2)
        return ipu__fail(IPU_ERR_DATA, "%s: 'pipeline' must be a list", path);
    IPU_TRY(ipu__new_array(&slots, n, sizeof *slots));
    for (size_t i = 0; i < n && status >= 0; i++)
        status = read_slot(path, json_array_get(array, i), (int32_t)i, profile,
                           &slots[i]);
    if (status >= 0) {
        status = ipu_profile_set_pipeline(profile, (int32_t)n, slots);
        if (status == IPU_ERR_ARGUMENT) {
            char why[256];

            snprintf(why, sizeof why, "%s", ipu_last_error());
            status = ipu__fail(IPU_ERR_DATA, "%s: %s", path, why);
        }
    }
    free(slots);
    return status;
}

static int check_version(const char *path, const json_t *document)
{
    const char *format = json_string_value(json_object_get(document, "format"));
    const json_t *version = json_object_get(document, "version");

    if (!format || strcmp(format, "ipu-profile") != 0)
        return ipu__fail(IPU_ERR_DATA,
                         "%s: is no profile: \"format\" is not "
                         "\"ipu-profile\"",
                         path);
    if (json_integer_value(version) == IPU__PROFILE_VERSION)
        return IPU_OK;
    return ipu__fail(IPU_ERR_DATA,
                     "%s: is a profile of version %lld, and this program "
                     "reads version %d",
                     path, (long long)json_integer_value(version),
                     IPU__PROFILE_VERSION);
}

static bool has_twins(const struct ipu_profile *p)
{
    for (int32_t i = 1; i < p->nprograms; i++)
        for (int32_t k = 0; k < i; k++)
            if (strcmp(p->programs[i].name, p->programs[k].name) == 0)
                return true;
    return false;
}

int ipu__profile_unpack(const char *path, const json_t *document,
                        struct ipu_profile *profile)
{
    struct reading r = {.profile = profile, .path = path};
    const char *name = json_string_value(json_object_get(document, "name"));
    json_t *programs = json_object_get(document, "programs");

    IPU_TRY(check_version(path, document));
    if (!name || !json_is_array(programs))
        return ipu__fail(IPU_ERR_DATA, "%s: '%s' is missing", path,
                         name ? "programs" : "name");
    profile->name = ipu__profile_keep(profile, name);
    for (size_t i = 0; i < json_array_size(programs); i++) {
        r.program = ipu__profile_program(profile);
        if (!r.program)
            return ipu__fail_memory(sizeof *r.program);
        IPU_TRY(read_program(&r, json_array_get(programs, i)));
    }
    if (has_twins(profile))
        return ipu__fail(IPU_ERR_DATA, "%s: two programs have one name", path);
    IPU_TRY(
        read_pipeline(path, json_object_get(document, "pipeline"), profile));
    IPU_TRY(ipu__run_unpack(path, document, profile));
    return profile->lacks_memory ? ipu__fail_memory(1) : IPU_OK;
}
