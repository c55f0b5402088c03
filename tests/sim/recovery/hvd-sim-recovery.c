/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hvd-sim-recovery - members of a job die, are stopped, and are cut off, and
 * the others agree on who is left, in one process and in virtual time
 * (docs/SIMULATOR.md).
 */
#include <stdio.h>
#include <stdlib.h>

#include "../seeds.h"
#include "command/command.h"
#include "simulated.h"

struct options {
    struct command_line line;
    struct sim_seeds seeds;
};

static const struct argp_option flags[] = {SIM_SEEDS_FLAGS("1000"),
                                           COMMAND_FLAGS};

static error_t parse_flag(int key, char *text, struct argp_state *state)
{
    struct options *options = state->input;
    error_t error = sim_seeds_key(&options->line, &options->seeds, key, text);

    return error == ARGP_ERR_UNKNOWN
               ? command_key(&options->line, flags, key, state)
               : error;
}

static const struct argp parser = {
    .options = flags,
    .parser = parse_flag,
    .doc = "Simulates members of a job who agree on who is left.",
};

static int explore(const struct sim_seeds *seeds)
{
    struct sim_counts counts = {0};
    int nfailed = 0;

    for (int i = 0; i < seeds->n; i++)
        nfailed += !sim_recovery((uint64_t)seeds->first + (uint64_t)i,
                                 seeds->verbose, &counts);
    printf("%lld worlds started, %lld members ended in words, %lld letters\n",
           (long long)counts.started, (long long)counts.ended,
           (long long)counts.letters);
    return sim_seeds_end(seeds, nfailed, "hvd-sim-recovery");
}

int main(int argc, char **argv)
{
    struct options options = {.seeds = {.first = 1, .n = 1000}};

    setvbuf(stdout, NULL, _IOLBF, 0); /* for whoever ends this in the middle */
    switch (command_parse(&parser, argc, argv, &options)) {
    case OPTIONS_HELP:
        command_help(&parser, "hvd-sim-recovery", stdout);
        return 0;
    case OPTIONS_VERSION: puts("hvd-sim-recovery"); return 0;
    case OPTIONS_ERROR:
        fprintf(stderr, "hvd-sim-recovery: %s\n", options.line.error);
        return 2;
    default: break;
    }
    return explore(&options.seeds);
}
