/* SPDX-License-Identifier: Apache-2.0 */
/*
 * seeds.h - the options by which all simulators take the seeds that they
 * explore, and the last line of hvd-sim-watch and hvd-sim-recovery.
 */
#ifndef HVD_TESTS_SIM_SEEDS_H
#define HVD_TESTS_SIM_SEEDS_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "command/command.h"

/* The seeds from first to first + n - 1. */
struct sim_seeds {
    int first, n;
    bool verbose; /* print what happens */
};

/* Rows of a list of options; usual: the text of n if it is not given. */
#define SIM_SEEDS_FLAGS(usual)                                                 \
    {"seed", 's', "N", 0, "run this seed alone", 0},                           \
        {"seeds", 'n', "N", 0, "run so many seeds (" usual ")", 0},            \
        {"from", 'f', "N", 0, "begin with this seed (1)", 0},                  \
    {                                                                          \
        "verbose", 'v', 0, 0, "print what happens", 0                          \
    }

/* Handles the keys of these rows; returns ARGP_ERR_UNKNOWN for all others. */
static inline error_t sim_seeds_key(struct command_line *line,
                                    struct sim_seeds *seeds, int key,
                                    const char *text)
{
    switch (key) {
    case 's':
        seeds->n = 1;
        return command_number(line, "--seed", text, 0, INT32_MAX,
                              &seeds->first);
    case 'n':
        return command_number(line, "--seeds", text, 1, INT32_MAX, &seeds->n);
    case 'f':
        return command_number(line, "--from", text, 0, INT32_MAX,
                              &seeds->first);
    case 'v': seeds->verbose = true; return 0;
    default: return ARGP_ERR_UNKNOWN;
    }
}

/* Says how many seeds have failed. Returns the exit status. */
static inline int sim_seeds_end(const struct sim_seeds *seeds, int nfailed,
                                const char *program)
{
    if (nfailed > 0)
        printf("%d of %d seeds failed; %s --seed N --verbose runs one again\n",
               nfailed, seeds->n, program);
    else
        printf("%d seed%s, all well\n", seeds->n, seeds->n == 1 ? "" : "s");
    return nfailed > 0;
}

#endif
