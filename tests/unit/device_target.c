/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tests chips and systems: published figures, descriptions from files, and
 * every reason to refuse one.
 */
#include "suite.h"

#include <math.h>

#include "device.h"

#define WITHIN(value, figure)                                                  \
    ck_assert_msg(fabs((double)(value) / (figure)-1) <= 0.1,                   \
                  "%s is %g, published as %g", #value, (double)(value),        \
                  (double)(figure))

static ipu_target chip(const char *name)
{
    ipu_target target = {.size = sizeof target};

    MUST(ipu_target_find(name, &target));
    return target;
}

static ipu_target_peaks peaks_of(const char *name)
{
    ipu_target target = chip(name);
    ipu_target_peaks peaks = {.size = sizeof peaks};

    MUST(ipu_target_get_peaks(&target, &peaks));
    return peaks;
}

static ipu_system system_of(const char *name)
{
    ipu_system system = {.size = sizeof system};

    MUST(ipu_system_find(name, &system));
    return system;
}

static ipu_system_peaks system_peaks(const char *name)
{
    ipu_system system = system_of(name);
    ipu_system_peaks peaks = {.size = sizeof peaks};

    MUST(ipu_system_get_peaks(&system, &peaks));
    return peaks;
}

/* --------------------------------------------------------------- published */

TEST(a_mk1_is_what_is_published)
{
    ipu_target mk1 = chip("mk1");
    ipu_target_peaks p = peaks_of("gc2");

    ck_assert_int_eq(mk1.tiles, 1216);
    ck_assert_int_eq(mk1.bytes_per_tile, 256 * 1024);
    ck_assert_double_eq(mk1.clock_hz, 1.6e9);
    ck_assert_double_eq(mk1.watts, 150);
    ck_assert_int_eq(p.threads, 7296);
    ck_assert_int_eq(p.memory_bytes, (int64_t)304 << 20);
    WITHIN(p.memory_bytes_per_second, 45e12);
    WITHIN(p.read_bytes_per_second, 31.1e12);
    WITHIN(p.exchange_bytes_per_second, 7.78e12);
    WITHIN(p.flops_float32, 31.1e12);
    WITHIN(p.flops_float16, 124.5e12);
    WITHIN(2 * mk1.host_bytes_per_second, 64e9);
    /* 16 columns of 19 islands of 4 tiles, 16 and 4 bytes a cycle. */
    ck_assert_int_eq(mk1.columns * mk1.tiles_per_island * 19, mk1.tiles);
    ck_assert_int_eq(mk1.columns, 16);
    ck_assert_int_eq(mk1.load_bytes, 16);
    ck_assert_double_eq(mk1.exchange_bytes_per_cycle, 4);
}

TEST(a_mk2_is_what_is_published)
{
    ipu_target mk2 = chip("mk2");
    ipu_target_peaks p = peaks_of("ipu2");

    ck_assert_int_eq(p.threads, 8832);
    WITHIN(mk2.clock_hz, 1.325e9);
    WITHIN(p.memory_bytes, 896.0 * (1 << 20));
    WITHIN(p.memory_bytes_per_second, 47e12);
    WITHIN(p.exchange_bytes_per_second, 8e12);
    WITHIN(p.flops_float16, 250e12);
    WITHIN(p.flops_float32, 62.5e12);
    WITHIN(p.link_bytes_per_second, 320e9);
    WITHIN(2 * mk2.host_bytes_per_second, 64e9);
    WITHIN(mk2.streaming_bytes_per_second, 20e9);
    ck_assert_int_eq(mk2.links, 10);
}

TEST(a_bow_is_a_faster_mk2)
{
    ipu_target bow = chip("ipu21");

    ck_assert_str_eq(bow.name, "bow");
    WITHIN(peaks_of("bow").flops_float16, 350e12);
    WITHIN(peaks_of("c600").flops_float16, 280e12);
    WITHIN(bow.clock_hz, 1.85e9);
}

