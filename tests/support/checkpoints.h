/* SPDX-License-Identifier: Apache-2.0 */
/*
 * checkpoints.h - tensors of several dtypes that differ from step to step,
 * their checkpoints in the folder of folder.h, and comparisons with them.
 */
#ifndef HVD_TESTS_CHECKPOINTS_H
#define HVD_TESTS_CHECKPOINTS_H

#include <hvd_checkpoint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "folder.h"

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

static inline void fill(int64_t step)
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

static inline hvd_checkpoint_info info_of(int64_t step, const char *json)
{
    hvd_checkpoint_info info;

    hvd_checkpoint_info_init(&info, sizeof info);
    info.step = step;
    info.json = json;
    return info;
}

static inline hvd_checkpoint_writer *open_writer(
    const hvd_checkpoint_options *options)
{
    hvd_checkpoint_writer *w = NULL;

    ck_assert_msg(hvd_checkpoint_writer_open(folder, options, &w) == 0, "%s",
                  hvd_last_error());
    return w;
}

static inline void save(hvd_checkpoint_writer *w, int64_t step,
                        const char *json)
{
    const hvd_checkpoint_info info = info_of(step, json);

    fill(step);
    ck_assert_msg(hvd_checkpoint_save(w, &info, tensors, COUNT) == 0, "%s",
                  hvd_last_error());
    memset(kernel, 0, sizeof kernel); /* it was copied */
    ck_assert_int_eq(hvd_checkpoint_wait(w), 0);
}

/* Saves checkpoints of these steps, up to a negative one. */
static inline void save_all(const int64_t *steps,
                            const hvd_checkpoint_options *o)
{
    hvd_checkpoint_writer *w = open_writer(o);

    for (; *steps >= 0; steps++)
        save(w, *steps, "{\"epoch\":3}");
    ck_assert_int_eq(hvd_checkpoint_writer_close(w), 0);
}

/* Compares all tensors of a checkpoint with what was saved at a step. */
static inline void compare(const hvd_checkpoint *c, int64_t step)
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

static inline hvd_checkpoint *open_newest(int64_t step)
{
    hvd_checkpoint *c = NULL;
    hvd_checkpoint_info info = info_of(-1, NULL);

    ck_assert_msg(hvd_checkpoint_open(folder, &c) == 0, "%s", hvd_last_error());
    ck_assert_int_eq(hvd_checkpoint_get_info(c, &info), 0);
    ck_assert_int_eq(info.step, step);
    return c;
}

/* Expects exactly these steps in the folder, up to a negative one. */
static inline void expect_steps(const int64_t *steps)
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

/* Returns a path as in_folder does. */
static inline const char *path_of(int64_t step, const char *ending)
{
    char name[64];

    snprintf(name, sizeof name, "ckpt-%lld.%s", (long long)step, ending);
    return in_folder(name);
}

#endif
