/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tests checkpoints through their public header: what is saved is loaded; what
 * is damaged, in any byte, is passed over for the one before; the folder keeps
 * what it is to keep; a writer killed at any moment leaves whole checkpoints.
 */
#include <hvd_checkpoint.h>

#include "suite.h"

#include <errno.h>
#include <glob.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static char folder[64];

static void set_up(void)
{
    strcpy(folder, "/tmp/hvd-checkpoint-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(folder));
}

static void tear_down(void)
{
    char command[128];

    snprintf(command, sizeof command, "rm -rf %s", folder);
    ck_assert_int_eq(system(command), 0);
}

/* ------------------------------------------------------------ what is saved */

static const int64_t two_three[] = {2, 3}, four[] = {4}, none[] = {0, 5};
static float kernel[6];
static double moments[4];
static uint8_t flags[4];
static uint16_t half[4]; /* float16 */
static int64_t count;

/* Small elements come first here, and last in the file. */
static const hvd_checkpoint_tensor tensors[] = {
    {"flags", HVD_BOOL, 1, four, flags},
    {"a/kernel", HVD_FLOAT32, 2, two_three, kernel},
    {"half", HVD_FLOAT16, 1, four, half},
    {"optimizer/count", HVD_INT64, 0, NULL, &count},
    {"nothing", HVD_INT32, 2, none, NULL},
    {"optimizer/a/kernel/m", HVD_FLOAT64, 1, four, moments},
};
enum { COUNT = sizeof tensors / sizeof *tensors };

static void fill(int64_t step)
{
    for (int i = 0; i < 6; i++)
        kernel[i] = (float)(step + i) / 3;
    for (int i = 0; i < 4; i++) {
        moments[i] = (double)step * i / 7;
        flags[i] = (uint8_t)(i % 2);
        half[i] = (uint16_t)(0x3c00 + i * 0x400); /* 1, 2, 4, 8 */
    }
    count = step;
}

static hvd_checkpoint_info info_of(int64_t step, const char *json)
{
    hvd_checkpoint_info info;

    hvd_checkpoint_info_init(&info, sizeof info);
    info.step = step;
    info.json = json;
    return info;
}

static hvd_checkpoint_writer *open_writer(const hvd_checkpoint_options *options)
{
    hvd_checkpoint_writer *w = NULL;

    ck_assert_msg(hvd_checkpoint_writer_open(folder, options, &w) == 0, "%s",
                  hvd_last_error());
    return w;
}

static void save(hvd_checkpoint_writer *w, int64_t step, const char *json)
{
    const hvd_checkpoint_info info = info_of(step, json);

    fill(step);
    ck_assert_msg(hvd_checkpoint_save(w, &info, tensors, COUNT) == 0, "%s",
                  hvd_last_error());
    memset(kernel, 0, sizeof kernel); /* it was copied */
    ck_assert_int_eq(hvd_checkpoint_wait(w), 0);
}

/* Saves checkpoints of these steps, up to a negative one. */
static void save_all(const int64_t *steps, const hvd_checkpoint_options *o)
{
    hvd_checkpoint_writer *w = open_writer(o);

    for (; *steps >= 0; steps++)
        save(w, *steps, "{\"epoch\":3}");
    ck_assert_int_eq(hvd_checkpoint_writer_close(w), 0);
}

/* Compares all tensors of a checkpoint with what was saved at a step. */
static void compare(const hvd_checkpoint *c, int64_t step)
{
    float got_kernel[6];
    double got_moments[4];
    uint8_t got_flags[4];
    uint16_t got_half[4];
    int64_t got_count;
    const hvd_checkpoint_tensor wanted[] = {
        {"a/kernel", HVD_FLOAT32, 2, two_three, got_kernel},
        {"flags", HVD_BOOL, 1, four, got_flags},
        {"half", HVD_FLOAT16, 1, four, got_half},
        {"nothing", HVD_INT32, 2, none, NULL},
        {"optimizer/a/kernel/m", HVD_FLOAT64, 1, four, got_moments},
        {"optimizer/count", HVD_INT64, 0, NULL, &got_count},
    };

    ck_assert_msg(hvd_checkpoint_restore(c, wanted, COUNT, NULL, 0, 0) == COUNT,
                  "%s", hvd_last_error());
    fill(step);
    ck_assert_mem_eq(got_kernel, kernel, sizeof kernel);
    ck_assert_mem_eq(got_moments, moments, sizeof moments);
    ck_assert_mem_eq(got_flags, flags, sizeof flags);
    ck_assert_mem_eq(got_half, half, sizeof half);
    ck_assert_int_eq(got_count, step);
}

static hvd_checkpoint *open_newest(int64_t step)
{
    hvd_checkpoint *c = NULL;
    hvd_checkpoint_info info = info_of(-1, NULL);

    ck_assert_msg(hvd_checkpoint_open(folder, &c) == 0, "%s", hvd_last_error());
    ck_assert_int_eq(hvd_checkpoint_get_info(c, &info), 0);
    ck_assert_int_eq(info.step, step);
    return c;
}

/* Expects exactly these steps in the folder, up to a negative one. */
static void expect_steps(const int64_t *steps)
{
    int64_t *found;
    const int n = hvd_checkpoint_list(folder, &found);
    int i = 0;

    for (; steps[i] >= 0; i++) {
        ck_assert_int_lt(i, n);
        ck_assert_int_eq(found[i], steps[i]);
    }
    ck_assert_int_eq(n, i);
    free(found);
}

#define STEPS(...) ((const int64_t[]){__VA_ARGS__, -1})

TEST(what_is_saved_is_loaded)
{
    const time_t before = time(NULL);
    hvd_checkpoint_info info;
    hvd_checkpoint_writer *w = open_writer(NULL);
    hvd_checkpoint *c;
    const char *text;
    double real;
    int64_t whole;

    fill(7);
    info = info_of(7, "{\"data\": {\"epoch\": 2, \"at\": 9007199254740993},"
                      "\"rate\": 0.125, \"strategy\": \"horovod\"}");
    info.final = 1;
    info.metric = 0.25;
    ck_assert_int_eq(hvd_checkpoint_save(w, &info, tensors, COUNT), 0);
    ck_assert_int_eq(hvd_checkpoint_writer_close(w), 0);

    c = open_newest(7);
    compare(c, 7);
    ck_assert_str_eq(hvd_checkpoint_passed_over(c), "");
    hvd_checkpoint_info_init(&info, sizeof info);
    ck_assert_int_eq(hvd_checkpoint_get_info(c, &info), 0);
    ck_assert_int_eq(info.final, 1);
    ck_assert_double_eq(info.metric, 0.25);
    ck_assert(info.time >= (double)before && info.time <= (double)before + 60);
    ck_assert_str_eq(info.json,
                     "{\"data\":{\"epoch\":2,\"at\":9007199254740993},"
                     "\"rate\":0.125,\"strategy\":\"horovod\"}");
    ck_assert_int_eq(hvd_checkpoint_get_int(c, "data.at", &whole), 0);
    ck_assert_int_eq(whole, 9007199254740993);
    ck_assert_int_eq(hvd_checkpoint_get_real(c, "rate", &real), 0);
    ck_assert_double_eq(real, 0.125);
    ck_assert_int_eq(hvd_checkpoint_get_real(c, "data.epoch", &real), 0);
    ck_assert_int_eq(hvd_checkpoint_get_text(c, "strategy", &text), 0);
    ck_assert_str_eq(text, "horovod");
    ck_assert_int_eq(hvd_checkpoint_get_int(c, "rate", &whole),
                     HVD_ERR_ARGUMENT);
    ck_assert_int_eq(hvd_checkpoint_get_int(c, "data.none", &whole),
                     HVD_ERR_ARGUMENT);
    ck_assert_ptr_nonnull(
        strstr(hvd_last_error(), "its JSON has no integer 'data.none'"));
    ck_assert_int_eq(hvd_checkpoint_get_text(c, "strategy.x", &text),
                     HVD_ERR_ARGUMENT);
    hvd_checkpoint_close(c);
    hvd_checkpoint_close(NULL);
}

TEST(tensors_are_described_and_read_in_parts)
{
    hvd_checkpoint *c;
    hvd_checkpoint_tensor t;
    float part[3];
    double wide[2];
    uint16_t narrow[4];

    save_all(STEPS(12), NULL);
    c = open_newest(12);
    ck_assert_int_eq(hvd_checkpoint_count(c), COUNT);
    ck_assert_int_eq(hvd_checkpoint_describe(c, 0, &t), 0);
    ck_assert_str_eq(t.name, "optimizer/count"); /* of eight bytes */
    ck_assert_int_eq(hvd_checkpoint_describe(c, COUNT, &t), HVD_ERR_ARGUMENT);
    ck_assert_int_eq(hvd_checkpoint_find(c, "a/kernel", &t), 0);
    ck_assert_int_eq(t.dtype, HVD_FLOAT32);
    ck_assert_int_eq(t.ndim, 2);
    ck_assert_int_eq(t.shape[0], 2);
    ck_assert_int_eq(t.shape[1], 3);
    fill(12);
    /* The second row. */
    ck_assert_int_eq(
        hvd_checkpoint_read(c, "a/kernel", HVD_FLOAT32, 3, 3, part), 0);
    ck_assert_mem_eq(part, kernel + 3, sizeof part);
    ck_assert_int_eq(
        hvd_checkpoint_read(c, "a/kernel", HVD_FLOAT64, 4, 2, wide), 0);
    ck_assert_double_eq(wide[1], (double)kernel[5]);
    ck_assert_int_eq(hvd_checkpoint_read(c, "half", HVD_FLOAT32, 1, 3, part),
                     0);
    ck_assert_float_eq(part[2], 8);
    ck_assert_int_eq(hvd_checkpoint_read(c, "half", HVD_BFLOAT16, 0, 4, narrow),
                     0);
    ck_assert_int_eq(narrow[1], 0x4000); /* 2 */
    ck_assert_int_eq(hvd_checkpoint_read(c, "flags", HVD_FLOAT32, 0, 4, part),
                     HVD_ERR_ARGUMENT);
    ck_assert_int_eq(
        hvd_checkpoint_read(c, "a/kernel", HVD_FLOAT32, 4, 3, part),
        HVD_ERR_ARGUMENT);
    ck_assert_ptr_nonnull(strstr(hvd_last_error(), "has 6 elements"));
    ck_assert_int_eq(
        hvd_checkpoint_read(c, "a/kernel", HVD_FLOAT32, -1, 1, part),
        HVD_ERR_ARGUMENT);
    ck_assert_int_eq(hvd_checkpoint_read(c, "b", HVD_FLOAT32, 0, 1, part),
                     HVD_ERR_ARGUMENT);
    hvd_checkpoint_close(c);
}

TEST(warm_start_renames)
{
    hvd_checkpoint *c;
    float a[6] = {0}, b[6] = {0}, d[6] = {7};
    const hvd_checkpoint_tensor wanted[] = {
        {"net/kernel", HVD_FLOAT32, 2, two_three, a},
        {"copy", HVD_FLOAT32, 2, two_three, b},
        {"head/kernel", HVD_FLOAT32, 2, two_three, d},
    };
    const hvd_checkpoint_rename renames[] = {
        {"net/", "a/"}, {"copy", "a/kernel"}, {"head/", NULL}};

    save_all(STEPS(12), NULL);
    c = open_newest(12);
    ck_assert_int_eq(hvd_checkpoint_restore(c, wanted, 3, renames, 3, 0), 2);
    fill(12);
    ck_assert_mem_eq(a, kernel, sizeof kernel);
    ck_assert_mem_eq(b, kernel, sizeof kernel);
    ck_assert_float_eq(d[0], 7);
    /* Nothing changes if one is missing, or of another shape. */
    a[0] = 9;
    ck_assert_int_eq(hvd_checkpoint_restore(c, wanted, 3, renames, 2, 0),
                     HVD_ERR_ARGUMENT);
    ck_assert_ptr_nonnull(strstr(hvd_last_error(), "it has no 'head/kernel'"));
    ck_assert_float_eq(a[0], 9);
    ck_assert_int_eq(hvd_checkpoint_restore(c, wanted, 3, renames, 2,
                                            HVD_CHECKPOINT_PARTIAL),
                     2);
    ck_assert_int_eq(
        hvd_checkpoint_restore(
            c, &(hvd_checkpoint_tensor){"a/kernel", HVD_FLOAT32, 1, four, a}, 1,
            NULL, 0, HVD_CHECKPOINT_PARTIAL),
        HVD_ERR_ARGUMENT);
    ck_assert_ptr_nonnull(strstr(hvd_last_error(), "another shape"));
    hvd_checkpoint_close(c);
}

/* --------------------------------------------------------- folders, damage */

static char *path_of(int64_t step, const char *ending)
{
    static char path[128];

    snprintf(path, sizeof path, "%s/ckpt-%lld.%s", folder, (long long)step,
             ending);
    return path;
}

TEST(folder_without_checkpoints_has_none)
{
    hvd_checkpoint *c;
    char missing[80];

    expect_steps(STEPS(-1));
    ck_assert_int_eq(hvd_checkpoint_open(folder, &c), 1);
    ck_assert_ptr_null(c);
    snprintf(missing, sizeof missing, "%s/none", folder);
    ck_assert_int_eq(hvd_checkpoint_open(missing, &c), 1);
    ck_assert_int_eq(hvd_checkpoint_open_step(folder, 3, &c), HVD_ERR_FILE);
    ck_assert_ptr_null(c);
    strcat(missing, ".safetensors");
    ck_assert_int_eq(hvd_checkpoint_open(missing, &c), HVD_ERR_FILE);
}

static size_t read_file(const char *path, unsigned char *bytes, size_t room)
{
    FILE *in = fopen(path, "rb");
    size_t length;

    ck_assert_ptr_nonnull(in);
    length = fread(bytes, 1, room, in);
    fclose(in);
    return length;
}

static void write_file(const char *path, const void *bytes, size_t length)
{
    FILE *out = fopen(path, "wb");

    ck_assert_ptr_nonnull(out);
    ck_assert_uint_eq(fwrite(bytes, 1, length, out), length);
    ck_assert_int_eq(fclose(out), 0);
}

/* A damaged checkpoint is never opened, and the one before is. */
static void expect_before(void)
{
    hvd_checkpoint *c = open_newest(5);

    ck_assert_ptr_nonnull(
        strstr(hvd_checkpoint_passed_over(c), "ckpt-6.safetensors: "));
    ck_assert_ptr_null(strchr(hvd_checkpoint_passed_over(c), '\n'));
    hvd_checkpoint_close(c);
    ck_assert_int_eq(hvd_checkpoint_open_step(folder, 6, &c), HVD_ERR_FILE);
}

TEST(every_damage_is_noticed)
{
    unsigned char whole[4096];
    size_t length;

    save_all(STEPS(5, 6), NULL);
    length = read_file(path_of(6, "safetensors"), whole, sizeof whole);
    ck_assert_uint_lt(length, sizeof whole);
    for (size_t end = 0; end < length; end++) {
        write_file(path_of(6, "safetensors"), whole, end);
        expect_before();
    }
    for (size_t i = 0; i < length; i++) {
        whole[i] ^= (unsigned char)(1 << i % 8);
        write_file(path_of(6, "safetensors"), whole, length);
        expect_before();
        whole[i] ^= (unsigned char)(1 << i % 8);
    }
    write_file(path_of(6, "safetensors"), whole, length);
    hvd_checkpoint_close(open_newest(6));
    /* It is that of its name's step. */
    ck_assert_int_eq(rename(path_of(5, "safetensors"), "/tmp/x"), 0);
    write_file(path_of(5, "safetensors"), whole, length);
    unlink(path_of(6, "safetensors"));
    unlink("/tmp/x");
    hvd_checkpoint *c;
    ck_assert_int_eq(hvd_checkpoint_open(folder, &c), HVD_ERR_FILE);
    ck_assert_ptr_nonnull(
        strstr(hvd_last_error(), "no checkpoint can be used"));
    ck_assert_ptr_nonnull(strstr(hvd_last_error(), "no checkpoint of step 5"));
}

TEST(json_is_not_needed)
{
    hvd_checkpoint_writer *w = open_writer(NULL);
    hvd_checkpoint_info info = info_of(-1, NULL);
    unsigned char json[8192];
    hvd_checkpoint *c;
    size_t length;

    save(w, 8, "{\"epoch\":1}");
    ck_assert_int_eq(hvd_checkpoint_set_metric(w, 8, 0.5), 0);
    ck_assert_int_eq(hvd_checkpoint_set_metric(w, 9, 0.5), HVD_ERR_FILE);
    c = open_newest(8);
    ck_assert_int_eq(hvd_checkpoint_get_info(c, &info), 0);
    ck_assert_double_eq(info.metric, 0.5);
    hvd_checkpoint_close(c);
    /* A part of it, and that of another checkpoint, are not used. */
    length = read_file(path_of(8, "json"), json, sizeof json);
    write_file(path_of(8, "json"), json, length / 2);
    c = open_newest(8);
    ck_assert_int_eq(hvd_checkpoint_get_info(c, &info), 0);
    ck_assert_double_nan(info.metric);
    ck_assert_str_eq(info.json, "{\"epoch\":1}");
    hvd_checkpoint_close(c);
    save(w, 8, "{\"epoch\":2}");
    write_file(path_of(8, "json"), json, length);
    c = open_newest(8);
    ck_assert_int_eq(hvd_checkpoint_get_info(c, &info), 0);
    ck_assert_double_nan(info.metric);
    ck_assert_str_eq(info.json, "{\"epoch\":2}");
    compare(c, 8);
    hvd_checkpoint_close(c);
    ck_assert_int_eq(hvd_checkpoint_writer_close(w), 0);
}

TEST(other_files_are_left_alone)
{
    static const char *const names[] = {"ckpt-.safetensors",
                                        "ckpt-07.safetensors",
                                        "ckpt-7x.safetensors",
                                        "ckpt-99999999999999999999.safetensors",
                                        "ckpt-3.json",
                                        "notes.tmp",
                                        "ckpt-9.safetensors.0123.tmp"};
    char path[128];

    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        snprintf(path, sizeof path, "%s/%s", folder, names[i]);
        write_file(path, "x", 1);
    }
    expect_steps(STEPS(-1));
    save_all(STEPS(1), NULL);
    expect_steps(STEPS(1));
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        snprintf(path, sizeof path, "%s/%s", folder, names[i]);
        ck_assert_int_eq(access(path, F_OK), 0);
    }
}

