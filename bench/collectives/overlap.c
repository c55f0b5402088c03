/* SPDX-License-Identifier: Apache-2.0 */
/*
 * overlap.c - hvd-bench overlap: a backward pass in miniature. It computes a
 * while, submits a tensor, computes, submits, ..., and waits for all tensors at
 * the end.
 *
 * Computing consists of units of equal arithmetic, as many as take a given part
 * of the time that hvd needs for the communication alone; each way gets the
 * same number. Hidden time is the time that the two together save, as a share
 * of the communication:
 *
 *     hidden = (communication + computing - both) / communication
 *
 * from 0 to 100 %; all three are medians of rounds in which everything has its
 * turn. No more than the computing can be hidden, so at half the
 * communication's time 50 % is the maximum. If all cores compute, moving data
 * takes time from computing, so that there may be nothing left to gain.
 */
#include "collectives/subcommands.h"

#include "collectives/agree.h"
#include "collectives/busy.h"
#include "collectives/session.h"
#include "hvd.h"
#include "tables/stats.h"
#include "tables/table.h"

#include <limits.h>
#include <mpi.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_TENSORS = 1024, WARM_UPS = 3 };

struct overlap_options {
    struct command_line line;
    int64_t bytes;
    int tensors;
    int rounds;
    int memory; /* 0: hvd_malloc, 1: malloc */
    int format;
};

enum way { HVD_ASYNC, MPI_ASYNC, MPI_TESTED, MPI_BLOCKING, WAYS };

static const char *const way_names[WAYS] = {
    "hvd_allreduce_async", "MPI_Iallreduce", "MPI_Iallreduce + MPI_Testall",
    "MPI_Allreduce"};

/* The amounts of computing, in times of the communication alone. */
static const double amounts[] = {0.5, 1, 2, 4};
enum { AMOUNTS = sizeof amounts / sizeof *amounts };

struct overlap {
    struct session *session;
    const struct overlap_options *options;
    float *memory; /* owned */
    int count;     /* elements of a tensor */
    char names[MOST_TENSORS][24];
    hvd_handle handles[MOST_TENSORS];
    MPI_Request requests[MOST_TENSORS];
    double *times; /* [SERIES][rounds] */
};

/* --------------------------------------------------------------- operations */

static float *tensor_at(const struct overlap *v, int i)
{
    return v->memory + (int64_t)i * v->count;
}

/* Calls MPI_Testall, in which MPI makes progress. */
static int test_requests(struct overlap *v, int n)
{
    int done;

    return MPI_Testall(n, v->requests, &done, MPI_STATUSES_IGNORE);
}

static int submit_mpi(struct overlap *v, enum way way, int i)
{
    int code;

    if (way == MPI_BLOCKING) {
        v->requests[i] = MPI_REQUEST_NULL;
        return MPI_Allreduce(MPI_IN_PLACE, tensor_at(v, i), v->count, MPI_FLOAT,
                             MPI_SUM, MPI_COMM_WORLD);
    }
    code = MPI_Iallreduce(MPI_IN_PLACE, tensor_at(v, i), v->count, MPI_FLOAT,
                          MPI_SUM, MPI_COMM_WORLD, &v->requests[i]);
    if (code == MPI_SUCCESS && way == MPI_TESTED)
        code = test_requests(v, i + 1);
    return code;
}

static int submit_tensor(struct overlap *v, enum way way, int i)
{
    int code;

    if (way == HVD_ASYNC)
        return hvd_allreduce_async(v->names[i], tensor_at(v, i),
                                   tensor_at(v, i), v->count, HVD_FLOAT32,
                                   HVD_SUM, &v->handles[i]) < 0
                   ? session_note_hvd(v->session)
                   : 0;
    code = submit_mpi(v, way, i);
    return code == MPI_SUCCESS ? 0 : session_note_mpi(v->session, code);
}

static int wait_all(struct overlap *v, enum way way, int n)
{
    int code;

    if (way != HVD_ASYNC) {
        code = MPI_Waitall(n, v->requests, MPI_STATUSES_IGNORE);
        return code == MPI_SUCCESS ? 0 : session_note_mpi(v->session, code);
    }
    for (int i = 0; i < n; i++)
        if (hvd_wait(v->handles[i]) < 0)
            return session_note_hvd(v->session);
    return 0;
}

/* Runs all tensors once, with that many units of computing before each. If way
 * is WAYS, it only computes. */
static int run_once(struct overlap *v, enum way way, int64_t units)
{
    int n = v->options->tensors, failed = 0;

    for (int i = 0; i < n && !failed; i++) {
        for (int64_t u = 0; u < units; u++)
            busy_unit();
        if (way != WAYS)
            failed = submit_tensor(v, way, i);
    }
    if (!failed && way != WAYS)
        failed = wait_all(v, way, n);
    return failed;
}