TEST(boards_are_what_is_published)
{
    ipu_system c2 = system_of("C2"), m2000 = system_of("M2000");
    ipu_system_peaks card = system_peaks("C2"), machine = system_peaks("M2000");
    ipu_system_peaks bow = system_peaks("Bow-2000");
    double path;

    ck_assert_int_eq(c2.ipus, 2);
    ck_assert_double_eq(c2.watts_per_board, 300);
    WITHIN(card.flops_float16, 250e12);
    WITHIN(card.pair_bytes_per_second, 192e9);
    WITHIN(card.next_bytes_per_second, 128e9);
    ck_assert_int_eq(m2000.ipus, 4);
    WITHIN(machine.flops_float16, 1e15);
    WITHIN(machine.fabric_bytes_per_second * 8, 2.8e12);
    WITHIN(machine.board_bytes_per_second * 8, 1.2e12);
    WITHIN(m2000.ipu.host_bytes_per_second * m2000.host_share, 5.5e9);
    WITHIN(bow.flops_float16, 1.4e15);
    ck_assert_int_eq(bow.tiles, 5888);
    WITHIN(bow.memory_bytes, 3.6e9);
    WITHIN(bow.streaming_bytes, 256.0 * (1 << 30));
    WITHIN(system_of("Bow-2000").gateway_bytes_per_second * 8, 200e9);
    /* Each side of the machine has two chips with two links each, 512
     * Gbit/s. */
    MUST(ipu_system_path(&m2000, 0, 2, &path, NULL));
    WITHIN(2 * path * 8, 512e9);
    ck_assert_int_eq(system_of("Pod16").ipus, 16);
    ck_assert_int_eq(system_of("Bow-Pod64").ipus, 64);
    ck_assert_str_eq(system_of("Bow-Pod64").ipu.name, "bow");
}

TEST(paths_follow_the_ladder)
{
    const ipu_system pod = system_of("Pod16");
    double near, far, next;
    int32_t hops;

    MUST(ipu_system_path(&pod, 0, 1, &near, &hops));
    ck_assert_int_eq(hops, 1);
    MUST(ipu_system_path(&pod, 0, 2, &next, &hops));
    ck_assert_int_eq(hops, 1);
    MUST(ipu_system_path(&pod, 0, 15, &far, &hops));
    ck_assert_int_eq(hops, 8);
    ck_assert(near > next && next >= far && far > 0);
    MUST(ipu_system_path(&pod, 3, 3, NULL, &hops));
    ck_assert_int_eq(hops, 0);
    MUST_FAIL(ipu_system_path(&pod, 0, 16, NULL, NULL), IPU_ERR_ARGUMENT,
              "from IPU 0 to 16: 'Pod16' has 0 to 15");
}

/* -------------------------------------------------------------------- files */

static int load(const char *text, ipu_target *target)
{
    const char *path = device_file(text);
    int status = ipu_target_load(path, target);

    unlink(path);
    return status;
}

TEST(a_file_describes_what_differs)
{
    ipu_target target = {.size = sizeof target};

    MUST(load("{\"based_on\": \"mk1\", \"name\": \"half\", \"tiles\": 608,\n"
              " \"bytes_per_tile\": 524288, \"clock_hz\": 1.7e9}",
              &target));
    ck_assert_str_eq(target.name, "half");
    ck_assert_int_eq(target.tiles, 608);
    ck_assert_int_eq(target.bytes_per_tile, 524288);
    ck_assert_double_eq(target.clock_hz, 1.7e9);
    ck_assert_int_eq(target.macs_float16, 32);
    MUST(load("{\"name\": \"as mk2\"}", &target));
    ck_assert_int_eq(target.tiles, 1472);
}

static const struct {
    const char *text, *words;
} bad_files[] = {
    {"{\"tiles\": 0}", "tiles is 0; it must be 1 to 1048576"},
    {"{\"tiles\": 1.5}", "'tiles' is 1.5, not a whole number"},
    {"{\"tiles\": \"many\"}", "'tiles' must be a number"},
    {"{\"tilse\": 4}", "has no 'tilse'; did you mean 'tiles'?"},
    {"{\"q\": 4}", "has no 'q'"},
    {"{\"name\": 4}", "'name' must be a word in quotes"},
    {"{\"based_on\": \"mk9\"}", "no target 'mk9'"},
    {"{\"based_on\": 9}", "'based_on' must be a word"},
    {"[]", "one object"},
    {"{\"tiles\": 4,\n\"tiles\": 5}", "line 2"},
    {"{", "line 1"},
};

LOOP_TEST(files_that_are_none_are_refused, 0,
          sizeof bad_files / sizeof *bad_files)
{
    ipu_target target = chip("mk2");

    if (strstr(bad_files[_i].text, "mk9"))
        MUST_FAIL(load(bad_files[_i].text, &target), IPU_ERR_NAME,
                  bad_files[_i].words);
    else
        MUST_FAIL(load(bad_files[_i].text, &target), IPU_ERR_DATA,
                  bad_files[_i].words);
    ck_assert_int_eq(target.tiles, 1472);
}

TEST(a_file_that_is_not_there_is_named)
{
    ipu_target target = {.size = sizeof target};

    MUST_FAIL(ipu_target_load("/nowhere/chip.json", &target), IPU_ERR_DATA,
              "/nowhere/chip.json: cannot be read: No such file or directory");
    MUST_FAIL(ipu_target_load(NULL, &target), IPU_ERR_ARGUMENT,
              "target: the file's name is NULL");
}