TEST(file_of_tensors_need_not_be_a_checkpoint)
{
    static const char file[] = "{\"w\":{\"dtype\":\"U32\",\"shape\":[1],"
                               "\"data_offsets\":[0,4]}}   \0\0\0\0";
    const uint64_t length = sizeof file - 1 - 4;
    unsigned char whole[sizeof file + 8];
    hvd_checkpoint_info info = info_of(-1, NULL);
    hvd_checkpoint_tensor t;
    hvd_checkpoint *c;
    uint32_t value;

    memcpy(whole, &length, 8);
    memcpy(whole + 8, file, sizeof file - 1);
    write_file(path_of(4, "safetensors"), whole, 8 + sizeof file - 1);
    ck_assert_int_eq(hvd_checkpoint_open(path_of(4, "safetensors"), &c), 0);
    ck_assert_int_eq(hvd_checkpoint_get_info(c, &info), HVD_ERR_FILE);
    ck_assert_int_eq(hvd_checkpoint_find(c, "w", &t), 0);
    ck_assert_int_eq(t.dtype, -1);
    ck_assert_int_eq(hvd_checkpoint_read(c, "w", HVD_INT32, 0, 1, &value),
                     HVD_ERR_ARGUMENT);
    hvd_checkpoint_close(c);
    /* In a folder it would have to be one. */
    ck_assert_int_eq(hvd_checkpoint_open(folder, &c), HVD_ERR_FILE);
}

