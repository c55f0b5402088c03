/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of environment variables: which texts are a number of bytes, and which
 * are not. */
#include <stdlib.h>
#include <string.h>

#include "core/settings/settings.h"
#include "core/world/launch.h"
#include "hvd.h"
#include "suite.h"

TEST(bytes_that_are_well_formed)
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

TEST(bytes_that_are_not)
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

TEST(times_that_are_well_formed)
{
    static const struct {
        const char *text;
        int64_t ns;
    } good[] = {
        {"0", 0},
        {"60", INT64_C(60000000000)},
        {"10s", INT64_C(10000000000)},
        {"1.5S", 1500000000},
        {"250ms", 250000000},
        {"2m", INT64_C(120000000000)},
        {"2min", INT64_C(120000000000)},
        {"1h", INT64_C(3600000000000)},
        {"7us", 7000},
        {"3ns", 3},
    };
    static const char *const bad[] = {"",     "-1",  "1 s",  "s",
                                      "1d",   "1e3", "inf",  "nan",
                                      "1..2", "0x1", "1.s.", "99999999999999h"};

    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        int64_t ns = -1;

        ck_assert_int_eq(hvd__parse_duration(good[i].text, &ns), HVD_OK);
        ck_assert_msg(ns == good[i].ns, "%s", good[i].text);
    }
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        int64_t ns = -1;

        ck_assert_msg(hvd__parse_duration(bad[i], &ns) == HVD_ERR_CONFIG, "%s",
                      bad[i]);
        ck_assert_int_eq(ns, -1);
    }
}

TEST(horovods_names_are_a_fallback)
{
    struct hvd__settings settings;

    setenv("HOROVOD_STALL_CHECK_TIME_SECONDS", "7", 1);
    setenv("HOROVOD_LOG_LEVEL", "fatal", 1);
    ck_assert_int_eq(hvd__settings_read(&settings), HVD_OK);
    ck_assert_int_eq(settings.stall_check_ns, INT64_C(7000000000));
    ck_assert_int_eq(settings.log_level, HVD__LOG_ERROR);
    setenv("HVD_STALL_CHECK_TIME", "3s", 1);
    ck_assert_int_eq(hvd__settings_read(&settings), HVD_OK);
    ck_assert_int_eq(settings.stall_check_ns, INT64_C(3000000000));
    unsetenv("HVD_STALL_CHECK_TIME");
    setenv("HOROVOD_STALL_CHECK_DISABLE", "1", 1);
    ck_assert_int_eq(hvd__settings_read(&settings), HVD_OK);
    ck_assert_int_eq(settings.stall_check_ns, 0);
    setenv("HOROVOD_FUSION_THRESHOLD", "64XB", 1);
    ck_assert_int_eq(hvd__settings_read(&settings), HVD_ERR_CONFIG);
    ck_assert(strstr(hvd_last_error(), "HOROVOD_FUSION_THRESHOLD='64XB'"));
}

TEST(values_are_strict)
{
    static const char *const bad[][2] = {
        {"HVD_CONSISTENCY_CHECK", "maybe"}, {"HVD_TOPK_RATIO", "0"},
        {"HVD_TOPK_RATIO", "1.5"},          {"HVD_TOPK_RATIO", "-0.1"},
        {"HVD_STALL_SHUTDOWN_TIME", "5s"}, /* before it is reported */
        {"HVD_HEARTBEAT_TIME", "99ms"},    /* a processor may be busy */
        {"HVD_TRANSPORT", "sctp"},          {"HVD_TRANSPORT", "ucx,mpi"},
    };
    struct hvd__settings settings;

    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        setenv(bad[i][0], bad[i][1], 1);
        ck_assert_int_eq(hvd__settings_read(&settings), HVD_ERR_CONFIG);
        ck_assert(strstr(hvd_last_error(), bad[i][0]));
        unsetenv(bad[i][0]);
    }
    setenv("HVD_CONSISTENCY_CHECK", "Yes", 1);
    setenv("HVD_STALL_SHUTDOWN_TIME", "2m", 1);
    setenv("HVD_HEARTBEAT_TIME", "100ms", 1);
    setenv("HVD_TRANSPORT", "UCX", 1);
    ck_assert_int_eq(hvd__settings_read(&settings), HVD_OK);
    ck_assert_int_eq(settings.transport, HVD__TRANSPORT_UCX);
    ck_assert(settings.consistency_check);
}

