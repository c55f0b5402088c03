/* SPDX-License-Identifier: Apache-2.0 */
/*
 * options.c - the command line, on argp.
 *
 * Every rank parses the same arguments. argp would print its own messages and
 * end the process, on all of them; so it is told to be silent, help and
 * version are options of ours, and where it meets a word it cannot place,
 * explain_word says why. Numbers are read whole and in range or not at all.
 */
#include "options.h"

#include <argp.h>
#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { KEY_NO_COMPARE = 256, KEY_MEMORY, KEY_JSON };

static const struct argp_option flags[] = {
    {0, 0, 0, 0, "Sizes (bytes of one rank's buffer; K, M, G are 1024s):", 1},
    {"minbytes", 'b', "BYTES", 0, "smallest size (4)", 0},
    {"maxbytes", 'e', "BYTES", 0, "largest size (64M)", 0},
    {"stepfactor", 'f', "N", 0, "each size is N times the last (2)", 0},
    {"stepbytes", 'i', "BYTES", 0, "or this much larger than the last", 0},
    {0, 0, 0, 0, "What:", 2},
    {"op", 'o', "OP", 0, "sum, prod, min, max, avg or all (sum)", 0},
    {"datatype", 'd', "TYPE", 0,
     "int8, uint8, int16, uint16, int32, int64, half, bfloat16, float, double, "
     "bool or all (float)",
     0},
    {"root", 'r', "RANK", 0, "root of a broadcast, or all (0)", 0},
    {"memory", KEY_MEMORY, "hvd|plain", 0,
     "buffers from hvd_malloc, or from malloc (hvd)", 0},
    {0, 0, 0, 0, "How:", 3},
    {"iters", 'n', "N", 0,
     "operations timed for each number (500 up to 64K, 100 up to 1M, else 20)",
     0},
    {"warmup_iters", 'w', "N", 0, "operations before those (5)", 0},
    {"check", 'c', "0|1", 0, "compare every element of the result (1)", 0},
    {"average", 'a', "0..3", 0,
     "time of rank 0, mean, least or most of the ranks (1)", 0},
    {"no-compare", KEY_NO_COMPARE, NULL, 0, "leave raw MPI out", 0},
    {0, 0, 0, 0, "Output:", 4},
    {"json", KEY_JSON, "FILE", 0, "write everything measured to FILE", 0},
    {"help", 'h', NULL, 0, "show this", -1},
    {"version", 'V', NULL, 0, "show the version", -1},
    {0, 0, 0, 0, 0, 0},
};

struct parsing {
    struct bench_options *options;
    int outcome;
};

__attribute__((format(printf, 2, 3))) static error_t refuse(
    struct bench_options *options, const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(options->error, sizeof options->error, format, arguments);
    va_end(arguments);
    /* What was given may contain anything, and this is one line. */
    for (char *c = options->error; *c; c++)
        if (iscntrl((unsigned char)*c))
            *c = '?';
    return EINVAL;
}

/* ------------------------------------------------------------------ numbers */

