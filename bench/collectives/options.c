/* SPDX-License-Identifier: Apache-2.0 */
/*
 * options.c - the command line of hvd-bench COLLECTIVE.
 *
 * Flags that nccl-tests has too keep its letters and meanings. Each value is
 * checked as it is read; parse_end checks how they fit together. Every rank
 * parses the same line and gets the same result, without MPI.
 */
#include "collectives/options.h"

#include "tables/call.h"

#include <limits.h>
#include <string.h>

enum {
    KEY_NO_COMPARE = 256,
    KEY_MEMORY,
    KEY_JSON,
    KEY_FORMAT,
    KEY_COLD,
    KEY_APART,
    KEY_MIN_BW,
    KEY_IN_PLACE
};

static const struct argp_option flags[] = {
    {0, 0, 0, 0, "Sizes (bytes of the larger buffer; K, M, G are 1024s):", 1},
    {"minbytes", 'b', "BYTES", 0, "smallest size (4)", 0},
    {"maxbytes", 'e', "BYTES", 0, "largest size (64M)", 0},
    {"stepfactor", 'f', "N", 0, "each size is N times the one before (2)", 0},
    {"stepbytes", 'i', "BYTES", 0,
     "each size is BYTES larger than the one before", 0},
    {0, 0, 0, 0, "What:", 2},
    {"op", 'o', "OP", 0, "sum, prod, min, max, avg or all (sum)", 0},
    {"datatype", 'd', "TYPE", 0,
     "int8, uint8, int16, uint16, int32, int64, half, bfloat16, float, double, "
     "bool or all (float)",
     0},
    {"root", 'r', "RANK", 0,
     "root of a broadcast, reduce or gather, or all (0)", 0},
    {"memory", KEY_MEMORY, "hvd|malloc", 0,
     "buffers from hvd_malloc, or ordinary memory (hvd)", 0},
    {"cold", KEY_COLD, NULL, 0, "no buffer of an operation lies in a cache", 0},
    {0, 0, 0, 0, "How:", 3},
    {"iters", 'n', "N", 0,
     "operations timed for each number (500 up to 64K, 100 up to 1M, else 20)",
     0},
    {"warmup_iters", 'w', "N", 0, "untimed operations before these (5)", 0},
    {"check", 'c', "0|1", 0, "compare every element of the result (1)", 0},
    {"average", 'a', "0..3", 0,
     "time of rank 0, mean, least or most of the ranks (1)", 0},
    {"apart", KEY_APART, NULL, 0,
     "a barrier before each operation; with -a 3, the time until all ranks "
     "are done",
     0},
    {"per_iter_timing", 'I', NULL, 0,
     "time each operation by itself, and print percentiles", 0},
    {"no-compare", KEY_NO_COMPARE, NULL, 0, "leave raw MPI out", 0},
    {0, 0, 0, 0, "Output:", 4},
    {"format", KEY_FORMAT, "FORMAT", 0,
     "nccl (and a table next to MPI), osu, csv or json (nccl)", 0},
    {"in-place", KEY_IN_PLACE, NULL, 0, "osu shows the times in place", 0},
    {"json", KEY_JSON, "FILE", 0, "also write everything measured to FILE", 0},
    {"min-bw", KEY_MIN_BW, "GB/S", 0,
     "end with status 8 if the average bus bandwidth is less", 0},
    COMMAND_FLAGS,
};

int64_t bench_next_size(const struct bench_options *options, int64_t bytes)
{
    int64_t next;
    int beyond = options->step_is_factor
                     ? __builtin_mul_overflow(bytes, options->step, &next)
                     : __builtin_add_overflow(bytes, options->step, &next);

    return beyond || next > options->max_bytes ? 0 : next;
}

/* -------------------------------------------------------------------- words */

static error_t set_collective(struct bench_options *options,
                              const struct argp_state *state, const char *name)
{
    int kind = hvd_kind_from_name(name);

    if (state->arg_num > 0)
        return command_refuse(&options->line, "'%s': one collective at a time",
                              name);
    if (!call_known(kind))
        return command_refuse(&options->line,
                              "'%s' is not a collective: allreduce, allgather, "
                              "reducescatter, broadcast, alltoall, reduce, "
                              "gather or barrier",
                              name);
    options->kind = kind;
    return 0;
}

static error_t set_op(struct bench_options *options, const char *name)
{
    options->op = bench_op_find(name);
    if (!options->op && strcmp(name, "all") != 0)
        return command_refuse(
            &options->line, "-o: '%s' is none of sum, prod, min, max, avg, all",
            name);
    return 0;
}

static error_t set_type(struct bench_options *options, const char *name)
{
    options->type = bench_dtype_find(name);
    if (!options->type && strcmp(name, "all") != 0)
        return command_refuse(&options->line,
                              "-d: '%s' is not a type; see --help", name);
    return 0;
}

static error_t set_root(struct bench_options *options, const char *text)
{
    options->root = -1;
    return strcmp(text, "all") == 0
               ? 0
               : command_number(&options->line, "-r", text, 0, INT_MAX,
                                &options->root);
}

static error_t set_memory(struct bench_options *options, const char *name)
{
    static const char *const names[] = {"hvd", "malloc", NULL};
    int chosen = 0;
    error_t failed =
        command_choice(&options->line, "--memory", name, names, &chosen);

    options->plain_memory = chosen == 1;
    return failed;
}

static error_t set_format(struct bench_options *options, const char *name)
{
    static const char *const names[] = {"nccl", "osu", "csv", "json", NULL};
    int chosen = 0;
    error_t failed =
        command_choice(&options->line, "--format", name, names, &chosen);

    options->format = (enum bench_format)chosen;
    return failed;
}

/* ------------------------------------------------------------------ parsing */

