/* SPDX-License-Identifier: Apache-2.0 */
/*
 * main.c - hvd-bench cluster: times sums by processes of this host that are
 * started without MPI, by libhvd and by Gloo in turn. hvd-bench runs this
 * program.
 *
 * Every backend has processes of its own (group.h). For each size, all backends
 * have a turn in each round; processes that wait for theirs are asleep.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cluster/group.h"
#include "cluster/member.h"
#include "cluster/rounds.h"
#include "command/command.h"
#include "tables/stats.h"
#include "tables/table.h"

/* The exit status for wrong usage, as of the other subcommands. */
enum { STATUS_USAGE = 64 };

enum { BACKENDS = HVD_BACKENDS + GLOO_BACKENDS };

struct cluster_options {
    struct command_line line;
    struct rounds rounds;
    int nranks;
    int format;
    bool is_member;
};

struct cluster {
    const struct cluster_options *options;
    struct backend backends[BACKENDS];
    bool has[BACKENDS];
    struct group groups[BACKENDS];
    double times[BACKENDS][ROUNDS_MOST];
    int iters[BACKENDS];
    struct table table;
};

static int fail(const char *error, int status)
{
    fprintf(stderr, "hvd-bench: cluster: %s\n", error);
    return status;
}

/* ---------------------------------------------------------------- measuring */

static int fail_group(const struct group *group)
{
    return fail(group->error, -1);
}

/* Prepares the processes of a backend for a size, and finds out how many of its
 * sums make a block. */
static int prepare(struct cluster *c, int b, int64_t bytes)
{
    struct group *group = &c->groups[b];
    double seconds;

    if (group_prepare(group, bytes / (int64_t)sizeof(float)) < 0 ||
        group_run(group, ROUNDS_TRIAL, &seconds) < 0)
        return fail_group(group);
    c->iters[b] = rounds_iters(seconds);
    return 0;
}

static int run_rounds(struct cluster *c)
{
    for (int round = 0; round < c->options->rounds.n; round++)
        for (int turn = 0; turn < BACKENDS; turn++) {
            int b = (round + turn) % BACKENDS;

            if (c->has[b] &&
                group_run(&c->groups[b], c->iters[b], &c->times[b][round]) < 0)
                return fail_group(&c->groups[b]);
        }
    return 0;
}

static void print_size(struct cluster *c, int64_t bytes)
{
    size_t n = (size_t)c->options->rounds.n;
    double medians[BACKENDS], least = 0;

    for (int b = 0; b < BACKENDS; b++) {
        medians[b] = c->has[b] ? stats_median(c->times[b], n) : 0;
        if (b >= HVD_BACKENDS && c->has[b] &&
            (least == 0 || medians[b] < least))
            least = medians[b];
    }
    table_number(&c->table, (double)bytes);
    for (int b = 0; b < BACKENDS; b++)
        table_number_if(&c->table, c->has[b], 1e6 * medians[b]);
    for (int b = 0; b < HVD_BACKENDS; b++)
        table_number_if(&c->table, least > 0, least / medians[b]);
}

static int measure(struct cluster *c)
{
    const struct rounds *r = &c->options->rounds;

    for (int64_t bytes = r->least; bytes <= r->most; bytes *= r->factor) {
        for (int b = 0; b < BACKENDS; b++)
            if (c->has[b] && prepare(c, b, bytes) < 0)
                return -1;
        if (run_rounds(c) < 0)
            return -1;
        print_size(c, bytes);
    }
    return 0;
}

/* ------------------------------------------------------------------- output */

static void begin_table(struct cluster *c)
{
    static const struct table_column columns[] = {{"bytes", 9, 0},
                                                  {"hvd_us", 11, 2},
                                                  {"hvd_tcp_us", 11, 2},
                                                  {"gloo_ring_us", 12, 2},
                                                  {"gloo_bcube_us", 13, 2},
                                                  {"gloo_halving_us", 15, 2},
                                                  {"gloo_polling_us", 15, 2},
                                                  {"gloo_over_hvd", 13, 2},
                                                  {"gloo_over_tcp", 13, 2}};
    char title[128];

    snprintf(title, sizeof title,
             "allreduce of float32 in place, %d processes started without MPI",
             c->options->nranks);
    table_begin(&c->table, stdout, (enum table_format)c->options->format, title,
                columns, sizeof columns / sizeof *columns);
}

static void end_table(struct cluster *c)
{
    for (int b = 0; b < BACKENDS; b++)
        if (c->has[b])
            table_note(&c->table, c->backends[b].text);
    table_note(&c->table,
               c->has[HVD_BACKENDS]
                   ? "gloo_over_hvd, gloo_over_tcp: the least time of Gloo's "
                     "over libhvd's"
                   : "this program was built without Gloo (libgloo-dev)");
    table_end(&c->table);
}

