/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tests profiles as files. A file is written whole or not at all, and is read
 * as it was. A file that is broken, cut off, of another version, or
 * inconsistent is refused in one line.
 */
#include "suite.h"

#include <math.h>

#include "report.h"

static struct device d;
static ipu_profile *profile, *again;

static void set_up(void)
{
    folder_make();
    profile = report_run(&d);
    again = NULL;
}

static void tear_down(void)
{
    folder_remove();
    ipu_profile_free(profile);
    ipu_profile_free(again);
    device_free(&d);
}

static const ipu_pipeline_slot slots[] = {
    {.ipu = 0, .slot = 0, .stage = 0, .kind = IPU_STAGE_FORWARD, .cycles = 100},
    {.ipu = 0,
     .slot = 1,
     .stage = 0,
     .kind = IPU_STAGE_FORWARD,
     .mini_batch = 1,
     .cycles = 100},
    {.ipu = 1, .slot = 1, .stage = 1, .kind = IPU_STAGE_FORWARD, .cycles = 70},
    {.ipu = 1, .slot = 2, .stage = 1, .kind = IPU_STAGE_BACKWARD, .cycles = 90},
    {.ipu = 1,
     .slot = 2,
     .stage = 1,
     .kind = IPU_STAGE_UPDATE,
     .mini_batch = -1,
     .cycles = 10},
};

/* ------------------------------------------------------------------ writing */

TEST(what_is_written_is_read_again)
{
    char *before, *after;

    MUST(ipu_profile_set_pipeline(profile, 5, slots));
    MUST(ipu_profile_write(profile, folder));
    ck_assert_int_eq(directory_entries(folder), 2);
    for (int form = 0; form < 3; form++) {
        MUST(ipu_profile_read(folder, &again));
        before = report_text(profile, form);
        after = report_text(again, form);
        ck_assert_str_eq(before, after);
        free(before);
        free(after);
        ipu_profile_free(again);
    }
    MUST(ipu_profile_read(in_folder("profile.json"), &again));
}

/* An executable from a file is the one that was saved. */
TEST(a_loaded_program_has_the_same_profile)
{
    const char *file = device_file("");
    struct device loaded = {0};
    ipu_profile *plain = NULL;
    char *a, *b;

    MUST(ipu_executable_save(d.executable, file));
    MUST(ipu_executable_load(file, &loaded.executable));
    unlink(file);
    again = report_profile(&loaded, "net");
    MUST(ipu_profile_new("net", &plain));
    MUST(ipu_profile_add(plain, "training", 0, d.executable, NULL));
    a = report_text(plain, IPU_PROFILE_JSON);
    b = report_text(again, IPU_PROFILE_JSON);
    ck_assert_str_eq(a, b);
    free(a);
    free(b);
    ipu_profile_free(plain);
    device_free(&loaded);
}

TEST(files_are_replaced)
{
    struct stat info;

    MUST(ipu_profile_write(profile, folder));
    MUST(ipu_profile_write(profile, folder));
    ck_assert_int_eq(directory_entries(folder), 2);
    ck_assert_int_eq(stat(in_folder("report.html"), &info), 0);
    ck_assert_int_eq(info.st_mode & 0400, 0400);
    ck_assert_int_gt(info.st_size, 20000);
}

TEST(a_missing_directory_is_made)
{
    const char *path = in_folder("new"), *deeper = in_folder("far/away");

    MUST(ipu_profile_check_directory(path));
    ck_assert_int_eq(directory_entries(path), 0);
    MUST(ipu_profile_write(profile, path));
    MUST_FAIL(ipu_profile_check_directory(deeper), IPU_ERR_DATA, "far/away");
    MUST_FAIL(ipu_profile_write(profile, deeper), IPU_ERR_DATA, "No such file");
}