/* --------------------------------------------------------- what is kept */

TEST(newest_are_kept)
{
    hvd_checkpoint_options o;

    save_all(STEPS(1, 2, 3, 4, 5, 6, 7), NULL);
    expect_steps(STEPS(3, 4, 5, 6, 7));
    ck_assert_int_ne(access(path_of(2, "json"), F_OK), 0);
    hvd_checkpoint_options_init(&o, sizeof o);
    o.keep_max = 2;
    /* An older one that was written last stays. */
    save_all(STEPS(5), &o);
    expect_steps(STEPS(5, 6, 7));
    save_all(STEPS(8), &o);
    expect_steps(STEPS(7, 8));
    o.keep_max = 0;
    save_all(STEPS(10, 20, 30), &o);
    expect_steps(STEPS(7, 8, 10, 20, 30));
}

TEST(damaged_ones_go_with_time)
{
    save_all(STEPS(1, 9), NULL);
    write_file(path_of(1, "safetensors"), "x", 1);
    write_file(path_of(9, "safetensors"), "x", 1);
    save_all(STEPS(5), NULL);
    expect_steps(STEPS(5, 9));
    hvd_checkpoint_close(open_newest(5));
}

LOOP_TEST(best_are_kept, 0, 2)
{
    static const double metrics[] = {5, 1, 4, 9, NAN, 1, 7};
    static const int64_t kept[2][5] = {{2, 6, 7, -1}, {4, 7, -1}};
    hvd_checkpoint_options o;
    hvd_checkpoint_writer *w;

    hvd_checkpoint_options_init(&o, sizeof o);
    o.keep_max = 1;
    o.keep_best = 2;
    o.best_is_largest = _i;
    w = open_writer(&o);
    for (int i = 0; i < 7; i++) {
        save(w, i + 1, NULL);
        ck_assert_int_eq(hvd_checkpoint_set_metric(w, i + 1, metrics[i]), 0);
    }
    expect_steps(kept[_i]);
    ck_assert_int_eq(hvd_checkpoint_writer_close(w), 0);
}

