/* SPDX-License-Identifier: Apache-2.0 */
/* Environment variables: what is a number of bytes, and what is not. */
#include <string.h>

#include "check_main.h"
#include "core/env.h"
#include "core/launch.h"
#include "hvd.h"

START_TEST(bytes_that_are_well_formed)
{
    static const struct {
        const char *text;
        size_t bytes;
    } good[] = {
        {"0", 0},
        {"1", 1},
        {"007", 7},
        {"64MB", 64u << 20},
        {"64mb", 64u << 20},
        {"64M", 64u << 20},
        {"64MiB", 64u << 20},
        {"1k", 1024},
        {"1KB", 1024},
        {"3B", 3},
        {"3b", 3},
        {"2G", (size_t)2 << 30},
        {"1T", (size_t)1 << 40},
        {"9223372036854775807", INT64_MAX},
    };

    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        size_t bytes = 99;

        ck_assert_msg(hvd__parse_bytes(good[i].text, &bytes) == HVD_OK, "%s",
                      good[i].text);
        ck_assert_msg(bytes == good[i].bytes, "%s is %zu", good[i].text, bytes);
    }
}
END_TEST

START_TEST(bytes_that_are_not)
{
    static const char *const bad[] = {
        "",
        "banana",
        "-1",
        "+1",
        " 1",
        "1 ",
        "1.5M",
        "1e6",
        "MB",
        "64XB",
        "64MX",
        "64MiX",
        "64BB",
        "1 K",
        "0x10",
        "64KBB",
        "9223372036854775808",
        "99999999999999999999",
        "9000000T",
    };

    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        size_t bytes = 99;

        ck_assert_msg(hvd__parse_bytes(bad[i], &bytes) == HVD_ERR_CONFIG,
                      "'%s' was taken as %zu", bad[i], bytes);
        ck_assert_uint_eq(bytes, 99);
    }
}
END_TEST

START_TEST(settings_have_defaults_and_names)
{
    struct hvd__settings settings = {0};

    unsetenv("HVD_FUSION_THRESHOLD");
    unsetenv("HVD_LOG");
    ck_assert_int_eq(hvd__settings_read(&settings), HVD_OK);
    ck_assert_uint_eq(settings.fusion_threshold, 64u << 20);
    ck_assert_int_eq(settings.log_level, HVD__LOG_WARNING);
    setenv("HVD_FUSION_THRESHOLD", "", 1);
    setenv("HVD_LOG", "TRACE", 1);
    ck_assert_int_eq(hvd__settings_read(&settings), HVD_OK);
    ck_assert_uint_eq(settings.fusion_threshold, 64u << 20);
    ck_assert_int_eq(settings.log_level, HVD__LOG_TRACE);
    setenv("HVD_FUSION_THRESHOLD", "banana", 1);
    ck_assert_int_eq(hvd__settings_read(&settings), HVD_ERR_CONFIG);
    ck_assert(strstr(hvd_last_error(), "HVD_FUSION_THRESHOLD='banana'"));
    ck_assert_uint_eq(settings.fusion_threshold, 64u << 20);
    setenv("HVD_FUSION_THRESHOLD", "1K", 1);
    setenv("HVD_LOG", "loud", 1);
    ck_assert_int_eq(hvd__settings_read(&settings), HVD_ERR_CONFIG);
    ck_assert(strstr(hvd_last_error(), "HVD_LOG='loud'"));
}
END_TEST

START_TEST(launchers_are_recognised)
{
    static const char *const marks[] = {"OMPI_COMM_WORLD_RANK",
                                        "OMPI_COMM_WORLD_SIZE",
                                        "PMI_RANK",
                                        "PMI_SIZE",
                                        "MV2_COMM_WORLD_RANK",
                                        "MV2_COMM_WORLD_SIZE",
                                        "SLURM_STEP_NUM_TASKS",
                                        "PALS_RANKID",
                                        "PMIX_RANK"};

    for (size_t i = 0; i < sizeof marks / sizeof *marks; i++)
        unsetenv(marks[i]);
    ck_assert(!hvd__launched());
    ck_assert_int_eq(hvd__launch_check_alone("Open MPI"), HVD_OK);
    setenv("PMI_RANK", "2", 1);
    setenv("PMI_SIZE", "1", 1);
    ck_assert(hvd__launched());
    ck_assert_int_eq(hvd__launch_check_alone("Open MPI"), HVD_OK);
    setenv("PMI_SIZE", "8", 1);
    ck_assert_int_eq(hvd__launch_check_alone("Open MPI"), HVD_ERR_LAUNCH);
    ck_assert(strstr(hvd_last_error(), "one of 8"));
    ck_assert(strstr(hvd_last_error(), "MPICH"));
    ck_assert(strstr(hvd_last_error(), "Open MPI"));
}
END_TEST

static TCase *tcase_env(void)
{
    TCase *tcase = tcase_create("env");

    tcase_add_test(tcase, bytes_that_are_well_formed);
    tcase_add_test(tcase, bytes_that_are_not);
    tcase_add_test(tcase, settings_have_defaults_and_names);
    tcase_add_test(tcase, launchers_are_recognised);
    return tcase;
}

HVD_TEST_MAIN("core_env", tcase_env)
