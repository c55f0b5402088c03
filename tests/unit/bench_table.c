/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The tables are compared character for character, because other programs read
 * the first one by column.
 */
#include "tables/compare_table.h"
#include "tables/nccl_table.h"

#include "suite.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char *text;
static size_t text_size;
static FILE *out;

static void open_text(void)
{
    out = open_memstream(&text, &text_size);
}

static void close_text(void)
{
    free(text);
}

/* Returns what was printed since open_text. */
static const char *printed(void)
{
    fclose(out);
    return text;
}

TEST(numbers_keep_their_column)
{
    static const struct {
        double value;
        int width;
        const char *want;
    } cases[] = {
        {0, 7, "   0.00"},
        {0.004, 7, "   0.00"},
        {2.894, 7, "   2.89"},
        {22, 7, "  22.00"},
        {999.99, 7, " 999.99"},
        {9999.99, 7, "9999.99"},
        {12345.67, 7, "12345.7"},
        {123456.7, 7, " 123457"},
        {1234567, 7, "1234567"},
        {12345678, 7, "1.2e+07"},
        {3.5e12, 7, "3.5e+12"},
        {0, 6, "  0.00"},
        {47.66, 6, " 47.66"},
        {999.99, 6, "999.99"},
        {1234.56, 6, "1234.6"},
        {12345.6, 6, " 12346"},
        {123456, 6, "123456"},
        {1234567, 6, " 1e+06"},
        /* rounding up adds a digit, so there is a decimal less */
        {999.996, 6, "1000.0"},
        {9999.996, 7, "10000.0"},
        {99999.96, 7, " 100000"},
        {9999.96, 6, " 10000"},
    };
    char number[32];

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        nccl_table_number(number, sizeof number, cases[i].value,
                          cases[i].width);
        ck_assert_str_eq(number, cases[i].want);
    }
}

static struct nccl_row example(void)
{
    return (struct nccl_row){.bytes = 1048576,
                             .count = 262144,
                             .type = "float",
                             .redop = "sum",
                             .root = -1,
                             .out_of_place = {22.0, 47.66, 47.66, 0},
                             .in_place = {21.5, 48.77, 48.77, 0}};
}

TEST(a_row_is_that_of_nccl_tests)
{
    struct nccl_row row = example();

    nccl_table_row(out, &row);
    ck_assert_str_eq(
        printed(),
        "     1048576        262144     float     sum      -1"
        "    22.00   47.66   47.66       0    21.50   48.77   48.77       0\n");
}

TEST(a_broadcast_has_a_root_and_no_redop)
{
    struct nccl_row row = example();

    row.bytes = INT64_C(8) << 30;
    row.count = INT64_C(1) << 30;
    row.type = "double";
    row.redop = "none";
    row.root = 3;
    row.out_of_place = (struct nccl_half){1234567.8, 6.958, 6.958, 3};
    nccl_table_row(out, &row);
    ck_assert_str_eq(
        printed(),
        "  8589934592    1073741824    double    none       3"
        "  1234568    6.96    6.96       3    21.50   48.77   48.77       0\n");
}

TEST(what_was_not_checked_is_not_available)
{
    struct nccl_row row = example();

    row.out_of_place.nwrong = -1;
    row.in_place.nwrong = -1;
    nccl_table_row(out, &row);
    ck_assert_str_eq(
        printed(),
        "     1048576        262144     float     sum      -1"
        "    22.00   47.66   47.66    N/A    21.50   48.77   48.77    N/A\n");
}

TEST(many_wrong_values_are_printed_as_nccl_tests_does)
{
    struct nccl_row row = example();

    row.in_place.nwrong = 16777216;
    nccl_table_row(out, &row);
    ck_assert_str_eq(printed(),
                     "     1048576        262144     float     sum      -1"
                     "    22.00   47.66   47.66       0"
                     "    21.50   48.77   48.77  1.67772e+07\n");
}

