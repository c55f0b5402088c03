/* SPDX-License-Identifier: Apache-2.0 */
/*
 * setting.c - hvd-bench setting: what one of libhvd's settings changes.
 *
 * The same processes shut libhvd down and start it again, in each round with
 * the first value and with the second, and sum buffers. Processes that are
 * started twice differ by more than most settings change: in where their memory
 * lies, and in what else the machine did. The rounds swap the order of the two
 * values, and each gives one ratio for each size, of which the median counts.
 */
#include "collectives/subcommands.h"

#include "collectives/agree.h"
#include "collectives/session.h"
#include "collectives/sizes.h"
#include "hvd.h"
#include "tables/stats.h"
#include "tables/table.h"

#include <mpi.h>
#include <stdlib.h>
#include <string.h>

enum { VALUES = 2, RATIOS = VALUES, LISTS, BLOCKS = 5, MAX_SIZES = 40 };

static const int64_t MAX_BYTES = (int64_t)1 << 40;

struct setting_options {
    struct command_line line;
    const char *name;
    const char *values[VALUES];
    struct sizes sizes;
    int rounds;
    int block_ms;
    int format;
};

struct setting_run {
    struct session *session;
    const struct setting_options *options;
    int nsizes;
    int64_t bytes[MAX_SIZES];
    int64_t iters[MAX_SIZES]; /* allreduces of a block; 0 before the first */
    double *lists; /* [nsizes][LISTS][rounds]: seconds of one allreduce
                      with either value, and their ratios */
};

static double *list_of(const struct setting_run *r, int size, int list)
{
    return r->lists +
           ((size_t)size * LISTS + (size_t)list) * (size_t)r->options->rounds;
}

/* ------------------------------------------------------------------- timing */

/* Times a block of allreduces; seconds becomes the slowest rank's time. Returns
 * 0 or a status. Collective. */
