/* SPDX-License-Identifier: Apache-2.0 */
/*
 * options.c - the command line.
 *
 * Every rank parses the same arguments and comes to the same end without
 * talking to the others; all but rank 0 have their output closed meanwhile.
 */
#include "options.h"

#include <argp.h>
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

const char *argp_program_version = "hvd-bench " HVD_VERSION_STRING;

enum { NO_COMPARE = 256, MEMORY, JSON };

static const struct argp_option flags[] = {
    {"minbytes", 'b', "BYTES", 0, "Smallest size (4); K, M and G are 1024s", 0},
    {"maxbytes", 'e', "BYTES", 0, "Largest size (64M)", 0},
    {"stepfactor", 'f', "N", 0, "Each size is N times the last (2)", 0},
    {"stepbytes", 'i', "BYTES", 0, "... or this much larger", 0},
    {"iters", 'n', "N", 0,
     "Operations timed for each number (20, more for small sizes)", 0},
    {"warmup_iters", 'w', "N", 0, "Operations before that (5)", 0},
    {"check", 'c', "0|1", 0, "Compare every element of the result (1)", 0},
    {"op", 'o', "OP", 0, "sum, prod, min, max, avg or all (sum)", 0},
    {"datatype", 'd', "TYPE", 0,
     "int8, uint8, int16, uint16, int32, int64, half, bfloat16, float, double, "
     "bool or all (float)",
     0},
    {"root", 'r', "RANK", 0, "Root of broadcast, or all (0)", 0},
    {"no-compare", NO_COMPARE, NULL, 0, "Do not measure raw MPI beside it", 0},
    {"memory", MEMORY, "hvd|plain", 0,
     "Where buffers come from: hvd_malloc (the default) or malloc", 0},
    {"json", JSON, "FILE", 0, "Write everything measured to FILE", 0},
    {0},
};

static int64_t unit_of(const char *text)
{
    static const char units[] = "KMG";
    const char *unit;

    if (!*text || strcasecmp(text, "B") == 0)
        return 1;
    unit = strchr(units, toupper((unsigned char)*text));
    if (!unit || !*unit || (text[1] && strcasecmp(text + 1, "B") != 0))
        return -1;
    return INT64_C(1) << (10 * (unit - units + 1));
}

int64_t bench_parse_bytes(const char *text)
{
    char *end;
    long long value;
    int64_t unit, bytes;

    if (!isdigit((unsigned char)text[0]))
        return -1;
    errno = 0;
    value = strtoll(text, &end, 10);
    unit = unit_of(end);
    if (errno || unit < 0 || __builtin_mul_overflow(value, unit, &bytes))
        return -1;
    return bytes;
}

static int64_t bytes_of(struct argp_state *state, const char *flag,
                        const char *text)
{
    int64_t bytes = bench_parse_bytes(text);

    if (bytes <= 0)
        argp_error(state,
                   "%s '%s' is not a number of bytes: give digits, and K, M "
                   "or G",
                   flag, text);
    return bytes;
}

static int number_of(struct argp_state *state, const char *flag,
                     const char *text, int least)
{
    char *end;
    long value;

    errno = 0;
    value = strtol(text, &end, 10);
    if (errno || end == text || *end || value < least || value > INT_MAX)
        argp_error(state, "%s '%s' is not a whole number of at least %d", flag,
                   text, least);
    return (int)value;
}

static void set_collective(struct argp_state *state,
                           struct bench_options *options, const char *name)
{
    int kind = hvd_kind_from_name(name);

    if (state->arg_num > 0)
        argp_error(state, "one collective at a time, not '%s' too", name);
    if (kind != HVD_ALLREDUCE && kind != HVD_BROADCAST)
        argp_error(state, "'%s' is not a collective: allreduce or broadcast",
                   name);
    options->kind = kind;
}

