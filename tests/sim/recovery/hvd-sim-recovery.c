/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hvd-sim-recovery - members of a job die, are stopped, and are cut off, and
 * the others agree on who is left, in one process and in virtual time
 * (docs/SIMULATOR.md).
 */
#include <stdio.h>
#include <stdlib.h>

#include "command/command.h"
#include "simulated.h"

struct options {
    struct command_line line;
    int from, nseeds;
    bool verbose;
};

static const struct argp_option flags[] = {
    {"seed", 's', "N", 0, "run this seed alone", 0},
    {"seeds", 'n', "N", 0, "run so many seeds (1000)", 0},
    {"from", 'f', "N", 0, "begin with this seed (1)", 0},
    {"verbose", 'v', 0, 0, "print what happens", 0},
    COMMAND_FLAGS};

static error_t parse_flag(int key, char *text, struct argp_state *state)
{
    struct options *options = state->input;
    struct command_line *line = &options->line;

    switch (key) {
    case 's':
        options->nseeds = 1;
        return command_number(line, "--seed", text, 0, INT32_MAX,
                              &options->from);
    case 'n':
        return command_number(line, "--seeds", text, 1, INT32_MAX,
                              &options->nseeds);
    case 'f':
        return command_number(line, "--from", text, 0, INT32_MAX,
                              &options->from);
    case 'v': options->verbose = true; return 0;
    default: return command_key(line, flags, key, state);
    }
}

static const struct argp parser = {
    .options = flags,
    .parser = parse_flag,
    .doc = "Simulates members of a job who agree on who is left.",
};

static int explore(const struct options *options)
{
    struct sim_counts counts = {0};
    int nfailed = 0;

    for (int i = 0; i < options->nseeds; i++)
        nfailed += !sim_recovery((uint64_t)options->from + (uint64_t)i,
                                 options->verbose, &counts);
    printf("%lld worlds started, %lld members ended in words, %lld letters\n",
           (long long)counts.started, (long long)counts.ended,
           (long long)counts.letters);
    if (nfailed > 0)
        printf("%d of %d seeds failed; hvd-sim-recovery --seed N --verbose "
               "runs one again\n",
               nfailed, options->nseeds);
    else
        printf("%d seed%s, all well\n", options->nseeds,
               options->nseeds == 1 ? "" : "s");
    return nfailed > 0;
}

int main(int argc, char **argv)
{
    struct options options = {.from = 1, .nseeds = 1000};

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
    return explore(&options);
}
