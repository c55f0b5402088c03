/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tests profiles of programs: the counts of engines, the contents of blocks and
 * tiles. All of it must agree with the figures of executables.
 */
#include "suite.h"

#include <math.h>

#include "profiled.h"

/* ----------------------------------------------------------------- counting */

static ipu_engine_times times(void)
{
    ipu_engine_times t = {.size = sizeof t};

    MUST(ipu_engine_get_times(d.engine, &t));
    return t;
}

TEST(an_engine_counts_when_it_is_asked)
{
    ipu_engine_times t = {.size = sizeof t};
    ipu_memory_info info = {.size = sizeof info};
    int64_t steps = 0;

    network(8);
    MUST(ipu_engine_run(d.engine));
    MUST_FAIL(ipu_engine_get_times(d.engine, &t), IPU_ERR_STATE,
              "does not count");
    MUST_FAIL((int)ipu_engine_step_ns(d.engine, 0), IPU_ERR_STATE,
              "does not count");
    MUST(ipu_engine_profile(d.engine, 1));
    ck_assert_int_eq(times().runs, 0);
    for (int i = 0; i < 5; i++)
        MUST(ipu_engine_run(d.engine));
    t = times();
    ck_assert_int_eq(t.runs, 5);
    ck_assert_int_gt(t.fastest_ns, 0);
    ck_assert_int_le(5 * t.fastest_ns, t.run_ns);
    ck_assert_int_gt(t.between_ns, 0);
    MUST(ipu_executable_memory(d.executable, &info));
    for (int32_t i = 0; i < info.steps; i++)
        steps += ipu_engine_step_ns(d.engine, i);
    ck_assert_int_gt(t.call_ns, 0);
    ck_assert_int_eq(steps + t.input_ns + t.output_ns, t.run_ns);
    MUST(ipu_engine_profile(d.engine, 1)); /* anew */
    ck_assert_int_eq(times().runs, 0);
    MUST(ipu_engine_profile(d.engine, 0));
    MUST_FAIL(ipu_engine_get_times(d.engine, &t), IPU_ERR_STATE,
              "does not count");
}

static int refuse(void *context, const char *name, void *data, int64_t count)
{
    (void)context;
    (void)name;
    (void)data;
    (void)count;
    return -7;
}

TEST(a_run_that_fails_is_not_counted)
{
    report_network(&d, 4, refuse);
    device_load(&d);
    report_connect(&d, 4);
    MUST(ipu_engine_profile(d.engine, 1));
    ck_assert_int_eq(ipu_engine_run(d.engine), IPU_ERR_CALLBACK);
    ck_assert_int_eq(times().runs, 0);
    ck_assert_int_eq(times().run_ns, 0);
    ck_assert_int_eq(ipu_engine_step_ns(d.engine, 0), 0);
}

static int switch_off(void *context, const char *name, void *data,
                      int64_t count)
{
    (void)name;
    (void)data;
    (void)count;
    ck_assert_int_eq(ipu_engine_profile(d.engine, 0), IPU_ERR_STATE);
    ++*(int *)context;
    return 0;
}

TEST(counting_does_not_change_while_it_runs)
{
    ipu_tensor x = device_floats(&d, "x", 1, SHAPE(4));
    float zeros[4] = {0};
    int calls = 0;

    MUST(ipu_host_call(d.graph, "y", ipu_relu(d.graph, x), switch_off, &calls));
    device_load(&d);
    device_connect(&d, "x", zeros, 4);
    MUST(ipu_engine_profile(d.engine, 1));
    MUST(ipu_engine_run(d.engine));
    ck_assert_int_eq(calls, 1);
    ck_assert_int_eq(times().runs, 1);
}

TEST(arguments_of_counting_are_checked)
{
    ipu_engine_times t = {.size = 3};

    network(2);
    MUST_FAIL(ipu_engine_profile(NULL, 1), IPU_ERR_ARGUMENT,
              "the engine is NULL");
    MUST(ipu_engine_profile(d.engine, 1));
    MUST_FAIL(ipu_engine_get_times(d.engine, &t), IPU_ERR_ARGUMENT,
              "size is 3");
    MUST_FAIL(ipu_engine_get_times(d.engine, NULL), IPU_ERR_ARGUMENT,
              "the place for times is NULL");
    MUST_FAIL((int)ipu_engine_step_ns(d.engine, 99), IPU_ERR_ARGUMENT,
              "no step 99");
    MUST_FAIL((int)ipu_engine_step_ns(NULL, 0), IPU_ERR_ARGUMENT,
              "the engine is NULL");
}