TEST(columns_are_those_of_nccl_tests)
{
    nccl_table_columns(out);
    ck_assert_str_eq(
        printed(),
        "#\n"
        "#                                                              "
        "out-of-place                       in-place          \n"
        "#       size         count      type   redop    root"
        "     time   algbw   busbw  #wrong     time   algbw   busbw  #wrong \n"
        "#        (B)    (elements)                          "
        "     (us)  (GB/s)  (GB/s)             (us)  (GB/s)  (GB/s)         "
        "\n");
}

TEST(head_and_devices_keep_their_shape)
{
    const struct nccl_head head = {.version = "hvd-bench 1.2.3",
                                   .program = "allreduce",
                                   .min_bytes = 4,
                                   .max_bytes = INT64_C(1) << 33,
                                   .step = 2,
                                   .step_is_factor = 1,
                                   .warmup_iters = 5,
                                   .iters = 20,
                                   .check = 1};
    const struct nccl_device device = {3, 4711, 1, "node7", "Some CPU"};

    nccl_table_head(out, &head);
    nccl_table_device(out, &device);
    ck_assert_str_eq(
        printed(),
        "# hvd-bench 1.2.3\n"
        "# Collective test starting: allreduce\n"
        "# nThread 1 nGpus 0 minBytes 4 maxBytes 8589934592 step: 2(factor) "
        "warmup iters: 5 iters: 20 agg iters: 1 validation: 1 graph: 0 "
        "unalign: 0\n"
        "#\n"
        "# Using devices\n"
        "#  Rank  3 Group  0 Pid   4711 on      node7 device  1 [cpu] Some "
        "CPU\n");
}

TEST(the_foot_says_ok)
{
    nccl_table_foot(out, 0, 48.215, 0, "allreduce");
    ck_assert_str_eq(printed(), "# Out of bounds values : 0 OK\n"
                                "# Avg bus bandwidth    : 48.215 \n"
                                "#\n"
                                "# Collective test concluded: allreduce\n");
}

TEST(the_foot_says_failed)
{
    nccl_table_foot(out, INT64_C(1) << 40, 0, 0, "broadcast");
    ck_assert_str_eq(printed(), "# Out of bounds values : 2147483647 FAILED\n"
                                "# Avg bus bandwidth    : 0 \n"
                                "#\n"
                                "# Collective test concluded: broadcast\n");
}

TEST(the_second_table_stands_beside_the_first)
{
    const struct result results[] = {
        {.bytes = 8,
         .count = 2,
         .type = bench_dtype_find("float"),
         .op = bench_op_find("sum"),
         .placements = {{.hvd.median = 4e-6, .mpi.median = 1e-6},
                        {.hvd.median = 2e-6,
                         .mpi.median = 1e-6,
                         .copy.median = 1e-9}}},
        {.bytes = 1000000,
         .count = 250000,
         .type = bench_dtype_find("float"),
         .op = bench_op_find("sum"),
         .placements = {{.hvd.median = 1e-4, .mpi.median = 4e-4},
                        {.hvd.median = 1e-4,
                         .mpi.median = 2e-4,
                         .copy.median = 5e-5}}},
    };
    const char *rows;

    compare_table_print(out, results, 2, 4);
    rows = strstr(printed(), "#       size");
    ck_assert_ptr_nonnull(rows);
    ck_assert_str_eq(
        rows,
        "#       size      type   redop    root        hvd        MPI   ratio"
        "        hvd        MPI   ratio      copy   share\n"
        "#        (B)                                 (us)       (us)        "
        "       (us)       (us)            (GB/s)     (%)\n"
        "           8     float     sum      -1       4.00       1.00    0.25"
        "       2.00       1.00    0.50      8.00     0.1\n"
        "     1000000     float     sum      -1     100.00     400.00    4.00"
        "     100.00     200.00    2.00     20.00    75.0\n"
        "# MPI / hvd            : 1.00 out of place, 1.00 in place "
        "(geometric means)\n");
}

TEST_MAIN("bench_table", .set_up = open_text, .tear_down = close_text)
