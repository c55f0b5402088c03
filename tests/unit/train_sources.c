/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tests the files that data sets come from: good ones against what was written,
 * some of it by numpy; and damaged ones, which are refused with a text that
 * begins with the path, or still read.
 */
#include "files/npy.h"
#include "files/record.h"

#include <hvd_dataset.h>

#include "folder.h"
#include "suite.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

static const char path[] = "file";

static void put(const void *bytes, size_t count)
{
    file_write(path, bytes, count);
}

static void put_gz(const void *bytes, size_t count)
{
    gzFile out = gzopen(path, "wb");

    ck_assert_ptr_nonnull(out);
    ck_assert_int_eq(gzwrite(out, bytes, (unsigned)count), (int)count);
    ck_assert_int_eq(gzclose(out), Z_OK);
}

/* Reads all elements as one batch; room has a place for each component. */
static int64_t read_all(hvd_dataset *set, const void **copies)
{
    hvd_iterator *it = NULL;
    hvd_batch batch;
    int64_t count = hvd_dataset_count(set);

    ck_assert_msg(set != NULL, "%s", hvd_last_error());
    set = hvd_dataset_batch(set, count + 1, 0);
    ck_assert_int_eq(hvd_iterator_new(set, NULL, &it), 0);
    ck_assert_msg(hvd_iterator_next(it, &batch) == 0, "%s", hvd_last_error());
    ck_assert_int_eq(batch.rows, count);
    for (int32_t i = 0; i < batch.ncomponents; i++) {
        static char kept[4][4096];
        const hvd_component *c = &batch.components[i];
        size_t bytes = (size_t)hvd_dtype_size(c->dtype);

        for (int32_t k = 0; k < c->ndim; k++)
            bytes *= (size_t)c->shape[k];
        ck_assert_uint_le(bytes, sizeof kept[i]);
        copies[i] = memcpy(kept[i], batch.data[i], bytes);
    }
    hvd_iterator_free(it);
    hvd_dataset_free(set);
    return count;
}

static void expect_refused(const hvd_dataset *set, const char *text)
{
    char begin[100];

    ck_assert_ptr_null(set);
    snprintf(begin, sizeof begin, "%s:", path);
    ck_assert_msg(strstr(hvd_last_error(), begin) == hvd_last_error(), "%s",
                  hvd_last_error());
    ck_assert_msg(strstr(hvd_last_error(), text), "%s", hvd_last_error());
}

static hvd_dataset *(*opened)(void); /* opens what damage has damaged */

static void open_damaged(bool is_cut)
{
    hvd_dataset *set = opened();

    (void)is_cut;
    if (!set)
        expect_refused(set, "");
    hvd_dataset_free(set);
}

/* Cuts the file at every byte, and flips every bit: it is refused, or read. */
static void damage(hvd_dataset *(*open)(void))
{
    opened = open;
    file_damage(path, SIZE_MAX / 8, open_damaged);
}

/* ---------------------------------------------------------------------- IDX */

static hvd_dataset *open_idx(void)
{
    return hvd_dataset_idx(1, (const char *[]){"x"}, (const char *[]){path});
}

LOOP_TEST(idx_has_all_types, 0, 2)
{
    static const unsigned char shorts[] = {0, 0, 0x0b, 2, 0, 0,    0,    2,
                                           0, 0, 0,    3, 0, 1,    255,  255,
                                           1, 0, 2,    2, 0, 0x7f, 0xff, 0};
    static const unsigned char doubles[] = {0,    0, 0x0e, 1, 0, 0, 0, 1,
                                            0xc0, 4, 0,    0, 0, 0, 0, 0};
    const void *x[1];
    void (*write)(const void *, size_t) = _i ? put_gz : put;

    write(shorts, 24);
    ck_assert_int_eq(read_all(open_idx(), x), 2);
    ck_assert_mem_eq(x[0], ((int16_t[]){1, -1, 256, 514, 127, -256}), 12);
    write(doubles, sizeof doubles);
    ck_assert_int_eq(read_all(open_idx(), x), 1);
    ck_assert(*(const double *)x[0] == -2.5);
}

TEST(damaged_idx_is_refused)
{
    static const unsigned char file[] = {0, 0, 8, 2, 0, 0, 0, 2,
                                         0, 0, 0, 2, 1, 2, 3, 4};

    put(file, sizeof file);
    damage(open_idx);
    put_gz(file, sizeof file);
    damage(open_idx);
    put("abcdefgh", 8);
    expect_refused(open_idx(), "no IDX file");
    put(file, 12);
    expect_refused(open_idx(), "truncated: ends after 0 of 4");
    unlink(path);
    expect_refused(open_idx(), "No such file");
}