TEST(one_of_every_hours_is_kept)
{
    hvd_checkpoint_options o;

    hvd_checkpoint_options_init(&o, sizeof o);
    o.keep_max = 1;
    o.keep_every_hours = 1000000; /* the window of this century */
    save_all(STEPS(1, 2, 3), &o);
    expect_steps(STEPS(3));
    o.keep_every_hours = 1e-9; /* each has a window of its own */
    save_all(STEPS(4, 5, 6), &o);
    expect_steps(STEPS(3, 4, 5, 6));
}

/* ------------------------------------------------------------------ mistakes
 */

/* Expects that a save is refused with a text. */
static void refuse(hvd_checkpoint_writer *w, const hvd_checkpoint_info *info,
                   const hvd_checkpoint_tensor *t, int n, const char *text)
{
    ck_assert_int_eq(hvd_checkpoint_save(w, info, t, n), HVD_ERR_ARGUMENT);
    ck_assert_msg(strstr(hvd_last_error(), text) != NULL, "%s",
                  hvd_last_error());
}

TEST(mistakes_are_told)
{
    const hvd_checkpoint_info good = info_of(3, NULL);
    hvd_checkpoint_info bad = good;
    hvd_checkpoint_tensor t = tensors[1];
    const hvd_checkpoint_tensor twice[] = {t, t};
    hvd_checkpoint_writer *w = open_writer(NULL), *other;
    hvd_checkpoint_options o;
    char path[128];

    refuse(w, &good, twice, 2, "stands twice");
    t.dtype = 99;
    refuse(w, &good, &t, 1, "dtype 99");
    t = tensors[1];
    t.data = NULL;
    refuse(w, &good, &t, 1, "has no data");
    t.ndim = -1;
    refuse(w, &good, &t, 1, "its shape is none");
    bad.json = "[]";
    refuse(w, &bad, tensors, COUNT, "is no object");
    bad.json = "{\"a\":1,\"a\":2}";
    refuse(w, &bad, tensors, COUNT, "duplicate");
    bad = info_of(-4, NULL);
    refuse(w, &bad, tensors, COUNT, "steps count from 0");
    /* Two writers do not share a folder. */
    ck_assert_int_eq(hvd_checkpoint_writer_open(folder, NULL, &other),
                     HVD_ERR_FILE);
    ck_assert_ptr_null(other);
    ck_assert_ptr_nonnull(strstr(hvd_last_error(), "another training"));
    /* After all that it writes. */
    save(w, 3, NULL);
    ck_assert_int_eq(hvd_checkpoint_writer_close(w), 0);
    ck_assert_int_eq(hvd_checkpoint_writer_close(NULL), 0);
    expect_steps(STEPS(3));

    hvd_checkpoint_options_init(&o, sizeof o);
    o.keep_every_hours = NAN;
    ck_assert_int_eq(hvd_checkpoint_writer_open(folder, &o, &other),
                     HVD_ERR_ARGUMENT);
    snprintf(path, sizeof path, "%s/a/b", folder);
    ck_assert_int_eq(hvd_checkpoint_writer_open(path, NULL, &other),
                     HVD_ERR_FILE);
    ck_assert_int_eq(
        hvd_checkpoint_writer_open(path_of(3, "json"), NULL, &other),
        HVD_ERR_FILE);
}

