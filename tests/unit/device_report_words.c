/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tests the findings of a profile: the bound of the program, and changes that
 * would make it faster or smaller. The test adds up the same figures itself.
 */
#include "suite.h"

#include <stdbool.h>

#include "profiled.h"

static ipu_block_info block(int32_t i)
{
    ipu_block_info info = {.size = sizeof info};

    MUST(ipu_executable_block(d.executable, i, &info));
    return info;
}

/* ----------------------------------------------------------------- in words */

static void text_has(const char *words)
{
    char *text = report_text(profile, IPU_PROFILE_TEXT);

    report_is_narrow(text);
    ck_assert_msg(strstr(text, words) != NULL, "'%s' is not in:\n%s", words,
                  text);
    free(text);
}

TEST(the_text_is_narrow_whatever_names_are_in_it)
{
    char name[300] = "";
    ipu_tensor x;

    for (int i = 0; i < 60; i++)
        strcat(name, i % 7 ? "ä" : "\x01"); /* and something to escape */
    x = device_floats(&d, name, 2, SHAPE(1234567, 8));
    MUST(ipu_output(d.graph, "y\xff\xc3", ipu_relu(d.graph, x)));
    MUST(ipu_compile(d.graph, NULL, &d.executable));
    MUST(ipu_profile_new(name, &profile));
    MUST(ipu_profile_add(profile, name, 0, d.executable, NULL));
    text_has("tiles by the bytes");
    json_decref(report_json(profile)); /* all of it is UTF-8 */
}

TEST(small_work_is_bound_by_the_host)
{
    network(8);
    MUST(ipu_engine_profile(d.engine, 1));
    MUST(ipu_engine_run(d.engine));
    MUST(ipu_engine_run(d.engine));
    profile = report_profile(&d, "net");
    text_has("* Host-bound: ");
    text_has("From one run to the next");
    text_has("On this machine 2 runs took ");
    text_has("why figures marked ~ are estimates");
    text_has("I/O tiles");
}

TEST(large_work_is_bound_by_the_device)
{
    ipu_tensor w =
        ipu_variable(d.graph, "w", IPU_FLOAT32, 2, SHAPE(1024, 1024));
    ipu_tensor x = w;

    for (int i = 0; i < 20; i++)
        x = ipu_matmul(d.graph, x, w);
    MUST(ipu_output(d.graph, "y", ipu_reduce_sum(d.graph, x, 1)));
    MUST(ipu_compile(d.graph, NULL, &d.executable));
    MUST(ipu_profile_new("large", &profile));
    MUST(ipu_profile_add(profile, "p", 0, d.executable, NULL));
    text_has("* Device-bound: ");
}

TEST(what_does_not_fit_is_said)
{
    ipu_target target;
    const ipu_compile_options options = {
        .size = sizeof options, .target = &target, .allow_out_of_memory = 1};

    ipu_target_init(&target, sizeof target);
    target.tiles = 4;
    target.bytes_per_tile = 2048;
    report_network(&d, 8, device_no_call);
    MUST(ipu_compile_with(d.graph, &options, &d.executable));
    profile = report_profile(&d, "net");
    text_has("The program does not fit.");
}

/* ---------------------------------------------------------------- findings */

/* Returns the finding of a kind; borrowed. */
static const json_t *finding(const json_t *program, const char *list,
                             const char *kind)
{
    const json_t *found =
        json_object_get(json_object_get(program, "derived"), list);
    const json_t *f;
    size_t i;

    json_array_foreach(found, i, f)
    {
        if (strcmp(json_string_value(json_object_get(f, "kind")), kind) == 0)
            return f;
    }
    return NULL;
}

/* Builds early results that wait for the backward pass while a wide layer in
 * the middle makes the peak. */
static void waiting_network(const ipu_target *target)
{
    ipu_tensor w[4], g[4];
    ipu_tensor x = device_floats(&d, "x", 2, SHAPE(512, 256));
    static const int64_t widths[] = {256, 256, 1536, 256, 16};

    for (int i = 0; i < 4; i++) {
        char name[16];

        snprintf(name, sizeof name, "w%d", i);
        w[i] = ipu_variable(d.graph, name, IPU_FLOAT32, 2,
                            SHAPE(widths[i], widths[i + 1]));
        x = ipu_tanh(d.graph, ipu_matmul(d.graph, x, w[i]));
    }
    MUST(ipu_gradients(d.graph, ipu_reduce_sum(d.graph, x, 1), 4, w, g));
    for (int i = 0; i < 4; i++) {
        char name[16];

        snprintf(name, sizeof name, "g%d", i);
        MUST(ipu_host_call(d.graph, name, g[i], device_no_call, NULL));
    }
    MUST(ipu_compile(d.graph, target, &d.executable));
    profile = report_profile(&d, "waiting");
}

static bool uses(const json_t *entry, size_t step)
{
    const json_t *use;
    size_t i;

    json_array_foreach(json_object_get(entry, "uses"), i, use)
    {
        if ((size_t)json_integer_value(use) == step)
            return true;
    }
    return false;
}

/* Returns how full the fullest tile is if a block is there only in the steps
 * that use it. */
static int64_t peak_if_dropped(const json_t *program, int32_t which)
{
    const json_t *entry =
        json_array_get(json_object_get(program, "blocks"), (size_t)which);
    const json_t *step;
    int64_t most = 0;
    size_t i;

    json_array_foreach(json_object_get(program, "steps"), i, step)
    {
        int64_t bytes = report_number(step, "fullest_tile_bytes");

        if (report_number(entry, "birth") <= (int64_t)i &&
            (int64_t)i <= report_number(entry, "death") && !uses(entry, i))
            bytes -= ipu_executable_block_on_tile(
                d.executable, which,
                (int32_t)report_number(step, "fullest_tile"));
        most = bytes > most ? bytes : most;
    }
    return most;
}