/* ------------------------------------------------------------------- blocks */

static ipu_block_info block(int32_t i)
{
    ipu_block_info info = {.size = sizeof info};

    MUST(ipu_executable_block(d.executable, i, &info));
    return info;
}

/* Returns the block that begins with this tensor. */
static int32_t find_block(const char *tensor)
{
    int n = ipu_executable_blocks(d.executable);

    for (int32_t i = 0; i < n; i++)
        if (strcmp(block(i).tensor, tensor) == 0)
            return i;
    ck_abort_msg("there is no block '%s'", tensor);
    return -1;
}

TEST(blocks_are_what_lies_on_tiles)
{
    ipu_memory_info info = {.size = sizeof info};
    int64_t always = 0, all = 0;

    network(8);
    MUST(ipu_executable_memory(d.executable, &info));
    for (int32_t b = 0; b < ipu_executable_blocks(d.executable); b++) {
        int64_t bytes = 0;

        for (int32_t t = 0; t < 1472; t++)
            bytes += ipu_executable_block_on_tile(d.executable, b, t);
        ck_assert_int_ge(bytes, block(b).bytes);
        ck_assert_int_lt(bytes, block(b).bytes + 8);
        ck_assert_int_le(block(b).birth, block(b).death);
        always += block(b).always_live ? block(b).bytes : 0;
        all += block(b).tensors;
    }
    ck_assert_int_eq(always, info.always_live_bytes);
    ck_assert_int_gt(all, ipu_executable_blocks(d.executable)); /* in place */
}

TEST(a_block_says_what_it_is)
{
    ipu_block_info w, x;

    network(8);
    w = block(find_block("w1"));
    ck_assert_int_eq(w.category, IPU_CATEGORY_VARIABLES);
    ck_assert_int_eq(w.ndim, 2);
    ck_assert_int_eq(w.shape[0], 30);
    ck_assert_int_eq(w.shape[1], 20);
    ck_assert_int_eq(w.bytes, 30 * 20 * 4);
    ck_assert_int_eq(w.birth, -1);
    ck_assert_int_eq(w.always_live, 1);
    ck_assert_ptr_null(w.op);
    ck_assert_ptr_nonnull(strstr(w.file, "report.h"));
    ck_assert_int_gt(w.line, 0);
    x = block(find_block("x"));
    ck_assert_int_eq(x.category, IPU_CATEGORY_INPUTS);
    ck_assert_int_eq(x.always_live, 0);
    ck_assert_str_eq(block(find_block("matmul:0")).op, "matmul");
    ck_assert_int_eq(block(find_block("matmul:0")).category,
                     IPU_CATEGORY_RESULTS);
    ck_assert_str_eq(ipu_category_name(IPU_CATEGORY_EXCHANGE_CODE),
                     "exchange_code");
    ck_assert_ptr_null(ipu_category_name(-1));
    ck_assert_ptr_null(ipu_category_name(IPU_NUM_CATEGORIES));
}

TEST(arguments_of_blocks_are_checked)
{
    ipu_block_info info = {.size = sizeof info};

    network(2);
    MUST_FAIL(ipu_executable_blocks(NULL), IPU_ERR_ARGUMENT,
              "blocks: the executable is NULL");
    MUST_FAIL(ipu_executable_block(d.executable, -1, &info), IPU_ERR_ARGUMENT,
              "no block -1");
    MUST_FAIL(ipu_executable_block(d.executable, 9999, &info), IPU_ERR_ARGUMENT,
              "no block 9999");
    MUST_FAIL(ipu_executable_block(d.executable, 0, NULL), IPU_ERR_ARGUMENT,
              "block: the place for the info is NULL");
    info.size = 1;
    MUST_FAIL(ipu_executable_block(d.executable, 0, &info), IPU_ERR_ARGUMENT,
              "size is 1");
    MUST_FAIL((int)ipu_executable_block_on_tile(d.executable, 0, 1472),
              IPU_ERR_ARGUMENT, "no tile 1472");
}

/* -------------------------------------------------------------- the queries */

