/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tests a pipeline in a report: its run as a whole comes first, adds up, and
 * agrees with the picture of its slots and with its programs.
 */
#include "suite.h"

#include <stdbool.h>

#include "pipelined.h"
#include "report.h"

enum { RUNS = 3 };

static ipu_profile *profile;
static json_t *json;

static void set_up(void)
{
    folder_make();
    begin();
    profile = NULL;
    json = NULL;
}

static void tear_down(void)
{
    folder_remove();
    json_decref(json);
    ipu_profile_free(profile);
}

/* Makes a profile of the pipeline after a few runs, with its state off the
 * chips. */
static void make(int nstages, int recompute, int replicas)
{
    which = ADAM;
    cut(nstages, 0);
    if (replicas > 1) {
        ipu_infeed_free(options.infeed);
        options.infeed = infeed_of(&data, replicas);
        options.replicas = replicas;
        options.sink = NULL;
    }
    options.record = 1;
    options.recompute = recompute;
    options.offload_state = IPU_OFFLOAD_ON;
    start();
    for (int i = 0; i < RUNS; i++)
        MUST(ipu_pipeline_run(pipeline));
    MUST(ipu_profile_new("whole", &profile));
    MUST(ipu_pipeline_profile(pipeline, profile));
    finish();
    json = report_json(profile);
}

static const json_t *run_of(const json_t *document)
{
    const json_t *run = json_object_get(document, "pipeline_run");

    ck_assert_msg(json_is_object(run), "there is no pipeline_run");
    return run;
}

static const json_t *program_named(const char *name)
{
    const json_t *program;
    size_t i;

    json_array_foreach(json_object_get(json, "programs"), i, program)
    {
        if (strcmp(json_string_value(json_object_get(program, "name")), name) ==
            0)
            return program;
    }
    ck_abort_msg("there is no program '%s'", name);
    return NULL;
}

/* Returns the cycles of a chip's entries in the picture. */
static int64_t drawn(const char *kind, int64_t ipu)
{
    const json_t *slot;
    int64_t sum = 0;
    size_t i;

    json_array_foreach(json_object_get(json, "pipeline"), i, slot)
    {
        if (report_number(slot, "ipu") == ipu &&
            strcmp(json_string_value(json_object_get(slot, "kind")), kind) == 0)
            sum += report_number(slot, "cycles");
    }
    return sum;
}

/* _i is stages / 2, with recomputation. */
LOOP_TEST(parts_of_a_run_add_up, 0, 4)
{
    const json_t *run, *stage, *chip;
    int64_t count;
    size_t i;

    make(_i % 2 ? 4 : 2, _i / 2, 1);
    run = run_of(json);
    count = report_number(run, "mini_batches");
    ck_assert_int_eq(count, options.count);
    ck_assert_int_eq(report_number(run, "updates"), 1);
    ck_assert_int_eq(
        report_number(run, "work") + report_number(run, "exchange") +
            report_number(run, "sync") + report_number(run, "host") +
            report_number(run, "update"),
        report_number(run, "total"));
    json_array_foreach(json_object_get(run, "stages"), i, stage)
    {
        int64_t ipu = report_number(stage, "ipu");

        ck_assert_int_eq(drawn("forward", ipu),
                         count * report_number(stage, "forward"));
        ck_assert_int_eq(drawn("backward", ipu),
                         count * report_number(stage, "backward"));
        ck_assert_int_eq(drawn("recompute", ipu),
                         count * report_number(stage, "recompute"));
        ck_assert_int_gt(report_number(stage, "ns"), 0);
    }
    json_array_foreach(json_object_get(run, "ipus"), i, chip)
    {
        char name[32];

        snprintf(name, sizeof name, "update on IPU %d",
                 (int)report_number(chip, "ipu"));
        /* The last of four has nothing that is large enough to go. */
        if (i == 0)
            ck_assert_int_gt(report_number(chip, "offload"), 0);
        ck_assert_int_eq(drawn("update", report_number(chip, "ipu")),
                         report_number(chip, "update"));
        ck_assert_int_eq(report_number(program_named(name), "pipeline_cycles"),
                         report_number(chip, "update"));
    }
}

/* Stashes, links and arguments are not streams of the host. */
TEST(streams_say_what_they_are)
{
    static const struct {
        const char *program, *stream, *kind;
    } are[] = {
        {"0 forward", "in:0", "argument"},  {"0 forward", "in:1", "input"},
        {"0 forward", "out:0", "link"},     {"0 forward", "stash:0", "stash"},
        {"0 backward", "stash:0", "stash"}, {"1 forward", "in:1", "link"},
        {"1 forward", "out:0", "output"},   {"1 backward", "dx:1", "link"}};

    make(2, 0, 1);
    for (size_t n = 0; n < sizeof are / sizeof *are; n++) {
        const json_t *program = program_named(are[n].program), *stream;
        bool found = false;
        size_t i;

        json_array_foreach(json_object_get(program, "streams"), i, stream)
        {
            const json_t *kind = json_object_get(stream, "kind");

            if (strcmp(json_string_value(json_object_get(stream, "name")),
                       are[n].stream) != 0)
                continue;
            found = true;
            ck_assert_str_eq(json_string_value(kind), are[n].kind);
        }
        ck_assert_msg(found, "'%s' has no stream '%s'", are[n].program,
                      are[n].stream);
    }
}