TEST(what_cannot_be_written_is_said)
{
    const char *file = device_file("no directory");

    MUST_FAIL(ipu_profile_write(profile, file), IPU_ERR_DATA,
              "is there, and no directory");
    MUST_FAIL(ipu_profile_check_directory(file), IPU_ERR_DATA, file);
    MUST_FAIL(ipu_profile_check_directory("/proc"), IPU_ERR_DATA, "/proc");
    MUST_FAIL(ipu_profile_check_directory(NULL), IPU_ERR_ARGUMENT,
              "profile: the directory is NULL");
    MUST_FAIL(ipu_profile_write(NULL, "x"), IPU_ERR_ARGUMENT,
              "profile: the profile is NULL");
    MUST_FAIL(ipu_profile_check_directory(""), IPU_ERR_DATA, "");
    unlink(file);
}

/* A directory where the file should be: it cannot be replaced, nothing is
 * left. */
TEST(nothing_is_left_of_what_failed)
{
    const char *path = in_folder("profile.json");

    ck_assert_int_eq(mkdir(path, 0777), 0);
    MUST_FAIL(ipu_profile_write(profile, folder), IPU_ERR_DATA, path);
    ck_assert_int_eq(directory_entries(folder), 1);
    ck_assert_int_eq(rmdir(path), 0);
}

TEST(the_page_needs_nothing_else)
{
    char *html;
    const char *json, *end;
    json_t *document;

    MUST(ipu_profile_set_pipeline(profile, 5, slots));
    html = report_text(profile, IPU_PROFILE_HTML);
    ck_assert_ptr_null(strstr(html, "http://"));
    ck_assert_ptr_null(strstr(html, "https://"));
    ck_assert_ptr_null(strstr(html, " src="));
    ck_assert_ptr_null(strstr(html, "@import"));
    ck_assert_ptr_null(strstr(html, "url("));
    ck_assert_ptr_null(strstr(html, "fetch("));
    json = strstr(html, "id=\"profile\">\n");
    ck_assert_ptr_nonnull(json);
    json = strchr(json, '{');
    end = strstr(json, "</script>");
    ck_assert_ptr_nonnull(end);
    document = json_loadb(json, (size_t)(end - json), 0, NULL);
    ck_assert_ptr_nonnull(document);
    json_decref(document);
    free(html);
}

/* A name cannot end the script that it stands in. */
TEST(names_cannot_break_the_page)
{
    ipu_profile *evil = NULL;
    char *html;
    int ends = 0;

    MUST(ipu_profile_new("</script><script>alert(1)</script>", &evil));
    html = report_text(evil, IPU_PROFILE_HTML);
    for (const char *c = html; (c = strstr(c, "</script>")) != NULL; c++)
        ends++;
    ck_assert_int_eq(ends, 2);
    ck_assert_ptr_null(strstr(html, "<script>alert"));
    free(html);
    ipu_profile_free(evil);
}

/* ------------------------------------------------------------------ reading */

/* Reads this text. Returns the status. */
static int read_text(const char *text)
{
    const char *path = device_file(text);
    int status = ipu_profile_read(path, &again);

    unlink(path);
    return status;
}

#define MUST_REFUSE(text, words) MUST_FAIL(read_text(text), IPU_ERR_DATA, words)

TEST(what_is_no_profile_is_refused)
{
    MUST_FAIL(ipu_profile_read("/nowhere/at/all", &again), IPU_ERR_DATA,
              "/nowhere/at/all: cannot be read");
    MUST_FAIL(ipu_profile_read(NULL, &again), IPU_ERR_ARGUMENT,
              "profile: the path is NULL");
    MUST_FAIL(ipu_profile_read("x", NULL), IPU_ERR_ARGUMENT,
              "profile: the place for it is NULL");
    MUST_REFUSE("", "line 1");
    MUST_REFUSE("{\n\"format\": ", "line 2: is not JSON, or was cut off");
    MUST_REFUSE("[]", "is no profile");
    MUST_REFUSE("{\"format\": \"other\"}", "is no profile");
    MUST_REFUSE("{\"format\": \"ipu-profile\", \"version\": 2}",
                "of version 2, and this program reads version 1");
    MUST_REFUSE("{\"format\": \"ipu-profile\", \"version\": 1}",
                "'name' is missing");
    MUST_REFUSE("{\"format\": \"ipu-profile\", \"version\": 1, "
                "\"name\": \"x\"}",
                "'programs' is missing");
    MUST_REFUSE("{\"format\": \"ipu-profile\", \"version\": 1, "
                "\"name\": \"x\", \"programs\": [7]}",
                "programs[0]: must be an object");
    ck_assert_ptr_null(again);
}

