/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tests the page of a log: tests/support/read_page.py reads it back with
 * parsers of its own, and compares every curve with log.jsonl through its axes.
 */
#include <hvd_log.h>

#include "folder.h"
#include "suite.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static hvd_log *made;

static void open_log(int64_t step)
{
    hvd_log_options options;

    hvd_log_options_init(&options, sizeof options);
    options.formats = HVD_LOG_JSONL;
    options.step = step;
    ck_assert_int_eq(hvd_log_open(folder, &options, &made), 0);
}

static void log_scalar(const char *tag, int64_t step, double value)
{
    ck_assert_int_eq(hvd_log_scalar(made, tag, step, value), 0);
}

static void log_text(const char *tag, int64_t step, const char *text)
{
    ck_assert_int_eq(hvd_log_text(made, tag, step, text), 0);
}

/* Closes the log, and returns the headings of its page. */
static const char *read_page(void)
{
    static char text[512];
    char command[sizeof folder + 64];
    FILE *reader;

    ck_assert_int_eq(hvd_log_close(made), 0);
    ck_assert_msg(hvd_log_page(folder) == 0, "%s", hvd_last_error());
    snprintf(command, sizeof command,
             "/usr/bin/python3 -B tests/support/read_page.py %s", folder);
    reader = popen(command, "r");
    ck_assert_ptr_nonnull(reader);
    text[fread(text, 1, sizeof text - 1, reader)] = '\0';
    ck_assert_int_eq(pclose(reader), 0);
    return text;
}

static void log_times(int64_t step)
{
    static const char *const names[] = {"device", "communication", "data",
                                        "other"};
    char tag[64];

    for (int i = 0; i < 4; i++) {
        snprintf(tag, sizeof tag, "time/%s", names[i]);
        log_scalar(tag, step, (double)step * (4 - i) * 0.001);
    }
    for (int r = 0; r < 3; r++) {
        snprintf(tag, sizeof tag, "ranks/%d/images_per_second", r);
        log_scalar(tag, step, 1000 - 300 * r + (double)(step % 7));
        snprintf(tag, sizeof tag, "ranks/%d/waiting", r);
        log_scalar(tag, step, 0.3 - 0.1 * r);
    }
    snprintf(tag, sizeof tag, "{\"step\":%d,\"rank\":%d,\"seconds\":%.3f,",
             (int)step - 1, (int)step % 3,
             step == 60 ? 0.5 : 0.1 + 0.001 * (double)step);
    {
        char text[160];

        snprintf(text, sizeof text,
                 "%s\"mean\":0.1,\"device\":0.08,\"data\":%.3f}", tag,
                 step == 60 ? 0.4 : 0.01);
        log_text("slowest step", step, text);
    }
}

TEST(page_says_what_the_log_says)
{
    open_log(0);
    log_text("configuration", 0,
             "| setting | value |\n|---|---|\n"
             "| name | <script>alert(\"&amp;'\")</script> |\n| ü | 0.5 |\n");
    for (int step = 10; step <= 300; step += 10) {
        log_scalar("train/loss", step,
                   step == 100 || step == 110 ? NAN
                                              : 5 * exp(-step / 40.0) + 1e-3);
        log_scalar("train/learning_rate", step, 0.01 - step * 1e-5);
        log_scalar("<b>&\"'/images_per_second", step, 12345 + step * step);
        log_times(step);
        if (step % 100 == 0)
            log_scalar("test/loss", step, 2.0 / step);
    }
    ck_assert_str_eq(read_page(), "Curves\nWhere the time went\nRanks\n"
                                  "What was slow\nConfiguration\n");
}

TEST(page_names_what_was_slow)
{
    const char *text;

    open_log(0);
    for (int step = 20; step <= 100; step += 10)
        log_times(step);
    read_page();
    text = file_text(in_folder("log.html"));
    ck_assert_ptr_nonnull(
        strstr(text, "most of the time went to <b>communication</b>: 30.0 %"));
    ck_assert_ptr_nonnull(strstr(
        text, "Rank 2 is the slowest: it reaches 40 % of the speed of rank 0"));
    ck_assert_ptr_nonnull(strstr(text, "5.0 times</td><td>data</td>"));
}

