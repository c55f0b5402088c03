/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The command line of hvd-bench has defaults, flags, and sizes with units. Each
 * wrong line gives one line that names the flag, what was given and what is
 * accepted.
 */
#include "collectives/options.h"

#include "suite.h"

#include <stdlib.h>
#include <string.h>

enum { MOST_WORDS = 16 };

/* Parses a command line given as one string, words separated by spaces. */
static int parse(struct bench_options *options, const char *line)
{
    static char copy[400];
    char *argv[MOST_WORDS + 1] = {(char[]){"hvd-bench"}};
    int argc = 1;

    snprintf(copy, sizeof copy, "%s", line);
    for (char *word = strtok(copy, " "); word; word = strtok(NULL, " "))
        argv[argc++] = word;
    bench_options_init(options);
    return command_parse(&bench_options_parser, argc, argv, options);
}

TEST(bytes_have_units_of_1024)
{
    static const struct {
        const char *text;
        int64_t bytes;
    } cases[] = {
        {"0", 0},
        {"4", 4},
        {"17B", 17},
        {"1k", 1024},
        {"1K", 1024},
        {"3KB", 3072},
        {"64M", INT64_C(64) << 20},
        {"2mb", INT64_C(2) << 20},
        {"8G", INT64_C(8) << 30},
        {"9223372036854775807", INT64_MAX},
        {"8589934591G", INT64_C(8589934591) << 30},
    };

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        ck_assert_int_eq(command_parse_bytes(cases[i].text), cases[i].bytes);
}

TEST(what_is_no_size_is_refused)
{
    static const char *const texts[] = {"",
                                        "K",
                                        "-4",
                                        "+4",
                                        " 4",
                                        "4 ",
                                        "4T",
                                        "4KK",
                                        "4KiB",
                                        "0x10",
                                        "1.5K",
                                        "1e3",
                                        "9223372036854775808",
                                        "8589934592G",
                                        "banana",
                                        "4BK"};

    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        ck_assert_msg(command_parse_bytes(texts[i]) == -1, "'%s' is taken",
                      texts[i]);
}

TEST(sizes_grow_by_factor_or_bytes_up_to_the_largest)
{
    struct bench_options o = {
        .max_bytes = 100, .step = 3, .step_is_factor = true};

    ck_assert_int_eq(bench_next_size(&o, 4), 12);
    ck_assert_int_eq(bench_next_size(&o, 33), 99);
    ck_assert_int_eq(bench_next_size(&o, 34), 0);
    o.step_is_factor = false;
    ck_assert_int_eq(bench_next_size(&o, 97), 100);
    ck_assert_int_eq(bench_next_size(&o, 98), 0);
    o.max_bytes = INT64_MAX;
    o.step = INT64_MAX;
    ck_assert_int_eq(bench_next_size(&o, 2), 0);
    o.step_is_factor = true;
    ck_assert_int_eq(bench_next_size(&o, 2), 0);
    ck_assert_int_eq(bench_next_size(&o, 1), INT64_MAX);
}

TEST(defaults_are_those_of_the_help)
{
    struct bench_options o;

    ck_assert_int_eq(parse(&o, "allreduce"), OPTIONS_RUN);
    ck_assert_int_eq(o.kind, HVD_ALLREDUCE);
    ck_assert_int_eq(o.min_bytes, 4);
    ck_assert_int_eq(o.max_bytes, 64 << 20);
    ck_assert_int_eq(o.step, 2);
    ck_assert(o.step_is_factor);
    ck_assert_int_eq(o.iters, 0);
    ck_assert_int_eq(o.warmup_iters, 5);
    ck_assert(o.check);
    ck_assert_int_eq(o.average, AVERAGE_MEAN);
    ck_assert_int_eq(o.op->id, HVD_SUM);
    ck_assert_int_eq(o.type->id, HVD_FLOAT32);
    ck_assert_int_eq(o.root, 0);
    ck_assert(o.compare);
    ck_assert(!o.plain_memory);
    ck_assert(!o.cold);
    ck_assert(!o.apart);
    ck_assert(!o.each);
    ck_assert(!o.in_place);
    ck_assert(o.min_bw <= 0);
    ck_assert_int_eq(o.format, FORMAT_NCCL);
    ck_assert_ptr_null(o.json);
}