TEST(files_of_one_data_set_are_as_long)
{
    static const unsigned char two[] = {0, 0, 8, 1, 0, 0, 0, 2, 1, 2};
    static const unsigned char three[] = {0, 0, 8, 1, 0, 0, 0, 3, 1, 2, 3};
    char other[sizeof path + 2];

    put(two, sizeof two);
    snprintf(other, sizeof other, "%s.2", path);
    ck_assert_int_eq(rename(path, other), 0);
    put(three, sizeof three);
    expect_refused(hvd_dataset_idx(2, (const char *[]){"a", "b"},
                                   (const char *[]){other, path}),
                   "3 elements of \"b\", but 2 of \"a\"");
    unlink(other);
}

/* ---------------------------------------------------------------------- CSV */

static const char *const words[] = {"setosa", "virginica"};
static const hvd_csv_field fields[] = {
    {.component = {"x", HVD_FLOAT32, 1, {2}}, .column = "length"},
    {.component = {"n", HVD_INT32, 0, {0}},
     .has_default = 1,
     .default_value = -1},
    {.component = {"species", HVD_UINT8, 0, {0}},
     .column = "4",
     .words = words,
     .nwords = 2}};

static hvd_dataset *open_csv(void)
{
    return hvd_dataset_csv(path, 3, fields, 0, 1);
}

static void put_text(const char *text)
{
    file_write_text(path, text);
}

TEST(csv_columns_are_read)
{
    const void *at[3];

    put_text("\xef\xbb\xbfid,length,\"wi\"\"dth\",n,kind\r\n"
             "a,1.5,-2e3,7,setosa\r\n"
             "\r\n"
             "\"b, with\nbreak\",  .25,0x10,,\"virginica\"\r\n"
             "c,inf,nan,NA,setosa");
    ck_assert_int_eq(read_all(open_csv(), at), 3);
    const float *x = at[0];
    ck_assert(x[0] == 1.5F && x[1] == -2000 && x[2] == 0.25F && x[3] == 16);
    ck_assert(x[4] > 1e38F && x[5] != x[5]);
    ck_assert_mem_eq(at[1], ((int32_t[]){7, -1, -1}), 12);
    ck_assert_mem_eq(at[2], ((uint8_t[]){0, 1, 0}), 3);
}

static const struct {
    const char *line, *says;
} lines[] = {
    {"a,1,2,3", ":3:4: 4 fields, but the first line has 5"},
    {"a,1,2,3,setosa,6", ":3:6: 6 fields"},
    {"a,x,2,3,setosa", ":3:2: this is no number: \"x\""},
    {"a,1,,3,setosa", ":3:3: a value is missing, with no default for \"x\""},
    {"a,1,2,3.5,setosa", ":3:4: this is no whole number: \"3.5\""},
    {"a,1,2,3000000000,setosa", ":3:4: this is beyond the range"},
    {"a,1,2,99999999999999999999,setosa", ":3:4: this is beyond the range"},
    {"a,1,2,3,rose", ":3:5: none of the words is \"rose\""},
    {"\"a\nb\",1,2,3,\"rose\"", ":3:5: none of the words is \"rose\""},
    {"a,1,2,3,\"setosa", ":3:5: a quote is not closed"},
    {"a,1,2,3,\"setosa\"x", ":3:5: something stands behind"},
    {"a,1,2\",3,setosa", ":3:3: a quote within a field"},
};

LOOP_TEST(wrong_lines_of_csv_are_named, 0, sizeof lines / sizeof *lines)
{
    char text[300];

    snprintf(text, sizeof text,
             "id,length,width,n,kind\na,1,2,3,setosa\n%s\nb,1,2,3,setosa\n",
             lines[_i].line);
    put_text(text);
    expect_refused(open_csv(), lines[_i].says);
}

TEST(wrong_columns_of_csv_are_named)
{
    const hvd_csv_field far = {.component = {"x", HVD_FLOAT32, 1, {2}},
                               .column = "1"};
    const hvd_csv_field none = {.component = {"x", HVD_FLOAT32, 0, {0}},
                                .column = "z"};
    const hvd_csv_field bad = {.component = {"x", HVD_FLOAT32, 1, {-1}}};

    put_text("a;b\n1;2\n");
    expect_refused(hvd_dataset_csv(path, 1, &far, ';', 1),
                   "needs columns 1 to 2, but there are 2");
    expect_refused(hvd_dataset_csv(path, 1, &none, ';', 1),
                   "no column is called \"z\"");
    ck_assert_ptr_null(hvd_dataset_csv(path, 1, &bad, ';', 1));
    put_text("");
    expect_refused(hvd_dataset_csv(path, 1, &none, ';', 0), "is empty");
    put("a\0b\n", 4);
    expect_refused(hvd_dataset_csv(path, 1, &none, ';', 0), "zero byte");
}