static error_t parse_what(int key, char *arg, struct argp_state *state)
{
    struct bench_options *o = state->input;

    switch (key) {
    case 'o':
        o->op = bench_op_find(arg);
        if (!o->op && strcmp(arg, "all") != 0)
            argp_error(state, "-o '%s': sum, prod, min, max, avg or all", arg);
        return 0;
    case 'd':
        o->type = bench_dtype_find(arg);
        if (!o->type && strcmp(arg, "all") != 0)
            argp_error(state, "-d '%s' is not a type: see --help", arg);
        return 0;
    case 'r':
        o->root = strcmp(arg, "all") == 0 ? -1 : number_of(state, "-r", arg, 0);
        return 0;
    case MEMORY:
        o->plain_memory = strcmp(arg, "plain") == 0;
        if (!o->plain_memory && strcmp(arg, "hvd") != 0)
            argp_error(state, "--memory '%s': hvd or plain", arg);
        return 0;
    case JSON: o->json = arg; return 0;
    case NO_COMPARE: o->compare = false; return 0;
    case ARGP_KEY_ARG: set_collective(state, o, arg); return 0;
    case ARGP_KEY_NO_ARGS:
        argp_error(state, "which collective: allreduce or broadcast?");
        return 0;
    default: return ARGP_ERR_UNKNOWN;
    }
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
    struct bench_options *o = state->input;

    switch (key) {
    case 'b': o->min_bytes = bytes_of(state, "-b", arg); return 0;
    case 'e': o->max_bytes = bytes_of(state, "-e", arg); return 0;
    case 'f':
        o->step = number_of(state, "-f", arg, 2);
        o->step_is_factor = true;
        return 0;
    case 'i':
        o->step = bytes_of(state, "-i", arg);
        o->step_is_factor = false;
        return 0;
    case 'n': o->iters = number_of(state, "-n", arg, 1); return 0;
    case 'w': o->warmup_iters = number_of(state, "-w", arg, 0); return 0;
    case 'c': o->check = number_of(state, "-c", arg, 0) > 0; return 0;
    case ARGP_KEY_END:
        if (o->min_bytes > o->max_bytes)
            argp_error(state,
                       "the smallest size, %lld, is above the largest, "
                       "%lld",
                       (long long)o->min_bytes, (long long)o->max_bytes);
        return 0;
    default: return parse_what(key, arg, state);
    }
}

static const struct argp parser = {
    .options = flags,
    .parser = parse,
    .args_doc = "allreduce|broadcast",
    .doc = "Measure a collective of hvd over a range of sizes, and raw MPI "
           "beside it, in turn, in the same run.\v"
           "Start it under mpirun (mpi-launch.sh -np N hvd-bench ...). The "
           "first table has the rows of nccl-tests; docs/PERFORMANCE.md "
           "explains all columns. Exit status: 0; 1 for errors; 7 if a result "
           "was wrong; 64 for a wrong command line.",
};

static bool is_rank_0(void)
{
    const char *rank = getenv("OMPI_COMM_WORLD_RANK");

    return !rank || strcmp(rank, "0") == 0;
}

/* Argp ends the process itself; then this is not undone, as it should be. */
static void silence(int saved[2])
{
    int nowhere = open("/dev/null", O_WRONLY);

    for (int fd = 1; fd <= 2; fd++) {
        saved[fd - 1] = dup(fd);
        dup2(nowhere, fd);
    }
    close(nowhere);
}

static void speak_again(const int saved[2])
{
    for (int fd = 1; fd <= 2; fd++) {
        dup2(saved[fd - 1], fd);
        close(saved[fd - 1]);
    }
}

void bench_options_parse(int argc, char **argv, struct bench_options *options)
{
    int saved[2];
    bool silent = !is_rank_0();

    *options = (struct bench_options){
        .min_bytes = 4,
        .max_bytes = 64 << 20,
        .step = 2,
        .step_is_factor = true,
        .warmup_iters = 5,
        .check = true,
        .op = bench_op_find("sum"),
        .type = bench_dtype_find("float"),
        .compare = true,
    };
    if (silent)
        silence(saved);
    argp_parse(&parser, argc, argv, 0, NULL, options);
    if (silent)
        speak_again(saved);
}
