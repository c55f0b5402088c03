/* SPDX-License-Identifier: Apache-2.0 */
/*
 * members.c - the lists of JSON members of each struct of a profile, and the
 * two functions that write and read a struct by its list.
 *
 * To keep a field in profile.json, add one line to its struct's list here;
 * pack.c and unpack.c follow the lists. The order of a list is the order in the
 * file. docs/PROFILE.md describes the members.
 */
#include "report/members.h"

#include <string.h>

#define M(struct_type, kind, field)                                            \
    {                                                                          \
#field, IPU__JSON_##kind, offsetof(struct_type, field)                 \
    }
#define END                                                                    \
    {                                                                          \
        NULL, IPU__JSON_INT32, 0                                               \
    }

#define STEP(kind, field) M(struct ipu__profile_step, kind, field)
const struct ipu__json_member ipu__step_json[] = {
    STEP(TEXT, op),
    STEP(TEXT, tensor),
    STEP(TEXT_OR_NULL, parts),
    STEP(TEXT_OR_NULL, file),
    STEP(INT32, line),
    STEP(TEXT_OR_NULL, module),
    STEP(INT32, block),
    STEP(INT32, ipu),
    STEP(INT32, times),
    STEP(INT32, every),
    STEP(BOOL, again),
    STEP(INT64, compute),
    STEP(INT64, exchange),
    STEP(INT64, sync),
    STEP(INT64, host),
    STEP(INT64, total),
    STEP(REAL, flops),
    STEP(INT64, exchange_bytes),
    STEP(INT64, temporary_bytes),
    STEP(INT32, element_bytes),
    STEP(INT32, busy_tiles),
    STEP(INT32, fullest_tile),
    STEP(INT64, fullest_tile_bytes),
    STEP(INT64, ns),
    STEP(TEXT_OR_NULL, estimate),
    STEP(INT32_OR_0, calls),
    STEP(INT32_OR_0, code_of),
    STEP(INT64_OR_0, copied_bytes),
    STEP(INT64_OR_0, vertex_code_bytes),
    STEP(INT64_OR_0, exchange_code_bytes),
    STEP(REAL_OR_0, available_memory_proportion),
    END};

#define BLOCK(kind, field) M(struct ipu__profile_block, kind, field)
const struct ipu__json_member ipu__block_json[] = {
    BLOCK(TEXT, tensor),         BLOCK(TEXT_OR_NULL, op),
    BLOCK(TEXT_OR_NULL, file),   BLOCK(INT32, line),
    BLOCK(TEXT_OR_NULL, module), BLOCK(TEXT, category),
    BLOCK(TEXT, type),           BLOCK(INT32, element_bytes),
    BLOCK(INT32, tensors),       BLOCK(INT64, bytes),
    BLOCK(INT32, birth),         BLOCK(INT32, death),
    BLOCK(BOOL, always),         END};

