/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tests checkpoints through their public header: what is saved is loaded, with
 * and without its JSON, in parts and under other names; mistakes are told.
 */
#include "checkpoints.h"

#include "safetensors_file.h"
#include "suite.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

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

TEST(json_is_not_needed)
{
    hvd_checkpoint_writer *w = open_writer(NULL);
    hvd_checkpoint_info info = info_of(-1, NULL);
    struct file_bytes json;
    hvd_checkpoint *c;

    save(w, 8, "{\"epoch\":1}");
    ck_assert_int_eq(hvd_checkpoint_set_metric(w, 8, 0.5), 0);
    ck_assert_int_eq(hvd_checkpoint_set_metric(w, 9, 0.5), HVD_ERR_FILE);
    c = open_newest(8);
    ck_assert_int_eq(hvd_checkpoint_get_info(c, &info), 0);
    ck_assert_double_eq(info.metric, 0.5);
    hvd_checkpoint_close(c);
    /* A part of it, and that of another checkpoint, are not used. */
    json = file_read(path_of(8, "json"));
    file_write(path_of(8, "json"), json.data, json.count / 2);
    c = open_newest(8);
    ck_assert_int_eq(hvd_checkpoint_get_info(c, &info), 0);
    ck_assert_double_nan(info.metric);
    ck_assert_str_eq(info.json, "{\"epoch\":1}");
    hvd_checkpoint_close(c);
    save(w, 8, "{\"epoch\":2}");
    file_write(path_of(8, "json"), json.data, json.count);
    free(json.data);
    c = open_newest(8);
    ck_assert_int_eq(hvd_checkpoint_get_info(c, &info), 0);
    ck_assert_double_nan(info.metric);
    ck_assert_str_eq(info.json, "{\"epoch\":2}");
    compare(c, 8);
    hvd_checkpoint_close(c);
    ck_assert_int_eq(hvd_checkpoint_writer_close(w), 0);
}

TEST(file_of_tensors_need_not_be_a_checkpoint)
{
    static const char header[] = "{\"w\":{\"dtype\":\"U32\",\"shape\":[1],"
                                 "\"data_offsets\":[0,4]}}   ";
    hvd_checkpoint_info info = info_of(-1, NULL);
    hvd_checkpoint_tensor t;
    hvd_checkpoint *c;
    uint32_t value;

    safetensors_write(path_of(4, "safetensors"), strlen(header), header, 4);
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

/* ----------------------------------------------------------------- mistakes */

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
    /* A writer that inherits takes the place of one that still has the lock. */
    hvd_checkpoint_options_init(&o, sizeof o);
    o.inherits = 1;
    ck_assert_int_eq(hvd_checkpoint_writer_open(folder, &o, &other), 0);
    ck_assert_int_eq(hvd_checkpoint_writer_close(other), 0);
    /* After all that it writes. */
    save(w, 3, NULL);
    ck_assert_int_eq(hvd_checkpoint_writer_close(w), 0);
    ck_assert_int_eq(hvd_checkpoint_writer_close(NULL), 0);
    expect_steps(STEPS(3));

    hvd_checkpoint_options_init(&o, sizeof o);
    o.keep_every_hours = NAN;
    ck_assert_int_eq(hvd_checkpoint_writer_open(folder, &o, &other),
                     HVD_ERR_ARGUMENT);
    ck_assert_int_eq(hvd_checkpoint_writer_open(in_folder("a/b"), NULL, &other),
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

TEST_MAIN("train_checkpoint", .set_up = folder_make, .tear_down = folder_remove,
          .seconds = 120)