TEST(damaged_csv_is_refused)
{
    put_text("id,length,width,n,kind\na,1,2,3,setosa\n\"b\",4,5,,virginica\n");
    damage(open_csv);
}

/* ------------------------------------------------------------ numpy's files */

static hvd_dataset *open_npy(void)
{
    return hvd_dataset_npy(path, "x");
}

static hvd_dataset *open_npz(void)
{
    return hvd_dataset_npz(path, 0, NULL);
}

static void numpy(const char *script)
{
    char command[500];

    snprintf(command, sizeof command,
             "/usr/bin/python3 -c 'import numpy as np; f = open(\"%s\", "
             "\"wb\"); %s; f.close()'",
             path, script);
    ck_assert_int_eq(system(command), 0);
}

TEST(what_numpy_saves_is_read)
{
    static const float x[] = {0, 1, 2, 3, 4, 5};
    const void *at[2];

    numpy("np.save(f, np.arange(6, dtype=np.float32).reshape(3, 2))");
    ck_assert_int_eq(read_all(open_npy(), at), 3);
    ck_assert_mem_eq(at[0], x, sizeof x);
    numpy("np.save(f, np.asfortranarray(np.arange(6, dtype=\">f4\")"
          ".reshape(3, 2)))");
    ck_assert_int_eq(read_all(open_npy(), at), 3);
    ck_assert_mem_eq(at[0], x, sizeof x);
    for (int i = 0; i < 2; i++) {
        char script[200];

        snprintf(script, sizeof script,
                 "np.savez%s(f, images=np.arange(6, dtype=np.float32)"
                 ".reshape(2, 3), labels=np.array([7, -8], dtype=np.int64))",
                 i ? "_compressed" : "");
        numpy(script);
        ck_assert_int_eq(read_all(open_npz(), at), 2);
        ck_assert_mem_eq(at[0], x, sizeof x);
        ck_assert_mem_eq(at[1], ((int64_t[]){7, -8}), 16);
        ck_assert_int_eq(
            read_all(hvd_dataset_npz(path, 1, (const char *[]){"labels"}), at),
            2);
        ck_assert_mem_eq(at[0], ((int64_t[]){7, -8}), 16);
    }
    expect_refused(hvd_dataset_npz(path, 1, (const char *[]){"z"}),
                   "there is no \"z\" in it");
}

TEST(damaged_archives_are_refused)
{
    static const float x[] = {1, 2, 3};
    static const int64_t shape[] = {3}, none[1] = {0};
    struct safetensors_tensor t[] = {
        {.name = "x", .dtype = SAFETENSORS_F32, 1, shape, .data = x},
        {.name = "s", .dtype = SAFETENSORS_F32, 0, none, .data = x}};

    for (int i = 0; i < 2; i++)
        ck_assert_int_eq(safetensors_measure(&t[i]), 0);
    ck_assert_int_eq(npz_save(path, t, 1, 0), 0);
    damage(open_npz);
    ck_assert_int_eq(npz_save(path, t, 2, 0), 0);
    expect_refused(open_npz(), "\"s\" has 0 dimensions");
    numpy("np.save(f, np.arange(3))");
    damage(open_npy);
}

/* -------------------------------------------------------------- safetensors */

TEST(safetensors_are_read)
{
    static const float x[] = {1, 2, 3, 4};
    static const uint8_t y[] = {9, 8};
    static const int64_t two[] = {2, 2}, five[] = {5};
    struct safetensors_tensor t[] = {
        {.name = "x", .dtype = SAFETENSORS_F32, 2, two, .data = x},
        {.name = "y", .dtype = SAFETENSORS_U8, 1, two, .data = y},
        {.name = "z", .dtype = SAFETENSORS_U32, 1, two, .data = x},
        {.name = "v", .dtype = SAFETENSORS_U8, 1, five, .data = x}};
    const void *at[2];

    for (int i = 0; i < 4; i++)
        ck_assert_int_eq(safetensors_measure(&t[i]), 0);
    ck_assert_int_eq(safetensors_save(path, t, 4, NULL, 0), 0);
    const char *names[] = {"y", "x", "v", "z"};
    ck_assert_int_eq(read_all(hvd_dataset_safetensors(path, 2, names), at), 2);
    ck_assert_mem_eq(at[0], y, sizeof y);
    ck_assert_mem_eq(at[1], x, sizeof x);
    expect_refused(hvd_dataset_safetensors(path, 3, names),
                   "5 elements of \"v\", but 2 of \"y\"");
    expect_refused(hvd_dataset_safetensors(path, 1, &names[3]), "dtype");
}