static void check_tiles(const json_t *program)
{
    static const char *const parts[] = {"variables",     "constants", "inputs",
                                        "results",       "temporary", "code",
                                        "exchange_code", "state"};
    const json_t *runs = json_object_get(program, "tiles"), *run;
    int32_t next = 0;
    size_t i;

    json_array_foreach(runs, i, run)
    {
        int64_t sum = 0;

        ck_assert_int_eq(report_number(run, "first"), next);
        for (size_t k = 0; k < sizeof parts / sizeof *parts; k++)
            sum += report_number(run, parts[k]);
        ck_assert_int_eq(sum, report_number(run, "total"));
        for (int64_t n = report_number(run, "count"); n > 0; n--, next++) {
            ipu_tile_info info = {.size = sizeof info};

            MUST(ipu_executable_tile(d.executable, next, &info));
            ck_assert_int_eq(info.peak_bytes, sum);
            ck_assert_int_eq(info.peak_step, report_number(run, "peak_step"));
        }
    }
    ck_assert_int_eq(next, 1472);
}

static void check_steps(const json_t *program)
{
    const json_t *steps = json_object_get(program, "steps"), *step;
    size_t i;

    json_array_foreach(steps, i, step)
    {
        ipu_step_info info = {.size = sizeof info};

        MUST(ipu_executable_step(d.executable, (int32_t)i, &info));
        ck_assert_int_eq(info.total_cycles, report_number(step, "total"));
        ck_assert_int_eq(
            info.total_cycles,
            report_number(step, "compute") + report_number(step, "exchange") +
                report_number(step, "sync") + report_number(step, "host"));
        ck_assert_str_eq(info.op,
                         json_string_value(json_object_get(step, "op")));
        ck_assert_int_eq(json_is_null(json_object_get(step, "estimate")),
                         info.estimate == NULL);
        ck_assert_int_eq(ipu_engine_step_ns(d.engine, (int32_t)i),
                         report_number(step, "ns"));
    }
}

TEST(a_profile_is_what_the_executable_tells)
{
    ipu_program_cycles cycles = {.size = sizeof cycles};
    json_t *json;
    const json_t *program;

    network(8);
    MUST(ipu_engine_profile(d.engine, 1));
    MUST(ipu_engine_run(d.engine));
    MUST(ipu_engine_run(d.engine));
    profile = report_profile(&d, "net");
    json = report_json(profile);
    program = report_program(json, 0);
    ck_assert_str_eq(json_string_value(json_object_get(json, "name")), "net");
    ck_assert_int_eq(
        report_number(json_object_get(program, "measured"), "runs"), 2);
    check_tiles(program);
    check_steps(program);
    MUST(ipu_executable_cycles(d.executable, &cycles));
    ck_assert_int_eq(report_number(json_object_get(program, "cycles"), "total"),
                     cycles.total);
    json_decref(json);
}

/* The blocks on a tile at a step, and the step's own memory, add up to the
 * bytes of the step's fullest tile. */
TEST(blocks_explain_the_fullest_tile_of_each_step)
{
    json_t *json;
    const json_t *program, *steps, *blocks, *step, *entry;
    size_t i, k;

    network(64);
    profile = report_profile(&d, "net");
    json = report_json(profile);
    program = report_program(json, 0);
    steps = json_object_get(program, "steps");
    blocks = json_object_get(program, "blocks");
    json_array_foreach(steps, i, step)
    {
        int32_t tile = (int32_t)report_number(step, "fullest_tile");
        int64_t bytes = report_number(program, "code_bytes") +
                        report_number(step, "temporary_bytes");

        json_array_foreach(blocks, k, entry)
        {
            if (report_number(entry, "birth") <= (int64_t)i &&
                (int64_t)i <= report_number(entry, "death"))
                bytes += ipu_executable_block_on_tile(d.executable, (int32_t)k,
                                                      tile);
        }
        ck_assert_int_eq(bytes, report_number(step, "fullest_tile_bytes"));
    }
    json_decref(json);
}

