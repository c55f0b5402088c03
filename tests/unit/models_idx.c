/* SPDX-License-Identifier: Apache-2.0 */
/*
 * IDX files, good and bad: each test writes a directory of its own, damages
 * one thing, and looks for the file's name and the fault in the message.
 */
#include "data/idx.h"
#include "output/problem.h"

#include "check_main.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

enum { COUNT = 5, IMAGE_BYTES = 16 + COUNT * IMAGE_PIXELS };

static char directory[] = "/tmp/hvd-idx-XXXXXX";
static uint8_t image_file[IMAGE_BYTES];
static uint8_t label_file[8 + COUNT];

static char *path_of(const char *name)
{
    static char path[300];

    snprintf(path, sizeof path, "%s/%s", directory, name);
    return path;
}

static void put(const char *name, const void *bytes, size_t size)
{
    FILE *out = fopen(path_of(name), "wb");

    ck_assert_ptr_nonnull(out);
    ck_assert_uint_eq(fwrite(bytes, 1, size, out), size);
    ck_assert_int_eq(fclose(out), 0);
}

static void put_gz(const char *name, const void *bytes, size_t size)
{
    gzFile out = gzopen(path_of(name), "wb");

    ck_assert_ptr_nonnull(out);
    ck_assert_int_eq(gzwrite(out, bytes, (unsigned)size), (int)size);
    ck_assert_int_eq(gzclose(out), Z_OK);
}

static void setup(void)
{
    static const uint8_t image_head[] = {0, 0, 8, 3,  0, 0, 0, COUNT,
                                         0, 0, 0, 28, 0, 0, 0, 28};
    static const uint8_t label_head[] = {0, 0, 8, 1, 0, 0, 0, COUNT};

    ck_assert_ptr_nonnull(mkdtemp(directory));
    memcpy(image_file, image_head, sizeof image_head);
    memcpy(label_file, label_head, sizeof label_head);
    for (int i = 0; i < COUNT * IMAGE_PIXELS; i++)
        image_file[16 + i] = (uint8_t)(i * 7);
    for (int i = 0; i < COUNT; i++)
        label_file[8 + i] = (uint8_t)(9 - i);
}

static void teardown(void)
{
    char command[100];

    snprintf(command, sizeof command, "rm -rf %s", directory);
    ck_assert_int_eq(system(command), 0);
}

/* The pair of files, plain, under their usual names. */
static void put_pair(void)
{
    put("train-images-idx3-ubyte", image_file, sizeof image_file);
    put("train-labels-idx1-ubyte", label_file, sizeof label_file);
}

static void expect_good(int64_t limit)
{
    struct images images = {0};

    ck_assert_msg(idx_load(directory, "train", limit, &images) == 0, "%s",
                  problem_text());
    ck_assert_int_eq(images.count, limit > 0 ? limit : COUNT);
    ck_assert_mem_eq(images.pixels, image_file + 16,
                     (size_t)images.count * IMAGE_PIXELS);
    ck_assert_mem_eq(images.labels, label_file + 8, (size_t)images.count);
    images_fini(&images);
}

/* Loading fails, leaves images alone, and the message has all three. */
static void expect_problem(const char *file, const char *found,
                           const char *expected)
{
    struct images images = {0};
    const char *parts[] = {file, found, expected};

    ck_assert_int_eq(idx_load(directory, "train", 0, &images), PROBLEM);
    ck_assert_ptr_null(images.pixels);
    for (int i = 0; i < 3; i++)
        ck_assert_msg(strstr(problem_text(), parts[i]) != NULL,
                      "'%s' does not say '%s'", problem_text(), parts[i]);
}

START_TEST(plain_files)
{
    put_pair();
    expect_good(0);
    expect_good(3);
}
END_TEST

START_TEST(compressed_files)
{
    put_gz("train-images-idx3-ubyte.gz", image_file, sizeof image_file);
    put_gz("train-labels-idx1-ubyte.gz", label_file, sizeof label_file);
    expect_good(0);
}
END_TEST