static int64_t unit_of(const char *text)
{
    static const char units[] = "KMG";
    const char *unit;

    if (!*text || strcasecmp(text, "B") == 0)
        return 1;
    unit = strchr(units, toupper((unsigned char)*text));
    if (!unit || (text[1] && strcasecmp(text + 1, "B") != 0))
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

static error_t set_bytes(struct bench_options *options, const char *flag,
                         const char *text, int64_t *bytes)
{
    int64_t parsed = bench_parse_bytes(text);

    if (parsed <= 0)
        return refuse(options,
                      "%s: '%s' is not a number of bytes above 0 (like 512, "
                      "64K, 8M, 1G)",
                      flag, text);
    *bytes = parsed;
    return 0;
}

static error_t set_number(struct bench_options *options, const char *flag,
                          const char *text, int least, int most, int *number)
{
    char *end;
    long value;

    errno = 0;
    value = strtol(text, &end, 10);
    if (errno || !isdigit((unsigned char)*text) || *end || value < least ||
        value > most)
        return refuse(options, "%s: '%s' is not a whole number from %d to %d",
                      flag, text, least, most);
    *number = (int)value;
    return 0;
}

int64_t bench_next_size(const struct bench_options *options, int64_t bytes)
{
    int64_t next;
    int beyond = options->step_is_factor
                     ? __builtin_mul_overflow(bytes, options->step, &next)
                     : __builtin_add_overflow(bytes, options->step, &next);

    return beyond || next > options->max_bytes ? 0 : next;
}

/* -------------------------------------------------------------------- words */

/* argv[next - 1] is what argp could not place. */
static error_t explain_word(struct bench_options *options,
                            const struct argp_state *state)
{
    const char *word = state->argv[state->next - 1];
    size_t length = strcspn(word, "=");

    if (length > 2 && strncmp(word, "--", 2) == 0)
        for (const struct argp_option *f = flags; f->name || f->doc; f++)
            if (f->name && strlen(f->name) == length - 2 &&
                strncmp(f->name, word + 2, length - 2) == 0)
                return f->arg ? refuse(options, "--%s needs a value, --%s %s",
                                       f->name, f->name, f->arg)
                              : refuse(options, "--%s takes no value", f->name);
    return refuse(
        options, "'%s' is not an option, or lacks its value; see --help", word);
}

static error_t set_collective(struct bench_options *options,
                              const struct argp_state *state, const char *name)
{
    int kind = hvd_kind_from_name(name);

    if (state->arg_num > 0)
        return refuse(options, "'%s': one collective at a time", name);
    if (kind != HVD_ALLREDUCE && kind != HVD_BROADCAST)
        return refuse(options,
                      "'%s' is not a collective: allreduce or "
                      "broadcast",
                      name);
    options->kind = kind;
    return 0;
}

static error_t set_op(struct bench_options *options, const char *name)
{
    options->op = bench_op_find(name);
    if (!options->op && strcmp(name, "all") != 0)
        return refuse(
            options, "-o: '%s' is none of sum, prod, min, max, avg, all", name);
    return 0;
}

static error_t set_type(struct bench_options *options, const char *name)
{
    options->type = bench_dtype_find(name);
    if (!options->type && strcmp(name, "all") != 0)
        return refuse(options, "-d: '%s' is not a type; see --help", name);
    return 0;
}

static error_t set_memory(struct bench_options *options, const char *name)
{
    options->plain_memory = strcmp(name, "plain") == 0;
    if (!options->plain_memory && strcmp(name, "hvd") != 0)
        return refuse(options, "--memory: '%s' is neither hvd nor plain", name);
    return 0;
}

/* ------------------------------------------------------------------ parsing */

static error_t parse_sizes(int key, const char *text, struct bench_options *o)
{
    int factor = 0;
    error_t failed;

    switch (key) {
    case 'b': return set_bytes(o, "-b", text, &o->min_bytes);
    case 'e': return set_bytes(o, "-e", text, &o->max_bytes);
    case 'f':
        failed = set_number(o, "-f", text, 2, INT_MAX, &factor);
        o->step = factor;
        o->step_is_factor = true;
        return failed;
    case 'i':
        o->step_is_factor = false;
        return set_bytes(o, "-i", text, &o->step);
    default: return ARGP_ERR_UNKNOWN;
    }
}

static error_t parse_numbers(int key, const char *text, struct bench_options *o)
{
    int number = 0;
    error_t failed;

    switch (key) {
    case 'n': return set_number(o, "-n", text, 1, INT_MAX, &o->iters);
    case 'w': return set_number(o, "-w", text, 0, INT_MAX, &o->warmup_iters);
    case 'c':
        failed = set_number(o, "-c", text, 0, INT_MAX, &number);
        o->check = number > 0;
        return failed;
    case 'a':
        failed = set_number(o, "-a", text, 0, AVERAGE_MOST, &number);
        o->average = (enum bench_average)number;
        return failed;
    case 'r':
        o->root = -1;
        return strcmp(text, "all") == 0
                   ? 0
                   : set_number(o, "-r", text, 0, INT_MAX, &o->root);
    default: return parse_sizes(key, text, o);
    }
}

/* Whether a size has room for one element. */
static bool has_room(const struct bench_options *o, size_t element)
{
    int64_t size = o->min_bytes;

    while (size > 0 && size < (int64_t)element)
        size = bench_next_size(o, size);
    return size > 0;
}

/* What only the whole line can tell. */
static error_t parse_end(struct bench_options *o)
{
    if (o->min_bytes > o->max_bytes)
        return refuse(o, "the smallest size, %lld, is above the largest, %lld",
                      (long long)o->min_bytes, (long long)o->max_bytes);
    if (o->type && !has_room(o, o->type->bytes))
        return refuse(o,
                      "an element of -d %s has %zu bytes: no size is that "
                      "large",
                      o->type->name, o->type->bytes);
    if (o->op && o->type && o->kind == HVD_ALLREDUCE &&
        !bench_op_defined(o->op, o->type))
        return refuse(o, "-o %s is not defined for -d %s", o->op->name,
                      o->type->name);
    return 0;
}

static error_t parse(int key, char *text, struct argp_state *state)
{
    struct parsing *parsing = state->input;
    struct bench_options *o = parsing->options;

    switch (key) {
    case 'h': parsing->outcome = OPTIONS_HELP; return 0;
    case 'V': parsing->outcome = OPTIONS_VERSION; return 0;
    case 'o': return set_op(o, text);
    case 'd': return set_type(o, text);
    case KEY_MEMORY: return set_memory(o, text);
    case KEY_NO_COMPARE: o->compare = false; return 0;
    case KEY_JSON:
        o->json = text;
        return *text ? 0 : refuse(o, "--json: '' is not a path");
    case ARGP_KEY_ARG: return set_collective(o, state, text);
    case ARGP_KEY_NO_ARGS:
        return parsing->outcome == OPTIONS_RUN
                   ? refuse(o, "which collective, allreduce or broadcast? See "
                               "--help")
                   : 0;
    case ARGP_KEY_END: return parse_end(o);
    case ARGP_KEY_ERROR: return *o->error ? 0 : explain_word(o, state);
    default: return parse_numbers(key, text, o);
    }
}

static const struct argp parser = {
    .options = flags,
    .parser = parse,
    .args_doc = "allreduce|broadcast",
    .doc = "Measure a collective of hvd over a range of sizes, and raw MPI "
           "beside it, in turn, in the same run.\v"
           "The first table has the rows of nccl-tests; hvd-bench(1) and "
           "docs/PERFORMANCE.md explain all columns. Exit status: 0 measured, "
           "1 failed, 7 a result was wrong, 64 wrong command line.\n\n"
           "Examples:\n"
           "  mpi-launch.sh -np 2 hvd-bench allreduce\n"
           "  mpi-launch.sh -np 4 hvd-bench broadcast -b 1K -e 1M -d double "
           "--json run.json",
};

int bench_options_parse(int argc, char **argv, struct bench_options *options)
{
    struct parsing parsing = {options, OPTIONS_RUN};
    error_t failed;

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
    failed =
        argp_parse(&parser, argc, argv,
                   ARGP_NO_ERRS | ARGP_NO_HELP | ARGP_NO_EXIT, NULL, &parsing);
    if (failed && !*options->error)
        refuse(options, "%s", strerror(failed));
    return failed ? OPTIONS_ERROR : parsing.outcome;
}

void bench_options_help(FILE *out)
{
    char name[] = "hvd-bench";

    argp_help(&parser, out, ARGP_HELP_STD_HELP, name);
}