TEST(failed_save_is_told_once)
{
    const hvd_checkpoint_info info = info_of(3, NULL);
    hvd_checkpoint_writer *w = open_writer(NULL);

    /* What is in the way cannot be replaced. */
    ck_assert_int_eq(mkdir(path_of(3, "safetensors"), 0777), 0);
    ck_assert_int_eq(hvd_checkpoint_save(w, &info, tensors, COUNT), 0);
    ck_assert_int_eq(hvd_checkpoint_save(w, &info, tensors, COUNT),
                     HVD_ERR_FILE);
    ck_assert_ptr_nonnull(strstr(hvd_last_error(), "ckpt-3.safetensors: "
                                                   "cannot be written: "));
    ck_assert_int_eq(rmdir(path_of(3, "safetensors")), 0);
    ck_assert_int_eq(hvd_checkpoint_save(w, &info, tensors, COUNT), 0);
    ck_assert_int_eq(hvd_checkpoint_wait(w), 0);
    ck_assert_int_eq(mkdir(path_of(4, "safetensors"), 0777), 0);
    ck_assert_int_eq(
        hvd_checkpoint_save(
            w, &(const hvd_checkpoint_info){.size = sizeof info, .step = 4},
            tensors, COUNT),
        0);
    ck_assert_int_eq(hvd_checkpoint_writer_close(w), HVD_ERR_FILE);
}