static error_t parse_sizes(int key, const char *text, struct bench_options *o)
{
    int factor = 0;
    error_t failed;

    switch (key) {
    case 'b': return command_bytes(&o->line, "-b", text, &o->min_bytes);
    case 'e': return command_bytes(&o->line, "-e", text, &o->max_bytes);
    case 'f':
        failed = command_number(&o->line, "-f", text, 2, INT_MAX, &factor);
        o->step = factor;
        o->step_is_factor = true;
        return failed;
    case 'i':
        o->step_is_factor = false;
        return command_bytes(&o->line, "-i", text, &o->step);
    default: return ARGP_ERR_UNKNOWN;
    }
}

static error_t parse_numbers(int key, const char *text, struct bench_options *o)
{
    struct command_line *line = &o->line;
    int number = 0;
    error_t failed;

    switch (key) {
    case 'n': return command_number(line, "-n", text, 1, INT_MAX, &o->iters);
    case 'w':
        return command_number(line, "-w", text, 0, INT_MAX, &o->warmup_iters);
    case 'c':
        failed = command_number(line, "-c", text, 0, INT_MAX, &number);
        o->check = number > 0;
        return failed;
    case 'a':
        failed = command_number(line, "-a", text, 0, AVERAGE_MOST, &number);
        o->average = (enum bench_average)number;
        return failed;
    case 'r': return set_root(o, text);
    case KEY_MIN_BW: return command_real(line, "--min-bw", text, &o->min_bw);
    default: return parse_sizes(key, text, o);
    }
}

/* Returns true if some size has room for one element. */
static bool has_room(const struct bench_options *o, size_t element)
{
    int64_t size = o->min_bytes;

    while (size > 0 && size < (int64_t)element)
        size = bench_next_size(o, size);
    return size > 0;
}

/* Checks the values against each other. */
static error_t parse_end(struct bench_options *o)
{
    if (o->min_bytes > o->max_bytes)
        return command_refuse(
            &o->line, "the smallest size, %lld, is above the largest, %lld",
            (long long)o->min_bytes, (long long)o->max_bytes);
    if (o->type && !has_room(o, o->type->bytes))
        return command_refuse(
            &o->line,
            "an element of -d %s has %zu bytes: no size is that large",
            o->type->name, o->type->bytes);
    if (o->op && o->type && call_reduces(o->kind) &&
        !bench_op_defined(o->op, o->type))
        return command_refuse(&o->line, "-o %s is not defined for -d %s",
                              o->op->name, o->type->name);
    return 0;
}

static error_t parse_option(int key, char *text, struct argp_state *state)
{
    struct bench_options *o = state->input;
    error_t done;

    switch (key) {
    case 'o': return set_op(o, text);
    case 'd': return set_type(o, text);
    case 'I': o->each = true; return 0;
    case KEY_MEMORY: return set_memory(o, text);
    case KEY_FORMAT: return set_format(o, text);
    case KEY_COLD: o->cold = true; return 0;
    case KEY_APART: o->apart = true; return 0;
    case KEY_IN_PLACE: o->in_place = true; return 0;
    case KEY_NO_COMPARE: o->compare = false; return 0;
    case KEY_JSON:
        o->json = text;
        return *text ? 0 : command_refuse(&o->line, "--json: '' is not a path");
    case ARGP_KEY_ARG: return set_collective(o, state, text);
    case ARGP_KEY_NO_ARGS:
        return o->line.outcome == OPTIONS_RUN
                   ? command_refuse(&o->line,
                                    "which collective (allreduce, allgather, "
                                    "...) or subcommand? See --help")
                   : 0;
    case ARGP_KEY_END: return parse_end(o);
    default:
        done = command_key(&o->line, flags, key, state);
        return done == ARGP_ERR_UNKNOWN ? parse_numbers(key, text, o) : done;
    }
}

const struct argp bench_options_parser = {
    .options = flags,
    .parser = parse_option,
    .args_doc = "allreduce|allgather|reducescatter|broadcast|alltoall|reduce|"
                "gather|barrier\nlatency|idle|gradients|overlap|commit|hosts|"
                "cluster|project ...",
    .doc =
        "Measure a collective of hvd over a range of sizes and, in turn in "
        "the same run, raw MPI.\v"
        "The first table has the rows of nccl-tests; hvd-bench(1) and "
        "docs/PERFORMANCE.md explain all columns.\n\n"
        "Subcommands have options of their own (hvd-bench latency --help):\n"
        "  latency    time of small operations, blocking and not, idle and "
        "busy\n"
        "  idle       cost of an initialised program that does nothing\n"
        "  gradients  sums of real models' gradients, next to ways with MPI\n"
        "  overlap    share of the communication that computing hides\n"
        "  hosts      a collective over hosts made of network namespaces\n\n"
        "Exit status: 0 measured, 1 failed, 7 a result was wrong, 8 below "
        "--min-bw, 64 wrong command line.\n\n"
        "Examples:\n"
        "  mpi-launch.sh -np 2 hvd-bench allreduce\n"
        "  mpi-launch.sh -np 4 hvd-bench broadcast -b 1K -e 1M -d double "
        "--json run.json\n"
        "  mpi-launch.sh -np 2 hvd-bench gradients --model resnet50",
};

void bench_options_init(struct bench_options *options)
{
    *options = (struct bench_options){
        .kind = HVD_ALLREDUCE,
        .min_bytes = 4,
        .max_bytes = 64 << 20,
        .step = 2,
        .step_is_factor = true,
        .warmup_iters = 5,
        .check = true,
        .average = AVERAGE_MEAN,
        .op = bench_op_find("sum"),
        .type = bench_dtype_find("float"),
        .compare = true,
    };
}
