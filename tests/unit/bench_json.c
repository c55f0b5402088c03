/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tests that the file of --json has the measured figures, and that there is
 * always a whole file under its name.
 */
#include "collectives/json.h"

#include "folder.h"
#include "suite.h"

#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char path[] = "run.json";
static char error[512];
static struct bench_options options;
static struct result results[2];
static struct run_facts facts;

static const struct nccl_device devices[] = {{0, 100, 0, "a", "Some CPU"},
                                             {1, 101, 1, "a", "Some CPU"}};
static char word[] = "allreduce";
static char not_utf8[] = "\xff\xfe";
static char *words[] = {word, not_utf8, NULL};

static void setup(void)
{
    folder_enter();
    *error = '\0';
    options = (struct bench_options){.kind = HVD_ALLREDUCE,
                                     .min_bytes = 4,
                                     .max_bytes = INT64_C(1) << 40,
                                     .step = 2,
                                     .step_is_factor = true,
                                     .warmup_iters = 5,
                                     .check = true,
                                     .compare = true,
                                     .average = AVERAGE_MEAN};
    facts = (struct run_facts){.argc = 2,
                               .argv = words,
                               .nranks = 2,
                               .devices = devices,
                               .mpi_version = "Some MPI v1",
                               .start_time = 1000,
                               .end_time = 1010};
    results[0] = (struct result){.bytes = INT64_C(1) << 40,
                                 .count = INT64_C(1) << 38,
                                 .type = bench_dtype_find("float"),
                                 .op = bench_op_find("sum"),
                                 .iters = 20,
                                 .placements = {{.hvd.mean = 1024,
                                                 .hvd.median = 512,
                                                 .mpi.median = 1024,
                                                 .copy.median = 256},
                                                {.hvd.mean = 1024,
                                                 .hvd.median = 1024,
                                                 .mpi.median = 512,
                                                 .copy.median = 256,
                                                 .nwrong = 9}}};
    results[1] =
        (struct result){.kind = HVD_BROADCAST,
                        .bytes = 4,
                        .count = 1,
                        .type = bench_dtype_find("float"),
                        .root = 1,
                        .iters = 500,
                        .placements = {{.nwrong = -1}, {.nwrong = -1}}};
}

static int write_file(void)
{
    return json_write(path, &options, &facts, results, 2, error, sizeof error);
}

/* Returns the document that was written. The caller releases it. */
static json_t *written(void)
{
    json_error_t problem;
    json_t *root;

    ck_assert_msg(write_file() == 0, "%s", error);
    root = json_load_file(path, JSON_REJECT_DUPLICATES, &problem);
    ck_assert_msg(root != NULL, "line %d: %s", problem.line, problem.text);
    return root;
}

/* Returns the value at a path of keys, separated by blanks; a number is an
 * index. */
static json_t *at(json_t *value, const char *keys)
{
    char copy[128];

    snprintf(copy, sizeof copy, "%s", keys);
    for (char *key = strtok(copy, " "); key; key = strtok(NULL, " "))
        value = json_is_array(value) ? json_array_get(value, (size_t)atoi(key))
                                     : json_object_get(value, key);
    ck_assert_msg(value != NULL, "there is no %s", keys);
    return value;
}

static void assert_number(json_t *root, const char *keys, double want)
{
    double got = json_number_value(at(root, keys));

    ck_assert(json_is_number(at(root, keys)));
    ck_assert_msg(fabs(got - want) <= 1e-9 * fabs(want), "%s: %g, not %g", keys,
                  got, want);
}

static void assert_text(json_t *root, const char *keys, const char *want)
{
    ck_assert_str_eq(json_string_value(at(root, keys)), want);
}

TEST(it_says_what_was_measured)
{
    json_t *root = written();

    assert_number(root, "results 0 size", 1099511627776.0);
    assert_number(root, "results 0 count", 274877906944.0);
    assert_text(root, "results 0 type", "float");
    assert_text(root, "results 0 redop", "sum");
    assert_number(root, "results 0 root", -1);
    assert_number(root, "results 0 iterations", 20);
    assert_number(root, "results 0 out_of_place time", 1024e6);
    assert_number(root, "results 0 out_of_place alg_bw", 1.073741824);
    assert_number(root, "results 0 out_of_place bus_bw", 1.073741824);
    assert_number(root, "results 0 out_of_place nwrong", 0);
    assert_number(root, "results 0 out_of_place median_us", 512e6);
    assert_number(root, "results 0 out_of_place mpi_median_us", 1024e6);
    assert_number(root, "results 0 out_of_place mpi_over_hvd", 2);
    assert_number(root, "results 0 in_place mpi_over_hvd", 0.5);
    assert_number(root, "results 0 in_place copy_median_us", 256e6);
    assert_number(root, "results 0 in_place share_of_copy", 0.25);
    assert_number(root, "results 0 in_place nwrong", 9);
    assert_text(root, "results 1 redop", "none");
    assert_number(root, "results 1 root", 1);
    ck_assert_uint_eq(json_array_size(at(root, "results")), 2);
    json_decref(root);
}