TEST(busy_writer_skips)
{
    static float large[1 << 22];
    static const int64_t shape[] = {1 << 22};
    const hvd_checkpoint_tensor t = {"large", HVD_FLOAT32, 1, shape, large};
    hvd_checkpoint_options o;
    hvd_checkpoint_writer *w;
    hvd_checkpoint_info info = info_of(1, NULL);
    int saved = 0, skipped = 0;

    hvd_checkpoint_options_init(&o, sizeof o);
    o.busy = HVD_CHECKPOINT_SKIP;
    o.keep_max = 1;
    w = open_writer(&o);
    for (int i = 0; i < 20 || saved == 0; i++) {
        const int status = hvd_checkpoint_save(w, &info, &t, 1);

        ck_assert_int_ge(status, 0);
        saved += status == 0;
        skipped += status == 1;
        info.step += status == 0;
    }
    ck_assert_int_gt(skipped, 0);
    ck_assert_int_eq(hvd_checkpoint_writer_close(w), 0);
    expect_steps(STEPS(saved));
}

/* --------------------------------------------------------------------- kills
 */

/* Saves as fast as it can, going on where the folder stopped, until it is
 * killed. Tells each save that is on the disk. */
static void save_for_ever(int tell)
{
    hvd_checkpoint_writer *w = open_writer(NULL);
    hvd_checkpoint *c = NULL;
    int64_t step = 0;

    if (hvd_checkpoint_open(folder, &c) == 0)
        hvd_checkpoint_get_int(c, "step", &step);
    hvd_checkpoint_close(c);
    for (;;) {
        char json[64];

        snprintf(json, sizeof json, "{\"step\":%lld}", (long long)++step);
        save(w, step, json);
        if (write(tell, &step, sizeof step) < 0)
            _exit(1);
    }
}

