/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tests safetensors files: what is written is read, byte by byte as the format
 * says; a damaged file is refused with a text, or still read, and never ends
 * the process.
 */
#include "files/safetensors.h"
#include "output/problem.h"

#include "safetensors_file.h"
#include "suite.h"

#include <hvd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char path[] = "file";

static void put_text(const char *text, size_t count)
{
    safetensors_write(path, strlen(text), text, count);
}

static void expect(const char *text)
{
    struct safetensors *file = NULL;
    char whole[400];

    snprintf(whole, sizeof whole, "%s: %s", path, text);
    ck_assert_int_eq(safetensors_open(path, &file), HVD_ERR_FILE);
    ck_assert_ptr_null(file);
    ck_assert_str_eq(problem_text(), whole);
    ck_assert_str_eq(hvd_last_error(), whole);
}

static const double doubles[] = {1, -2.5, 1e300};
static const float floats[] = {0.5f, 1, 2, 3, 4, 5};
static const uint8_t bytes[] = {1, 0, 255};
static const int64_t three[] = {3}, two_three[] = {2, 3}, none[] = {0, 7};

/* [count], measured */
static struct safetensors_tensor tensors[] = {
    {.name = "d", .dtype = SAFETENSORS_F64, 1, three, .data = doubles},
    {.name = "a \"name\"/é",
     .dtype = SAFETENSORS_F32,
     2,
     two_three,
     .data = floats},
    {.name = "scalar", .dtype = SAFETENSORS_F32, 0, three, .data = floats},
    {.name = "empty", .dtype = SAFETENSORS_I64, 2, none, .data = NULL},
    {.name = "u", .dtype = SAFETENSORS_U8, 1, three, .data = bytes},
};
enum { COUNT = sizeof tensors / sizeof *tensors };

static void save(void)
{
    json_t *metadata = json_pack("{s:s,s:s}", "format", "pt", "step", "7");

    for (int i = 0; i < COUNT; i++)
        ck_assert_int_eq(safetensors_measure(&tensors[i]), 0);
    ck_assert_int_eq(safetensors_save(path, tensors, COUNT, metadata, 0), 0);
    json_decref(metadata);
}

TEST(what_is_written_is_read)
{
    struct safetensors *file = NULL;

    save();
    ck_assert_int_eq(safetensors_open(path, &file), 0);
    ck_assert_int_eq(file->count, COUNT);
    ck_assert_str_eq(json_string_value(json_object_get(file->metadata, "step")),
                     "7");
    for (int i = 0; i < COUNT; i++) {
        const struct safetensors_tensor *want = &tensors[i];
        const struct safetensors_tensor *t = safetensors_find(file, want->name);

        ck_assert_ptr_nonnull(t);
        ck_assert_int_eq(t->dtype, want->dtype);
        ck_assert_int_eq(t->ndim, want->ndim);
        ck_assert_uint_eq(t->bytes, want->bytes);
        for (int k = 0; k < t->ndim; k++)
            ck_assert_int_eq(t->shape[k], want->shape[k]);
        if (t->bytes)
            ck_assert_mem_eq(t->data, want->data, t->bytes);
    }
    ck_assert_ptr_null(safetensors_find(file, "nothing"));
    ck_assert_ptr_null(safetensors_find(file, "__metadata__"));
    /* The data is aligned. */
    ck_assert_uint_eq((uintptr_t)safetensors_find(file, "d")->data % 8, 0);
    safetensors_close(file);
    safetensors_close(NULL);
}

TEST(header_is_as_the_format_says)
{
    struct safetensors_tensor t = {
        .name = "w", .dtype = SAFETENSORS_BF16, 2, two_three, .data = floats};
    size_t length = 0;
    char *header;

    ck_assert_int_eq(safetensors_measure(&t), 0);
    header = safetensors_header(&t, 1, NULL, &length);
    ck_assert_ptr_nonnull(header);
    ck_assert_uint_eq(length % 8, 0);
    ck_assert_uint_eq(length, 8 + (uint64_t)(unsigned char)header[0]);
    ck_assert_int_eq(strncmp(header + 8,
                             "{\"w\":{\"dtype\":\"BF16\",\"shape\":[2,3],"
                             "\"data_offsets\":[0,12]}}",
                             58),
                     0);
    free(header);
}