/* ----------------------------------------------------------------- TFRecord */

static const hvd_component features[] = {{"image", HVD_UINT8, 1, {3}},
                                         {"label", HVD_INT32, 0, {0}},
                                         {"weights", HVD_FLOAT32, 1, {2}}};

static hvd_dataset *open_tfrecord(void)
{
    return hvd_dataset_tfrecord(path, 3, features);
}

/* Writes two examples by an independent program. packed 0: each number is a
 * field of its own. The label of the second is -1 - also: text that is added to
 * the second example. */
static void examples(int packed, const char *also)
{
    char command[3000];

    snprintf(
        command, sizeof command,
        "/usr/bin/python3 -c '\n"
        "import struct\n"
        "def crc(b):\n"
        " x = 0xffffffff\n"
        " for c in b:\n"
        "  x ^= c\n"
        "  for _ in range(8): x = x >> 1 ^ (0x82f63b78 if x & 1 else 0)\n"
        " x ^= 0xffffffff\n"
        " return struct.pack(\"<I\", ((x >> 15 | x << 17) + 0xa282ead8)"
        " & 0xffffffff)\n"
        "def num(n):\n"
        " n &= (1 << 64) - 1\n"
        " r = b\"\"\n"
        " while n > 127: r += bytes([n & 127 | 128]); n >>= 7\n"
        " return r + bytes([n])\n"
        "def sub(k, b): return bytes([k << 3 | 2]) + num(len(b)) + b\n"
        "def ints(v): return sub(3, sub(1, b\"\".join(map(num, v))) if %d else"
        " b\"\".join(b\"\\x08\" + num(x) for x in v))\n"
        "def floats(v):\n"
        " p = [struct.pack(\"<f\", x) for x in v]\n"
        " return sub(2, sub(1, b\"\".join(p)) if %d else"
        " b\"\".join(b\"\\x0d\" + x for x in p))\n"
        "def entry(n, f): return sub(1, sub(1, n.encode()) + sub(2, f))\n"
        "f = open(\"%s\", \"wb\")\n"
        "for label, image, w in ((300, b\"abc\", [0.5, -2]),"
        " (-1, b\"xyz\", [1, 3])):\n"
        " e = sub(1, entry(\"other\", ints([1, 2])) +"
        " entry(\"weights\", floats(w)) + entry(\"label\", ints([label])) +"
        " entry(\"image\", sub(1, sub(1, image))))\n"
        " %s\n"
        " h = struct.pack(\"<Q\", len(e))\n"
        " f.write(h + crc(h) + e + crc(e))\n"
        "f.close()'",
        packed, packed, path, also);
    ck_assert_int_eq(system(command), 0);
}

LOOP_TEST(examples_are_read, 0, 2)
{
    const void *at[3];

    examples(_i, "");
    ck_assert_int_eq(read_all(open_tfrecord(), at), 2);
    ck_assert_mem_eq(at[0], "abcxyz", 6);
    ck_assert_mem_eq(at[1], ((int32_t[]){300, -1}), 8);
    ck_assert_mem_eq(at[2], ((float[]){0.5F, -2, 1, 3}), 16);
}

/* Opens the file, and reads the first element. */
static void expect_wrong_example(hvd_dataset *set, const char *text)
{
    hvd_iterator *it;
    hvd_batch batch;

    ck_assert_msg(set != NULL, "%s", hvd_last_error());
    ck_assert_int_eq(hvd_iterator_new(set, NULL, &it), 0);
    ck_assert_int_eq(hvd_iterator_next(it, &batch), HVD_ERR_FILE);
    expect_refused(NULL, text);
    hvd_iterator_free(it);
    hvd_dataset_free(set);
}

TEST(wrong_examples_are_named)
{
    const hvd_component more = {"image", HVD_UINT8, 1, {4}};
    const hvd_component none = {"z", HVD_UINT8, 0, {0}};
    const hvd_component wide = {"image", HVD_FLOAT32, 1, {3}};

    examples(1, "");
    expect_wrong_example(hvd_dataset_tfrecord(path, 1, &more),
                         "record 0: \"image\" has 3 values, expected 4");
    expect_wrong_example(hvd_dataset_tfrecord(path, 1, &none),
                         "record 0: \"z\" is missing");
    expect_wrong_example(hvd_dataset_tfrecord(path, 1, &wide),
                         "record 0: \"image\" is a list of bytes");
    examples(1, "e = b\"abc\"");
    expect_wrong_example(open_tfrecord(), "this is no tf.train.Example");
    damage(open_tfrecord);
    put_text("this is no such file");
    expect_refused(open_tfrecord(), "no file of records");
}

