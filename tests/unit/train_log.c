/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tests logs: tests/support/read_logs.py reads all formats back with a parser
 * of its own; here is what happens to files of earlier sessions, to damaged
 * ones, and to bad arguments.
 */
#include <hvd_log.h>

#include "files/record.h"

#include "folder.h"
#include "suite.h"

#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static hvd_log *made;

static void open_log(uint32_t formats, int64_t step)
{
    hvd_log_options options;

    hvd_log_options_init(&options, sizeof options);
    options.formats = formats;
    options.step = step;
    ck_assert_msg(hvd_log_open(folder, &options, &made) == 0, "%s",
                  hvd_last_error());
}

static void log_scalar(const char *tag, int64_t step, double value)
{
    ck_assert_int_eq(hvd_log_scalar(made, tag, step, value), 0);
}

/* Returns the file without its times: of each line, the second field. */
static const char *read_table(void)
{
    static char text[4096];
    char line[512];
    FILE *file = fopen(in_folder("scalars.csv"), "r");

    ck_assert_ptr_nonnull(file);
    text[0] = '\0';
    while (fgets(line, sizeof line, file)) {
        char *time = strchr(line, ',');
        char *rest = strpbrk(time + 1, ",\n");

        *time = '\0';
        strcat(strcat(text, line), rest);
    }
    fclose(file);
    return text;
}

static void log_all(void)
{
    static const float weights[] = {-2.5F, 0,     0,   1e-13F,  1,
                                    1.05F, 7e10F, NAN, INFINITY};
    static const char *const inputs[] = {"a/x"};
    static const hvd_log_node nodes[] = {{"a/x", "Input", NULL, 0},
                                         {"a/y", "Relu", inputs, 1}};
    uint8_t pixels[18];

    for (int i = 0; i < 18; i++)
        pixels[i] = (uint8_t)(200 + i);
    for (int step = 0; step < 3000; step++) {
        log_scalar("loss, \"mean\"", step, 1.0 / (step + 3));
        if (step == 1500)
            ck_assert_int_eq(hvd_log_flush(made), 0);
        if (step >= 2990)
            log_scalar("acc/ü", step, step / 7.0);
    }
    log_scalar("bad", 3000, NAN);
    ck_assert_int_eq(hvd_log_histogram(made, "weights", 4, weights, 9), 0);
    ck_assert_int_eq(hvd_log_image(made, "image", 5, pixels, 3, 2, 3), 0);
    ck_assert_int_eq(hvd_log_text(made, "config", 6, "\"a\"\n|b| ü"), 0);
    ck_assert_int_eq(hvd_log_graph(made, nodes, 2), 0);
}

TEST(another_parser_reads_everything_back)
{
    char command[sizeof folder + 64];

    open_log(HVD_LOG_ALL, 0);
    log_all();
    ck_assert_int_eq(hvd_log_close(made), 0);
    snprintf(command, sizeof command,
             "/usr/bin/python3 tests/support/read_logs.py %s", folder);
    ck_assert_int_eq(system(command), 0);
}

TEST(columns_may_appear_later)
{
    open_log(HVD_LOG_CSV, 0);
    log_scalar("a", 0, 1);
    ck_assert_int_eq(hvd_log_flush(made), 0);
    ck_assert_str_eq(read_table(), "step,a\n0,1\n");
    log_scalar("b", 0, 2);
    ck_assert_int_eq(hvd_log_flush(made), 0);
    ck_assert_str_eq(read_table(), "step,a,b\n0,1,2\n");
    log_scalar("b", 1, 3);
    log_scalar("c", 2, -INFINITY);
    ck_assert_int_eq(hvd_log_close(made), 0);
    ck_assert_str_eq(read_table(), "step,a,b,c\n0,1,2,\n1,,3,\n2,,,-inf\n");
}

TEST(session_that_goes_on_drops_what_did_not_happen)
{
    open_log(HVD_LOG_CSV, 0);
    for (int step = 0; step < 5; step++)
        log_scalar("a, b", step, step);
    ck_assert_int_eq(hvd_log_close(made), 0);
    open_log(HVD_LOG_CSV, 3);
    log_scalar("c", 3, 30);
    log_scalar("a, b", 3, 31);
    ck_assert_int_eq(hvd_log_close(made), 0);
    ck_assert_str_eq(read_table(),
                     "step,\"a, b\",c\n0,0,\n1,1,\n2,2,\n3,31,30\n");
    open_log(HVD_LOG_CSV, 0);
    ck_assert_int_eq(hvd_log_close(made), 0);
    ck_assert_str_eq(read_table(), "step,\"a, b\",c\n");
}