TEST(dtypes_are_those_of_hvd)
{
    static const char *const names[] = {"U8",  "I8",   "U16", "I16",
                                        "I32", "I64",  "F16", "F32",
                                        "F64", "BOOL", "BF16"};

    for (int i = 0; i < HVD_NUM_DTYPES; i++) {
        const int dtype = safetensors_from_hvd(i);

        ck_assert_str_eq(safetensors_name((enum safetensors_dtype)dtype),
                         names[i]);
        ck_assert_int_eq(safetensors_to_hvd((enum safetensors_dtype)dtype), i);
    }
    ck_assert_int_eq(safetensors_from_hvd(-1), -1);
    ck_assert_int_eq(safetensors_from_hvd(HVD_NUM_DTYPES), -1);
    ck_assert_int_eq(safetensors_to_hvd(SAFETENSORS_F4), -1);
    ck_assert_int_eq(safetensors_to_hvd(SAFETENSORS_U64), -1);
}

TEST(what_is_no_tensor_is_not_written)
{
    static const int64_t negative[] = {3, -1}, huge[] = {INT64_MAX, 2};
    struct safetensors_tensor t = {.name = "t", .dtype = SAFETENSORS_F32, 2};
    struct safetensors_tensor twice[2];
    size_t length;

    t.shape = negative;
    ck_assert_int_eq(safetensors_measure(&t), HVD_ERR_ARGUMENT);
    t.shape = huge;
    ck_assert_int_eq(safetensors_measure(&t), HVD_ERR_ARGUMENT);
    t.ndim = 1; /* whose bytes are too many */
    ck_assert_int_eq(safetensors_measure(&t), HVD_ERR_ARGUMENT);
    t.dtype = SAFETENSORS_F4;
    t.shape = three;
    ck_assert_int_eq(safetensors_measure(&t), HVD_ERR_ARGUMENT);
    t.shape = two_three;
    t.ndim = 2;
    ck_assert_int_eq(safetensors_measure(&t), 0);
    ck_assert_uint_eq(t.bytes, 3);
    twice[0] = twice[1] = t;
    ck_assert_ptr_null(safetensors_header(twice, 2, NULL, &length));
    ck_assert_ptr_nonnull(strstr(problem_text(), "stands twice"));
    t.name = "__metadata__";
    ck_assert_ptr_null(safetensors_header(&t, 1, NULL, &length));
    t.name = "\xff";
    ck_assert_ptr_null(safetensors_header(&t, 1, NULL, &length));
    ck_assert_int_eq(safetensors_save(path, &t, 1, NULL, 0), HVD_ERR_ARGUMENT);
    t.name = "t";
    ck_assert_int_eq(safetensors_save("/nowhere/x", &t, 1, NULL, 0),
                     HVD_ERR_FILE);
    ck_assert_str_eq(problem_text(), "/nowhere/x: cannot be written: No such "
                                     "file or directory");
}

#define TENSOR(name, dtype, shape, from, end)                                  \
    "\"" name "\":{\"dtype\":" dtype ",\"shape\":" shape                       \
    ",\"data_offsets\":[" #from "," #end "]}"