/* ----------------------------------------------------------------- refusals */

TEST(names_that_are_none_list_those_that_are)
{
    ipu_target target = {.size = sizeof target};
    ipu_system system = {.size = sizeof system};

    MUST_FAIL(ipu_target_find("mk4", &target), IPU_ERR_NAME,
              "no target 'mk4': mk1, mk2, bow");
    MUST_FAIL(ipu_system_find("Pod5", &system), IPU_ERR_NAME,
              "no system 'Pod5': C2, M2000");
    MUST_FAIL(ipu_target_find(NULL, &target), IPU_ERR_ARGUMENT,
              "target: its name is NULL");
    MUST_FAIL(ipu_system_find("C2", NULL), IPU_ERR_ARGUMENT,
              "system: the place for it is NULL");
}

/* Racks of 64 are joined by the gateways of their boards. */
LOOP_TEST(pods_of_several_racks_are_joined_by_gateways, 0, 4)
{
    static const char *const names[] = {"Pod128", "Pod256", "Bow-Pod128",
                                        "Bow-Pod256"};
    ipu_system pod = system_of(names[_i]), rack = system_of("Pod64");
    double width, within;
    int64_t sync, alone;
    int32_t hops, last = pod.ipus - 1;

    ck_assert_int_eq(pod.ipus, _i % 2 ? 256 : 128);
    ck_assert_str_eq(pod.ipu.name, _i < 2 ? "mk2" : "bow");
    MUST(ipu_system_path(&pod, 0, 2, &within, &hops));
    ck_assert_int_eq(hops, 1);
    /* The same chip of the next rack is one gateway away. */
    MUST(ipu_system_path(&pod, 5, 69, &width, &hops));
    ck_assert_int_eq(hops, 1);
    ck_assert_double_eq(width, pod.gateway_bytes_per_second);
    ck_assert_double_lt(width, within);
    /* 63 is 31 floors up. */
    MUST(ipu_system_path(&pod, 63, 64, &width, &hops));
    ck_assert_int_eq(hops, 31 + 1 + 1);
    ck_assert_double_eq(width, pod.gateway_bytes_per_second);
    MUST(ipu_system_path(&pod, 0, last, &width, &hops));
    ck_assert_int_eq(hops, 31 + 1 + last / 64);
    MUST(ipu_model_global_sync(&pod, &sync));
    MUST(ipu_model_global_sync(&rack, &alone));
    if (_i < 2)
        ck_assert_int_gt(sync, alone);
    pod.ipus_per_rack = 0; /* one ladder */
    MUST(ipu_system_path(&pod, 63, 64, &width, &hops));
    ck_assert_int_eq(hops, 2);
    pod.ipus_per_rack = -1;
    MUST_FAIL(ipu_system_path(&pod, 0, 1, &width, &hops), IPU_ERR_ARGUMENT,
              "a system of -1 IPUs a rack");
}

TEST(sizes_must_be_set)
{
    ipu_target target = chip("mk1"), none = {.size = 4};
    ipu_target_peaks peaks = {.size = 0};
    ipu_system system = {.size = 0};
    ipu_system_peaks all = {.size = 0};

    MUST_FAIL(ipu_target_find("mk1", &none), IPU_ERR_ARGUMENT, "size is 4");
    MUST_FAIL(ipu_target_get_peaks(&target, &peaks), IPU_ERR_ARGUMENT,
              "size is 0");
    MUST_FAIL(ipu_system_find("C2", &system), IPU_ERR_ARGUMENT, "size is 0");
    system = system_of("C2");
    MUST_FAIL(ipu_system_get_peaks(&system, &all), IPU_ERR_ARGUMENT,
              "size is 0");
    system.ipus = 257;
    all.size = sizeof all;
    MUST_FAIL(ipu_system_get_peaks(&system, &all), IPU_ERR_ARGUMENT,
              "a system of 257 IPUs, 2 a board: 1 to 256 of them");
}

TEST(fields_out_of_range_are_named)
{
    ipu_target target = chip("mk1");

    target.workers = 0;
    MUST_FAIL(ipu_target_check(&target), IPU_ERR_ARGUMENT,
              "target 'mk1': workers is 0; it must be 1 to 64");
    target = chip("mk1");
    target.exchange_bytes_per_cycle = NAN;
    MUST_FAIL(ipu_target_check(&target), IPU_ERR_ARGUMENT,
              "exchange_bytes_per_cycle is nan");
    MUST_FAIL(ipu_target_check(NULL), IPU_ERR_ARGUMENT, "the target is NULL");
}

TEST_MAIN("device_target")