TEST(every_flag_is_read)
{
    struct bench_options o;

    ck_assert_int_eq(parse(&o, "-b 1K -e 2M -f 4 -n 7 -w 0 -c 0 -a 3 "
                               "broadcast"),
                     OPTIONS_RUN);
    ck_assert_int_eq(o.kind, HVD_BROADCAST);
    ck_assert_int_eq(o.min_bytes, 1024);
    ck_assert_int_eq(o.max_bytes, 2 << 20);
    ck_assert_int_eq(o.step, 4);
    ck_assert_int_eq(o.iters, 7);
    ck_assert_int_eq(o.warmup_iters, 0);
    ck_assert(!o.check);
    ck_assert_int_eq(o.average, AVERAGE_MOST);
    ck_assert_int_eq(parse(&o, "broadcast -o avg -d half -r 3 --json f "
                               "--memory malloc --no-compare -i 512"),
                     OPTIONS_RUN);
    ck_assert_int_eq(o.op->id, HVD_AVERAGE);
    ck_assert_int_eq(o.type->id, HVD_FLOAT16);
    ck_assert_int_eq(o.root, 3);
    ck_assert_str_eq(o.json, "f");
    ck_assert(o.plain_memory);
    ck_assert(!o.compare);
    ck_assert_int_eq(o.step, 512);
    ck_assert(!o.step_is_factor);
}

TEST(long_flags_are_those_of_nccl_tests)
{
    struct bench_options o;

    ck_assert_int_eq(parse(&o, "allreduce --minbytes=8 --maxbytes=1M "
                               "--stepbytes 100 --iters 3 --warmup_iters 2 "
                               "--check 1 --op max"),
                     OPTIONS_RUN);
    ck_assert_int_eq(o.min_bytes, 8);
    ck_assert_int_eq(o.max_bytes, 1 << 20);
    ck_assert_int_eq(o.step, 100);
    ck_assert_int_eq(o.iters, 3);
    ck_assert_int_eq(o.warmup_iters, 2);
    ck_assert_int_eq(o.op->id, HVD_MAX);
    ck_assert_int_eq(parse(&o, "allreduce --datatype int64 --root 1 "
                               "--stepfactor 10 --average 0"),
                     OPTIONS_RUN);
    ck_assert_int_eq(o.type->id, HVD_INT64);
    ck_assert_int_eq(o.root, 1);
    ck_assert_int_eq(o.step, 10);
    ck_assert_int_eq(o.average, AVERAGE_RANK_0);
}

TEST(every_collective_is_known)
{
    static const struct {
        const char *line;
        hvd_kind kind;
    } cases[] = {
        {"allreduce", HVD_ALLREDUCE}, {"allgather", HVD_ALLGATHER},
        {"broadcast", HVD_BROADCAST}, {"alltoall", HVD_ALLTOALL},
        {"reduce", HVD_REDUCE},       {"gather", HVD_GATHER},
        {"barrier", HVD_BARRIER},     {"reducescatter", HVD_REDUCESCATTER}};
    struct bench_options o;

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        ck_assert_int_eq(parse(&o, cases[i].line), OPTIONS_RUN);
        ck_assert_int_eq(o.kind, cases[i].kind);
    }
}

TEST(output_and_memory_are_chosen)
{
    struct bench_options o;

    ck_assert_int_eq(parse(&o, "reduce -I --cold --apart --format osu "
                               "--in-place --min-bw 2.5"),
                     OPTIONS_RUN);
    ck_assert(o.each);
    ck_assert(o.cold);
    ck_assert(o.apart);
    ck_assert(o.in_place);
    ck_assert_int_eq(o.format, FORMAT_OSU);
    ck_assert(o.min_bw > 2.4 && o.min_bw < 2.6);
    ck_assert_int_eq(parse(&o, "reduce --format csv"), OPTIONS_RUN);
    ck_assert_int_eq(o.format, FORMAT_CSV);
    ck_assert_int_eq(parse(&o, "reduce --format json"), OPTIONS_RUN);
    ck_assert_int_eq(o.format, FORMAT_JSON);
}

TEST(all_is_everything)
{
    struct bench_options o;

    ck_assert_int_eq(parse(&o, "allreduce -o all -d all -r all"), OPTIONS_RUN);
    ck_assert_ptr_null(o.op);
    ck_assert_ptr_null(o.type);
    ck_assert_int_eq(o.root, -1);
}

TEST(help_and_version_need_no_collective)
{
    struct bench_options o;

    ck_assert_int_eq(parse(&o, "--help"), OPTIONS_HELP);
    ck_assert_int_eq(parse(&o, "-h"), OPTIONS_HELP);
    ck_assert_int_eq(parse(&o, "--version"), OPTIONS_VERSION);
    ck_assert_int_eq(parse(&o, "-V allreduce"), OPTIONS_VERSION);
}