TEST(every_cut_is_noticed)
{
    char *text = report_text(profile, IPU_PROFILE_JSON);
    size_t length = strlen(text);

    for (size_t cut = length - 2; cut > 0; cut -= cut > 997 ? 997 : cut) {
        text[cut] = '\0';
        ck_assert_int_eq(read_text(text), IPU_ERR_DATA);
    }
    free(text);
}

/* Reads the profile after a change. An accepted profile is also used, to see
 * that nothing else can be wrong with it. */
static int try_changed(const json_t *json)
{
    char *text = json_dumps(json, 0), *output = NULL;
    int status = read_text(text);

    free(text);
    if (status < 0)
        return status;
    for (int form = 0; form < 3; form++) {
        MUST(ipu_profile_print(again, form, &output));
        free(output);
        output = NULL; /* they may have nothing in common */
        ipu_profile_compare_print(profile, again, form, &output);
        free(output);
    }
    ipu_profile_free(again);
    again = NULL;
    return status;
}

/* Replaces each value of the first row of each table, and each value outside
 * tables. */
static void change_all(json_t *root, json_t *value, json_t *replacement,
                       int *refused)
{
    const char *key;
    json_t *member;
    void *next;

    if (json_is_array(value)) {
        for (size_t i = 0; i < json_array_size(value) && i < 2; i++)
            change_all(root, json_array_get(value, i), replacement, refused);
        return;
    }
    json_object_foreach_safe(value, next, key, member)
    {
        char name[64];

        snprintf(name, sizeof name, "%s", key);
        if (strcmp(name, "derived") == 0)
            continue;
        json_incref(member);
        json_object_set(value, name, replacement);
        *refused += try_changed(root) < 0;
        json_object_set(value, name, member);
        if (json_is_object(member) || json_is_array(member))
            change_all(root, member, replacement, refused);
        json_decref(member);
    }
}

LOOP_TEST(no_value_is_believed, 0, 8)
{
    json_t *replacements[] = {json_null(),
                              json_integer(-1),
                              json_integer(INT64_MAX),
                              json_integer(1 << 30),
                              json_integer((json_int_t)1 << 54),
                              json_string("?"),
                              json_array(),
                              json_real(1e300)};
    json_t *json;
    int refused = 0;

    MUST(ipu_profile_set_pipeline(profile, 5, slots));
    json = report_json(profile);
    MUST(try_changed(json));
    change_all(json, json, replacements[_i], &refused);
    ck_assert_int_gt(refused, 20);
    for (size_t i = 0; i < sizeof replacements / sizeof *replacements; i++)
        json_decref(replacements[i]);
    json_decref(json);
}

/* The test takes each member away in turn, except those that follow from
 * others. */
TEST(missing_members_are_named)
{
    static const char *const names[] = {"steps",  "blocks", "tiles",  "streams",
                                        "memory", "cycles", "target", "ipus"};
    json_t *json = report_json(profile);
    json_t *program = report_program(json, 0);

    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        json_t *member = json_incref(json_object_get(program, names[i]));

        json_object_del(program, names[i]);
        ck_assert_int_eq(try_changed(json), IPU_ERR_DATA);
        ck_assert_msg(strstr(ipu_last_error(), names[i]) != NULL,
                      "'%s' is not in: %s", names[i], ipu_last_error());
        json_object_set_new(program, names[i], member);
    }
    json_object_del(program, "derived"); /* nobody misses it */
    MUST(try_changed(json));
    json_object_set_new(program, "colour", json_string("blue"));
    MUST(try_changed(json)); /* of some later program */
    json_decref(json);
}

TEST(two_programs_of_one_name_are_refused)
{
    json_t *json = report_json(profile);
    json_t *programs = json_object_get(json, "programs");

    json_array_append(programs, json_array_get(programs, 0));
    ck_assert_int_eq(try_changed(json), IPU_ERR_DATA);
    ck_assert_ptr_nonnull(strstr(ipu_last_error(), "two programs"));
    json_decref(json);
}