TEST(without_an_engine_nothing_is_measured)
{
    json_t *json;
    char *text;

    network(8);
    MUST(ipu_profile_new("net", &profile));
    MUST(ipu_profile_add(profile, "a", 0, d.executable, NULL));
    MUST(ipu_profile_add(profile, "b", 0, d.executable, d.engine));
    json = report_json(profile);
    for (size_t i = 0; i < 2; i++)
        ck_assert(
            json_is_null(json_object_get(report_program(json, i), "measured")));
    text = report_text(profile, IPU_PROFILE_TEXT);
    ck_assert_ptr_null(strstr(text, "On this machine"));
    free(text);
    json_decref(json);
}

TEST(the_same_program_makes_the_same_profile)
{
    struct device other = device_new();
    ipu_profile *twin;
    char *a, *b;

    network(8);
    profile = report_profile(&d, "net");
    report_network(&other, 8, device_no_call);
    device_load(&other);
    twin = report_profile(&other, "net");
    a = report_text(profile, IPU_PROFILE_JSON);
    b = report_text(twin, IPU_PROFILE_JSON);
    ck_assert_str_eq(a, b);
    free(a);
    free(b);
    ipu_profile_free(twin);
    device_free(&other);
}

TEST(a_program_without_steps_has_a_profile)
{
    char *text;

    ipu_variable(d.graph, "v", IPU_FLOAT32, 1, SHAPE(64));
    device_load(&d);
    profile = report_profile(&d, "empty");
    text = report_text(profile, IPU_PROFILE_TEXT);
    report_is_narrow(text);
    free(text);
    free(report_text(profile, IPU_PROFILE_HTML));
}

TEST(arguments_of_profiles_are_checked)
{
    struct device other = device_new();
    char *text = NULL;

    network(4);
    report_network(&other, 4, device_no_call);
    device_load(&other);
    MUST_FAIL(ipu_profile_new(NULL, &profile), IPU_ERR_ARGUMENT,
              "profile: the name is NULL");
    MUST_FAIL(ipu_profile_new("x", NULL), IPU_ERR_ARGUMENT,
              "profile: the place for it is NULL");
    MUST(ipu_profile_new("x", &profile));
    MUST_FAIL(ipu_profile_add(profile, NULL, 0, d.executable, NULL),
              IPU_ERR_ARGUMENT, "name is NULL");
    MUST_FAIL(ipu_profile_add(profile, "a", 0, NULL, NULL), IPU_ERR_ARGUMENT,
              "executable is NULL");
    MUST_FAIL(ipu_profile_add(profile, "a", -1, d.executable, NULL),
              IPU_ERR_ARGUMENT, "no IPU -1");
    MUST_FAIL(ipu_profile_add(profile, "a", 0, d.executable, other.engine),
              IPU_ERR_ARGUMENT, "another program than 'a'");
    MUST(ipu_profile_add(profile, "a", 0, d.executable, d.engine));
    MUST_FAIL(ipu_profile_add(profile, "a", 0, d.executable, NULL),
              IPU_ERR_NAME, "'a' already");
    MUST_FAIL(ipu_profile_print(profile, 9, &text), IPU_ERR_ARGUMENT,
              "no format 9");
    MUST_FAIL(ipu_profile_print(NULL, 0, &text), IPU_ERR_ARGUMENT,
              "profile: the profile is NULL");
    MUST_FAIL(ipu_profile_print(profile, 0, NULL), IPU_ERR_ARGUMENT,
              "profile: the place for the text is NULL");
    ck_assert_ptr_null(text);
    device_free(&other);
}

/* The program has an optimiser, and an update in every second run. */
static void accumulate(ipu_offload offload, const ipu_target *target)
{
    const ipu_update_options update = {.size = sizeof update,
                                       .offload = offload};
    ipu_optimizer o = {.size = sizeof o, .kind = IPU_OPTIMIZER_ADAM};
    ipu_tensor w = ipu_variable(d.graph, "w", IPU_FLOAT32, 2, SHAPE(300, 100));
    ipu_tensor x = device_floats(&d, "x", 2, SHAPE(16, 300));
    ipu_tensor loss, slope;

    o.rate = ipu_fill(d.graph, IPU_FLOAT32, 0, NULL, 0.01);
    loss = ipu_reduce_sum(d.graph,
                          ipu_square(d.graph, ipu_matmul(d.graph, x, w)), 1);
    MUST(ipu_gradients(d.graph, loss, 1, &w, &slope));
    MUST(ipu_accumulating_optimizer(d.graph, &o, 1, &w, &slope, 2, &update));
    MUST(ipu_output(d.graph, "loss", loss));
    MUST(ipu_compile(d.graph, target, &d.executable));
    MUST(ipu_profile_new("accumulating", &profile));
    MUST(ipu_profile_add(profile, "p", 0, d.executable, NULL));
}

