/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tests IDX files, good and bad. Each test writes a directory of its own,
 * damages one thing, and looks for the file's name and the fault in the
 * message.
 */
#include "data/idx.h"
#include "output/problem.h"

#include "suite.h"

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

/* Writes the pair of files, plain, under their usual names. */
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

/* Checks that loading fails, leaves images alone, and gives a message with all
 * three parts. */
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

TEST(plain_files)
{
    put_pair();
    expect_good(0);
    expect_good(3);
}

TEST(compressed_files)
{
    put_gz("train-images-idx3-ubyte.gz", image_file, sizeof image_file);
    put_gz("train-labels-idx1-ubyte.gz", label_file, sizeof label_file);
    expect_good(0);
}

TEST(other_spelling)
{
    put("train-images.idx3-ubyte", image_file, sizeof image_file);
    put_gz("train-labels.idx1-ubyte.gz", label_file, sizeof label_file);
    expect_good(0);
}

TEST(missing_directory)
{
    struct images images = {0};

    ck_assert_int_eq(idx_load("/nonexistent/mnist", "train", 0, &images),
                     PROBLEM);
    ck_assert_ptr_nonnull(strstr(problem_text(), "/nonexistent/mnist"));
    ck_assert_ptr_nonnull(strstr(problem_text(), "No such file"));
}

TEST(file_as_directory)
{
    struct images images = {0};

    put_pair();
    ck_assert_int_eq(
        idx_load(path_of("train-labels-idx1-ubyte"), "train", 0, &images),
        PROBLEM);
    ck_assert_ptr_nonnull(strstr(problem_text(), "not a directory"));
}

TEST(missing_file)
{
    put("train-images-idx3-ubyte", image_file, sizeof image_file);
    expect_problem("train-labels-idx1-ubyte", "no file", directory);
}

TEST(directory_as_file)
{
    put_pair();
    unlink(path_of("train-images-idx3-ubyte"));
    mkdir(path_of("train-images-idx3-ubyte"), 0700);
    expect_problem("train-images-idx3-ubyte", "is a directory",
                   "expected a file");
}

/* The file is cut after every interesting number of bytes. */
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

LOOP_TEST(truncated_plain, 0, sizeof cuts / sizeof *cuts)
{
    put_pair();
    put("train-images-idx3-ubyte", image_file, cuts[_i].bytes);
    expect_problem("train-images-idx3-ubyte", cuts[_i].says, "of");
}

LOOP_TEST(truncated_inside_gz, 0, sizeof cuts / sizeof *cuts)
{
    put_pair();
    unlink(path_of("train-images-idx3-ubyte"));
    put_gz("train-images-idx3-ubyte.gz", image_file, cuts[_i].bytes);
    expect_problem("train-images-idx3-ubyte.gz", cuts[_i].says, "of");
}

/* The .gz itself is cut short: its tail of eight bytes, or more. */
LOOP_TEST(truncated_gz, 0, 4)
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

TEST(damaged_gz)
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

TEST(oversized)
{
    uint8_t longer[sizeof image_file + 1] = {0};

    memcpy(longer, image_file, sizeof image_file);
    put_pair();
    put("train-images-idx3-ubyte", longer, sizeof longer);
    expect_problem("train-images-idx3-ubyte", "goes on after", "5 items");
}

TEST(labels_as_images)
{
    put_pair();
    put("train-images-idx3-ubyte", label_file, sizeof label_file);
    expect_problem("train-images-idx3-ubyte", "00000801", "00000803");
}

TEST(images_as_labels)
{
    put_pair();
    put("train-labels-idx1-ubyte", image_file, sizeof image_file);
    expect_problem("train-labels-idx1-ubyte", "00000803", "00000801");
}

TEST(other_type)
{
    image_file[2] = 0x0d; /* float */
    put_pair();
    expect_problem("train-images-idx3-ubyte", "00000d03", "00000803");
}

TEST(other_size)
{
    image_file[11] = 32;
    put_pair();
    expect_problem("train-images-idx3-ubyte", "32x28", "28x28");
}

TEST(no_items)
{
    image_file[7] = 0;
    put_pair();
    put("train-images-idx3-ubyte", image_file, 16);
    expect_problem("train-images-idx3-ubyte", "0 items", "1 to");
}

/* A count that no memory holds must not be believed. */
TEST(absurd_count)
{
    memset(image_file + 4, 255, 4);
    put_pair();
    expect_problem("train-images-idx3-ubyte", "4294967295", "1 to");
}

TEST(counts_differ)
{
    label_file[7] = COUNT - 1;
    put_pair();
    put("train-labels-idx1-ubyte", label_file, sizeof label_file - 1);
    expect_problem("train-labels-idx1-ubyte", "4 labels", "5 images");
}

TEST(label_out_of_range)
{
    label_file[8 + 3] = 10;
    put_pair();
    expect_problem("train-labels-idx1-ubyte", "label 10 of item 3", "0 to 9");
}

TEST(fewer_than_asked_for)
{
    struct images images = {0};

    put_pair();
    ck_assert_int_eq(idx_load(directory, "train", COUNT + 1, &images), PROBLEM);
    ck_assert_ptr_nonnull(strstr(problem_text(), "5 images, fewer than the 6"));
}

TEST_MAIN("models_idx", .set_up = setup, .tear_down = teardown)