TEST(lines_that_were_cut_are_removed)
{
    static const char begin[] = "{}\n{\"step\":7,\"time\":";

    file_write_text(in_folder("log.jsonl"), "{}\n{\"step\":");
    open_log(HVD_LOG_JSONL, 7);
    ck_assert_int_eq(hvd_log_close(made), 0);
    ck_assert_int_eq(
        strncmp(file_text(in_folder("log.jsonl")), begin, sizeof begin - 1), 0);
}

TEST(foreign_table_is_not_written_over)
{
    hvd_log_options options;

    file_write_text(in_folder("scalars.csv"), "name,price\n");
    hvd_log_options_init(&options, sizeof options);
    ck_assert_int_eq(hvd_log_open(folder, &options, &made), HVD_ERR_FILE);
    ck_assert_ptr_nonnull(strstr(hvd_last_error(), "move it away"));
}

TEST(bad_arguments_are_refused)
{
    char longest[257];
    uint32_t formats = 0;
    uint8_t pixel = 0;

    memset(longest, 'x', 256);
    longest[256] = '\0';
    open_log(HVD_LOG_ALL, 0);
#define REFUSED(call) ck_assert_int_eq(call, HVD_ERR_ARGUMENT)
    REFUSED(hvd_log_scalar(made, "", 0, 1));
    REFUSED(hvd_log_scalar(made, longest, 0, 1));
    REFUSED(hvd_log_scalar(made, "a\nb", 0, 1));
    REFUSED(hvd_log_scalar(made, "\xff", 0, 1));
    REFUSED(hvd_log_scalar(made, NULL, 0, 1));
    REFUSED(hvd_log_scalar(made, "a", -1, 1));
    REFUSED(hvd_log_scalar(NULL, "a", 0, 1));
    REFUSED(hvd_log_histogram(made, "a", 0, NULL, 1));
    REFUSED(hvd_log_image(made, "a", 0, &pixel, 1, 1, 5));
    REFUSED(hvd_log_image(made, "a", 0, &pixel, 0, 1, 1));
    REFUSED(hvd_log_image(made, "a", 0, NULL, 1, 1, 1));
    REFUSED(hvd_log_text(made, "a", 0, "\xc3("));
    REFUSED(hvd_log_text(made, "a", 0, NULL));
    REFUSED(hvd_log_graph(made, NULL, 0));
    REFUSED(hvd_log_read_formats("csv,", &formats));
    REFUSED(hvd_log_read_formats("xml", &formats));
    ck_assert_int_eq(hvd_log_read_formats("jsonl,csv", &formats), 0);
    ck_assert_uint_eq(formats, HVD_LOG_JSONL | HVD_LOG_CSV);
    ck_assert_int_eq(hvd_log_close(made), 0);
    ck_assert_int_eq(hvd_log_close(NULL), 0);
    REFUSED(hvd_log_open("", NULL, &made));
    ck_assert_int_eq(hvd_log_open("/tmp/none/none", NULL, &made), HVD_ERR_FILE);
}

/* Reads records up to the end or the first failure; returns how many. */
static int count_records(const char *bytes, size_t count, int *status)
{
    const unsigned char *at;
    size_t offset = 0, length;
    int found = 0;

    while ((*status = record_find("x", bytes, count, offset, &at, &length)) >
           0) {
        offset += RECORD_HEAD + length + RECORD_TAIL;
        found++;
    }
    return found;
}

TEST(damaged_records_are_found)
{
    struct bytes file = {0};
    int status;

    record_add(&file, "first", 5);
    record_add(&file, "", 0);
    record_add(&file, "another", 7);
    ck_assert_int_eq(count_records(file.data, file.count, &status), 3);
    ck_assert_int_eq(status, 0);
    for (size_t i = 0; i < file.count; i++) {
        int whole = i >= 21 + 16 ? 2 : i >= 21 ? 1 : 0;

        ck_assert_int_eq(count_records(file.data, i, &status), whole);
        ck_assert_int_eq(status,
                         i == 0 || i == 21 || i == 37 ? 0 : HVD_ERR_FILE);
        for (int bit = 0; bit < 8; bit++) {
            file.data[i] ^= (char)(1 << bit);
            ck_assert_int_eq(count_records(file.data, file.count, &status),
                             whole);
            ck_assert_int_eq(status, HVD_ERR_FILE);
            file.data[i] ^= (char)(1 << bit);
        }
    }
    bytes_fini(&file);
}

TEST_MAIN("train_log", .set_up = folder_make, .tear_down = folder_remove,
          .seconds = 60)
