/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tests configurations: the devices that they choose, and every refused misuse
 * with its reason.
 */
#include "suite.h"

#include "device.h"

static ipu_config *config;
static ipu_system chips;
static ipu_device devices[IPU_MAX_IPUS];

static void set_up(void)
{
    config = NULL;
    chips = (ipu_system){.size = sizeof chips};
    MUST(ipu_config_new(&config));
}

static void tear_down(void)
{
    ipu_config_free(config);
}

static int apply(void)
{
    return ipu_config_apply(config, &chips, devices, IPU_MAX_IPUS);
}

static void set(const char *attribute, const char *value)
{
    MUST(ipu_config_set(config, attribute, value));
}

/* ------------------------------------------------------------------ devices */

TEST(auto_select_takes_the_first_that_are_free)
{
    set("auto_select_ipus", "[1, 2, 1]");
    ck_assert_int_eq(apply(), 3);
    ck_assert_str_eq(chips.name, "M2000");
    ck_assert_int_eq(devices[0].id, 0);
    ck_assert_int_eq(devices[1].id, 5); /* chips 2 and 3 are the second two */
    ck_assert_int_eq(devices[1].count, 2);
    ck_assert_int_eq(devices[1].ipus[0], 2);
    ck_assert_int_eq(devices[2].ipus[0], 1);
}

TEST(auto_select_of_one_number)
{
    MUST(ipu_config_auto_select(config, 4));
    ck_assert_int_eq(apply(), 1);
    ck_assert_int_eq(devices[0].id, 6);
    ck_assert_int_eq(devices[0].count, 4);
}

TEST(select_takes_devices_by_id)
{
    set("system", "Pod16");
    set("select_ipus", "[0, 17, 30]");
    MUST_FAIL(apply(), IPU_ERR_ARGUMENT,
              "device 30 has a chip that a device before it has: IPU 0 to 15");
    set("select_ipus", "[0, 17]");
    ck_assert_int_eq(apply(), 2);
    ck_assert_int_eq(devices[0].count, 1);
    ck_assert_int_eq(devices[1].count, 2);
    ck_assert_int_eq(devices[1].ipus[0], 2);
    ck_assert_int_eq(devices[1].ipus[1], 3);
}

static void check_order(const char *order, const int32_t *expected, int32_t n)
{
    set("selection_order", order);
    ck_assert_int_eq(apply(), 1);
    for (int32_t i = 0; i < n; i++)
        ck_assert_int_eq(devices[0].ipus[i], expected[i]);
}

TEST(chips_come_in_the_order_asked_for)
{
    set("system", "Pod16");
    set("auto_select_ipus", "16");
    check_order("ZIGZAG", (int32_t[]){0, 1, 2, 3, 4}, 5);
    check_order("SNAKE", (int32_t[]){0, 1, 3, 2, 4, 5, 7, 6}, 8);
    check_order("AUTO", (int32_t[]){0, 1, 3, 2}, 4);
    check_order(
        "HOOF",
        (int32_t[]){0, 2, 4, 6, 8, 10, 12, 14, 15, 13, 11, 9, 7, 5, 3, 1}, 16);
}

TEST(a_model_has_as_many_as_are_asked_for)
{
    set("system", "model");
    set("auto_select_ipus", "[8, 8]");
    set("ipu_model.version", "ipu1");
    set("ipu_model.tiles_per_ipu", "4");
    ck_assert_int_eq(apply(), 2);
    ck_assert_int_eq(chips.ipu.tiles, 4);
    ck_assert_str_eq(chips.ipu.name, "mk1");
}

TEST(io_tiles_are_taken_from_the_others)
{
    set("auto_select_ipus", "1");
    set("io_tiles.num_io_tiles", "32");
    set("io_tiles.place_ops_on_io_tiles", "true");
    ck_assert_int_eq(apply(), 1);
    ck_assert_int_eq(chips.ipu.tiles, 1440);
    ck_assert_int_eq(chips.ipu.io_tiles, 32);
}