START_TEST(other_spelling)
{
    put("train-images.idx3-ubyte", image_file, sizeof image_file);
    put_gz("train-labels.idx1-ubyte.gz", label_file, sizeof label_file);
    expect_good(0);
}
END_TEST

START_TEST(missing_directory)
{
    struct images images = {0};

    ck_assert_int_eq(idx_load("/nonexistent/mnist", "train", 0, &images),
                     PROBLEM);
    ck_assert_ptr_nonnull(strstr(problem_text(), "/nonexistent/mnist"));
    ck_assert_ptr_nonnull(strstr(problem_text(), "No such file"));
}
END_TEST

START_TEST(file_as_directory)
{
    struct images images = {0};

    put_pair();
    ck_assert_int_eq(
        idx_load(path_of("train-labels-idx1-ubyte"), "train", 0, &images),
        PROBLEM);
    ck_assert_ptr_nonnull(strstr(problem_text(), "not a directory"));
}
END_TEST

START_TEST(missing_file)
{
    put("train-images-idx3-ubyte", image_file, sizeof image_file);
    expect_problem("train-labels-idx1-ubyte", "no file", directory);
}
END_TEST

START_TEST(directory_as_file)
{
    put_pair();
    unlink(path_of("train-images-idx3-ubyte"));
    mkdir(path_of("train-images-idx3-ubyte"), 0700);
    expect_problem("train-images-idx3-ubyte", "is a directory",
                   "expected a file");
}
END_TEST

/* Cut after every interesting number of bytes. */
static const struct {
    size_t bytes;
    const char *says;
} cuts[] = {{0, "truncated"},
            {1, "truncated"},
            {3, "truncated"},
            {4, "truncated"},
            {15, "truncated"},
            {16, "truncated: ends after 0 of 3920"},
            {17, "truncated: ends after 1 of 3920"},
            {IMAGE_BYTES - 1, "truncated: ends after 3919 of 3920"}};

START_TEST(truncated_plain)
{
    put_pair();
    put("train-images-idx3-ubyte", image_file, cuts[_i].bytes);
    expect_problem("train-images-idx3-ubyte", cuts[_i].says, "of");
}
END_TEST

START_TEST(truncated_inside_gz)
{
    put_pair();
    unlink(path_of("train-images-idx3-ubyte"));
    put_gz("train-images-idx3-ubyte.gz", image_file, cuts[_i].bytes);
    expect_problem("train-images-idx3-ubyte.gz", cuts[_i].says, "of");
}
END_TEST

/* The .gz itself is cut short: its tail of eight bytes, or more. */
START_TEST(truncated_gz)
{
    static const int lost[] = {1, 4, 8, 60};
    char name[] = "train-images-idx3-ubyte.gz";
    struct stat info;

    put_pair();
    unlink(path_of("train-images-idx3-ubyte"));
    put_gz(name, image_file, sizeof image_file);
    ck_assert_int_eq(stat(path_of(name), &info), 0);
    ck_assert_int_eq(truncate(path_of(name), info.st_size - lost[_i]), 0);
    expect_problem(name, "truncated", "of");
}
END_TEST

START_TEST(damaged_gz)
{
    char name[] = "train-images-idx3-ubyte.gz";

    put_pair();
    unlink(path_of("train-images-idx3-ubyte"));
    put_gz(name, image_file, sizeof image_file);
    /* The checksum: eight bytes before the end. */
    FILE *file = fopen(path_of(name), "r+b");
    ck_assert_ptr_nonnull(file);
    fseek(file, -8, SEEK_END);
    fputc(fgetc(file) ^ 255, file);
    fseek(file, -8, SEEK_END);
    fputc('x', file);
    fclose(file);
    expect_problem(name, "damaged", "check");
}
END_TEST

START_TEST(oversized)
{
    uint8_t longer[sizeof image_file + 1] = {0};

    memcpy(longer, image_file, sizeof image_file);
    put_pair();
    put("train-images-idx3-ubyte", longer, sizeof longer);
    expect_problem("train-images-idx3-ubyte", "goes on after", "5 items");
}
END_TEST

