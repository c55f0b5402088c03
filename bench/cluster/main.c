/* SPDX-License-Identifier: Apache-2.0 */
/*
 * main.c - hvd-bench cluster: times sums by processes of this host that are
 * started without MPI, by libhvd and by Gloo in turn. hvd-bench runs this
 * program.
 *
 * Every way has processes of its own (group.h). For each size, all ways have a
 * turn in each round; processes that wait for theirs are asleep.
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

enum { WAYS = WAYS_OF_HVD + WAYS_OF_GLOO };

struct cluster_options {
    struct command_line line;
    struct rounds rounds;
    int nranks;
    int format;
    bool is_member;
};

struct cluster {
    const struct cluster_options *options;
    struct way ways[WAYS];
    bool has[WAYS];
    struct group groups[WAYS];
    double times[WAYS][ROUNDS_MOST];
    int iters[WAYS];
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

/* Prepares the processes of a way for a size, and finds out how many of its
 * sums make a block. */
static int prepare(struct cluster *c, int way, int64_t bytes)
{
    struct group *group = &c->groups[way];
    double seconds;

    if (group_prepare(group, bytes / (int64_t)sizeof(float)) < 0 ||
        group_run(group, ROUNDS_TRIAL, &seconds) < 0)
        return fail_group(group);
    c->iters[way] = rounds_iters(seconds);
    return 0;
}

static int run_rounds(struct cluster *c)
{
    for (int round = 0; round < c->options->rounds.n; round++)
        for (int turn = 0; turn < WAYS; turn++) {
            int way = (round + turn) % WAYS;

            if (c->has[way] && group_run(&c->groups[way], c->iters[way],
                                         &c->times[way][round]) < 0)
                return fail_group(&c->groups[way]);
        }
    return 0;
}

static void print_size(struct cluster *c, int64_t bytes)
{
    size_t n = (size_t)c->options->rounds.n;
    double medians[WAYS], least = 0;

    for (int way = 0; way < WAYS; way++) {
        medians[way] = c->has[way] ? stats_median(c->times[way], n) : 0;
        if (way >= WAYS_OF_HVD && c->has[way] &&
            (least == 0 || medians[way] < least))
            least = medians[way];
    }
    table_number(&c->table, (double)bytes);
    for (int way = 0; way < WAYS; way++)
        table_number_if(&c->table, c->has[way], 1e6 * medians[way]);
    for (int way = 0; way < WAYS_OF_HVD; way++)
        table_number_if(&c->table, least > 0, least / medians[way]);
}

static int measure(struct cluster *c)
{
    const struct rounds *r = &c->options->rounds;

    for (int64_t bytes = r->least; bytes <= r->most; bytes *= r->factor) {
        for (int way = 0; way < WAYS; way++)
            if (c->has[way] && prepare(c, way, bytes) < 0)
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
    for (int way = 0; way < WAYS; way++)
        if (c->has[way])
            table_note(&c->table, c->ways[way].text);
    table_note(&c->table,
               c->has[WAYS_OF_HVD]
                   ? "gloo_over_hvd, gloo_over_tcp: the least time of Gloo's "
                     "over libhvd's"
                   : "this program was built without Gloo (libgloo-dev)");
    table_end(&c->table);
}

static void choose_ways(struct cluster *c)
{
    for (int i = 0; i < WAYS_OF_HVD; i++) {
        c->ways[i] = ways_of_hvd[i];
        c->has[i] = true;
    }
    for (int i = 0; i < WAYS_OF_GLOO; i++)
        c->has[WAYS_OF_HVD + i] = way_of_gloo(i, &c->ways[WAYS_OF_HVD + i]);
}

static int run(const struct cluster_options *o)
{
    struct cluster *c = calloc(1, sizeof *c);
    int status = 0;

    if (!c)
        return fail("out of memory", 1);
    c->options = o;
    choose_ways(c);
    for (int way = 0; way < WAYS && status == 0; way++)
        if (c->has[way] && group_start(&c->groups[way], &c->ways[way],
                                       o->nranks, o->rounds.most) < 0)
            status = fail_group(&c->groups[way]);
    if (status == 0) {
        begin_table(c);
        status = measure(c);
        end_table(c);
    }
    for (int way = 0; way < WAYS; way++)
        group_stop(&c->groups[way]);
    free(c);
    if (status == 0 && (fflush(stdout) != 0 || ferror(stdout)))
        return fail("the table could not be written", 1);
    return status == 0 ? 0 : 1;
}

/* ------------------------------------------------------------------ options */

enum { KEY_ROUNDS = 256, KEY_MEMBER, KEY_FORMAT };

static const struct argp_option flags[] = {
    {"processes", 'n', "N", 0, "processes of each way, 2 to 16 (2)", 0},
    {"minbytes", 'b', "BYTES", 0, "smallest size, a multiple of 4 (4)", 0},
    {"maxbytes", 'e', "BYTES", 0, "largest size (64M)", 0},
    {"stepfactor", 'f', "N", 0, "each size is N times the one before (4)", 0},
    {"rounds", KEY_ROUNDS, "N", 0,
     "blocks of each way and size, of which the median counts (11)", 0},
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
