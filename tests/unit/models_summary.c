/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tests the JSON summary, and that its file appears whole.
 */
#include "mnist/report.h"
#include "output/outfile.h"
#include "output/problem.h"

#include "folder.h"
#include "suite.h"

#include <hvd_strategy.h>
#include <jansson.h>
#include <math.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const struct options options = {.epochs = 2,
                                       .batch_size = 32,
                                       .learning_rate = 0.25,
                                       .optimizer = {OPTIMIZER_MOMENTUM, 0, 0},
                                       .seed = 5,
                                       .threads = 1};

static struct training_run sample(void)
{
    struct training_run run = {
        .options = &options,
        .outcome = {.options = &options,
                    .world_size = 2,
                    .steps = 30,
                    .examples = 1000,
                    .evaluated = 200,
                    .trained = 1920,
                    .times = {.training = 4,
                              .compute = 2,
                              .wait = 1,
                              .update = 0.5,
                              .data = 0.25,
                              .total = 5},
                    .weights_hash = UINT64_C(0xfedcba9876543210)}};
    const struct outcome_part epochs[] = {{15, 1.5, NAN, NAN, 0},
                                          {30, 0.5, 0.5, 0.75, 150}};

    for (int i = 0; i < 2; i++)
        ck_assert_int_eq(outcome_add(&run.outcome, &epochs[i]), 0);
    return run;
}

static int write_summary(const struct training_run *run)
{
    return outcome_write(&run->outcome, mnist_settings(run), mnist_results(run),
                         "--data", "s.json");
}

static double number(json_t *root, const char *name)
{
    json_t *value = json_object_get(root, name);

    ck_assert_msg(json_is_number(value), "%s is not a number", name);
    return json_number_value(value);
}

TEST(fields_have_their_values)
{
    static const struct {
        const char *name;
        double value;
    } fields[] = {{"test_accuracy", 0.75},
                  {"test_loss", 0.5},
                  {"images_per_second", 480},
                  {"seconds", 4},
                  {"world_size", 2},
                  {"comm_wait_fraction", 0.25},
                  {"total_seconds", 5},
                  {"test_correct", 150},
                  {"epochs", 2},
                  {"steps", 30},
                  {"batch_size", 32},
                  {"lr", 0.25},
                  {"seed", 5},
                  {"train_images", 1000},
                  {"test_images", 200},
                  {"images", 1920}};
    struct training_run run = sample();
    json_error_t error;

    ck_assert_int_eq(write_summary(&run), 0);
    json_t *root = json_load_file("s.json", JSON_REJECT_DUPLICATES, &error);
    ck_assert_msg(root != NULL, "%s", error.text);
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++)
        ck_assert_double_eq(number(root, fields[i].name), fields[i].value);
    ck_assert_str_eq(json_string_value(json_object_get(root, "optimizer")),
                     "momentum");
    ck_assert_str_eq(json_string_value(json_object_get(root, "weights_hash")),
                     "fedcba9876543210");
    ck_assert_str_eq(json_string_value(json_object_get(root, "data_kind")),
                     "drawn");
    ck_assert(json_is_string(json_object_get(root, "version")));
    json_t *split = json_object_get(root, "time_seconds");
    ck_assert_double_eq(number(split, "compute"), 2);
    ck_assert_double_eq(number(split, "communication_wait"), 1);
    ck_assert_double_eq(number(split, "other"), 0.25);
    json_decref(root);
    outcome_fini(&run.outcome);
}

TEST(history_has_every_epoch)
{
    struct training_run run = sample();

    ck_assert_int_eq(write_summary(&run), 0);
    json_t *root = json_load_file("s.json", 0, NULL);
    json_t *loss = json_object_get(root, "train_loss");
    json_t *accuracy = json_object_get(root, "test_accuracy_history");
    ck_assert_uint_eq(json_array_size(loss), 2);
    ck_assert_double_eq(json_number_value(json_array_get(loss, 0)), 1.5);
    ck_assert_double_eq(json_number_value(json_array_get(loss, 1)), 0.5);
    ck_assert(json_is_null(json_array_get(accuracy, 0)));
    ck_assert_double_eq(json_number_value(json_array_get(accuracy, 1)), 0.75);
    json_decref(root);
    outcome_fini(&run.outcome);
}