START_TEST(labels_as_images)
{
    put_pair();
    put("train-images-idx3-ubyte", label_file, sizeof label_file);
    expect_problem("train-images-idx3-ubyte", "00000801", "00000803");
}
END_TEST

START_TEST(images_as_labels)
{
    put_pair();
    put("train-labels-idx1-ubyte", image_file, sizeof image_file);
    expect_problem("train-labels-idx1-ubyte", "00000803", "00000801");
}
END_TEST

START_TEST(other_type)
{
    image_file[2] = 0x0d; /* float */
    put_pair();
    expect_problem("train-images-idx3-ubyte", "00000d03", "00000803");
}
END_TEST

START_TEST(other_size)
{
    image_file[11] = 32;
    put_pair();
    expect_problem("train-images-idx3-ubyte", "32x28", "28x28");
}
END_TEST

START_TEST(no_items)
{
    image_file[7] = 0;
    put_pair();
    put("train-images-idx3-ubyte", image_file, 16);
    expect_problem("train-images-idx3-ubyte", "0 items", "1 to");
}
END_TEST

/* A count that no memory holds must not be believed. */
START_TEST(absurd_count)
{
    memset(image_file + 4, 255, 4);
    put_pair();
    expect_problem("train-images-idx3-ubyte", "4294967295", "1 to");
}
END_TEST

START_TEST(counts_differ)
{
    label_file[7] = COUNT - 1;
    put_pair();
    put("train-labels-idx1-ubyte", label_file, sizeof label_file - 1);
    expect_problem("train-labels-idx1-ubyte", "4 labels", "5 images");
}
END_TEST

START_TEST(label_out_of_range)
{
    label_file[8 + 3] = 10;
    put_pair();
    expect_problem("train-labels-idx1-ubyte", "label 10 of item 3", "0 to 9");
}
END_TEST

START_TEST(fewer_than_asked_for)
{
    struct images images = {0};

    put_pair();
    ck_assert_int_eq(idx_load(directory, "train", COUNT + 1, &images), PROBLEM);
    ck_assert_ptr_nonnull(strstr(problem_text(), "5 images, fewer than the 6"));
}
END_TEST

static TCase *tcase_good(void)
{
    TCase *tcase = tcase_create("good");

    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_test(tcase, plain_files);
    tcase_add_test(tcase, compressed_files);
    tcase_add_test(tcase, other_spelling);
    return tcase;
}

static TCase *tcase_missing(void)
{
    TCase *tcase = tcase_create("missing");

    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_test(tcase, missing_directory);
    tcase_add_test(tcase, file_as_directory);
    tcase_add_test(tcase, missing_file);
    tcase_add_test(tcase, directory_as_file);
    return tcase;
}

static TCase *tcase_length(void)
{
    TCase *tcase = tcase_create("length");
    int ncuts = (int)(sizeof cuts / sizeof *cuts);

    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_loop_test(tcase, truncated_plain, 0, ncuts);
    tcase_add_loop_test(tcase, truncated_inside_gz, 0, ncuts);
    tcase_add_loop_test(tcase, truncated_gz, 0, 4);
    tcase_add_test(tcase, damaged_gz);
    tcase_add_test(tcase, oversized);
    return tcase;
}

static TCase *tcase_content(void)
{
    TCase *tcase = tcase_create("content");

    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_test(tcase, labels_as_images);
    tcase_add_test(tcase, images_as_labels);
    tcase_add_test(tcase, other_type);
    tcase_add_test(tcase, other_size);
    tcase_add_test(tcase, no_items);
    tcase_add_test(tcase, absurd_count);
    tcase_add_test(tcase, counts_differ);
    tcase_add_test(tcase, label_out_of_range);
    tcase_add_test(tcase, fewer_than_asked_for);
    return tcase;
}

HVD_TEST_MAIN("models_idx", tcase_good, tcase_missing, tcase_length,
              tcase_content)
