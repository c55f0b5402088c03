/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pack_run.c - converts a run of a pipeline to JSON and back: its figures, a
 * row for each stage and each chip, and, for other readers and the page, what
 * follows from them. pack.c and unpack.c call it for the member "pipeline_run".
 */
#include <stdio.h>
#include <string.h>

#include "report/members.h"
#include "report/run.h"

static int pack_derived(const struct ipu_profile *profile, json_t *json)
{
    char sentences[IPU__MOST_WORDS][IPU__WORDS_TEXT];
    struct ipu__slots_account slots;
    json_t *array = json_array();
    int32_t count;
    int status = ipu__say_run(profile, sentences, &count);

    if (status >= 0)
        status = ipu__account_slots(profile, &slots);
    if (status < 0) {
        json_decref(array);
        return status;
    }
    for (int32_t i = 0; i < count; i++)
        json_array_append_new(array, json_string(sentences[i]));
    json_object_set_new(json, "derived",
                        json_pack("{s:o, s:i, s:f, s:f, s:I}", "sentences",
                                  array, "slowest_ipu", (int)slots.slowest,
                                  "empty_cycles", slots.empty, "waiting_cycles",
                                  slots.waiting, "level_cycles",
                                  (json_int_t)slots.level));
    return IPU_OK;
}

int ipu__run_pack(const struct ipu_profile *profile, json_t *document)
{
    const struct ipu__profile_run *run = &profile->run;
    json_t *json;
    int status;

    if (run->nstages == 0)
        return IPU_OK;
    json = ipu__json_pack(ipu__run_json, run);
    json_object_set_new(json, "measured",
                        run->measured
                            ? ipu__json_pack(ipu__times_json, &run->times)
                            : json_null());
    status = pack_derived(profile, json);
    json_object_set_new(json, "stages",
                        ipu__json_pack_rows(ipu__stage_json, run->stages,
                                            run->nstages, sizeof *run->stages));
    json_object_set_new(json, "ipus",
                        ipu__json_pack_rows(ipu__chip_json, run->chips,
                                            run->nchips, sizeof *run->chips));
    if (status >= 0 &&
        (!json || json_object_set_new(document, "pipeline_run", json) < 0))
        return ipu__fail_memory(sizeof *run);
    if (status < 0)
        json_decref(json);
    return status;
}

/* ------------------------------------------------------------------ reading */

/* Reads a list of objects into rows of stride bytes each. table: the address of
 * the pointer that owns them. */
static int read_rows(const char *where, const char *name, const json_t *json,
                     const struct ipu__json_member *members, size_t stride,
                     struct ipu_profile *profile, void *table, int32_t *count)
{
    const json_t *array = json_object_get(json, name);
    size_t n = json_array_size(array);
    char *rows;

    if (!json_is_array(array) || n == 0 || n > INT32_MAX / 2)
        return ipu__fail(IPU_ERR_DATA,
                         "%s: '%s' must be a list that is not empty", where,
                         name);
    IPU_TRY(ipu__new_array(&rows, n, stride));
    memcpy(table, &rows, sizeof rows);
    *count = (int32_t)n;
    for (size_t i = 0; i < n; i++)
        IPU_TRY(ipu__json_unpack(members, where, json_array_get(array, i),
                                 profile, rows + i * stride));
    return IPU_OK;
}

static int read_measured(const char *where, const json_t *json,
                         struct ipu_profile *profile)
{
    struct ipu__profile_run *run = &profile->run;
    const json_t *measured = json_object_get(json, "measured");

    run->times.size = sizeof run->times;
    if (!measured || json_is_null(measured))
        return IPU_OK;
    run->measured = true;
    return ipu__json_unpack(ipu__times_json, where, measured, profile,
                            &run->times);
}

int ipu__run_unpack(const char *path, const json_t *document,
                    struct ipu_profile *profile)
{
    struct ipu__profile_run *run = &profile->run;
    const json_t *json = json_object_get(document, "pipeline_run");
    char where[512];

    if (!json)
        return IPU_OK;
    snprintf(where, sizeof where, "%.300s, pipeline_run", path);
    IPU_TRY(ipu__json_unpack(ipu__run_json, where, json, profile, run));
    IPU_TRY(read_measured(where, json, profile));
    IPU_TRY(read_rows(where, "stages", json, ipu__stage_json,
                      sizeof *run->stages, profile, &run->stages,
                      &run->nstages));
    IPU_TRY(read_rows(where, "ipus", json, ipu__chip_json, sizeof *run->chips,
                      profile, &run->chips, &run->nchips));
    return ipu__run_check(where, run);
}
