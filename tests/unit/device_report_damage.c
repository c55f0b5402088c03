/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tests impossible profiles. One value of a good profile is replaced, and the
 * whole text of the refusal must say where the value is, and what is wrong.
 */
#include "suite.h"

#include "report.h"

static struct device d;
static ipu_profile *profile;

static const ipu_pipeline_slot slot = {.kind = IPU_STAGE_FORWARD, .cycles = 9};

static void set_up(void)
{
    folder_make();
    profile = report_run(&d);
    MUST(ipu_profile_set_pipeline(profile, 1, &slot));
}

static void tear_down(void)
{
    folder_remove();
    ipu_profile_free(profile);
    device_free(&d);
}

/* Returns the object or array that holds the value at a path such as
 * "programs.0.steps", and sets *last to the last part of the path. */
static json_t *holder(json_t *json, const char *path, const char **last)
{
    static char text[128];
    char *part = text, *dot;

    snprintf(text, sizeof text, "%s", path);
    for (; (dot = strchr(part, '.')) != NULL; part = dot + 1) {
        *dot = '\0';
        json = json_is_array(json) ? json_array_get(json, (size_t)atoi(part))
                                   : json_object_get(json, part);
    }
    *last = part;
    return json;
}

/* by: JSON; NULL: it is missing. */
static void replace(json_t *json, const char *path, const char *by)
{
    const char *last;
    json_t *of = holder(json, path, &last);
    json_t *value = by ? json_loads(by, JSON_DECODE_ANY, NULL) : NULL;

    ck_assert(!by == !value);
    if (json_is_array(of))
        ck_assert_int_eq(json_array_set_new(of, (size_t)atoi(last), value), 0);
    else if (value)
        ck_assert_int_eq(json_object_set_new(of, last, value), 0);
    else
        ck_assert_int_eq(json_object_del(of, last), 0);
}

static const struct damage {
    const char *path, *by, *text; /* after the file's name */
} damages[] = {
    {"name", NULL, ": 'name' is missing"},
    {"programs", NULL, ": 'programs' is missing"},
    {"pipeline", "{}", ": 'pipeline' must be a list"},
    {"pipeline.0.kind", "\"sideways\"",
     ", pipeline[0]: 'kind' is none of forward, backward, recompute, update"},
    {"pipeline.0.cycles", "\"many\"",
     ", pipeline[0]: 'cycles' must be a whole number, not too large"},
    {"pipeline.0.ipu", "-1",
     ": pipeline: the ipu of entry 0 is -1: it is 0 to 4095"},
    {"programs.0", "7", ", programs[0]: must be an object"},
    {"programs.0.ipus", "0",
     ", program 'training': it runs on 0 IPUs, from 0 on: 1 to 256, from 0 on"},
    {"programs.0.target", NULL, ", program 'training', target: is missing"},
    {"programs.0.target", "[]",
     ", program 'training', target: a target is one object, {\"tiles\": 1472, "
     "...}"},
    {"programs.0.memory.fullest_tile", "100000000",
     ", program 'training': its fullest tile or step is none of its own"},
    {"programs.0.measured.runs", "0",
     ", program 'training': measured in 0 runs: 1 or more"},
    {"programs.0.steps", NULL, ", program 'training': 'steps' is missing"},
    {"programs.0.steps", "{}", ", program 'training': 'steps' must be a list"},
    {"programs.0.steps.1.times", "0",
     ", program 'training': step 1 has a number that cannot be"},
    {"programs.0.steps.1.times", "4294967296",
     ", program 'training', steps[1]: 'times' must be a number of 32 bits"},
    {"programs.0.memory.bytes_per_tile", "36028797018963968",
     ", program 'training': its cycles or bytes are too many to be true"},
    {"programs.0.tiles.0.count", "0",
     ", program 'training': tiles 0 has a number that cannot be"},
    {"programs.0.blocks.2.birth", "-2",
     ", program 'training', blocks[2]: 'birth' must be a whole number, not too "
     "large"},
    {"programs.0.blocks.2.death", "1000000",
     ", program 'training': block 2 has a number that cannot be"},
    {"programs.0.blocks.0.category", "\"furniture\"",
     ", program 'training': 'x' is of category 'furniture', and there is none"},
    {"programs.0.blocks.0.uses", "1",
     ", program 'training': 'uses' must be a list"},
    {"programs.0.blocks.0.tiles", "[[0, 1]]",
     ", program 'training': the tiles of 'x' must be lists of three numbers: "
     "the first, how many, bytes on each"},
};

LOOP_TEST(what_cannot_be_is_refused, 0, sizeof damages / sizeof *damages)
{
    const struct damage *damage = &damages[_i];
    json_t *json = report_json(profile);
    ipu_profile *again = NULL;
    const char *path;
    char whole[1200], *text;

    replace(json, damage->path, damage->by);
    text = json_dumps(json, 0);
    path = device_file(text);
    snprintf(whole, sizeof whole, "%s%s", path, damage->text);
    ck_assert_int_eq(ipu_profile_read(path, &again), IPU_ERR_DATA);
    ck_assert_str_eq(ipu_last_error(), whole);
    ck_assert_ptr_null(again);
    unlink(path);
    free(text);
    json_decref(json);
}

/* The directory is a link to nothing. */
TEST(a_directory_that_is_not_there)
{
    const char *path = in_folder("link");
    char words[700];

    ck_assert_int_eq(symlink("/nowhere/at/all", path), 0);
    snprintf(words, sizeof words,
             "%s: cannot be looked at: No such file or directory", path);
    ck_assert_int_eq(ipu_profile_check_directory(path), IPU_ERR_DATA);
    ck_assert_str_eq(ipu_last_error(), words);
}

TEST_MAIN("device_report_damage", .set_up = set_up, .tear_down = tear_down)