TEST(a_version_says_what_to_compile_for)
{
    set("auto_select_ipus", "1");
    set("device_connection.type", "NEVER");
    set("device_connection.version", "ipu21");
    ck_assert_int_eq(apply(), 1);
    ck_assert_str_eq(chips.ipu.name, "bow");
}

TEST(a_configuration_is_written_and_read_again)
{
    char text[2048], again[2048];
    const char *path;
    int64_t length;

    set("auto_select_ipus", "[1, 1]");
    set("io_tiles.num_io_tiles", "7");
    length = ipu_config_print(config, text, sizeof text);
    ck_assert_int_eq(length, (int64_t)strlen(text));
    path = device_file(text);
    tear_down();
    set_up();
    MUST(ipu_config_load(config, path));
    ipu_config_print(config, again, sizeof again);
    unlink(path);
    ck_assert_str_eq(text, again);
}

/* ------------------------------------------------------------------- misuse */

#define BN "norms.experimental.distributed_batch_norm_replica_group_size"
#define MULTI "experimental.multi_replica_distribution."

static const struct {
    const char *settings[3][2];
    const char *words;
    int status;
} misuses[] = {
    {{{"system", "M2000"}}, "No IPU devices configured", IPU_ERR_ARGUMENT},
    {{{"auto_select_ipus", "1"}, {"select_ipus", "[0]"}},
     "Only one of auto_select_ipus and select_ipus",
     IPU_ERR_ARGUMENT},
    {{{"select_ipus", "[1, 0, 1]"}},
     "select_ipus has 1 twice",
     IPU_ERR_ARGUMENT},
    {{{"select_ipus", "[7]"}},
     "no device 7: M2000 has ids 0 to 6",
     IPU_ERR_ARGUMENT},
    {{{"select_ipus", "[-1]"}}, "no device -1", IPU_ERR_ARGUMENT},
    {{{"select_ipus", "[0]"}, {"system", "model"}},
     "select_ipus is not possible on the IPU model",
     IPU_ERR_ARGUMENT},
    {{{"auto_select_ipus", "3"}},
     "Unsupported number of IPUs requested: 3",
     IPU_ERR_ARGUMENT},
    {{{"auto_select_ipus", "0"}},
     "Unsupported number of IPUs requested: 0",
     IPU_ERR_ARGUMENT},
    {{{"auto_select_ipus", "[2, 2, 1]"}},
     "no 1 IPUs are free for device 2 of 3: M2000 has 4",
     IPU_ERR_STATE},
    {{{"auto_select_ipus", "8"}}, "no 8 IPUs are free", IPU_ERR_STATE},
    {{{"auto_select_ipus", "1"}, {"io_tiles.place_ops_on_io_tiles", "true"}},
     "there are no I/O tiles: set io_tiles.num_io_tiles",
     IPU_ERR_ARGUMENT},
    {{{"auto_select_ipus", "1"}, {"io_tiles.num_io_tiles", "1472"}},
     "some must be left to compute",
     IPU_ERR_ARGUMENT},
    {{{"auto_select_ipus", "1"}, {"io_tiles.num_io_tiles", "-1"}},
     "num_io_tiles is -1",
     IPU_ERR_ARGUMENT},
    {{{"auto_select_ipus", "1"},
      {"io_tiles.available_memory_proportion", "1.5"}},
     "available_memory_proportion is 1.5",
     IPU_ERR_ARGUMENT},
    {{{"auto_select_ipus", "1"}, {"device_connection.type", "PRE_COMPILE"}},
     "type is PRE_COMPILE, so no chip tells what it is: set "
     "device_connection.version",
     IPU_ERR_ARGUMENT},
    {{{"auto_select_ipus", "1"}, {"device_connection.type", "NEVER"}},
     "set device_connection.version to ipu1, ipu2 or ipu21",
     IPU_ERR_ARGUMENT},
    {{{"auto_select_ipus", "1"}, {"device_connection.version", "ipu9"}},
     "no target 'ipu9'",
     IPU_ERR_NAME},
    {{{"auto_select_ipus", "1"},
      {MULTI "process_index", "2"},
      {MULTI "process_count", "2"}},
     "process_index is 2 of a process_count of 2",
     IPU_ERR_ARGUMENT},
    {{{"auto_select_ipus", "1"},
      {MULTI "process_count", "2"},
      {"system", "model"}},
     "multi_replica_distribution is not possible on the IPU model",
     IPU_ERR_ARGUMENT},
    {{{"auto_select_ipus", "1"}, {BN, "0"}},
     "is 0; 1 or more",
     IPU_ERR_ARGUMENT},
    {{{"auto_select_ipus", "1"}, {BN, "2"}, {"io_tiles.num_io_tiles", "8"}},
     "not possible together with I/O tiles",
     IPU_ERR_ARGUMENT},
    {{{"auto_select_ipus", "1"},
      {"system", "model"},
      {"ipu_model.tiles_per_ipu", "-4"}},
     "tiles_per_ipu is -4",
     IPU_ERR_ARGUMENT},
    {{{"auto_select_ipus", "1"}, {"system", "Pod3"}},
     "no system 'Pod3'",
     IPU_ERR_NAME},
};