/* ---------------------------------------------------------------- pipelines */

TEST(a_pipeline_is_drawn)
{
    char *text;
    json_t *json;
    const json_t *pipeline;

    MUST(ipu_profile_set_pipeline(profile, 5, slots));
    text = report_text(profile, IPU_PROFILE_TEXT);
    report_is_narrow(text);
    /* Slots take 100, 100 and 90 cycles of stages, in which the chips work for
     * 360 of 580, and the update 10. */
    ck_assert_ptr_nonnull(
        strstr(text, "2 IPUs, 3 slots, 300 cycles of stages and updates"));
    ck_assert_ptr_nonnull(strstr(text, "IPUs are idle for 37.9 %"));
    ck_assert_ptr_nonnull(strstr(text, "\n    0    F0    F1     .\n"));
    ck_assert_ptr_nonnull(strstr(text, "\n    1     .    F0   B0+\n"));
    free(text);
    json = report_json(profile);
    pipeline = json_object_get(json, "pipeline");
    ck_assert_uint_eq(json_array_size(pipeline), 5);
    ck_assert_str_eq(
        json_string_value(json_object_get(json_array_get(pipeline, 3), "kind")),
        "backward");
    ck_assert_int_eq(report_number(json_array_get(pipeline, 4), "mini_batch"),
                     -1);
    json_decref(json);
    MUST(ipu_profile_set_pipeline(profile, 0, NULL)); /* taken back */
    json = report_json(profile);
    ck_assert_ptr_null(json_object_get(json, "pipeline"));
    json_decref(json);
}

TEST(a_pipeline_alone_is_a_profile)
{
    ipu_profile *alone = NULL;
    ipu_pipeline_slot many[200] = {{0}};
    char *text;

    for (int i = 0; i < 200; i++)
        many[i] = (ipu_pipeline_slot){.ipu = i % 3,
                                      .slot = i,
                                      .stage = i % 3,
                                      .mini_batch = i,
                                      .cycles = 10};
    MUST(ipu_profile_new("pipe", &alone));
    MUST(ipu_profile_set_pipeline(alone, 200, many));
    text = report_text(alone, IPU_PROFILE_TEXT);
    report_is_narrow(text);
    ck_assert_ptr_nonnull(strstr(text, "more slots"));
    free(text);
    ipu_profile_free(alone);
}

TEST(slots_are_checked)
{
    static const struct {
        ipu_pipeline_slot slot;
        const char *word;
    } wrong[] = {{{.ipu = -1}, "ipu"},
                 {{.ipu = 1 << 20}, "ipu"},
                 {{.slot = -1}, "slot"},
                 {{.stage = -1}, "stage"},
                 {{.kind = IPU_NUM_STAGE_KINDS}, "kind"},
                 {{.mini_batch = -2}, "mini_batch"},
                 {{.cycles = -1}, "cycles"}};
    const ipu_pipeline_slot endless[] = {{.cycles = INT64_MAX},
                                         {.cycles = INT64_MAX}};

    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        MUST_FAIL(ipu_profile_set_pipeline(profile, 1, &wrong[i].slot),
                  IPU_ERR_ARGUMENT, wrong[i].word);
    MUST_FAIL(ipu_profile_set_pipeline(profile, 2, endless), IPU_ERR_ARGUMENT,
              "too many to be true");
    MUST_FAIL(ipu_profile_set_pipeline(profile, -1, slots), IPU_ERR_ARGUMENT,
              "-1 slots");
    MUST_FAIL(ipu_profile_set_pipeline(profile, 1, NULL), IPU_ERR_ARGUMENT,
              "pipeline: the slots are NULL");
    MUST_FAIL(ipu_profile_set_pipeline(NULL, 1, slots), IPU_ERR_ARGUMENT,
              "pipeline: the profile is NULL");
    ck_assert_str_eq(ipu_stage_kind_name(IPU_STAGE_RECOMPUTE), "recompute");
    ck_assert_ptr_null(ipu_stage_kind_name(-1));
}

TEST_MAIN("device_report_file", .set_up = set_up, .tear_down = tear_down,
          .seconds = 120)