static int time_block(const struct setting_run *r, float *buffer, int64_t bytes,
                      int64_t iters, double *seconds)
{
    int64_t count = bytes / (int64_t)sizeof *buffer;
    double elapsed;
    int status = 0;

    MPI_Barrier(MPI_COMM_WORLD);
    elapsed = MPI_Wtime();
    for (int64_t i = 0; i < iters && status >= 0; i++)
        status = hvd_allreduce(buffer, buffer, count, HVD_FLOAT32, HVD_SUM);
    elapsed = MPI_Wtime() - elapsed;
    if (status < 0)
        session_note_hvd(r->session);
    if (!agree_well(status >= 0))
        return session_fail(r->session);
    MPI_Allreduce(&elapsed, seconds, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    return 0;
}

/* Finds how many allreduces take as long as a block should. Collective. */
static int calibrate(struct setting_run *r, float *buffer, int size)
{
    double seconds = 0;
    int status = 0;

    for (int64_t n = 1; seconds < 1e-3 * r->options->block_ms && !status;
         n *= 2) {
        r->iters[size] = n;
        status = time_block(r, buffer, r->bytes[size], n, &seconds);
    }
    return status;
}

/* Times one size, with the value that libhvd has now. */
static int time_size(struct setting_run *r, float *buffer, int size,
                     double *seconds)
{
    double blocks[BLOCKS], ignored;
    int status = 0;

    memset(buffer, 0, (size_t)r->bytes[size]);
    if (!r->iters[size])
        status = calibrate(r, buffer, size);
    if (!status)
        status =
            time_block(r, buffer, r->bytes[size], r->iters[size], &ignored);
    for (int b = 0; b < BLOCKS && !status; b++)
        status =
            time_block(r, buffer, r->bytes[size], r->iters[size], &blocks[b]);
    if (!status)
        *seconds = stats_median(blocks, BLOCKS) / (double)r->iters[size];
    return status;
}

/* Starts libhvd anew with one of the values, and times all sizes. */
static int take_turn(struct setting_run *r, int round, int value)
{
    const struct setting_options *o = r->options;
    float *buffer = NULL;
    int failed, status;

    hvd_shutdown();
    failed = setenv(o->name, o->values[value], 1) != 0 || hvd_init() < 0;
    if (failed)
        session_note_hvd(r->session);
    if (!agree_well(!failed))
        return session_fail(r->session);
    buffer = hvd_malloc((size_t)o->sizes.most);
    status = session_settle(r->session, buffer != NULL,
                            "there is no memory: choose a smaller -e");
    for (int size = 0; size < r->nsizes && !status; size++)
        status = time_size(r, buffer, size, &list_of(r, size, value)[round]);
    hvd_free(buffer);
    return status;
}

static int run_rounds(struct setting_run *r)
{
    int status = 0;

    for (int turn = 0; turn < r->options->rounds * VALUES && !status; turn++) {
        int round = turn / VALUES;

        status = take_turn(r, round, (round + turn) % VALUES);
    }
    return status;
}

/* ------------------------------------------------------------------- report */

static double to_percent(double ratio)
{
    return 100 * (ratio - 1);
}

static void print_size(struct setting_run *r, struct table *table, int size)
{
    double *first = list_of(r, size, 0), *second = list_of(r, size, 1);
    double *ratios = list_of(r, size, RATIOS), median, low, high;
    size_t n = (size_t)r->options->rounds;

    for (size_t i = 0; i < n; i++)
        ratios[i] = second[i] / first[i];
    median = stats_median(ratios, n); /* sorts */
    stats_median_interval(ratios, n, &low, &high);
    table_number(table, (double)r->bytes[size]);
    table_number(table, 1e6 * stats_median(first, n));
    table_number(table, 1e6 * stats_median(second, n));
    table_number(table, to_percent(median));
    table_number(table, to_percent(low));
    table_number(table, to_percent(high));
}

static void print_all(struct setting_run *r)
{
    static const struct table_column columns[] = {
        {"bytes", 10, 0},         {"first_us", 11, 3}, {"second_us", 11, 3},
        {"added_percent", 14, 2}, {"low", 8, 2},       {"high", 8, 2}};
    const struct setting_options *o = r->options;
    struct table table = {0};
    char title[320];

    snprintf(title, sizeof title,
             "allreduce of float32 in place, hvd_malloc memory, %d ranks, %d "
             "rounds: %s=%s, and then =%s",
             r->session->nranks, o->rounds, o->name, o->values[0],
             o->values[1]);
    table_begin(&table, stdout, (enum table_format)o->format, title, columns,
                sizeof columns / sizeof *columns);
    for (int size = 0; size < r->nsizes; size++)
        print_size(r, &table, size);
    table_note(&table, "added_percent: what the second value adds to the time, "
                       "the median of the rounds; low, high: the interval of "
                       "95 % around that median");
    table_end(&table);
}

static int run_setting(struct session *session, void *options)
{
    const struct setting_options *o = options;
    struct setting_run r = {.session = session, .options = o};
    int status;

    for (int64_t b = o->sizes.least; b <= o->sizes.most && r.nsizes < MAX_SIZES;
         b *= o->sizes.factor)
        r.bytes[r.nsizes++] = b;
    r.lists =
        calloc((size_t)r.nsizes * LISTS * (size_t)o->rounds, sizeof *r.lists);
    status = session_settle(session, r.lists != NULL,
                            "there is no memory for so many rounds");
    if (!status)
        status = run_rounds(&r);
    if (!status && session->rank == 0)
        print_all(&r);
    free(r.lists);
    return status ? status : session_flush(session);
}

/* ------------------------------------------------------------------ options */

enum { KEY_FORMAT = 256, KEY_ROUNDS, KEY_BLOCK };

static const struct argp_option flags[] = {
    {"minbytes", 'b', "BYTES", 0, "smallest size, a multiple of 4 (4)", 0},
    {"maxbytes", 'e', "BYTES", 0, "largest size (4M)", 0},
    {"stepfactor", 'f', "N", 0, "each size is N times the one before (1024)",
     0},
    {"rounds", KEY_ROUNDS, "N", 0,
     "rounds, in each of which both values have their turn (51)", 0},
    {"block", KEY_BLOCK, "MS", 0,
     "milliseconds of allreduces that are timed together; the median of five "
     "such blocks is the time of a turn (2)",
     0},
    {"format", KEY_FORMAT, "FORMAT", 0, "text, csv or json (text)", 0},
    COMMAND_FLAGS,
};

static error_t parse_word(struct setting_options *o, int place, char *text)
{
    if (place > VALUES)
        return ARGP_ERR_UNKNOWN;
    if (place > 0)
        o->values[place - 1] = text;
    else if (strncmp(text, "HVD_", 4) == 0 || strncmp(text, "HOROVOD_", 8) == 0)
        o->name = text;
    else
        return command_refuse(&o->line,
                              "'%s' is not the name of a setting; "
                              "hvd-info lists all",
                              text);
    return 0;
}

static error_t parse_end(struct setting_options *o)
{
    if (o->line.outcome != OPTIONS_RUN)
        return 0;
    if (!o->values[VALUES - 1])
        return command_refuse(&o->line,
                              "which setting, and which two values of it? Like "
                              "HVD_EXPRESS 1 0");
    return sizes_check(&o->line, &o->sizes, MAX_BYTES);
}

static error_t parse_option(int key, char *text, struct argp_state *state)
{
    struct setting_options *o = state->input;
    struct command_line *line = &o->line;
    error_t failed = ARGP_ERR_UNKNOWN;

    switch (key) {
    case 'b':
    case 'e':
    case 'f': return sizes_key(line, key, text, &o->sizes);
    case KEY_ROUNDS:
        return command_number(line, "--rounds", text, 6, 10000, &o->rounds);
    case KEY_BLOCK:
        return command_number(line, "--block", text, 1, 10000, &o->block_ms);
    case KEY_FORMAT:
        return command_choice(line, "--format", text, table_formats,
                              &o->format);
    case ARGP_KEY_ARG: failed = parse_word(o, (int)state->arg_num, text); break;
    case ARGP_KEY_END: return parse_end(o);
    default: break;
    }
    return failed == ARGP_ERR_UNKNOWN ? command_key(line, flags, key, state)
                                      : failed;
}

int setting_main(int argc, char **argv)
{
    static const struct argp parser = {
        .options = flags,
        .parser = parse_option,
        .args_doc = "NAME FIRST SECOND",
        .doc =
            "Compare two values of the setting NAME, an environment variable "
            "that libhvd reads when it starts: the same processes start it "
            "with either value in turn, and time allreduces.",
    };
    struct setting_options options = {
        .sizes = {.least = 4, .most = 4 << 20, .factor = 1024},
        .rounds = 51,
        .block_ms = 2};

    return session_main(argc, argv, "hvd-bench setting", &parser, &options,
                        run_setting);
}