/* The network's state is offloaded. */
static void accumulating_network(void)
{
    accumulate(IPU_OFFLOAD_ON, NULL);
}

/* The reason is a text, and numbers that can be read back from a file. */
TEST(why_it_lies_beside_the_chip_is_told)
{
    const json_t *memory;
    ipu_target target;
    json_t *json;
    char *text;

    ipu_target_init(&target, sizeof target);
    target.tiles = 16;
    accumulate(IPU_OFFLOAD_ON, &target);
    text = report_text(profile, IPU_PROFILE_TEXT);
    ck_assert_ptr_nonnull(strstr(text, "234.4 KiB of tensors lie in the"));
    ck_assert_ptr_null(strstr(text, "does not fit otherwise"));
    free(text);
    target.bytes_per_tile = device_memory(&d).fullest_tile_bytes;
    ipu_profile_free(profile);
    device_free(&d);
    d = device_new();
    accumulate(IPU_OFFLOAD_AUTO, &target);
    text = report_text(profile, IPU_PROFILE_TEXT);
    ck_assert_ptr_nonnull(strstr(text, "all of them because"));
    ck_assert_ptr_nonnull(strstr(text, "(IPU_OFFLOAD_AUTO)"));
    free(text);
    json = report_json(profile);
    memory = json_object_get(report_program(json, 0), "memory");
    ck_assert_int_eq(report_number(memory, "automatic_bytes"),
                     2 * 300 * 100 * 4);
    ck_assert_int_gt(report_number(memory, "tile_bytes_without"),
                     target.bytes_per_tile);
    json_decref(json);
}

TEST(what_lies_beside_the_chip_is_on_no_tile)
{
    const json_t *program, *entry;
    json_t *json;
    int64_t beside = 0, here = 0;
    size_t i;
    char *text;

    accumulating_network();
    json = report_json(profile);
    program = report_program(json, 0);
    check_tiles(program);
    json_array_foreach(json_object_get(program, "blocks"), i, entry)
    {
        if (json_array_size(json_object_get(entry, "tiles")) == 0)
            beside += report_number(entry, "bytes");
        else if (json_is_true(json_object_get(entry, "always")))
            here += report_number(entry, "bytes");
    }
    ck_assert_int_eq(beside, 2 * 300 * 100 * 4); /* Adam's moments */
    ck_assert_int_eq(beside, report_number(json_object_get(program, "memory"),
                                           "remote_bytes"));
    ck_assert_int_eq(here, report_number(json_object_get(program, "memory"),
                                         "always_live_bytes"));
    json_decref(json);
    text = report_text(profile, IPU_PROFILE_TEXT);
    report_is_narrow(text);
    ck_assert_ptr_nonnull(strstr(text, "beside the chip: 234.4 KiB"));
    free(text);
}

TEST(updates_are_told_apart)
{
    ipu_program_cycles cycles = {.size = sizeof cycles};
    const json_t *program, *step;
    json_t *json;
    int64_t mean = 0, full = 0;
    size_t i;
    char *text;

    accumulating_network();
    MUST(ipu_executable_cycles(d.executable, &cycles));
    json = report_json(profile);
    program = report_program(json, 0);
    json_array_foreach(json_object_get(program, "steps"), i, step)
    {
        int64_t every = report_number(step, "every");

        ck_assert(every == 1 || every == 2);
        full += report_number(step, "total");
        mean += report_number(step, "total") * (3 - every);
    }
    /* The mean is half of the cycles of two runs, up to rounding. */
    ck_assert_int_le(
        llabs(2 * (cycles.total - cycles.mean_total) - (2 * full - mean)), 2);
    ck_assert_int_gt(cycles.total, cycles.mean_total);
    json_decref(json);
    text = report_text(profile, IPU_PROFILE_TEXT);
    ck_assert_ptr_nonnull(strstr(text, "A run with an update takes "));
    ck_assert_ptr_nonnull(strstr(text, "Moving them"));
    free(text);
}

TEST_MAIN("device_report", .set_up = set_up, .tear_down = tear_down)