TEST(mistakes_are_named)
{
    static const struct {
        const char *line, *text;
    } cases[] = {
        {"", "which collective (allreduce, allgather, ...) or subcommand? See "
             "--help"},
        {"join",
         "'join' is not a collective: allreduce, allgather, reducescatter, "
         "broadcast, alltoall, reduce, gather or barrier"},
        {"frob",
         "'frob' is not a collective: allreduce, allgather, reducescatter, "
         "broadcast, alltoall, reduce, gather or barrier"},
        {"allreduce broadcast", "'broadcast': one collective at a time"},
        {"allreduce -b 0",
         "-b: '0' is not a number of bytes above 0 (like 512, 64K, 8M, 1G)"},
        {"allreduce -b banana", "-b: 'banana' is not a number of bytes above 0 "
                                "(like 512, 64K, 8M, 1G)"},
        {"allreduce -e -4",
         "-e: '-4' is not a number of bytes above 0 (like 512, 64K, 8M, 1G)"},
        {"allreduce -i 0",
         "-i: '0' is not a number of bytes above 0 (like 512, 64K, 8M, 1G)"},
        {"allreduce -f 1",
         "-f: '1' is not a whole number from 2 to 2147483647"},
        {"allreduce -f 2K",
         "-f: '2K' is not a whole number from 2 to 2147483647"},
        {"allreduce -n 0",
         "-n: '0' is not a whole number from 1 to 2147483647"},
        {"allreduce -n 2147483648",
         "-n: '2147483648' is not a whole number from 1 to 2147483647"},
        {"allreduce -n 3x",
         "-n: '3x' is not a whole number from 1 to 2147483647"},
        {"allreduce -w -1",
         "-w: '-1' is not a whole number from 0 to 2147483647"},
        {"allreduce -c yes",
         "-c: 'yes' is not a whole number from 0 to 2147483647"},
        {"allreduce -a 4", "-a: '4' is not a whole number from 0 to 3"},
        {"allreduce -o adasum",
         "-o: 'adasum' is none of sum, prod, min, max, avg, all"},
        {"allreduce -d complex", "-d: 'complex' is not a type; see --help"},
        {"broadcast -r -1",
         "-r: '-1' is not a whole number from 0 to 2147483647"},
        {"allreduce --memory gpu", "--memory: 'gpu' is none of hvd, malloc"},
        {"allreduce --memory plain",
         "--memory: 'plain' is none of hvd, malloc"},
        {"allreduce --format xml",
         "--format: 'xml' is none of nccl, osu, csv, json"},
        {"allreduce --min-bw fast",
         "--min-bw: 'fast' is not a number of 0 or more"},
        {"allreduce --min-bw -1",
         "--min-bw: '-1' is not a number of 0 or more"},
        {"allreduce --min-bw inf",
         "--min-bw: 'inf' is not a number of 0 or more"},
        {"allreduce --json=", "--json: '' is not a path"},
        {"allreduce -b 64 -e 32",
         "the smallest size, 64, is above the largest, 32"},
        {"allreduce -o avg -d bool", "-o avg is not defined for -d bool"},
        {"allreduce -b 4 -e 7 -d double",
         "an element of -d double has 8 bytes: no size is that large"},
        {"allreduce --frob",
         "'--frob' is not an option, or lacks its value; see --help"},
        {"allreduce -n",
         "'-n' is not an option, or lacks its value; see --help"},
        {"allreduce --iters", "--iters needs a value, --iters N"},
        {"allreduce --no-compare=1", "--no-compare takes no value"},
    };
    struct bench_options o;

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        ck_assert_msg(parse(&o, cases[i].line) == OPTIONS_ERROR,
                      "'%s' is taken", cases[i].line);
        ck_assert_str_eq(o.line.error, cases[i].text);
    }
}

TEST(a_line_stays_one_line)
{
    char *argv[] = {(char[]){"hvd-bench"}, (char[]){"a\nb\033[31m"}, NULL};
    struct bench_options o;

    bench_options_init(&o);
    ck_assert_int_eq(command_parse(&bench_options_parser, 2, argv, &o),
                     OPTIONS_ERROR);
    ck_assert_ptr_nonnull(strstr(o.line.error, "'a?b?[31m'"));
}

TEST(help_names_every_flag)
{
    static const char *const names[] = {
        "--minbytes", "--maxbytes",     "--stepfactor", "--stepbytes",
        "--iters",    "--warmup_iters", "--check",      "--op",
        "--datatype", "--root",         "--average",    "--no-compare",
        "--memory",   "--json",         "--help",       "--version",
        "--format",   "--cold",         "--min-bw",     "--per_iter_timing",
        "--in-place", "--apart",        "latency",      "gradients",
        "overlap"};
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);

    command_help(&bench_options_parser, "hvd-bench", out);
    fclose(out);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        ck_assert_msg(strstr(text, names[i]) != NULL, "no %s", names[i]);
    free(text);
}

TEST_MAIN("bench_options")