TEST(misspelt_names_are_found)
{
    char text[256];

    ck_assert(!hvd__settings_stray(text, sizeof text));
    setenv("HVD_FUSION_TRESHOLD", "1", 1);
    ck_assert(hvd__settings_stray(text, sizeof text));
    ck_assert_str_eq(text, "HVD_FUSION_TRESHOLD is not a variable of libhvd: "
                           "did you mean HVD_FUSION_THRESHOLD?");
    unsetenv("HVD_FUSION_TRESHOLD");
    setenv("HVD_SOMETHING_ELSE_ENTIRELY", "1", 1);
    ck_assert(hvd__settings_stray(text, sizeof text));
    ck_assert(strstr(text, "hvd-info"));
}

TEST(settings_have_defaults_and_names)
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

/* A value that can be read but makes no sense is refused, with a reason. */
TEST(values_have_ranges)
{
    static const struct {
        const char *variable, *good, *bad, *words;
    } cases[] = {
        {"HVD_SHM_SMALL", "32KB", "1GB", "'1GB' is more than 32KB"},
        {"HVD_SHM_SMALL", "0", "32769", "'32769' is more than 32KB"},
        {"HVD_SHM_BLOCK", "64", "1", "'1' is less than 64"},
        {"HVD_SHM_BLOCK", "128KB", "1TB", "'1TB' is more than 128KB"},
        {"HVD_SHM_BLOCK", "1KB", "0", "'0' is less than 64"},
        {"HVD_HEARTBEAT_TIME", "100ms", "99ms", "0 switches this off"},
        {"HVD_STALL_CHECK_TIME", "0", "1ns", "'1ns' is less than 100ms"},
        {"HVD_EXIT_GRACE_TIME", "0.1", "0.01", "'0.01' is less than 100ms"},
        {"HVD_METRICS_INTERVAL", "10ms", "0", "'0' is less than 10ms"},
        {"HOROVOD_STALL_CHECK_TIME_SECONDS", "1", "0.001",
         "HOROVOD_STALL_CHECK_TIME_SECONDS='0.001' is less"},
    };
    struct hvd__settings settings;

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        setenv(cases[i].variable, cases[i].good, 1);
        ck_assert_msg(hvd__settings_read(&settings) == HVD_OK, "%s=%s: %s",
                      cases[i].variable, cases[i].good, hvd_last_error());
        setenv(cases[i].variable, cases[i].bad, 1);
        ck_assert_int_eq(hvd__settings_read(&settings), HVD_ERR_CONFIG);
        ck_assert_msg(strstr(hvd_last_error(), cases[i].words), "%s",
                      hvd_last_error());
        ck_assert(strstr(hvd_last_error(), cases[i].variable));
        unsetenv(cases[i].variable);
    }
    /* A failure leaves no such value behind. */
    setenv("HVD_SHM_BLOCK", "1TB", 1);
    ck_assert_int_eq(hvd__settings_read(&settings), HVD_ERR_CONFIG);
    ck_assert_uint_eq(settings.shm_block, 32 << 10);
}

TEST(launchers_are_recognised)
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

    /* What a launcher has started counts, not what started the launcher. */
    setenv("SLURM_STEP_NUM_TASKS", "2", 1);
    setenv("PMI_SIZE", "1", 1);
    ck_assert_int_eq(hvd__launch_check_alone("Open MPI"), HVD_OK);
    ck_assert_int_eq(hvd__launch_check_pmix(), HVD_OK);
    unsetenv("PMI_RANK");
    unsetenv("PMI_SIZE");
    ck_assert(hvd__launched());
    ck_assert_int_eq(hvd__launch_check_pmix(), HVD_ERR_LAUNCH);
    ck_assert(strstr(hvd_last_error(), "srun --mpi=pmix"));
    setenv("PMIX_RANK", "0", 1);
    ck_assert(hvd__launched());
    ck_assert_int_eq(hvd__launch_check_pmix(), HVD_OK);
    ck_assert_int_eq(hvd__launch_check_alone("Open MPI"), HVD_ERR_LAUNCH);
    /* The shell of srun --pty is a single task, and no launcher. */
    setenv("SLURM_STEP_NUM_TASKS", "1", 1);
    ck_assert(hvd__launched());
    unsetenv("PMIX_RANK");
    ck_assert(!hvd__launched());
    ck_assert_int_eq(hvd__launch_check_pmix(), HVD_OK);
}

TEST_MAIN("core_settings")