#define TILES(kind, field) M(struct ipu__profile_tiles, kind, field)
#define BYTES(name, category)                                                  \
    {                                                                          \
        name, IPU__JSON_INT64,                                                 \
            offsetof(struct ipu__profile_tiles,                                \
                     bytes[IPU_CATEGORY_##category])                           \
    }
const struct ipu__json_member ipu__tiles_json[] = {
    TILES(INT32, first),
    TILES(INT32, count),
    TILES(INT32, peak_step),
    TILES(INT64, total),
    BYTES("variables", VARIABLES),
    BYTES("constants", CONSTANTS),
    BYTES("inputs", INPUTS),
    BYTES("results", RESULTS),
    BYTES("temporary", TEMPORARY),
    BYTES("code", CODE),
    BYTES("exchange_code", EXCHANGE_CODE),
    BYTES("state", STATE),
    END};

#define STREAM(kind, field) M(struct ipu__profile_stream, kind, field)
const struct ipu__json_member ipu__stream_json[] = {
    STREAM(TEXT, name), STREAM(TEXT, kind), STREAM(INT64, bytes),
    STREAM(INT64, cycles), END};

#define MEMORY(kind, field) M(ipu_memory_info, kind, field)
const struct ipu__json_member ipu__memory_json[] = {
    MEMORY(INT64, always_live_bytes),
    MEMORY(INT64, peak_bytes),
    MEMORY(INT64, planned_bytes),
    MEMORY(INT64, unshared_bytes),
    MEMORY(INT64, bytes_on_fullest_tile),
    MEMORY(INT64, bytes_per_tile),
    MEMORY(INT32, fullest_tile),
    MEMORY(INT64, fullest_tile_bytes),
    MEMORY(INT32, fullest_step),
    MEMORY(INT64, remote_bytes),
    MEMORY(INT64_OR_0, shared_code_bytes),
    MEMORY(INT64_OR_0, automatic_bytes),
    MEMORY(INT64_OR_0, tile_bytes_without),
    END};

#define CYCLES(kind, field) M(ipu_program_cycles, kind, field)
const struct ipu__json_member ipu__cycles_json[] = {
    CYCLES(INT64, compute),
    CYCLES(INT64, exchange),
    CYCLES(INT64, sync),
    CYCLES(INT64, host),
    CYCLES(INT64, total),
    CYCLES(REAL, seconds),
    CYCLES(REAL, flops),
    CYCLES(INT32, estimates),
    CYCLES(INT64, update),
    CYCLES(INT64, mean_total),
    CYCLES(INT64, streaming),
    CYCLES(INT64, again),
    CYCLES(INT64_OR_0, waiting),
    CYCLES(INT64_OR_0, network),
    CYCLES(INT64_OR_0, network_busy),
    CYCLES(INT64_OR_0, network_bytes),
    END};

#define TIMES(kind, field) M(ipu_engine_times, kind, field)
const struct ipu__json_member ipu__times_json[] = {
    TIMES(INT64, runs),       TIMES(INT64, run_ns),
    TIMES(INT64, fastest_ns), TIMES(INT64, input_ns),
    TIMES(INT64, output_ns),  TIMES(INT64, call_ns),
    TIMES(INT64, between_ns), END};

#define PROGRAM(kind, field) M(struct ipu__program, kind, field)
const struct ipu__json_member ipu__program_json[] = {
    PROGRAM(TEXT, name),
    PROGRAM(TEXT_OR_NULL, parent),
    PROGRAM(INT64, iterations),
    PROGRAM(INT32, ipu),
    PROGRAM(INT32, ipus),
    PROGRAM(INT64, half_cycles),
    PROGRAM(INT64, code_bytes),
    PROGRAM(INT64, exchange_code_bytes),
    PROGRAM(INT64, state_bytes),
    PROGRAM(INT64_OR_0, pipeline_cycles),
    END};

#define STAGE(kind, field) M(struct ipu__profile_stage, kind, field)
const struct ipu__json_member ipu__stage_json[] = {STAGE(TEXT, name),
                                                   STAGE(INT32, position),
                                                   STAGE(INT32, ipu),
                                                   STAGE(INT64, forward),
                                                   STAGE(INT64, backward),
                                                   STAGE(INT64, recompute),
                                                   STAGE(INT64, stash_bytes),
                                                   STAGE(INT64, stash_depth),
                                                   STAGE(INT64, sent_bytes),
                                                   STAGE(INT64, ns),
                                                   END};

#define CHIP(kind, field) M(struct ipu__profile_chip, kind, field)
const struct ipu__json_member ipu__chip_json[] = {CHIP(INT32, ipu),
                                                  CHIP(INT64, update),
                                                  CHIP(INT64, offload),
                                                  CHIP(INT64, variable_bytes),
                                                  CHIP(INT64, stash_bytes),
                                                  CHIP(INT64, program_bytes),
                                                  CHIP(INT64, streaming_bytes),
                                                  CHIP(INT64, automatic_bytes),
                                                  CHIP(INT64, tile_bytes),
                                                  CHIP(INT64, bytes_per_tile),
                                                  END};

#define RUN(kind, field) M(struct ipu__profile_run, kind, field)
const struct ipu__json_member ipu__run_json[] = {RUN(INT32, replicas),
                                                 RUN(BOOL, io_tiles),
                                                 RUN(INT64, mini_batches),
                                                 RUN(INT64, updates),
                                                 RUN(INT64, slots),
                                                 RUN(INT64, total),
                                                 RUN(INT64, work),
                                                 RUN(INT64, exchange),
                                                 RUN(INT64, sync),
                                                 RUN(INT64, host),
                                                 RUN(INT64, update),
                                                 RUN(REAL, clock_hz),
                                                 END};

#define SLOT(kind, field) M(ipu_pipeline_slot, kind, field)
const struct ipu__json_member ipu__slot_json[] = {
    SLOT(INT32, ipu),        SLOT(INT32, slot),   SLOT(INT32, stage),
    SLOT(INT32, mini_batch), SLOT(INT64, cycles), END};

/* ------------------------------------------------------------------ writing */

static json_t *text_or_null(const char *text)
{
    return text ? json_string(text) : json_null();
}

static json_t *pack_one(const struct ipu__json_member *m, const char *at)
{
    switch (m->type) {
    case IPU__JSON_INT32:
    case IPU__JSON_INT32_OR_0:
        return json_integer(*(const int32_t *)(const void *)at);
    case IPU__JSON_INT64:
    case IPU__JSON_INT64_OR_0:
        return json_integer(*(const int64_t *)(const void *)at);
    case IPU__JSON_REAL:
    case IPU__JSON_REAL_OR_0:
        return json_real(*(const double *)(const void *)at);
    case IPU__JSON_BOOL: return json_boolean(*(const bool *)(const void *)at);
    default: return text_or_null(*(const char *const *)(const void *)at);
    }
}

json_t *ipu__json_pack(const struct ipu__json_member *members,
                       const void *object)
{
    json_t *json = json_object();

    for (const struct ipu__json_member *m = members; json && m->name; m++)
        if (json_object_set_new(json, m->name,
                                pack_one(m, (const char *)object + m->offset)) <
            0) {
            json_decref(json);
            json = NULL;
        }
    return json;
}

json_t *ipu__json_pack_rows(const struct ipu__json_member *members,
                            const void *rows, int32_t count, size_t stride)
{
    json_t *array = json_array();

    for (int32_t i = 0; i < count; i++)
        json_array_append_new(
            array,
            ipu__json_pack(members, (const char *)rows + (size_t)i * stride));
    return array;
}

/* ------------------------------------------------------------------ reading */

static const json_int_t MOST = (json_int_t)1 << 55;

static int unfit(const char *where, const char *name, const json_t *value,
                 const char *wanted)
{
    return ipu__fail(IPU_ERR_DATA, "%s: '%s' %s%s", where, name,
                     value ? "must be " : "is missing", value ? wanted : "");
}

static int unpack_integer(const struct ipu__json_member *m, const char *where,
                          const json_t *value, char *at)
{
    json_int_t number = json_integer_value(value);

    /* -1 means unknown; the maximum leaves room for sums. */
    if (!json_is_integer(value) || number < -1 || number > MOST)
        return unfit(where, m->name, value, "a whole number, not too large");
    if (m->type == IPU__JSON_INT64 || m->type == IPU__JSON_INT64_OR_0) {
        *(int64_t *)(void *)at = number;
        return IPU_OK;
    }
    if (number < INT32_MIN || number > INT32_MAX)
        return unfit(where, m->name, value, "a number of 32 bits");
    *(int32_t *)(void *)at = (int32_t)number;
    return IPU_OK;
}

static int unpack_text(const struct ipu__json_member *m, const char *where,
                       const json_t *value, struct ipu_profile *profile,
                       char *at)
{
    bool null =
        m->type == IPU__JSON_TEXT_OR_NULL && (!value || json_is_null(value));

    if (!json_is_string(value) && !null)
        return unfit(where, m->name, value, "a text");
    *(const char **)(void *)at =
        ipu__profile_keep(profile, json_string_value(value));
    return IPU_OK;
}

static int unpack_one(const struct ipu__json_member *m, const char *where,
                      const json_t *value, struct ipu_profile *profile,
                      char *at)
{
    switch (m->type) {
    case IPU__JSON_INT32_OR_0:
    case IPU__JSON_INT64_OR_0:
        return value ? unpack_integer(m, where, value, at) : IPU_OK;
    case IPU__JSON_INT32:
    case IPU__JSON_INT64: return unpack_integer(m, where, value, at);
    case IPU__JSON_REAL_OR_0:
        if (!value)
            return IPU_OK;
        __attribute__((fallthrough));
    case IPU__JSON_REAL:
        if (!json_is_number(value))
            return unfit(where, m->name, value, "a number");
        *(double *)(void *)at = json_number_value(value);
        return IPU_OK;
    case IPU__JSON_BOOL:
        if (!json_is_boolean(value))
            return unfit(where, m->name, value, "true or false");
        *(bool *)(void *)at = json_is_true(value);
        return IPU_OK;
    default: return unpack_text(m, where, value, profile, at);
    }
}

int ipu__json_unpack(const struct ipu__json_member *members, const char *where,
                     const json_t *json, struct ipu_profile *profile,
                     void *object)
{
    if (!json_is_object(json))
        return ipu__fail(IPU_ERR_DATA, "%s: must be an object", where);
    for (const struct ipu__json_member *m = members; m->name; m++)
        IPU_TRY(unpack_one(m, where, json_object_get(json, m->name), profile,
                           (char *)object + m->offset));
    return profile->lacks_memory ? ipu__fail_memory(1) : IPU_OK;
}