static void choose_backends(struct cluster *c)
{
    for (int i = 0; i < HVD_BACKENDS; i++) {
        c->backends[i] = hvd_backends[i];
        c->has[i] = true;
    }
    for (int i = 0; i < GLOO_BACKENDS; i++)
        c->has[HVD_BACKENDS + i] =
            gloo_backend(i, &c->backends[HVD_BACKENDS + i]);
}

static int run(const struct cluster_options *o)
{
    struct cluster *c = calloc(1, sizeof *c);
    int status = 0;

    if (!c)
        return fail("out of memory", 1);
    c->options = o;
    choose_backends(c);
    for (int b = 0; b < BACKENDS && status == 0; b++)
        if (c->has[b] && group_start(&c->groups[b], &c->backends[b], o->nranks,
                                     o->rounds.most) < 0)
            status = fail_group(&c->groups[b]);
    if (status == 0) {
        begin_table(c);
        status = measure(c);
        end_table(c);
    }
    for (int b = 0; b < BACKENDS; b++)
        group_stop(&c->groups[b]);
    free(c);
    if (status == 0 && (fflush(stdout) != 0 || ferror(stdout)))
        return fail("the table could not be written", 1);
    return status == 0 ? 0 : 1;
}

/* ------------------------------------------------------------------ options */

enum { KEY_ROUNDS = 256, KEY_MEMBER, KEY_FORMAT };

static const struct argp_option flags[] = {
    {"processes", 'n', "N", 0, "processes of each backend, 2 to 16 (2)", 0},
    {"minbytes", 'b', "BYTES", 0, "smallest size, a multiple of 4 (4)", 0},
    {"maxbytes", 'e', "BYTES", 0, "largest size (64M)", 0},
    {"stepfactor", 'f', "N", 0, "each size is N times the one before (4)", 0},
    {"rounds", KEY_ROUNDS, "N", 0,
     "blocks of each backend and size, of which the median counts (11)", 0},
    {"member", KEY_MEMBER, NULL, 0,
     "be one of the ranks that were started by TF_CONFIG or by mpirun, and "
     "time libhvd alone",
     0},
    {"format", KEY_FORMAT, "FORMAT", 0, "text, csv or json (text)", 0},
    COMMAND_FLAGS,
};

static error_t parse_end(struct cluster_options *o)
{
    const struct rounds *r = &o->rounds;

    if (r->least < (int64_t)sizeof(float) ||
        r->least % (int64_t)sizeof(float) != 0)
        return command_refuse(&o->line, "-b: %lld is not a multiple of 4",
                              (long long)r->least);
    if (r->most > 1 << 30)
        return command_refuse(&o->line, "-e: %lld is more than 1G",
                              (long long)r->most);
    if (r->least > r->most)
        return command_refuse(
            &o->line, "the smallest size, %lld, is above the largest, %lld",
            (long long)r->least, (long long)r->most);
    if (!o->is_member && getenv("OMPI_COMM_WORLD_SIZE"))
        return command_refuse(&o->line,
                              "start it without mpirun: it starts the "
                              "processes itself; or give --member");
    return 0;
}

static error_t parse_option(int key, char *text, struct argp_state *state)
{
    struct cluster_options *o = state->input;
    struct command_line *line = &o->line;
    struct rounds *r = &o->rounds;

    switch (key) {
    case 'n':
        return command_number(line, "-n", text, 2, GROUP_MOST, &o->nranks);
    case 'b': return command_bytes(line, "-b", text, &r->least);
    case 'e': return command_bytes(line, "-e", text, &r->most);
    case 'f': return command_number(line, "-f", text, 2, 1 << 20, &r->factor);
    case KEY_ROUNDS:
        return command_number(line, "--rounds", text, 1, ROUNDS_MOST, &r->n);
    case KEY_MEMBER: o->is_member = true; return 0;
    case KEY_FORMAT:
        return command_choice(line, "--format", text, table_formats,
                              &o->format);
    case ARGP_KEY_END: return parse_end(o);
    default: return command_key(line, flags, key, state);
    }
}

int main(int argc, char **argv)
{
    static const struct argp parser = {
        .options = flags,
        .parser = parse_option,
        .doc = "Time allreduces by processes that are started without MPI, on "
               "this host: by libhvd in shared memory, by libhvd over TCP, and "
               "by Gloo's algorithms over TCP, all in turn.",
    };
    struct cluster_options options = {
        .rounds = {.least = 4, .most = 64 << 20, .factor = 4, .n = 11},
        .nranks = 2};

    switch (command_parse(&parser, argc, argv, &options)) {
    case OPTIONS_HELP:
        command_help(&parser, "hvd-bench cluster", stdout);
        return 0;
    case OPTIONS_VERSION:
        printf("hvd-bench %s\n", HVD_VERSION_STRING);
        return 0;
    case OPTIONS_ERROR: return fail(options.line.error, STATUS_USAGE);
    default: break;
    }
    if (options.is_member)
        return member_run(&options.rounds, (enum table_format)options.format);
    return run(&options);
}