LOOP_TEST(misuse_is_refused_with_the_reason, 0,
          sizeof misuses / sizeof *misuses)
{
    for (int i = 0; i < 3 && misuses[_i].settings[i][0]; i++)
        set(misuses[_i].settings[i][0], misuses[_i].settings[i][1]);
    chips.ipus = -7;
    MUST_FAIL(apply(), misuses[_i].status, misuses[_i].words);
    ck_assert_int_eq(chips.ipus, -7);
}

static const struct {
    const char *attribute, *value, *words;
    int status;
} bad_values[] = {
    {"auto_select_ipu", "1", "did you mean 'auto_select_ipus'?", IPU_ERR_NAME},
    {"io_tiles.num_io_tile", "1", "did you mean 'io_tiles.num_io_tiles'?",
     IPU_ERR_NAME},
    {"zzz", "1", "no attribute 'zzz'", IPU_ERR_NAME},
    {"matmuls.poplar_options", "{}", "there is no PopLibs", IPU_ERR_NAME},
    {"optimizations.math.fast", "true",
     "has no meaning for the software IPU: the compiler decides", IPU_ERR_NAME},
    {"norms.use_stable_statistics", "true", "statistics are always computed so",
     IPU_ERR_NAME},
    {"floating_point_behaviour.inv", "true", "NaN and infinity go through",
     IPU_ERR_NAME},
    {"floating_point_behaviour.esr", "true",
     "is not set here, but of a graph by ipu_stochastic_rounding",
     IPU_ERR_NAME},
    {"allow_recompute", "true",
     "'allow_recompute' is not set here, but of a graph by ipu_allow_recompute",
     IPU_ERR_NAME},
    {"optimizations.minimum_remote_tensor_size", "0",
     "by ipu_update_options.minimum_remote_bytes", IPU_ERR_NAME},
    {"experimental.enable_prng_stability", "true", "random numbers are always",
     IPU_ERR_NAME},
    {"auto_select_ipus", "two", "it must be a whole number or a list of them",
     IPU_ERR_ARGUMENT},
    {"auto_select_ipus", "[1, 2.5]", "auto_select_ipus is [1,2.5]; it must be",
     IPU_ERR_ARGUMENT},
    {"io_tiles.place_ops_on_io_tiles", "1", "it must be true or false",
     IPU_ERR_ARGUMENT},
    {"io_tiles.num_io_tiles", "1.5", "it must be a whole number",
     IPU_ERR_ARGUMENT},
    {"io_tiles.available_memory_proportion", "most", "it must be a number",
     IPU_ERR_ARGUMENT},
    {"system", "5", "it must be a word", IPU_ERR_ARGUMENT},
    {"selection_order", "UP", "it can be: AUTO ZIGZAG SNAKE HOOF",
     IPU_ERR_ARGUMENT},
    {"device_connection.type", "PRE", "it can be: ALWAYS ON_DEMAND",
     IPU_ERR_ARGUMENT},
    {"ipu_model.version", "ipu3", "it can be: ipu1 ipu2 ipu21",
     IPU_ERR_ARGUMENT},
};

