/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pack.c - writes a profile as JSON.
 *
 * The document also holds values that follow from the profile and that
 * ipu_profile_read ignores: sentences, findings, sums, the peak. Other readers
 * and the page then need not compute them.
 *
 * Every json function accepts NULL for a value that could not be made, so only
 * the last status of a chain matters.
 */
#include <string.h>

#include "report/analysis.h"
#include "report/json.h"
#include "report/members.h"
#include "report/run.h"
#include "target/target.h"

static json_t *pack_target(const ipu_target *target)
{
    json_t *json = json_pack("{s:s}", "name", target->name);

    for (const struct ipu__field *f = ipu__target_fields; json && f->name;
         f++) {
        const char *at = (const char *)target + f->offset;
        json_t *value = f->type == IPU__FIELD_INT32
                            ? json_integer(*(const int32_t *)(const void *)at)
                        : f->type == IPU__FIELD_INT64
                            ? json_integer(*(const int64_t *)(const void *)at)
                            : json_real(*(const double *)(const void *)at);

        json_object_set_new(json, f->name, value);
    }
    return json;
}

static json_t *pack_block(const struct ipu__profile_block *block)
{
    json_t *json = ipu__json_pack(ipu__block_json, block);
    json_t *shares = json_array(), *uses = json_array();

    for (int32_t i = 0; i < block->nshares; i++)
        json_array_append_new(shares,
                              json_pack("[i,i,I]", (int)block->shares[i].first,
                                        (int)block->shares[i].count,
                                        (json_int_t)block->shares[i].bytes));
    for (int32_t i = 0; i < block->nuses; i++)
        json_array_append_new(uses, json_integer(block->uses[i]));
    json_object_set_new(json, "tiles", shares);
    json_object_set_new(json, "uses", uses);
    return json;
}

static json_t *pack_blocks(const struct ipu__program *program)
{
    json_t *array = json_array();

    for (int32_t i = 0; i < program->nblocks; i++)
        json_array_append_new(array, pack_block(&program->blocks[i]));
    return array;
}

/* --------------------------------------------------------- derived values */

static json_t *pack_findings(const struct ipu__finding *list, int32_t count)
{
    json_t *array = json_array();

    for (int32_t i = 0; i < count; i++)
        json_array_append_new(
            array,
            json_pack("{s:s, s:i, s:i, s:I, s:I, s:s}", "kind", list[i].kind,
                      "step", (int)list[i].step, "block", (int)list[i].block,
                      "cycles", (json_int_t)list[i].cycles, "bytes",
                      (json_int_t)list[i].bytes, "text", list[i].text));
    return array;
}

static json_t *pack_sentences(const struct ipu__program *program)
{
    char sentences[IPU__MOST_WORDS][IPU__WORDS_TEXT];
    int32_t n = ipu__say(program, sentences);
    json_t *array = json_array();

    for (int32_t i = 0; i < n; i++)
        json_array_append_new(array, json_string(sentences[i]));
    return array;
}

static json_t *pack_categories(const struct ipu__program *program)
{
    int64_t bytes[IPU_NUM_CATEGORIES];
    int64_t sum = ipu__sum_categories(program, bytes);
    json_t *json = json_object();

    for (ipu_category c = 0; c < IPU_NUM_CATEGORIES; c++)
        json_object_set_new(json, ipu_category_name(c), json_integer(bytes[c]));
    json_object_set_new(json, "total", json_integer(sum));
    return json;
}

static int pack_derived(const struct ipu__program *program, json_t *json)
{
    struct ipu__findings findings;
    const char *dtype;
    double peak = ipu__program_peak(program, &dtype);

    IPU_TRY(ipu__find(program, &findings));
    json_object_set_new(
        json, "derived",
        json_pack("{s:o, s:o, s:s, s:f, s:o, s:o}", "sentences",
                  pack_sentences(program), "categories",
                  pack_categories(program), "peak_dtype", dtype,
                  "peak_flops_per_second", peak, "saves_time",
                  pack_findings(findings.time, findings.ntime), "saves_memory",
                  pack_findings(findings.memory, findings.nmemory)));
    return IPU_OK;
}

/* ------------------------------------------------------------- the document */