/* Reads the last step that was told; before: none was. */
static int64_t last_told(int pipe_end, int64_t before)
{
    int64_t step;

    while (read(pipe_end, &step, sizeof step) == (ssize_t)sizeof step)
        before = step;
    return before;
}

/* Starts a writer, and kills it after so many microseconds. */
static int64_t kill_after(unsigned us, int64_t told)
{
    int ends[2], status;
    pid_t child;

    ck_assert_int_eq(pipe(ends), 0);
    child = fork();
    ck_assert_int_ge(child, 0);
    if (child == 0) {
        close(ends[0]);
        save_for_ever(ends[1]);
    }
    close(ends[1]);
    usleep(us);
    ck_assert_int_eq(kill(child, SIGKILL), 0);
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    told = last_told(ends[0], told);
    close(ends[0]);
    return told;
}

TEST(killed_writers_leave_whole_checkpoints)
{
    const int kills = getenv("HVD_TEST_FULL") ? 300 : 30;
    int64_t told = 0;
    char pattern[80];
    glob_t left;

    srand(18);
    for (int i = 0; i < kills; i++) {
        hvd_checkpoint *c = NULL;
        hvd_checkpoint_info info = info_of(0, NULL);
        int64_t step = -1;

        told = kill_after(1000 + (unsigned)rand() % 20000, told);
        if (hvd_checkpoint_open(folder, &c) == 1) {
            ck_assert_int_eq(told, 0);
            continue;
        }
        ck_assert_msg(c != NULL, "kill %d: %s", i, hvd_last_error());
        ck_assert_str_eq(hvd_checkpoint_passed_over(c), "");
        ck_assert_int_eq(hvd_checkpoint_get_info(c, &info), 0);
        ck_assert_int_eq(hvd_checkpoint_get_int(c, "step", &step), 0);
        ck_assert_int_eq(step, info.step);
        /* What was told is there; one more may be. */
        ck_assert(step == told || step == told + 1);
        told = step;
        compare(c, step);
        hvd_checkpoint_close(c);
    }
    ck_assert_int_gt(told, 0);
    hvd_checkpoint_writer_close(open_writer(NULL));
    snprintf(pattern, sizeof pattern, "%s/*.tmp", folder);
    ck_assert_int_eq(glob(pattern, 0, NULL, &left), GLOB_NOMATCH);
}

TEST_MAIN("train_checkpoint", .set_up = set_up, .tear_down = tear_down,
          .seconds = 120)