/* With 8 bytes of data. */
static const struct {
    const char *header, *text;
} wrong[] = {
    {"{]", "this is no safetensors file: its header is not JSON"},
    {"[]", "this is no safetensors file: its header is not JSON"},
    {"{}", "it has more bytes than its header says"},
    {"{\"__metadata__\":[]}", "its metadata is no object"},
    {"{\"__metadata__\":{\"step\":7}}", "'step' of its metadata is no text"},
    {"{" TENSOR("a", "\"F32\"", "[2]", 0, 8) "," TENSOR("a", "\"F32\"", "[2]",
                                                        0, 8) "}",
     "a name stands twice in its header (duplicate object key near '\"a\"')"},
    {"{" TENSOR("a", "\"f32\"", "[2]", 0, 8) "}",
     "'a' is of dtype f32, which is none of the format"},
    {"{\"a\":7}", "'a' is of dtype null, which is none of the format"},
    {"{\"a\":{\"dtype\":\"F32\"}}", "'a' has a shape that is none"},
    {"{" TENSOR("a", "\"F32\"", "[-2]", 0, 8) "}",
     "'a' has a shape that is none"},
    {"{" TENSOR("a", "\"F32\"", "[2.0]", 0, 8) "}",
     "'a' has a shape that is none"},
    {"{" TENSOR("a", "\"F32\"", "[4611686018427387904,4]", 0, 8) "}",
     "'a' has a shape that is none"},
    {"{" TENSOR("a", "\"F6_E2M3\"", "[3]", 0, 2) "}",
     "'a' has a shape that is none"},
    {"{" TENSOR("a", "\"F32\"", "[1]", 0, 8) "}",
     "'a' does not lie where its header says; is the file truncated?"},
    {"{" TENSOR("a", "\"F32\"", "[4]", 0, 16) "}",
     "'a' does not lie where its header says; is the file truncated?"},
    {"{" TENSOR("a", "\"F32\"", "[2]", 8, 0) "}",
     "'a' does not lie where its header says; is the file truncated?"},
    {"{" TENSOR("a", "\"F32\"", "[2]", -8, 0) "}",
     "'a' does not lie where its header says; is the file truncated?"},
    {"{" TENSOR("a", "\"F32\"", "[2]", 0.0, 8) "}",
     "'a' does not lie where its header says; is the file truncated?"},
    {"{" TENSOR("a", "\"F32\"", "[1]", 0, 4) "}",
     "it has more bytes than its header says"},
    {"{" TENSOR("a", "\"F32\"", "[1]", 4, 8) "}",
     "'a' does not begin where the tensor before it ends"},
    {"{" TENSOR("a", "\"F32\"", "[2]", 0, 8) "," TENSOR("b", "\"F32\"", "[1]",
                                                        4, 8) "}",
     "'b' does not begin where the tensor before it ends"},
};

LOOP_TEST(what_is_wrong_is_told, 0, sizeof wrong / sizeof *wrong)
{
    put_text(wrong[_i].header, 8);
    expect(wrong[_i].text);
}

TEST(lengths_that_cannot_be_are_told)
{
    static const unsigned char most[16] = {255, 255, 255, 255,
                                           255, 255, 255, 255};

    file_write(path, "", 0);
    expect("this is no safetensors file: it is too short");
    file_write(path, "1234567", 7);
    expect("this is no safetensors file: it is too short");
    file_write(path, most, 16);
    expect("this is no safetensors file: its header would be longer than it");
    unlink(path);
    expect("No such file or directory");
}

/* Opens what is there, and looks at every byte of it. */
static int read_all(void)
{
    struct safetensors *file = NULL;
    const int status = safetensors_open(path, &file);
    unsigned sum = 0;

    for (int i = 0; status == 0 && i < file->count; i++)
        for (size_t k = 0; k < file->tensors[i].bytes; k++)
            sum += ((const unsigned char *)file->tensors[i].data)[k];
    safetensors_close(file);
    return status < 0 ? status : (int)(sum & 1);
}

static void read_damaged(bool is_cut)
{
    const int status = read_all();

    ck_assert(!is_cut || status == HVD_ERR_FILE);
}

/* Flipped bits of the data are read as other numbers. */
TEST(damaged_files_are_refused_or_read)
{
    struct file_bytes whole;
    uint64_t header;

    save();
    whole = file_read(path);
    memcpy(&header, whole.data, sizeof header);
    free(whole.data);
    file_damage(path, sizeof header + header, read_damaged);
    ck_assert_int_ge(read_all(), 0);
}

TEST_MAIN("train_safetensors", .set_up = folder_enter,
          .tear_down = folder_remove, .seconds = 60)