/* Times one run; seconds becomes the slowest rank's time. Returns 0 or a
 * status. Collective. */
static int time_once(struct overlap *v, enum way way, int64_t units,
                     double *seconds)
{
    double elapsed;
    int failed;

    memset(v->memory, 0,
           (size_t)v->count * (size_t)v->options->tensors * sizeof(float));
    MPI_Barrier(MPI_COMM_WORLD);
    elapsed = MPI_Wtime();
    failed = run_once(v, way, units);
    elapsed = MPI_Wtime() - elapsed;
    if (!agree_well(!failed))
        return session_fail(v->session);
    MPI_Allreduce(&elapsed, seconds, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    return 0;
}

/* ------------------------------------------------------------------- rounds */

enum { ALONE, TOGETHER, COMPUTING = 2 * WAYS, SERIES };

/* Fills medians: of each way alone, of each way together with computing, and of
 * computing alone. */
static int run_rounds(struct overlap *v, int64_t units, double *medians)
{
    int rounds = v->options->rounds, status = 0;

    for (int r = 0; r < rounds && !status; r++)
        for (int turn = 0; turn < SERIES && !status; turn++) {
            int s = (r + turn) % SERIES;
            enum way way = s == COMPUTING ? WAYS : (enum way)(s / 2);
            int64_t n = s != COMPUTING && s % 2 == ALONE ? 0 : units;

            status = time_once(v, way, n, &v->times[s * rounds + r]);
        }
    for (int s = 0; s < SERIES && !status; s++)
        medians[s] = stats_median(v->times + s * rounds, (size_t)rounds);
    return status;
}

/* Times vary: a share below nothing or above all is noise. */
static double hidden_percent(double alone, double computing, double both)
{
    double hidden = alone > 0 ? 100 * (alone + computing - both) / alone : 0;

    return hidden < 0 ? 0 : hidden > 100 ? 100 : hidden;
}

static void print_amount(struct table *table, const double *medians)
{
    double computing = medians[COMPUTING];

    for (int way = 0; way < WAYS; way++) {
        double alone = medians[2 * way + ALONE];
        double both = medians[2 * way + TOGETHER];

        table_number(table, 1e3 * computing);
        table_text(table, way_names[way]);
        table_number(table, 1e3 * alone);
        table_number(table, 1e3 * both);
        table_number(table, hidden_percent(alone, computing, both));
        table_number(table, medians[2 * MPI_BLOCKING + TOGETHER] / both);
    }
}

/* Fills the ratio of the time of hvd alone to that of so much computing; both
 * are medians of rounds. */
static int compare_with(struct overlap *v, int64_t units, double *ratio)
{
    int rounds = v->options->rounds, status = 0;
    double *alone = v->times, *computing = v->times + rounds;

    for (int r = 0; r < rounds && !status; r++) {
        status = time_once(v, HVD_ASYNC, 0, &alone[r]);
        if (!status)
            status = time_once(v, WAYS, units, &computing[r]);
    }
    if (!status)
        *ratio = stats_median(alone, (size_t)rounds) /
                 stats_median(computing, (size_t)rounds);
    return status;
}

/* Finds how many units before each tensor take, together, as long as hvd does.
 * All ranks get the same number. If the first trial is shorter than the
 * communication, a second one is about as long: on a busy machine a rank gets
 * a whole core for a millisecond, but only its share of it for longer. */
static int calibrate(struct overlap *v, double *units)
{
    int64_t trial = 100;
    double ratio = 0, ignored;
    int status = 0;

    for (int way = 0; way < WAYS && !status; way++)
        for (int i = 0; i < WARM_UPS && !status; i++)
            status = time_once(v, (enum way)way, 0, &ignored);
    if (!status)
        status = compare_with(v, trial, &ratio);
    if (!status && ratio > 1) {
        trial = (int64_t)((double)trial * ratio);
        status = compare_with(v, trial, &ratio);
    }
    *units = (double)trial * ratio;
    return status;
}

static int run_amounts(struct overlap *v)
{
    static const struct table_column columns[] = {
        {"compute_ms", 10, 3},     {"way", -28, 0},
        {"comm_ms", 9, 3},         {"both_ms", 9, 3},
        {"hidden_percent", 14, 1}, {"blocking_over_it", 16, 2}};
    const struct overlap_options *o = v->options;
    double medians[SERIES], units = 0;
    struct table table = {0};
    char title[160];
    int status = calibrate(v, &units);

    snprintf(title, sizeof title,
             "%d allreduces of %lld bytes, submitted while computing; %s "
             "memory",
             o->tensors, (long long)v->count * (long long)sizeof(float),
             o->memory ? "ordinary" : "hvd_malloc");
    if (v->session->rank == 0)
        table_begin(&table, stdout, (enum table_format)o->format, title,
                    columns, sizeof columns / sizeof *columns);
    for (int i = 0; i < AMOUNTS && !status; i++) {
        int64_t n = (int64_t)(units * amounts[i]);

        status = run_rounds(v, n > 0 ? n : 1, medians);
        if (!status && v->session->rank == 0)
            print_amount(&table, medians);
    }
    if (v->session->rank == 0) {
        table_note(&table, "hidden_percent: of comm_ms; blocking_over_it: "
                           "both_ms of MPI_Allreduce over this one's");
        table_end(&table);
    }
    return status ? status : session_flush(v->session);
}

static void overlap_free(struct overlap *v)
{
    if (!v)
        return;
    if (v->options->memory)
        free(v->memory);
    else
        hvd_free(v->memory);
    free(v->times);
    free(v);
}

/* Returns NULL without memory. */
static struct overlap *overlap_new(struct session *session,
                                   const struct overlap_options *o)
{
    struct overlap *v = calloc(1, sizeof *v);

    if (!v)
        return NULL;
    v->session = session;
    v->options = o;
    v->count = (int)(o->bytes / o->tensors / (int64_t)sizeof(float) / 16 * 16);
    v->memory = o->memory ? aligned_alloc(64, (size_t)o->bytes / 64 * 64)
                          : hvd_malloc((size_t)o->bytes);
    v->times = calloc((size_t)SERIES * (size_t)o->rounds, sizeof(double));
    for (int i = 0; i < o->tensors; i++)
        snprintf(v->names[i], sizeof v->names[i], "overlap %d", i);
    if (v->memory && v->times)
        return v;
    overlap_free(v);
    return NULL;
}

static int run_overlap(struct session *session, void *options)
{
    struct overlap *v = overlap_new(session, options);
    int status = session_settle(session, v != NULL,
                                "there is no memory: choose a smaller -b");

    if (!status && v)
        status = run_amounts(v);
    overlap_free(v);
    return status;
}

/* ------------------------------------------------------------------ options */

enum { KEY_FORMAT = 256, KEY_MEMORY, KEY_ROUNDS };

static const struct argp_option flags[] = {
    {"bytes", 'b', "BYTES", 0, "bytes of all tensors together (16M)", 0},
    {"tensors", 't', "N", 0, "number of tensors, up to 1024 (16)", 0},
    {"memory", KEY_MEMORY, "hvd|malloc", 0,
     "tensors in hvd_malloc memory, or in ordinary memory (hvd)", 0},
    {"rounds", KEY_ROUNDS, "N", 0,
     "rounds, in each of which everything has its turn (11)", 0},
    {"format", KEY_FORMAT, "FORMAT", 0, "text, csv or json (text)", 0},
    COMMAND_FLAGS,
};

static error_t parse_end(struct overlap_options *o)
{
    if (o->bytes / o->tensors < 64)
        return command_refuse(
            &o->line, "-b %lld: less than 64 bytes for each of %d tensors",
            (long long)o->bytes, o->tensors);
    if (o->bytes / o->tensors > INT_MAX)
        return command_refuse(&o->line,
                              "-b %lld: more than 2147483647 bytes a tensor",
                              (long long)o->bytes);
    return 0;
}

static error_t parse_option(int key, char *text, struct argp_state *state)
{
    static const char *const memories[] = {"hvd", "malloc", NULL};
    struct overlap_options *o = state->input;
    struct command_line *line = &o->line;

    switch (key) {
    case 'b': return command_bytes(line, "-b", text, &o->bytes);
    case 't':
        return command_number(line, "-t", text, 1, MOST_TENSORS, &o->tensors);
    case KEY_ROUNDS:
        return command_number(line, "--rounds", text, 1, 1000000, &o->rounds);
    case KEY_MEMORY:
        return command_choice(line, "--memory", text, memories, &o->memory);
    case KEY_FORMAT:
        return command_choice(line, "--format", text, table_formats,
                              &o->format);
    case ARGP_KEY_END: return parse_end(o);
    default: return command_key(line, flags, key, state);
    }
}

int overlap_main(int argc, char **argv)
{
    static const struct argp parser = {
        .options = flags,
        .parser = parse_option,
        .doc = "Compute and submit tensors by turns, as a backward pass does, "
               "and measure how much of the communication the computing "
               "hides: by hvd, by MPI_Iallreduce without and with calls of "
               "MPI_Testall in between, and by MPI_Allreduce, which hides "
               "nothing.",
    };
    struct overlap_options options = {
        .bytes = 16 << 20, .tensors = 16, .rounds = 11};

    return session_main(argc, argv, "hvd-bench overlap", &parser, &options,
                        run_overlap);
}