/* Examples whose bits are flipped, with checksums that fit: they are refused,
 * or read. */
TEST(damaged_examples_are_refused)
{
    struct file_bytes file;
    uint64_t size;

    examples(1, "");
    file = file_read(path);
    memcpy(&size, file.data, sizeof size);
    for (size_t bit = 0; bit < 8 * size; bit++) {
        unsigned char *at = file.data + RECORD_HEAD + bit / 8;
        hvd_iterator *it;
        hvd_batch batch;

        *at ^= (unsigned char)(1 << bit % 8);
        uint32_t sum = record_checksum(file.data + RECORD_HEAD, size);
        memcpy(file.data + RECORD_HEAD + size, &sum, sizeof sum);
        put(file.data, file.count);
        hvd_dataset *set = open_tfrecord();
        ck_assert_int_eq(hvd_iterator_new(set, NULL, &it), 0);
        int status = hvd_iterator_next(it, &batch);
        ck_assert(status == 0 || status == HVD_ERR_FILE);
        hvd_iterator_free(it);
        hvd_dataset_free(set);
        *at ^= (unsigned char)(1 << bit % 8);
    }
    free(file.data);
}

/* --------------------------------------------------------------------- text */

TEST(windows_of_a_text)
{
    const void *at[2];
    int32_t vocabulary;

    put_text("abcäa");
    ck_assert_int_eq(
        read_all(hvd_dataset_text(path, HVD_TEXT_CHARACTERS, 2, 1, &vocabulary),
                 at),
        3);
    ck_assert_int_eq(vocabulary, 4);
    ck_assert_mem_eq(at[0], ((int32_t[]){0, 1, 1, 2, 2, 3}), 24);
    ck_assert_mem_eq(at[1], ((int32_t[]){1, 2, 2, 3, 3, 0}), 24);
    ck_assert_int_eq(
        read_all(hvd_dataset_text(path, HVD_TEXT_BYTES, 2, 2, &vocabulary), at),
        2);
    ck_assert_int_eq(vocabulary, 256);
    ck_assert_mem_eq(at[1], ((int32_t[]){98, 99, 0xc3, 0xa4}), 16);
    expect_refused(hvd_dataset_text(path, HVD_TEXT_BYTES, 6, 1, NULL),
                   "6 units, too few for a window of 6");
    put_text("ab\xff");
    expect_refused(hvd_dataset_text(path, HVD_TEXT_CHARACTERS, 1, 1, NULL),
                   "byte 2 is no character");
}

/* Element i of windows of these tokens, each of which is its own place. */
static void check_window(const void *const *at, int64_t i, int64_t stride)
{
    for (int32_t k = 0; k < 3; k++) {
        ck_assert_int_eq(((const int32_t *)at[0])[i * 3 + k], i * stride + k);
        ck_assert_int_eq(((const int32_t *)at[1])[i * 3 + k],
                         i * stride + k + 1);
    }
}

static void count_release(void *context)
{
    ++*(int *)context;
}

TEST(windows_of_tokens)
{
    static const struct {
        int64_t window, stride;
        const char *text;
    } wrong[] = {{20, 1, "20 units, too few for a window of 20"},
                 {0, 1, "windows of 0 units, 1 apart"},
                 {3, 0, "windows of 3 units, 0 apart"}};
    int32_t tokens[20];
    int released = 0;

    for (int32_t i = 0; i < 20; i++)
        tokens[i] = i;
    for (int64_t stride = 1; stride <= 5; stride++) {
        /* A window of 3 and its labels take 4 tokens. */
        const int64_t count = (20 - 4) / stride + 1;
        const void *at[2];

        ck_assert_int_eq(read_all(hvd_dataset_windows(tokens, 20, 3, stride,
                                                      count_release, &released),
                                  at),
                         count);
        ck_assert_int_eq(released, stride);
        for (int64_t i = 0; i < count; i++)
            check_window(at, i, stride);
    }
    released = 0;
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        ck_assert_ptr_null(hvd_dataset_windows(tokens, 20, wrong[i].window,
                                               wrong[i].stride, count_release,
                                               &released));
        ck_assert_ptr_nonnull(strstr(hvd_last_error(), wrong[i].text));
    }
    ck_assert_int_eq(released, 3);
}

TEST_MAIN("train_sources", .set_up = folder_enter, .tear_down = folder_remove,
          .seconds = 60)
