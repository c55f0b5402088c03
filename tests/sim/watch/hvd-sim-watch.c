/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hvd-sim-watch - runs the watchdogs of many hosts in one process and in
 * virtual time (docs/SIMULATOR.md): explores what happens from seeds, or
 * measures.
 */
#include <stdlib.h>
#include <string.h>

#include "command/command.h"
#include "simulated.h"

struct options {
    struct command_line line;
    int from, nseeds, without, hosts, ranks;
    bool verbose, is_one, csv;
};

enum { KEY_WITHOUT = 256, KEY_CSV };

static const struct argp_option flags[] = {
    {0, 0, 0, 0, "Exploring:", 1},
    {"seed", 's', "N", 0, "run this seed alone", 0},
    {"seeds", 'n', "N", 0, "run so many seeds (1000)", 0},
    {"from", 'f', "N", 0, "begin with this seed (1)", 0},
    {"without", KEY_WITHOUT, "MASK", 0,
     "leave these happenings out (tests/sim/watch/story.c)", 0},
    {"verbose", 'v', 0, 0, "print what happens", 0},
    {0, 0, 0, 0, "Measuring:", 2},
    {"hosts", 'H', "N", 0, "measure on 2, 4, ... up to so many hosts", 0},
    {"ranks", 'r', "N", 0, "ranks on each host (8)", 0},
    {"csv", KEY_CSV, 0, 0, "print CSV", 0},
    COMMAND_FLAGS};

static error_t parse_flag(int key, char *text, struct argp_state *state)
{
    struct options *options = state->input;
    struct command_line *line = &options->line;

    switch (key) {
    case 's':
        options->is_one = true;
        options->nseeds = 1;
        return command_number(line, "--seed", text, 0, INT32_MAX,
                              &options->from);
    case 'n':
        return command_number(line, "--seeds", text, 1, INT32_MAX,
                              &options->nseeds);
    case 'f':
        return command_number(line, "--from", text, 0, INT32_MAX,
                              &options->from);
    case KEY_WITHOUT:
        return command_number(line, "--without", text, 0, INT32_MAX,
                              &options->without);
    case 'v': options->verbose = true; return 0;
    case 'H':
        return command_number(line, "--hosts", text, 2, 4096, &options->hosts);
    case 'r':
        return command_number(line, "--ranks", text, 1, 64, &options->ranks);
    case KEY_CSV: options->csv = true; return 0;
    default: return command_key(line, flags, key, state);
    }
}

static const struct argp parser = {
    .options = flags,
    .parser = parse_flag,
    .doc = "Simulates the watchdogs of many hosts.",
};

static int explore(const struct options *options)
{
    int nfailed = 0;

    for (int i = 0; i < options->nseeds; i++)
        nfailed += !sim_story((uint64_t)options->from + (uint64_t)i,
                              (unsigned)options->without, options->verbose);
    if (nfailed > 0)
        printf("%d of %d seeds failed; hvd-sim-watch --seed N --verbose runs "
               "one again\n",
               nfailed, options->nseeds);
    else
        printf("%d seed%s, all well\n", options->nseeds,
               options->nseeds == 1 ? "" : "s");
    return nfailed > 0;
}

static int measure(const struct options *options)
{
    int hosts[16], n = 0;

    for (int h = 2; h < options->hosts; h *= 2)
        hosts[n++] = h;
    hosts[n++] = options->hosts;
    return sim_measure(hosts, n, options->ranks, options->csv);
}

int main(int argc, char **argv)
{
    struct options options = {.from = 1, .nseeds = 1000, .ranks = 8};

    switch (command_parse(&parser, argc, argv, &options)) {
    case OPTIONS_HELP: command_help(&parser, "hvd-sim-watch", stdout); return 0;
    case OPTIONS_VERSION: puts("hvd-sim-watch"); return 0;
    case OPTIONS_ERROR:
        fprintf(stderr, "hvd-sim-watch: %s\n", options.line.error);
        return 2;
    default: break;
    }
    return options.hosts > 0 ? measure(&options) : explore(&options);
}
