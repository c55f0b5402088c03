/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tests folders of checkpoints: what is damaged, in any byte, is passed over
 * for the one before; the folder keeps what it is to keep; a writer killed at
 * any moment leaves whole checkpoints.
 */
#include "checkpoints.h"

#include "suite.h"

#include <glob.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* --------------------------------------------------------- folders, damage */

TEST(folder_without_checkpoints_has_none)
{
    hvd_checkpoint *c;

    expect_steps(STEPS(-1));
    ck_assert_int_eq(hvd_checkpoint_open(folder, &c), 1);
    ck_assert_ptr_null(c);
    ck_assert_int_eq(hvd_checkpoint_open(in_folder("none"), &c), 1);
    ck_assert_int_eq(hvd_checkpoint_open_step(folder, 3, &c), HVD_ERR_FILE);
    ck_assert_ptr_null(c);
    ck_assert_int_eq(hvd_checkpoint_open(in_folder("none.safetensors"), &c),
                     HVD_ERR_FILE);
}

/* A damaged checkpoint is never opened, and the one before is. */
static void expect_before(bool is_cut)
{
    hvd_checkpoint *c = open_newest(5);

    (void)is_cut;
    ck_assert_ptr_nonnull(
        strstr(hvd_checkpoint_passed_over(c), "ckpt-6.safetensors: "));
    ck_assert_ptr_null(strchr(hvd_checkpoint_passed_over(c), '\n'));
    hvd_checkpoint_close(c);
    ck_assert_int_eq(hvd_checkpoint_open_step(folder, 6, &c), HVD_ERR_FILE);
}

TEST(every_damage_is_noticed)
{
    struct file_bytes whole;
    hvd_checkpoint *c;

    save_all(STEPS(5, 6), NULL);
    file_damage(path_of(6, "safetensors"), SIZE_MAX / 8, expect_before);
    hvd_checkpoint_close(open_newest(6));
    /* It is that of its name's step. */
    whole = file_read(path_of(6, "safetensors"));
    file_write(path_of(5, "safetensors"), whole.data, whole.count);
    free(whole.data);
    unlink(path_of(6, "safetensors"));
    ck_assert_int_eq(hvd_checkpoint_open(folder, &c), HVD_ERR_FILE);
    ck_assert_ptr_nonnull(
        strstr(hvd_last_error(), "no checkpoint can be used"));
    ck_assert_ptr_nonnull(strstr(hvd_last_error(), "no checkpoint of step 5"));
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

    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        file_write(in_folder(names[i]), "x", 1);
    }
    expect_steps(STEPS(-1));
    save_all(STEPS(1), NULL);
    expect_steps(STEPS(1));
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        ck_assert_int_eq(access(in_folder(names[i]), F_OK), 0);
    }
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
    file_write(path_of(1, "safetensors"), "x", 1);
    file_write(path_of(9, "safetensors"), "x", 1);
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

/* -------------------------------------------------------------------- kills */

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
    ck_assert_int_eq(glob(in_folder("*.tmp"), 0, NULL, &left), GLOB_NOMATCH);
}

TEST_MAIN("train_checkpoint_folder", .set_up = folder_make,
          .tear_down = folder_remove, .seconds = 120)