LOOP_TEST(values_that_cannot_be_are_refused, 0,
          sizeof bad_values / sizeof *bad_values)
{
    char before[2048], after[2048];

    ipu_config_print(config, before, sizeof before);
    MUST_FAIL(
        ipu_config_set(config, bad_values[_i].attribute, bad_values[_i].value),
        bad_values[_i].status, bad_values[_i].words);
    ipu_config_print(config, after, sizeof after);
    ck_assert_str_eq(before, after);
}

/* Checks a file with this text. The message must begin with the file's name. */
static void check_file(const char *text, int status, const char *words)
{
    const char *path = device_file(text);
    char whole[1200];

    snprintf(whole, sizeof whole, "%s%s", path, words);
    ck_assert_int_eq(ipu_config_load(config, path), status);
    ck_assert_str_eq(ipu_last_error(), whole);
    unlink(path);
}

TEST(files_that_are_none_are_refused)
{
    char text[400] = "{\"", *end = text + 2;

    MUST_FAIL(ipu_config_load(config, "/nowhere/c.json"), IPU_ERR_DATA,
              "/nowhere/c.json: cannot be read: No such file or directory");
    check_file("[]", IPU_ERR_DATA,
               ": a configuration is one object of attributes");
    check_file("{\"system\":\n}", IPU_ERR_DATA,
               ", line 2: unexpected token near '}'");
    check_file("{\"sistem\": \"C2\"}", IPU_ERR_NAME,
               ": config: there is no attribute 'sistem'; did you mean "
               "'system'?");
    check_file("{\"io_tiles\": {\"num_io_tiles\": \"x\"}}", IPU_ERR_ARGUMENT,
               ": config: io_tiles.num_io_tiles is \"x\"; it must be a whole "
               "number");
    end += sprintf(end, "%0300d", 0);
    sprintf(end, "\": 1}");
    check_file(text, IPU_ERR_NAME,
               ": config: the attribute "
               "'0000000000000000000000000000000000000000...' has a name that "
               "is too long");
    MUST_FAIL(ipu_config_set(config, "system", "\xff"), IPU_ERR_ARGUMENT,
              "config: the value of system is not UTF-8");
}

TEST(null_arguments_are_refused)
{
    MUST_FAIL(ipu_config_new(NULL), IPU_ERR_ARGUMENT,
              "the place for a configuration is NULL");
    MUST_FAIL(ipu_config_set(NULL, "system", "C2"), IPU_ERR_ARGUMENT,
              "config: the configuration is NULL");
    MUST_FAIL(ipu_config_set(config, NULL, "C2"), IPU_ERR_ARGUMENT,
              "config: the attribute is NULL");
    MUST_FAIL(ipu_config_set(config, "system", NULL), IPU_ERR_ARGUMENT,
              "config: the value is NULL");
    MUST_FAIL(ipu_config_load(NULL, "x"), IPU_ERR_ARGUMENT,
              "config: the configuration is NULL");
    MUST_FAIL(ipu_config_load(config, NULL), IPU_ERR_ARGUMENT,
              "config: the file's name is NULL");
    MUST_FAIL(ipu_config_print(NULL, NULL, 0), IPU_ERR_ARGUMENT,
              "config: the configuration is NULL");
    MUST_FAIL(ipu_config_apply(config, NULL, devices, 1), IPU_ERR_ARGUMENT,
              "config: the place for the system is NULL");
    MUST(ipu_config_auto_select(config, 1));
    MUST_FAIL(ipu_config_apply(config, &chips, devices, 0), IPU_ERR_ARGUMENT,
              "room for 0");
    ipu_config_free(NULL);
}

TEST_MAIN("device_target_config", .set_up = set_up, .tear_down = tear_down)