TEST(nothing_trained_divides_by_nothing)
{
    struct training_run run = {.outcome.options = &options};

    run.outcome.times.wait = 1;
    ck_assert_int_eq(write_summary(&run), 0);
    json_t *root = json_load_file("s.json", 0, NULL);
    ck_assert_double_eq(number(root, "images_per_second"), 0);
    ck_assert_double_eq(number(root, "comm_wait_fraction"), 0);
    json_decref(root);
}

TEST(path_that_is_no_text)
{
    struct options odd = options;
    struct training_run run = sample();

    odd.data = "caf\xe9"; /* Latin-1, which JSON cannot hold */
    run.outcome.options = &odd;
    ck_assert_int_eq(write_summary(&run), PROBLEM);
    ck_assert_ptr_nonnull(strstr(problem_text(), "--summary"));
    ck_assert_int_eq(directory_entries("."), 0);
    outcome_fini(&run.outcome);
}

TEST(check_leaves_nothing)
{
    ck_assert_int_eq(outfile_check("--summary", "s.json"), 0);
    ck_assert_int_eq(outfile_check("--summary", NULL), 0);
    ck_assert_int_eq(directory_entries("."), 0);
}

TEST(check_finds_what_cannot_be_written)
{
    static const char *const paths[] = {"/nonexistent/s.json", "/tmp",
                                        "/proc/s.json"};

    for (int i = 0; i < 3; i++) {
        ck_assert_int_eq(outfile_check("--summary", paths[i]), PROBLEM);
        ck_assert_ptr_nonnull(strstr(problem_text(), "--summary"));
        ck_assert_ptr_nonnull(strstr(problem_text(), paths[i]));
    }
}

static void write_text(const char *path, const char *text)
{
    struct outfile out;

    ck_assert_int_eq(outfile_open(&out, "--summary", path), 0);
    fputs(text, out.file);
    ck_assert_int_eq(outfile_commit(&out), 0);
}

static void expect_text(const char *path, const char *text)
{
    ck_assert_str_eq(file_text(path), text);
}

TEST(old_file_stays_until_commit)
{
    struct outfile out;

    write_text("f", "old");
    ck_assert_int_eq(outfile_open(&out, "--summary", "f"), 0);
    fputs("new", out.file);
    fflush(out.file);
    expect_text("f", "old");
    outfile_discard(&out);
    expect_text("f", "old");
    ck_assert_int_eq(directory_entries("."), 1);
    write_text("f", "new");
    expect_text("f", "new");
    ck_assert_int_eq(directory_entries("."), 1);
}

TEST(permissions_follow_umask)
{
    struct stat info;
    mode_t old = umask(027);

    write_text("f", "text");
    umask(old);
    ck_assert_int_eq(stat("f", &info), 0);
    ck_assert_int_eq(info.st_mode & 0777, 0640);
}

TEST(link_is_followed)
{
    struct stat info;

    write_text("target", "old");
    ck_assert_int_eq(symlink("target", "link"), 0);
    write_text("link", "new");
    ck_assert_int_eq(lstat("link", &info), 0);
    ck_assert(S_ISLNK(info.st_mode));
    expect_text("target", "new");
}

TEST(devices_are_not_replaced)
{
    struct stat info;
    struct outfile out;

    ck_assert_int_eq(outfile_check("--summary", "/dev/null"), 0);
    write_text("/dev/null", "text");
    ck_assert_int_eq(lstat("/dev/null", &info), 0);
    ck_assert(S_ISCHR(info.st_mode));
    ck_assert_int_eq(outfile_open(&out, "--summary", "/dev/full"), 0);
    fputs("text", out.file);
    ck_assert_int_eq(outfile_commit(&out), PROBLEM);
    ck_assert_ptr_nonnull(strstr(problem_text(), "/dev/full"));
    ck_assert_ptr_nonnull(strstr(problem_text(), "No space"));
}

TEST(pending_file_can_be_removed)
{
    struct outfile out;

    outfile_remove_pending();
    ck_assert_int_eq(outfile_open(&out, "--summary", "f"), 0);
    ck_assert_int_eq(directory_entries("."), 1);
    outfile_remove_pending();
    ck_assert_int_eq(directory_entries("."), 0);
    outfile_discard(&out);
}

TEST_MAIN("models_summary", .set_up = folder_enter, .tear_down = folder_remove)