/* The text opens with the whole pipeline, in sentences that name its bound. */
TEST(the_whole_comes_first)
{
    const json_t *derived, *measured;
    char *text;

    make(4, 0, 1);
    text = report_text(profile, IPU_PROFILE_TEXT);
    report_is_narrow(text);
    ck_assert_ptr_eq(strstr(text, "whole: the pipeline"), text);
    ck_assert_ptr_nonnull(strstr(text, "The bottleneck is '"));
    ck_assert_ptr_nonnull(strstr(text, "While stages work, IPUs are idle for"));
    ck_assert_ptr_nonnull(strstr(text, "* Updates take "));
    ck_assert_ptr_nonnull(strstr(text, "On this machine 3 runs took "));
    ck_assert_ptr_null(strstr(text, "Device-bound"));
    free(text);
    derived = json_object_get(run_of(json), "derived");
    ck_assert_uint_eq(json_array_size(json_object_get(derived, "sentences")),
                      6);
    measured = json_object_get(run_of(json), "measured");
    ck_assert_int_eq(report_number(measured, "runs"), RUNS);
    ck_assert_int_ge(report_number(measured, "run_ns"),
                     RUNS * report_number(measured, "fastest_ns"));
    measured = json_object_get(program_named("0 forward"), "measured");
    ck_assert_int_eq(report_number(measured, "runs"), RUNS * options.count);
}

TEST(it_comes_back_from_a_file)
{
    ipu_profile *again = NULL;
    ipu_profile_change change = {.size = sizeof change};
    char *before, *after;

    make(2, 1, 2);
    ck_assert_int_eq(report_number(run_of(json), "replicas"), 2);
    ck_assert_uint_eq(json_array_size(json_object_get(run_of(json), "ipus")),
                      4);
    MUST(ipu_profile_write(profile, folder));
    MUST(ipu_profile_read(folder, &again));
    before = report_text(profile, IPU_PROFILE_JSON);
    after = report_text(again, IPU_PROFILE_JSON);
    ck_assert_str_eq(before, after);
    free(before);
    free(after);
    MUST(ipu_profile_compare(profile, again, &change));
    ck_assert_int_eq(change.programs, 6);
    ck_assert_double_eq(change.cycles_percent, 0);
    after = NULL;
    MUST(ipu_profile_compare_print(profile, again, IPU_PROFILE_TEXT, &after));
    ck_assert_ptr_nonnull(strstr(after, "the pipeline "));
    ck_assert_ptr_nonnull(strstr(after, "  between IPUs "));
    free(after);
    ipu_profile_free(again);
}

/* A pipeline that became slower is reported, even if no program did. */
TEST(a_slower_pipeline_is_found)
{
    ipu_profile_change change = {.size = sizeof change};
    ipu_profile *before;

    make(2, 0, 1);
    before = profile;
    json_decref(json);
    json = NULL;
    begin();
    make(2, 1, 1);
    MUST(ipu_profile_compare(before, profile, &change));
    ck_assert(change.cycles_percent > 0);
    ipu_profile_free(before);
}

/* Impossible numbers are refused when a profile is read. */
LOOP_TEST(numbers_that_cannot_be_are_refused, 0, 7)
{
    static const struct {
        const char *list, *member;
        double value;
        const char *words;
    } wrong[] = {
        {NULL, "total", -1, "pipeline_run: the run of the pipeline has"},
        {NULL, "clock_hz", 0, "pipeline_run: the run of the pipeline has"},
        {NULL, "slots", 0.5, "pipeline_run: 'slots' must be a whole number"},
        {"stages", "forward", -1, "pipeline_run: the run of the pipeline has"},
        {"ipus", "ipu", -1, "pipeline_run: the run of the pipeline has"},
        {"stages", NULL, 0, "'stages' must be a list that is not empty"},
        {"ipus", NULL, 0, "'ipus' must be a list that is not empty"}};
    ipu_profile *none = NULL;
    const char *path = in_folder("profile.json");
    json_t *object;

    make(2, 0, 1);
    object = json_object_get(json, "pipeline_run");
    if (wrong[_i].list && wrong[_i].member)
        object = json_array_get(json_object_get(object, wrong[_i].list), 0);
    json_object_set_new(object,
                        wrong[_i].member ? wrong[_i].member : wrong[_i].list,
                        wrong[_i].value == 0.5 || wrong[_i].member == NULL ||
                                strcmp(wrong[_i].member, "clock_hz") == 0
                            ? json_real(wrong[_i].value)
                            : json_integer((json_int_t)wrong[_i].value));
    ck_assert_int_eq(json_dump_file(json, path, 0), 0);
    MUST_FAIL(ipu_profile_read(path, &none), IPU_ERR_DATA, wrong[_i].words);
}

TEST_MAIN("device_report_pipeline", .set_up = set_up, .tear_down = tear_down,
          .seconds = 120)
