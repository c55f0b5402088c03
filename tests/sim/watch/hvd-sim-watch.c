/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hvd-sim-watch - runs the watchdogs of many hosts in one process and in
 * virtual time (docs/SIMULATOR.md): explores what happens from seeds, or
 * measures.
 */
#include <stdlib.h>
#include <string.h>

#include "../seeds.h"
#include "command/command.h"
#include "simulated.h"

struct options {
    struct command_line line;
    struct sim_seeds seeds;
    int without, hosts, ranks;
    bool csv;
};

enum { KEY_WITHOUT = 256, KEY_CSV };

static const struct argp_option flags[] = {
    {0, 0, 0, 0, "Exploring:", 1},
    SIM_SEEDS_FLAGS("1000"),
    {"without", KEY_WITHOUT, "MASK", 0,
     "leave these happenings out (tests/sim/watch/story.c)", 0},
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
    case KEY_WITHOUT:
        return command_number(line, "--without", text, 0, INT32_MAX,
                              &options->without);
    case 'H':
        return command_number(line, "--hosts", text, 2, 4096, &options->hosts);
    case 'r':
        return command_number(line, "--ranks", text, 1, 64, &options->ranks);
    case KEY_CSV: options->csv = true; return 0;
    default: break;
    }
    error_t error = sim_seeds_key(line, &options->seeds, key, text);

    return error == ARGP_ERR_UNKNOWN ? command_key(line, flags, key, state)
                                     : error;
}

static const struct argp parser = {
    .options = flags,
    .parser = parse_flag,
    .doc = "Simulates the watchdogs of many hosts.",
};

static int explore(const struct options *options)
{
    const struct sim_seeds *seeds = &options->seeds;
    int nfailed = 0;

    for (int i = 0; i < seeds->n; i++)
        nfailed += !sim_story((uint64_t)seeds->first + (uint64_t)i,
                              (unsigned)options->without, seeds->verbose);
    return sim_seeds_end(seeds, nfailed, "hvd-sim-watch");
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
    struct options options = {.seeds = {.first = 1, .n = 1000}, .ranks = 8};

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