TEST(long_curves_keep_their_peaks)
{
    open_log(0);
    for (int step = 1; step <= 20000; step++)
        log_scalar("noise", step,
                   step == 777     ? 9e6
                   : step == 12345 ? -4e6
                                   : step % 17);
    ck_assert_str_eq(read_page(), "Curves\n");
}

TEST(what_did_not_happen_is_left_out)
{
    open_log(0);
    for (int step = 1; step <= 30; step++)
        log_scalar("loss", step, step);
    ck_assert_int_eq(hvd_log_close(made), 0);
    open_log(11);
    for (int step = 11; step <= 20; step++)
        log_scalar("loss", step, 100 - step);
    ck_assert_str_eq(read_page(), "Curves\n");
}

TEST(odd_values_have_axes)
{
    open_log(0);
    log_scalar("one", 0, 0);
    log_scalar("same", 5, -3e-9);
    log_scalar("same", 6, -3e-9);
    log_scalar("none", 5, NAN);
    log_scalar("large", 1, 1e300);
    log_scalar("large", INT64_C(1) << 50, -1e300);
    for (int i = 0; i < 10; i++) {
        char tag[32];

        snprintf(tag, sizeof tag, "group%d/x", i % 8);
        log_scalar(tag, i / 8, i);
    }
    read_page();
    open_log(0);
    log_text("configuration", 0, "no table: <>&");
    ck_assert_str_eq(read_page(), "Configuration\n");
}

TEST(values_beyond_all_axes_break_no_page)
{
    const char *text;

    open_log(0);
    for (int step = 1; step <= 3; step++) {
        log_scalar("huge", step, step % 2 ? DBL_MAX : -DBL_MAX);
        log_scalar("time/device", step, DBL_MAX);
        log_scalar("time/other", step, DBL_MAX);
        log_scalar("ranks/0/waiting", step, NAN);
        log_scalar("ranks/1/images_per_second", step, step);
        log_scalar("ranks/99999999999999999999/waiting", step, 1);
        log_scalar("ranks/x/waiting", step, 1);
    }
    log_text("slowest step", 3, "{\"seconds\":1e308,\"mean\":1e-308}");
    log_text("slowest step", 3, "{}");
    log_text("slowest step", 3, "no JSON");
    log_text("configuration", 3, "| a\n|\n||||\n| b");
    ck_assert_int_eq(hvd_log_close(made), 0);
    ck_assert_int_eq(hvd_log_page(folder), 0);
    text = file_text(in_folder("log.html"));
    ck_assert_ptr_null(strstr(text, "nan"));
    ck_assert_ptr_null(strstr(text, "inf"));
    ck_assert_ptr_nonnull(strstr(text, "to <b>other</b>: 50.0 %"));
    ck_assert_ptr_nonnull(strstr(text, "</body></html>\n"));
}

TEST(a_log_that_is_none_is_refused)
{
    ck_assert_int_eq(hvd_log_page(folder), HVD_ERR_FILE);
    ck_assert_ptr_nonnull(strstr(hvd_last_error(), "log.jsonl"));
    ck_assert_int_eq(hvd_log_page(""), HVD_ERR_ARGUMENT);
    ck_assert_int_eq(hvd_log_page(NULL), HVD_ERR_ARGUMENT);
    file_write_text(
        in_folder("log.jsonl"),
        "{\"step\":1,\"tag\":\"a\",\"value\":1,\"time\":1}\nno JSON\n");
    ck_assert_int_eq(hvd_log_page(folder), HVD_ERR_FILE);
    ck_assert_ptr_nonnull(strstr(hvd_last_error(), "log.jsonl:2: "));
    file_write_text(
        in_folder("log.jsonl"),
        "{\"step\":1,\"tag\":\"a\",\"value\":1,\"time\":1}\n{\"cut o");
    ck_assert_int_eq(hvd_log_page(folder), 0);
}

TEST_MAIN("train_page", .set_up = folder_make, .tear_down = folder_remove,
          .seconds = 60)