TEST(what_waits_over_the_peak_may_be_made_again)
{
    json_t *json;
    const json_t *program, *f, *memory;
    int32_t tile, which;

    waiting_network(NULL);
    json = report_json(profile);
    program = report_program(json, 0);
    f = finding(program, "saves_memory", "recompute");
    ck_assert_ptr_nonnull(f);
    memory = json_object_get(program, "memory");
    tile = (int32_t)report_number(memory, "fullest_tile");
    which = (int32_t)report_number(f, "block");
    /* A block cannot save more bytes than it has there. The cost is that of
     * computing it again. */
    ck_assert_int_gt(report_number(f, "bytes"), 0);
    ck_assert_int_le(report_number(f, "bytes"),
                     ipu_executable_block_on_tile(d.executable, which, tile));
    ck_assert_int_eq(report_number(f, "bytes"),
                     report_number(memory, "fullest_tile_bytes") -
                         peak_if_dropped(program, which));
    ck_assert_int_lt(report_number(f, "cycles"), 0);
    ck_assert_int_lt(block(which).birth, report_number(memory, "fullest_step"));
    ck_assert_int_gt(block(which).death, report_number(memory, "fullest_step"));
    json_decref(json);
}

/* Another step uses the dropped block and is nearly as full as the peak, so
 * only the difference can be saved. */
TEST(the_next_peak_bounds_what_is_saved)
{
    json_t *json;
    const json_t *f, *memory;
    json_t *step;
    const char *path;
    char *text;
    int32_t which;

    waiting_network(NULL);
    json = report_json(profile);
    memory = json_object_get(report_program(json, 0), "memory");
    f = finding(report_program(json, 0), "saves_memory", "recompute");
    ck_assert_ptr_nonnull(f);
    ck_assert_int_gt(report_number(f, "bytes"), 16);
    which = (int32_t)report_number(f, "block");
    step = json_array_get(json_object_get(report_program(json, 0), "steps"),
                          (size_t)block(which).death);
    json_object_set_new(
        step, "fullest_tile_bytes",
        json_integer(report_number(memory, "fullest_tile_bytes") - 8));
    text = json_dumps(json, 0);
    json_decref(json);
    path = device_file(text);
    free(text);
    ipu_profile_free(profile);
    profile = NULL;
    MUST(ipu_profile_read(path, &profile));
    unlink(path);
    json = report_json(profile);
    f = finding(report_program(json, 0), "saves_memory", "recompute");
    ck_assert_ptr_nonnull(f);
    ck_assert_int_eq(report_number(f, "bytes"), 8);
    json_decref(json);
}

TEST(idle_variables_may_be_kept_beside_the_chip)
{
    ipu_target target;
    json_t *json;

    ipu_target_init(&target, sizeof target);
    waiting_network(&target);
    json = report_json(profile);
    ck_assert_ptr_nonnull(
        finding(report_program(json, 0), "saves_memory", "offload"));
    json_decref(json);
    ipu_profile_free(profile);
    ipu_executable_free(d.executable);
    ipu_graph_free(d.graph);
    d = device_new();
    target.streaming_bytes_per_second = 0; /* no streaming memory */
    waiting_network(&target);
    json = report_json(profile);
    ck_assert_ptr_null(
        finding(report_program(json, 0), "saves_memory", "offload"));
    json_decref(json);
}

/* Halves take half of the tensors' bytes. The predicted time must be the one
 * that compiling for halves gives. */
TEST(halves_take_half)
{
    json_t *json;
    const json_t *program, *f, *memory;
    int64_t fullest, code;

    waiting_network(NULL);
    json = report_json(profile);
    program = report_program(json, 0);
    f = finding(program, "saves_memory", "half");
    ck_assert_ptr_nonnull(f);
    memory = json_object_get(program, "memory");
    fullest = report_number(memory, "fullest_tile_bytes");
    code = report_number(program, "code_bytes");
    ck_assert_int_le(llabs(2 * report_number(f, "bytes") - (fullest - code)),
                     64);
    json_decref(json);
}

TEST(steps_on_few_tiles_are_found)
{
    ipu_target target;
    json_t *json;
    const json_t *f;

    /* The sum of one row of many elements lies on few tiles. */
    ipu_target_init(&target, sizeof target);
    MUST(ipu_output(
        d.graph, "y",
        ipu_reduce_sum(d.graph,
                       ipu_matmul(d.graph,
                                  device_floats(&d, "a", 2, SHAPE(1, 7)),
                                  device_floats(&d, "b", 2, SHAPE(7, 9000))),
                       1)));
    MUST(ipu_compile(d.graph, &target, &d.executable));
    profile = report_profile(&d, "few");
    json = report_json(profile);
    for (size_t i = 0; i < 2; i++) {
        ipu_step_info info = {.size = sizeof info};

        MUST(ipu_executable_step(d.executable, (int32_t)i, &info));
        f = finding(report_program(json, 0), "saves_time", "balance");
        if (f && report_number(f, "step") == (int64_t)i) {
            ck_assert_int_lt(info.busy_tiles, 1472);
            ck_assert_int_lt(report_number(f, "cycles"), info.compute_cycles);
            ck_assert_int_gt(report_number(f, "cycles"), 0);
        }
    }
    f = finding(report_program(json, 0), "saves_time", "streams");
    ck_assert_ptr_nonnull(f);
    json_decref(json);
}

TEST_MAIN("device_report_words", .set_up = set_up, .tear_down = tear_down)
