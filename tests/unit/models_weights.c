/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tests files of weights. Saved weights are loaded. A file that is no such
 * file, or one of another network, is refused in one line, which is tested as a
 * whole.
 */
#include "model/weights.h"
#include "output/problem.h"

#include "safetensors_file.h"
#include "suite.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static struct model_variable variables[] = {
    {.name = "a/kernel", .ndim = 2, .shape = {2, 3}, .count = 6},
    {.name = "a/bias", .ndim = 1, .shape = {3}, .count = 3},
};
static const struct model model = {
    .variables = variables, .nvariables = 2, .trained = 2};
static float kernel[6], bias[3];
static float *const values[] = {kernel, bias};
static const char path[] = "file";

static void set_up(void)
{
    folder_enter();
    for (int i = 0; i < 6; i++)
        kernel[i] = (float)i / 3;
    for (int i = 0; i < 3; i++)
        bias[i] = (float)-i;
}

TEST(what_was_saved_is_loaded)
{
    const uint64_t hash = weights_hash(&model, values);

    ck_assert_int_eq(weights_save(path, &model, values), 0);
    memset(kernel, 0, sizeof kernel);
    memset(bias, 0, sizeof bias);
    ck_assert_int_eq(weights_load(path, &model, values), 0);
    ck_assert_uint_eq(weights_hash(&model, values), hash);
}

static void expect(const char *at, const char *text)
{
    char whole[400];

    snprintf(whole, sizeof whole, "--load-weights: %s: %s", at, text);
    ck_assert_int_eq(weights_load(at, &model, values), PROBLEM);
    ck_assert_str_eq(problem_text(), whole);
}

TEST(what_is_no_such_file_is_told)
{
    expect("/nowhere/at/all", "No such file or directory");
    expect("/tmp", "it is no regular file");
    file_write_text(path, "");
    expect(path, "this is no safetensors file: it is too short");
    safetensors_write(path, 1 << 20, "{}", 36);
    expect(path, "this is no safetensors file: its header would be longer than "
                 "it");
    safetensors_write(path, 2, "{]", 36);
    expect(path, "this is no safetensors file: its header is not JSON");
    safetensors_write(path, 2, "[]", 36);
    expect(path, "this is no safetensors file: its header is not JSON");
}

#define KERNEL(dtype, shape, first, end)                                       \
    "{\"a/kernel\":{\"dtype\":" dtype ",\"shape\":" shape                      \
    ",\"data_offsets\":[" #first "," #end "]}"

/* A tensor of all 36 bytes. */
#define REST(name)                                                             \
    "\"" name "\":{\"dtype\":\"U8\",\"shape\":[36],"                           \
    "\"data_offsets\":[0,36]}}"

static const struct {
    const char *header, *text;
} wrong[] = {
    {"{" REST("z"),
     "there is no 'a/kernel' in it; was it written for another network?"},
    {KERNEL("\"F32\"", "[2,3]", 0,
            24) ",\"z\":{\"dtype\":\"U8\",\"shape\":[12],"
                "\"data_offsets\":[24,36]}}",
     "there is no 'a/bias' in it; was it written for another network?"},
    {KERNEL("\"BF16\"", "[18]", 0, 36) "}",
     "'a/kernel' is of dtype BF16, not F32"},
    {KERNEL("7", "[2,3]", 0, 24) "}",
     "'a/kernel' is of dtype null, which is none of the format"},
    {KERNEL("\"F32\"", "[3,3]", 0, 36) "}",
     "'a/kernel' is of the shape [3,3] there, and [2,3] in this network"},
    {KERNEL("\"F32\"", "[9]", 0, 36) "}",
     "'a/kernel' is of the shape [9] there, and [2,3] in this network"},
};

LOOP_TEST(what_is_of_another_network_is_told, 0, sizeof wrong / sizeof *wrong)
{
    safetensors_write(path, strlen(wrong[_i].header), wrong[_i].header, 36);
    expect(path, wrong[_i].text);
}

TEST(what_cannot_be_saved_is_told)
{
    ck_assert_int_eq(weights_save("/nowhere/at/all", &model, values), PROBLEM);
    ck_assert_str_eq(problem_text(),
                     "--save-weights /nowhere/at/all: cannot be written: No "
                     "such file or directory");
}

TEST_MAIN("models_weights", .set_up = set_up, .tear_down = folder_remove)