static int pack_program(const struct ipu__program *p, json_t **packed)
{
    json_t *json = ipu__json_pack(ipu__program_json, p);

    *packed = json;
    json_object_set_new(json, "target", pack_target(&p->target));
    json_object_set_new(json, "memory",
                        ipu__json_pack(ipu__memory_json, &p->memory));
    json_object_set_new(json, "cycles",
                        ipu__json_pack(ipu__cycles_json, &p->cycles));
    json_object_set_new(json, "measured",
                        p->measured ? ipu__json_pack(ipu__times_json, &p->times)
                                    : json_null());
    IPU_TRY(pack_derived(p, json));
    json_object_set_new(json, "streams",
                        ipu__json_pack_rows(ipu__stream_json, p->streams,
                                            p->nstreams, sizeof *p->streams));
    json_object_set_new(json, "steps",
                        ipu__json_pack_rows(ipu__step_json, p->steps, p->nsteps,
                                            sizeof *p->steps));
    json_object_set_new(json, "blocks", pack_blocks(p));
    json_object_set_new(json, "tiles",
                        ipu__json_pack_rows(ipu__tiles_json, p->tiles,
                                            p->ntiles, sizeof *p->tiles));
    return json ? IPU_OK : ipu__fail_memory(sizeof *p);
}

static json_t *pack_slots(const struct ipu_profile *profile)
{
    json_t *array = json_array();

    for (int32_t i = 0; i < profile->nslots; i++) {
        json_t *slot = ipu__json_pack(ipu__slot_json, &profile->slots[i]);

        json_object_set_new(
            slot, "kind",
            json_string(ipu_stage_kind_name(profile->slots[i].kind)));
        json_array_append_new(array, slot);
    }
    return array;
}

int ipu__profile_pack(const struct ipu_profile *profile, json_t **document)
{
    json_t *programs = json_array(), *program = NULL;
    json_t *json = json_pack("{s:s, s:i, s:s, s:o}", "format", "ipu-profile",
                             "version", IPU__PROFILE_VERSION, "name",
                             profile->name, "programs", programs);
    int status = IPU_OK;

    for (int32_t i = 0; i < profile->nprograms && status >= 0; i++) {
        status = pack_program(&profile->programs[i], &program);
        json_array_append_new(programs, program);
    }
    if (profile->nslots > 0)
        json_object_set_new(json, "pipeline", pack_slots(profile));
    if (status >= 0)
        status = ipu__run_pack(profile, json);
    if (status >= 0 && !json)
        status = ipu__fail_memory(sizeof *profile);
    if (status < 0)
        json_decref(json);
    else
        *document = json;
    return status;
}

/* ------------------------------------------------------------------- output */

static int put_bytes(const char *data, size_t bytes, void *context)
{
    ipu__text_put_raw(context, data, bytes);
    return 0;
}

static void put_value(struct ipu__text *text, json_t *value, int depth);

static void put_members(struct ipu__text *text, json_t *value, int depth)
{
    const char *key, *separator = "";
    json_t *member;

    ipu__text_put(text, "{");
    json_object_foreach(value, key, member)
    {
        ipu__text_put(text, "%s\n%*s\"%s\": ", separator, depth, "", key);
        put_value(text, member, depth);
        separator = ",";
    }
    ipu__text_put(text, "}");
}

static void put_rows(struct ipu__text *text, json_t *value, int depth)
{
    ipu__text_put(text, "[");
    for (size_t i = 0; i < json_array_size(value); i++) {
        ipu__text_put(text, "%s\n%*s", i ? "," : "", depth, "");
        put_value(text, json_array_get(value, i), depth);
    }
    ipu__text_put(text, "]");
}

/* Writes the document, the list of programs, each program, and its tables with
 * one line per element; everything inside those is on one line. */
static void put_value(struct ipu__text *text, json_t *value, int depth)
{
    if (depth < 4 && json_is_object(value))
        put_members(text, value, depth + 1);
    else if (depth < 4 && json_is_array(value))
        put_rows(text, value, depth + 1);
    else
        json_dump_callback(value, put_bytes, text,
                           JSON_ENCODE_ANY | JSON_REAL_PRECISION(15));
}

void ipu__text_put_json(struct ipu__text *text, json_t *document)
{
    put_value(text, document, 0);
    ipu__text_put(text, "\n");
}