TEST(it_says_where_and_how)
{
    json_t *root = written();

    assert_number(root, "version", 1);
    assert_number(root, "start_time", 1000);
    assert_number(root, "end_time", 1010);
    assert_text(root, "machine hvd_version", hvd_version());
    assert_text(root, "machine mpi_version", "Some MPI v1");
    ck_assert_int_ge(json_integer_value(at(root, "machine cores")), 1);
    ck_assert_str_ne(json_string_value(at(root, "machine processor")), "");
    assert_text(root, "config collective", "allreduce");
    assert_number(root, "config ranks", 2);
    assert_text(root, "config devices 1 hostname", "a");
    assert_number(root, "config devices 1 pid", 101);
    assert_number(root, "config maximum_bytes", 1099511627776.0);
    assert_number(root, "config step_factor", 2);
    ck_assert(json_is_true(at(root, "config validation")));
    ck_assert(json_is_null(at(root, "config iterations")));
    assert_text(root, "config memory", "hvd");
    assert_text(root, "args 0", "allreduce");
    assert_text(root, "args 1", "?");
    json_decref(root);
}

TEST(it_sums_up)
{
    json_t *root = written();

    assert_number(root, "out_of_bounds count", 9);
    ck_assert(json_is_false(at(root, "out_of_bounds okay")));
    assert_number(root, "average_bus_bandwidth bandwidth", 1.073741824 / 2);
    assert_number(root, "peak_bus_bandwidth bandwidth", 1.073741824);
    assert_number(root, "mpi_over_hvd out_of_place", 2);
    assert_number(root, "mpi_over_hvd in_place", 0.5);
    json_decref(root);
}

TEST(what_was_not_measured_is_null)
{
    json_t *root;

    options.compare = false;
    root = written();
    ck_assert(json_is_null(at(root, "results 1 out_of_place nwrong")));
    ck_assert(json_is_null(at(root, "results 1 in_place mpi_median_us")));
    ck_assert(json_is_null(at(root, "results 1 in_place mpi_over_hvd")));
    ck_assert(json_is_null(at(root, "mpi_over_hvd")));
    json_decref(root);
}

TEST(of_the_environment_only_what_matters_is_told)
{
    json_t *root;

    setenv("HVD_FUSION_THRESHOLD", "64MB", 1);
    setenv("OMPI_MCA_btl", "self,vader", 1);
    setenv("SECRET_TOKEN", "hunter2", 1);
    root = written();
    assert_text(root, "env HVD_FUSION_THRESHOLD", "64MB");
    assert_text(root, "env OMPI_MCA_btl", "self,vader");
    ck_assert_ptr_null(json_object_get(at(root, "env"), "SECRET_TOKEN"));
    ck_assert_ptr_null(json_object_get(at(root, "env"), "PATH"));
    json_decref(root);
}

TEST(a_check_leaves_things_as_they_are)
{
    struct stat info;

    ck_assert_int_eq(json_check(path, error, sizeof error), 0);
    ck_assert_int_eq(directory_entries("."), 0);
    file_write_text(path, "old");
    ck_assert_int_eq(json_check(path, error, sizeof error), 0);
    ck_assert_int_eq(directory_entries("."), 1);
    ck_assert_int_eq(stat(path, &info), 0);
    ck_assert_int_eq(info.st_size, 3);
}

TEST(an_old_file_is_replaced_whole)
{
    static char old[300000];

    memset(old, 'x', sizeof old);
    file_write(path, old, sizeof old);
    json_decref(written());
    ck_assert_int_eq(directory_entries("."), 1);
}

TEST(what_cannot_be_written_is_said)
{
    static const char *const paths[] = {"/nonexistent/run.json", "/proc",
                                        "/proc/nonexistent/run.json"};

    for (size_t i = 0; i < sizeof paths / sizeof *paths; i++) {
        ck_assert_int_eq(json_check(paths[i], error, sizeof error), -1);
        ck_assert_ptr_nonnull(strstr(error, paths[i]));
        ck_assert_ptr_nonnull(strstr(error, "--json"));
        ck_assert_ptr_null(strchr(error, '\n'));
    }
}

TEST(a_full_disk_is_said)
{
    ck_assert_int_eq(json_check("/dev/full", error, sizeof error), 0);
    ck_assert_int_eq(json_write("/dev/full", &options, &facts, results, 2,
                                error, sizeof error),
                     -1);
    ck_assert_ptr_nonnull(strstr(error, "No space left"));
}

TEST(what_is_no_file_is_not_replaced)
{
    struct stat info;

    ck_assert_int_eq(json_write("/dev/null", &options, &facts, results, 2,
                                error, sizeof error),
                     0);
    ck_assert_int_eq(stat("/dev/null", &info), 0);
    ck_assert(S_ISCHR(info.st_mode));
}

TEST(a_link_stays_a_link)
{
    struct stat info;

    file_write_text(path, "");
    ck_assert_int_eq(symlink(path, "link"), 0);
    ck_assert_int_eq(
        json_write("link", &options, &facts, results, 2, error, sizeof error),
        0);
    ck_assert_int_eq(lstat("link", &info), 0);
    ck_assert(S_ISLNK(info.st_mode));
    ck_assert_int_eq(stat(path, &info), 0);
    ck_assert_int_gt(info.st_size, 0);
}

TEST_MAIN("bench_json", .set_up = setup, .tear_down = folder_remove)
